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

-- name: lock_announcements
-- When the same content is announced as two chunks at the same time, the second must see the first. The lock covers the whole
-- DataSet rather than each content: a server holds only some thousands of locks.
select pg_advisory_xact_lock(hashtextextended('announce ' || %(datasetid)s, 0))

-- name: announce
-- Chunks that were made outside this system, with a version where a manifest was given.
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
-- One version of a chunk.
select m.* from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = %(dataid)s and m.version = %(version)s

-- name: rollback
-- Publishes an old version again under a new number. No bytes move, and consumers become stale.
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
