-- name: read_all
-- For a statement that reads a whole table: straight through is faster than by an index, and it may use several cores.
select set_config('enable_seqscan', 'on', true)

-- name: status_counts
-- All DataSets at a glance. One pass over the OUT rows: a million of them take a fifth of a second.
select coalesce(d.datasetid, c.datasetid) as datasetid, p.jobid, c.status, coalesce(c.chunks, 0) as chunks, c.oldest_waiting
  from dataflow.dataset d
  full join (select s.datasetid, coalesce(s.status, 'NULL') as status, count(*) as chunks,
                    min(s.modified) filter (where s.status in ('PENDING', 'RESUBMIT')) as oldest_waiting
               from dataflow.datastatus s where s.locktype = 'OUT' group by 1, 2) c on c.datasetid = d.datasetid
  left join dataflow.job p on p.datasetid = coalesce(d.datasetid, c.datasetid) and p.itemtype = 'OUT'
 order by 1, 3

-- name: waiting_counts
-- What can run now, and what is refused, for each Job.
select r.jobid, count(*) filter (where r.blocked is null) as runnable, count(*) filter (where r.blocked is not null) as blocked
  from dataflow.runnable r group by r.jobid

-- name: pace
-- How fast versions were published lately: of the newest thousand, those of each DataSet.
select m.datasetid, count(*) as versions, min(m.published) as first, max(m.published) as last, now() as now
  from (select n.datasetid, n.published from dataflow.data_manifest n order by n.manifest_id desc limit 1000) m
 group by m.datasetid

-- name: running_chunks
-- The live claims, with the moment each was made.
select s.datasetid, s.jobid, s.dataid, s.claim_id, s.attempt, s.run_id, s.lease_until, v.asked as since, now() as now
  from dataflow.datastatus s
  left join lateral (select v.asked from dataflow.verdict v
                      where v.jobid = s.jobid and v.dataid = s.dataid and v.claim_id = s.claim_id limit 1) v on true
 where s.locktype = 'OUT' and s.claim_id is not null
 order by v.asked, s.datasetid, s.dataid
 limit %(count)s

-- name: is_dataset
-- Is there a DataSet of this name, or a chunk of one?
select exists (select from dataflow.dataset where datasetid = %(datasetid)s)
       or exists (select from dataflow.datastatus where datasetid = %(datasetid)s and locktype = 'OUT') as found

-- name: outputs_of
-- What a Job produces.
select j.datasetid from dataflow.job j where j.jobid = %(jobid)s and j.itemtype = 'OUT' order by 1

-- name: chunks_matching
-- Chunks of some DataSets: by name, by range in natural order, by status, by the time of their last change.
select s.datasetid, s.jobid, s.dataid, s.status, s.modified, s.claim_id, s.lease_until, s.attempt, s.retries, s.run_id, s.manifest_id, s.reason,
       s.held_status, m.version
  from dataflow.datastatus s
  left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
 where s.locktype = 'OUT' and s.datasetid = any (%(datasetids)s)
   and (%(all)s or s.dataid = any (%(names)s)
        or exists (select from unnest(%(lows)s::text[], %(highs)s::text[]) as r(low, high)
                    where (r.low = '' or dataflow.natural_key(s.dataid) >= dataflow.natural_key(r.low))
                      and (r.high = '' or dataflow.natural_key(s.dataid) <= dataflow.natural_key(r.high))))
   and (%(statuses)s::text[] is null or coalesce(s.status, 'NULL') = any (%(statuses)s))
   and s.modified >= coalesce(%(since)s::timestamptz, '-infinity') and s.modified <= coalesce(%(until)s::timestamptz, 'infinity')
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid
 limit %(count)s

-- name: failed_chunks
-- All that failed, in a window of time, of all DataSets or of some.
select s.datasetid, s.jobid, s.dataid, s.status, s.modified, s.claim_id, s.lease_until, s.attempt, s.retries, s.run_id, s.manifest_id, s.reason,
       s.held_status, null::integer as version
  from dataflow.datastatus s
 where s.locktype = 'OUT' and s.status = 'FAILED'
   and (%(datasetids)s::text[] is null or s.datasetid = any (%(datasetids)s))
   and s.modified >= coalesce(%(since)s::timestamptz, '-infinity') and s.modified <= coalesce(%(until)s::timestamptz, 'infinity')
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid

-- name: versions
-- Every published version of a chunk, oldest first.
select m.* from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = %(dataid)s order by m.version

-- name: newer_inputs
-- Which inputs of a version are not the current ones any more.
select o.datasetid, o.dataid, o.used, o.current
  from dataflow.data_manifest m cross join lateral dataflow.newer_inputs(m.inputs) o
 where m.manifest_id = %(manifest_id)s

-- name: consumers_of
-- Who would be woken by this chunk.
select c.jobid, c.dataid from dataflow.consumers_of(array[%(datasetid)s::text], array[%(dataid)s::text]) c order by 1, 2

-- name: runs
-- Executions of Jobs, newest first.
select r.run_id, r.jobid, r.runner, r.external_id, r.started, r.ended, r.outcome, now() as now,
       (select count(*) from dataflow.datastatus s where s.locktype = 'OUT' and s.claim_id is not null and s.run_id = r.run_id) as holds
  from dataflow.job_run r
 where (%(jobid)s::text is null or r.jobid = %(jobid)s)
   and (%(run_ids)s::bigint[] is null or r.run_id = any (%(run_ids)s))
   and (not %(running)s or r.ended is null)
   and (not %(failed)s or r.outcome = 'FAILED')
 order by r.run_id desc
 limit %(count)s

-- name: recent_events
-- What happened lately, newest first.
select e.* from dataflow.chunk_event e
 where e.at >= %(since)s
   and (%(datasetid)s::text is null or e.datasetid = %(datasetid)s)
   and (%(jobid)s::text is null or e.jobid = %(jobid)s)
   and (%(by)s::text is null or e.actor = %(by)s or e.login = %(by)s)
   and (%(statuses)s::text[] is null or e.new_status = any (%(statuses)s))
   and (%(with_reads)s or e.locktype = 'OUT')
 order by e.event_id desc
 limit %(count)s

-- name: blocked_causes
-- The refused chunks of a Job with their newest stored answers.
select r.dataid, v.asked, v.claim_id, v.problems, v.inputs
  from dataflow.runnable r
 cross join lateral (select * from dataflow.verdict v
                      where v.jobid = r.jobid and v.dataid = r.dataid order by v.verdict_id desc limit 1) v
 where r.jobid = %(jobid)s and r.blocked is not null
 order by r.sort_key, r.dataid
 limit %(count)s

-- name: unready_chunks
-- The chunks of a Job that were asked for and are not runnable: they wait for their inputs. How many in all, too.
select s.dataid, count(*) over () as total
  from dataflow.job j
  join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
 where j.jobid = %(jobid)s and j.itemtype = 'OUT'
   and not exists (select from dataflow.runnable r where r.jobid = j.jobid and r.dataid = s.dataid)
 group by s.dataid
having bool_and(s.status in ('PENDING', 'RESUBMIT'))
 order by dataflow.natural_key(s.dataid), s.dataid
 limit %(count)s

-- name: held_chunks
-- The chunks of a Job that a person keeps, or a foreign client with a word of its own. How many in all, too.
select s.dataid, count(*) over () as total
  from dataflow.job j
  join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
                            and coalesce(s.status, '') not in ('PENDING', 'RESUBMIT', 'RUNNING', 'READY', 'FAILED', 'SKIPPED')
 where j.jobid = %(jobid)s and j.itemtype = 'OUT'
 group by s.dataid
 order by dataflow.natural_key(s.dataid), s.dataid
 limit %(count)s

-- name: sla
-- For each Job: how long its newest 25 finished runs took on average, and how long the one that runs has taken.
select j.jobid, f.runs, f.average, l.run_id, l.started, l.ended, coalesce(l.ended, now()) - l.started as duration, f.longest
  from (select distinct jobid from dataflow.job) j
 cross join lateral (select count(*) as runs, avg(t.ended - t.started) as average, max(t.ended - t.started) as longest
                       from (select r.started, r.ended from dataflow.job_run r
                              where r.jobid = j.jobid and r.outcome = 'ENDED' order by r.run_id desc limit 25) t) f
 cross join lateral (select r.run_id, r.started, r.ended from dataflow.job_run r
                      where r.jobid = j.jobid order by r.run_id desc limit 1) l
 order by j.jobid

-- name: controls
-- The Jobs that operators limit.
select c.jobid, c.concurrency, c.paused, c.reason from dataflow.job_control c where c.concurrency is not null or c.paused is not null order by 1

-- name: control_events
-- Who limited a Job, newest first.
select e.at, e.concurrency, e.paused, e.reason, e.actor, e.login from dataflow.job_event e
 where e.jobid = %(jobid)s order by e.event_id desc limit %(count)s
