-- name: throttle
-- So many chunks of the Job at a time; null: any number.
insert into dataflow.job_control as c (jobid, concurrency, reason) values (%(jobid)s, %(concurrency)s, %(reason)s)
on conflict (jobid) do update set concurrency = excluded.concurrency, reason = excluded.reason
 where c.concurrency is distinct from excluded.concurrency

-- name: pause
-- No chunk of the Job begins until it is resumed.
insert into dataflow.job_control as c (jobid, paused, reason) values (%(jobid)s, now(), %(reason)s)
on conflict (jobid) do update set paused = excluded.paused, reason = excluded.reason where c.paused is null

-- name: resume
-- What was paused goes on.
update dataflow.job_control set paused = null, reason = %(reason)s where jobid = %(jobid)s and paused is not null

-- name: delete_run
-- What a Job did for a dataid, as if it had never run; its input rows go with it. Its chunks are what it made.
with gone as (
    delete from dataflow.datastatus s where s.jobid = %(jobid)s and s.dataid = %(dataid)s returning s.datasetid, s.dataid, s.locktype
)
select g.datasetid, g.dataid from gone g where g.locktype = 'OUT'

-- name: producer_of
-- The Job that makes a DataSet, if there is the DataSet.
select d.datasetid, (select j.jobid from dataflow.job j where j.datasetid = d.datasetid and j.itemtype = 'OUT') as jobid
  from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: lock_announcements
-- The same content, announced as two chunks at the same moment: the second must see the first. Of a whole DataSet, not of
-- each content: a server has room for some thousands of locks.
select pg_advisory_xact_lock(hashtextextended('announce ' || %(datasetid)s, 0))

-- name: announce
-- Chunks that someone else has made, with a version where they told us of it.
with given as materialized (
    select g.dataid, g.manifest from unnest(%(dataids)s::text[], %(manifests)s::jsonb[]) as g(dataid, manifest)
), made as (
    insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, files, bytes, row_count, schema_hash, content_digest, checks)
    select %(datasetid)s, g.dataid,
           1 + coalesce((select max(m.version) from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = g.dataid), 0),
           %(jobid)s, g.manifest ->> 'location', g.manifest -> 'files', (g.manifest ->> 'bytes')::bigint, (g.manifest ->> 'row_count')::bigint,
           g.manifest ->> 'schema_hash', g.manifest ->> 'content_digest', g.manifest -> 'checks'
      from given g where g.manifest is not null
    returning dataid, manifest_id
)
insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, manifest_id)
select %(datasetid)s, %(jobid)s, g.dataid, 'OUT', 'READY', m.manifest_id from given g left join made m on m.dataid = g.dataid
    on conflict (datasetid, jobid, dataid) do update set status = 'READY', manifest_id = excluded.manifest_id
 where s.status is distinct from 'READY' or excluded.manifest_id is not null
returning s.datasetid, s.dataid

-- name: old_version
-- A version of a chunk, to go back to.
select m.* from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = %(dataid)s and m.version = %(version)s

-- name: rollback
-- The old version again, as a new one: no bytes move, and consumers see that theirs is out of date.
with old as materialized (
    select m.*, pg_advisory_xact_lock(dataflow.content_lock(m.datasetid, m.content_digest))
      from dataflow.data_manifest m where m.manifest_id = %(manifest_id)s
), made as (
    insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, files, bytes, row_count, schema_hash, content_digest,
                                        checks, inputs)
    select m.datasetid, m.dataid, (select max(n.version) + 1 from dataflow.data_manifest n where n.datasetid = m.datasetid and n.dataid = m.dataid),
           m.jobid, m.location, m.files, m.bytes, m.row_count, m.schema_hash, m.content_digest, m.checks, m.inputs
      from old m
     where exists (select from dataflow.datastatus s
                    where s.datasetid = m.datasetid and s.dataid = m.dataid and s.locktype = 'OUT' and s.claim_id is null and s.status <> 'HOLD')
    returning datasetid, dataid, manifest_id, version
)
update dataflow.datastatus s set status = 'READY', manifest_id = m.manifest_id, reason = %(reason)s
  from made m
 where s.datasetid = m.datasetid and s.dataid = m.dataid and s.locktype = 'OUT' and s.claim_id is null and s.status <> 'HOLD'
returning m.version
