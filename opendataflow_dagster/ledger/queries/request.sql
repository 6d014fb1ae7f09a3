-- name: request
-- Plan, resubmit and mark chunks for a run.
select dataflow.request(%(jobid)s, %(dataids)s::text[], %(requested)s::timestamptz, %(run_id)s::bigint, %(reason)s, %(actor)s,
                        %(listed_dataids)s::text[], %(listed_datasetids)s::text[], %(listed_input_dataids)s::text[])::text

-- name: plan
-- PENDING rows for chunks of a Job, with the input chunks that each needs.
select dataflow.plan(%(jobid)s, %(dataids)s::text[], %(run_id)s::bigint,
                     %(listed_dataids)s::text[], %(listed_datasetids)s::text[], %(listed_input_dataids)s::text[])

-- name: ready_versions
-- Those of the chunks that are READY, with their current version. Without a version, a foreign client made it.
select s.datasetid as of_datasetid, s.dataid as of_dataid, m.*
  from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
  join dataflow.datastatus s on s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT' and s.status = 'READY'
  left join dataflow.data_manifest m on m.manifest_id = s.manifest_id

-- name: what_can_run
-- The next chunks of each Job with five yes answers. Nothing is locked.
select j.jobid, r.dataid, extract(epoch from now() - r.since)::float as waited
  from unnest(%(jobids)s::text[]) as j(jobid)
 cross join lateral (select r.dataid, r.resubmit, r.sort_key, r.since from dataflow.runnable r
                      where r.jobid = j.jobid and r.blocked is null
                      order by r.resubmit desc, r.sort_key, r.dataid
                      limit %(count)s) r
 order by j.jobid, r.resubmit desc, r.sort_key, r.dataid

-- name: what_blocks
-- Why chunks of these Jobs do not run: refused ones by code, and FAILED and HOLD ones by status, each with an example.
-- Counted up to 1,000, so that an outage of a million chunks is reported as quickly.
select j.jobid, b.blocked as word, count(*) as chunks, min(b.dataid) as example,
       (select v.problems from dataflow.verdict v
         where v.jobid = j.jobid and v.dataid = min(b.dataid) and v.claim_id is null order by v.verdict_id desc limit 1) as problems, null as reason
  from unnest(%(jobids)s::text[]) as j(jobid)
 cross join lateral (select r.blocked, r.dataid from dataflow.runnable r
                      where r.jobid = j.jobid and r.blocked is not null limit 1000) b
 group by j.jobid, b.blocked
union all
select j.jobid, a.status, count(*), min(a.dataid), null, min(a.reason)
  from unnest(%(jobids)s::text[]) as j(jobid)
 cross join lateral (select s.status, s.dataid, s.reason from dataflow.datastatus s
                      where s.jobid = j.jobid and s.locktype = 'OUT' and s.status in ('FAILED', 'HOLD') limit 1000) a
 group by j.jobid, a.status

-- name: open_runs
-- Open runs of an orchestrator.
select r.run_id, r.external_id
  from dataflow.job_run r
 where r.ended is null and r.external_id is not null and r.jobid = any (%(jobids)s)

-- name: silence
-- Seconds since the last heartbeat of each run of an orchestrator that began here.
select r.external_id, extract(epoch from now() - max(greatest(r.heard, r.ended)))::float as seconds, bool_or(r.ended is null) as works
  from dataflow.job_run r
 where r.external_id = any (%(external_ids)s)
 group by r.external_id

-- name: runs_of
-- The open runs of Jobs in one run of an orchestrator.
select r.run_id from dataflow.job_run r where r.ended is null and r.external_id = %(external_id)s

-- name: unreported
-- Current versions after a cursor, in the order of publication, that this orchestrator has not recorded. Young ones are left
-- to the run that made them, which records them itself.
select m.*, m.published <= now() - interval '1 minute' as settled,
       coalesce(s.status, '') = 'READY' and m.published <= now() - %(grace)s::interval
       and not exists (select from dataflow.reported t where t.orchestrator = %(orchestrator)s and t.manifest_id = m.manifest_id) as news
  from dataflow.data_manifest m
  left join dataflow.datastatus s on s.datasetid = m.datasetid and s.jobid = m.jobid and s.dataid = m.dataid
                                 and s.locktype = 'OUT' and s.manifest_id = m.manifest_id
 where m.manifest_id > %(after)s
 order by m.manifest_id
 limit %(count)s

-- name: how_made
-- How versions were made: the answers of the claim, the attempt, and the seconds from claim to publication.
select m.manifest_id, m.jobid, m.dataid, v.problems, v.inputs, coalesce(e.attempt, 1) as attempt,
       extract(epoch from m.published - v.asked)::float as seconds
  from dataflow.data_manifest m
 cross join lateral (select v.* from dataflow.verdict v
                      where v.jobid = m.jobid and v.dataid = m.dataid and v.claim_id = m.claim_id limit 1) v
  left join lateral (select max(e.attempt) as attempt from dataflow.chunk_event e
                      where e.datasetid = m.datasetid and e.dataid = m.dataid and e.claim_id = m.claim_id) e on true
 where m.manifest_id = any (%(manifest_ids)s)

-- name: unreported_foreign
-- Chunks that a foreign client made READY, after a cursor. The youngest wait, because an earlier transaction may still
-- commit.
select s.datasetid, s.jobid, s.dataid, s.modified
  from dataflow.datastatus s
 where s.locktype = 'OUT' and s.status = 'READY' and s.manifest_id is null
   and (s.modified, s.datasetid, s.dataid) > (%(modified)s::timestamptz, %(datasetid)s::text, %(dataid)s::text)
   and s.modified <= now() - %(grace)s::interval
   and s.datasetid = any (%(datasetids)s)
 order by s.modified, s.datasetid, s.dataid
 limit %(count)s

-- name: report
-- The orchestrator has recorded these versions.
insert into dataflow.reported (orchestrator, manifest_id)
select %(orchestrator)s, r.manifest_id from unnest(%(manifest_ids)s::bigint[]) as r(manifest_id)
on conflict do nothing

-- name: forget_reported
-- What lies behind the cursor is not needed.
delete from dataflow.reported t where t.orchestrator = %(orchestrator)s and t.manifest_id <= %(upto)s

-- name: versions_after
-- Versions in the order of publication, to look at their files.
select m.*, coalesce(s.status, '') = 'READY' as current
  from dataflow.data_manifest m
  left join dataflow.datastatus s on s.datasetid = m.datasetid and s.jobid = m.jobid and s.dataid = m.dataid
                                 and s.locktype = 'OUT' and s.manifest_id = m.manifest_id
 where m.manifest_id > %(after)s
 order by m.manifest_id
 limit %(count)s

-- name: current_versions
-- The current version of each chunk; it stays while a new one is made.
select distinct on (m.dataid) m.*
  from dataflow.datastatus s
  join dataflow.data_manifest m on m.manifest_id = s.manifest_id
 where s.datasetid = %(datasetid)s and s.locktype = 'OUT'
 order by m.dataid, m.version desc

-- name: files_are_gone
-- A version whose files are gone: FAILED, until it is resubmitted, or restored and rolled back to.
update dataflow.datastatus s set status = 'FAILED', reason = g.reason
  from unnest(%(datasetids)s::text[], %(dataids)s::text[], %(manifest_ids)s::bigint[], %(reasons)s::text[])
       as g(datasetid, dataid, manifest_id, reason)
 where s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT' and s.status = 'READY'
   and s.manifest_id = g.manifest_id
returning s.datasetid, s.dataid

-- name: first_throttle
-- The declared concurrency limit of a new Job; a limit that an operator has set stays.
insert into dataflow.job_control (jobid, concurrency, reason) values (%(jobid)s, %(concurrency)s, 'as declared')
on conflict (jobid) do nothing
