-- The chunks whose current version is stale: an input has another version than the one that they were made from, or is stale itself.
create table dataflow.stale (
    datasetid       text collate "C" not null,
    dataid          text collate "C" not null,
    -- The version that is stale.
    manifest_id     bigint not null,
    -- One cause: this input chunk, and the version of it that was used; null: one without a manifest.
    input_datasetid text collate "C" not null,
    input_dataid    text collate "C" not null,
    used_id         bigint,
    -- The input has another version. False: its version was used, and is itself stale.
    is_direct       boolean not null,
    -- When it became so, and by whose change.
    since           timestamptz not null,
    by              text,
    primary key (datasetid, dataid)
);
create index stale_by_cause on dataflow.stale (input_datasetid, input_dataid);

-- How far the marks of a Job's chunks have been compared, after its inputs changed; null: they need not be.
alter table dataflow.unsettled add column stale_after text collate "C";

-- What happens when an input has a new version: the chunk is rebuilt, or waits for a person. `cascade` of a Job's policy, which said
-- this for all its outputs, still means `rebuild`.
alter table dataflow.dataset add column on_new_input text not null default 'mark' check (on_new_input in ('rebuild', 'mark'));
