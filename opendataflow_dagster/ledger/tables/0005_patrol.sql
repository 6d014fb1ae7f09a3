-- How far heal has looked for lost wake-ups: at most one row, the last chunk of the last look.
create table dataflow.patrol (
    is_only   boolean primary key default true check (is_only),
    datasetid text collate "C" not null,
    jobid     text collate "C" not null,
    dataid    text collate "C" not null
);
