-- name: expired_claims
-- Leases that expired: the holder is dead or has lost the chunk.
select s.datasetid, s.jobid, s.dataid from dataflow.datastatus s
 where s.locktype = 'OUT' and s.claim_id is not null and s.lease_until <= clock_timestamp()
 order by 1, 2, 3

-- name: heal_expired
-- The crash rule applies. In order, and without rows that a publish or another heal is changing.
update dataflow.datastatus s
   set status = dataflow.status_after_crash(s.jobid, s.retries), retries = s.retries + 1,
       reason = format('the lease of claim %%s expired at %%s (attempt %%s)', s.claim_id, to_char(s.lease_until at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), s.attempt)
 where (s.datasetid, s.jobid, s.dataid) in (
       select e.datasetid, e.jobid, e.dataid from dataflow.datastatus e
         join unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[]) as g(datasetid, jobid, dataid)
              on e.datasetid = g.datasetid and e.jobid = g.jobid and e.dataid = g.dataid
        where e.locktype = 'OUT' and e.claim_id is not null and e.lease_until <= clock_timestamp()
        order by e.datasetid, e.jobid, e.dataid
          for update of e skip locked)
returning s.datasetid, s.dataid, s.status

-- name: retrying_jobs
-- Jobs with a retry policy.
select p.jobid from dataflow.job_policy p where p.retry_on is not null order by 1

-- name: failures_to_retry
-- Failures that the retry policies of these Jobs cover.
select s.datasetid, s.jobid, s.dataid
  from dataflow.job_policy p
  join dataflow.datastatus s on s.jobid = p.jobid and s.locktype = 'OUT' and s.status = 'FAILED'
 where p.jobid = any (%(jobids)s) and s.reason ~ p.retry_on and s.retries + 1 < p.max_attempts and s.modified + p.retry_delay <= now()
 order by 1, 2, 3

-- name: heal_retries
-- Retry those that the policy still covers.
update dataflow.datastatus s set status = 'RESUBMIT', retries = s.retries + 1
 where (s.datasetid, s.jobid, s.dataid) in (
       select e.datasetid, e.jobid, e.dataid from dataflow.datastatus e
         join unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[]) as g(datasetid, jobid, dataid)
              on e.datasetid = g.datasetid and e.jobid = g.jobid and e.dataid = g.dataid
         join dataflow.job_policy p on p.jobid = e.jobid
        where e.locktype = 'OUT' and e.status = 'FAILED'
          and e.reason ~ p.retry_on and e.retries + 1 < p.max_attempts and e.modified + p.retry_delay <= now()
        order by e.datasetid, e.jobid, e.dataid
          for update of e skip locked)
returning s.datasetid, s.dataid, s.status

-- name: rebuilding_datasets
-- The DataSets whose chunks are rebuilt when an input has a new version, with their stale chunks and those that become stale when an
-- input that is RESUBMIT has been made.
select j.datasetid, j.jobid, n.stale + r.resubmitted as stale
  from dataflow.job j
  left join dataflow.dataset d on d.datasetid = j.datasetid
  left join dataflow.job_policy p on p.jobid = j.jobid
 cross join lateral (select count(*) as stale from dataflow.stale t where t.datasetid = j.datasetid) n
 cross join lateral (select count(*) as resubmitted
                       from dataflow.job i
                       join dataflow.job m on m.datasetid = i.datasetid and m.itemtype = 'OUT'
                       join dataflow.datastatus s on s.jobid = m.jobid and s.datasetid = i.datasetid and s.locktype = 'OUT' and s.status = 'RESUBMIT'
                      where i.jobid = j.jobid and i.itemtype = 'IN' and i.mapping = 'equal' and n.stale > 0
                        and not exists (select from dataflow.stale t where t.datasetid = j.datasetid and t.dataid = s.dataid)
                        and exists (select from dataflow.datastatus o
                                     where o.datasetid = j.datasetid and o.dataid = s.dataid and o.locktype = 'OUT' and o.status = 'READY')) r
 where j.itemtype = 'OUT' and (d.on_new_input = 'rebuild' or p.cascade) and n.stale > 0
 order by 1

-- name: chunks_to_rebuild
-- READY chunks of these DataSets with a newer input.
select s.datasetid, s.jobid, s.dataid
  from dataflow.stale t
  join dataflow.datastatus s on s.datasetid = t.datasetid and s.dataid = t.dataid and s.locktype = 'OUT' and s.status = 'READY'
 where t.datasetid = any (%(datasetids)s) and t.is_direct
 order by 1, 2, 3

-- name: heal_stale
-- Make those again that are still stale.
update dataflow.datastatus s set status = 'RESUBMIT', reason = 'a newer version of an input was published'
 where (s.datasetid, s.jobid, s.dataid) in (
       select e.datasetid, e.jobid, e.dataid from dataflow.datastatus e
         join unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[]) as g(datasetid, jobid, dataid)
              on e.datasetid = g.datasetid and e.jobid = g.jobid and e.dataid = g.dataid
        where e.locktype = 'OUT' and e.status = 'READY'
          and exists (select from dataflow.stale t where t.datasetid = e.datasetid and t.dataid = e.dataid and t.is_direct)
        order by e.datasetid, e.jobid, e.dataid
          for update of e skip locked)
returning s.datasetid, s.dataid, s.status

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

-- name: heal_left_over
-- IN rows of foreign clients that died, beside chunks that are to run again.
select dataflow.remove_left_over()

-- name: heal_blocked
-- Refused chunks are evaluated again: a file may be back, or a day may have begun.
select coalesce(sum(cardinality(b.dataids)), 0)::int as asked
  from (select r.jobid, array_agg(r.dataid) as dataids from dataflow.runnable r where r.blocked is not null group by r.jobid) b
 cross join lateral dataflow.evaluate_again(b.jobid, b.dataids)

-- name: patrol
-- Finds chunks that are missing in the runnable set, a portion of the ledger at a time.
select dataflow.patrol(%(count)s)

-- name: settle
-- Evaluate chunks of Jobs whose definition changed, at most this many; null: of any Job. Where is there more to do?
select dataflow.settle(%(jobid)s, %(count)s, %(place)s::text[]) as place

-- name: unsettle_all
-- After an upgrade, every answer is an old one, and a Job may read a `today` that is not registered.
select dataflow.register_today(), dataflow.unsettle(array(select j.jobid from dataflow.job j union select r.jobid from dataflow.runnable r), true)

-- name: broken_chunks
-- The chunks that cannot be evaluated.
select u.jobid, u.dataid, u.problem from dataflow.unsettled u where u.problem is not null order by u.jobid, u.dataid

-- name: jobs_with_chunks
-- Every Job that has items, or chunks in a derived table.
select j.jobid from dataflow.job j union select r.jobid from dataflow.runnable r union select t.jobid from dataflow.turn t order by 1

-- name: rebuild_turns
-- Which chunks of a strictly ordered Job are unfinished.
select dataflow.rebuild_turns(%(jobid)s)

-- name: rebuild_stale
-- Compare the next made chunks of a Job with their marks, and correct these.
select * from dataflow.rebuild_stale(%(jobid)s, %(after)s, %(count)s)

-- name: rebuild_after
-- Compare the next chunks of a Job with their rows of the runnable set, and correct these.
select c.dataids[%(count)s] as last, e.added, e.removed
  from (select dataflow.chunks_after(%(jobid)s, %(after)s, %(count)s) as dataids offset 0) c
 cross join lateral dataflow.evaluate_again(%(jobid)s, c.dataids) e

-- name: heal_runs
-- Runs that hold nothing and that their orchestrator never ended.
select dataflow.end_forgotten_runs()
