-- Jobs whose definition changed after their chunks were evaluated. Their chunks are evaluated again in portions; until then
-- nobody claims them.
create table dataflow.unsettled (
    jobid   text collate "C" not null,
    -- '': every chunk of the Job after `after`. Otherwise one chunk that another transaction held at the time.
    dataid  text collate "C" not null default '',
    after   text collate "C" not null default '',
    -- Why it cannot be evaluated.
    problem text,
    primary key (jobid, dataid)
);
