-- name: heal_expired
-- Leases that expired: the holder is dead or has lost the chunk. The crash rule applies.
update dataflow.datastatus s
   set status = dataflow.status_after_crash(s.jobid, s.retries), retries = s.retries + 1,
       reason = format('the lease of claim %%s expired at %%s (attempt %%s)', s.claim_id, to_char(s.lease_until at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), s.attempt)
 where (s.datasetid, s.jobid, s.dataid) in (
       -- In order, skipping rows that a publish or another heal is changing.
       select e.datasetid, e.jobid, e.dataid from dataflow.datastatus e
        where e.locktype = 'OUT' and e.claim_id is not null and e.lease_until <= clock_timestamp()
        order by e.datasetid, e.jobid, e.dataid
          for update skip locked)
returning s.datasetid, s.dataid, s.status

-- name: heal_retries
-- Failures that the retry policy of the Job covers.
update dataflow.datastatus s set status = 'RESUBMIT', retries = s.retries + 1
  from dataflow.job_policy p
 where p.jobid = s.jobid and p.retry_on is not null
   and s.locktype = 'OUT' and s.status = 'FAILED' and s.reason ~ p.retry_on
   and s.retries + 1 < p.max_attempts and s.modified + p.retry_delay <= now()
returning s.datasetid, s.dataid

-- name: heal_cascade
-- READY chunks with a newer input, of Jobs that cascade.
update dataflow.datastatus s
   set status = 'RESUBMIT', reason = 'an input was published anew'
  from dataflow.job_policy p, dataflow.data_manifest m
 where p.jobid = s.jobid and p.cascade
   and s.locktype = 'OUT' and s.status = 'READY' and m.manifest_id = s.manifest_id
   and exists (select from dataflow.newer_inputs(m.inputs))
returning s.datasetid, s.dataid

-- name: heal_strays
-- IN rows of claims that are gone.
delete from dataflow.datastatus i
 where i.locktype = 'IN' and i.claim_id is not null
   and not exists (select from dataflow.job j
                     join dataflow.datastatus o on o.datasetid = j.datasetid and o.jobid = j.jobid and o.locktype = 'OUT'
                                               and o.claim_id is not null and o.status = 'RUNNING'
                    where j.jobid = i.jobid and j.itemtype = 'OUT'
                      and exists (select from dataflow.claimed_inputs(j.jobid, o.dataid, o.claim_id) x where x.datasetid = i.datasetid and x.dataid = i.dataid))
returning i.datasetid, i.dataid

-- name: heal_blocked
-- Refused chunks are evaluated again: a file may be back, or a day may have begun.
select coalesce(sum(b.count), 0)::int as asked
  from (select array_agg(r.jobid) as jobids, array_agg(r.dataid) as dataids, count(*)
          from dataflow.runnable r where r.blocked is not null having count(*) > 0) b
 cross join lateral dataflow.evaluate(b.jobids, b.dataids)

-- name: rebuild_runnable
-- Restore the runnable set from datastatus.
select r.added, r.removed from dataflow.rebuild_runnable() r

-- name: heal_runs
-- Runs that hold nothing and that their orchestrator never ended.
select dataflow.end_forgotten_runs()
