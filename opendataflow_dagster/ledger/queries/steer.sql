-- name: throttle
-- Sets the concurrency limit of a Job; null removes it.
insert into dataflow.job_control as c (jobid, concurrency, reason) values (%(jobid)s, %(concurrency)s, %(reason)s)
on conflict (jobid) do update set concurrency = excluded.concurrency, reason = excluded.reason
 where c.concurrency is distinct from excluded.concurrency

-- name: pause
-- No chunk of the Job starts until it is resumed.
insert into dataflow.job_control as c (jobid, paused, reason) values (%(jobid)s, now(), %(reason)s)
on conflict (jobid) do update set paused = excluded.paused, reason = excluded.reason where c.paused is null

-- name: resume
-- Ends the pause of a Job.
update dataflow.job_control set paused = null, reason = %(reason)s where jobid = %(jobid)s and paused is not null

-- name: delete_run
-- Deletes the rows of a Job for one dataid, IN rows included, as if it had never run. Returns its output chunks.
with gone as (
    delete from dataflow.datastatus s where s.jobid = %(jobid)s and s.dataid = %(dataid)s returning s.datasetid, s.dataid, s.locktype
)
select g.datasetid, g.dataid from gone g where g.locktype = 'OUT'

-- name: producer_of
-- A DataSet, if it is registered, and the Job that produces it.
select d.datasetid, (select j.jobid from dataflow.job j where j.datasetid = d.datasetid and j.itemtype = 'OUT') as jobid
  from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: announce
-- Chunks that were made outside this system, with a version where a manifest was given.
select a.dataid from dataflow.announce(%(datasetid)s, %(dataids)s::text[], %(manifests)s::jsonb[]) as a(dataid)

-- name: old_version
-- One version of a chunk.
select m.* from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = %(dataid)s and m.version = %(version)s

-- name: rollback
-- Publishes an old version again under a new number.
select dataflow.rollback(%(manifest_id)s, %(reason)s)
