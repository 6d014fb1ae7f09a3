-- Which login asked, and which began a run: an actor is what a program says of itself. What is stored already has none.
alter table dataflow.verdict add column login text;
alter table dataflow.verdict alter column login set default session_user;
alter table dataflow.job_run add column login text;
alter table dataflow.job_run alter column login set default session_user;

-- The constraint of datastatus runs as whoever writes, and must not see their names.
alter function dataflow.is_whole(text, text, bigint, timestamptz, text) set search_path = pg_catalog, pg_temp;
