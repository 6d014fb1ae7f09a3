-- What an orchestrator has been told. Only what is younger than its cursor is kept, so the table stays small.

create table dataflow.reported (
    -- Which one: an orchestrator that begins with an empty store has another name.
    orchestrator text collate "C" not null,
    manifest_id  bigint not null,
    primary key (orchestrator, manifest_id)
);
comment on table dataflow.reported is 'Versions that an orchestrator knows of. Derived: rows may be deleted at any time; it is then told again.';

-- Chunks that somebody else made READY, which no version leads to.
create index ready_without_a_version on dataflow.datastatus (modified, datasetid, dataid)
    where locktype = 'OUT' and status = 'READY' and manifest_id is null;
