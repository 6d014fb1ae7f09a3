-- The unfinished chunks of strictly ordered Jobs, in their order: the first one has its turn.
create table dataflow.turn (
    jobid      text collate "C" not null,
    dataid     text collate "C" not null,
    -- A chunk that runs comes first.
    is_running boolean not null,
    sort_key   text collate "C" not null,
    primary key (jobid, dataid)
)
-- As in the runnable set, dead rows lie at the head.
with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);
create index turn_in_order on dataflow.turn (jobid, is_running desc, sort_key, dataid);

-- Of all the chunks that wait for their turn, none is read to find those with another answer.
drop index dataflow.runnable_but_blocked;
create index runnable_but_blocked on dataflow.runnable (jobid, blocked) where blocked is not null;
