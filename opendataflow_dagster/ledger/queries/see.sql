-- name: allow_table_scans
-- Connections disable sequential scans. For a statement that reads a whole table, a scan is faster and can run in parallel.
select set_config('enable_seqscan', 'on', true)

-- name: dataset_counts
-- All DataSets, registered or not, with their chunks by status. One pass over the OUT rows.
select coalesce(d.datasetid, c.datasetid) as datasetid, p.jobid, coalesce(c.counts, '{}') as counts, c.oldest_waiting
  from dataflow.dataset d
  full join (select g.datasetid, jsonb_object_agg(g.status, g.chunks) as counts, min(g.oldest_waiting) as oldest_waiting
               from (select s.datasetid, coalesce(s.status, 'NULL') as status, count(*) as chunks,
                            min(s.modified) filter (where s.status in ('PENDING', 'RESUBMIT')) as oldest_waiting
                       from dataflow.datastatus s where s.locktype = 'OUT' group by 1, 2) g
              group by g.datasetid) c on c.datasetid = d.datasetid
  left join dataflow.job p on p.datasetid = coalesce(d.datasetid, c.datasetid) and p.itemtype = 'OUT'
 order by 1

-- name: runnable_counts
-- Chunks that can run now, and chunks that are refused, for each Job.
select r.jobid, count(*) filter (where r.blocked is null) as runnable, count(*) filter (where r.blocked is not null) as blocked
  from dataflow.runnable r group by r.jobid

-- name: paces
-- Versions per minute of each DataSet, from the newest thousand versions. Measured up to now rather than to the last version,
-- so that a slowdown shows. A DataSet that has published nothing for 15 minutes has stalled and has no pace.
select m.datasetid, (count(*) * 60 / nullif(greatest(extract(epoch from now() - min(m.published)), 0), 0))::float as pace
  from (select n.datasetid, n.published from dataflow.data_manifest n order by n.manifest_id desc limit 1000) m
 group by m.datasetid
having count(*) > 1 and max(m.published) >= now() - interval '15 minutes'

-- name: running_chunks
-- The live claims, with the time each was made, oldest first.
select s.datasetid, s.jobid, s.dataid, s.claim_id, s.attempt, s.run_id, s.lease_until, v.asked as since
  from dataflow.datastatus s
  left join lateral (select v.asked from dataflow.verdict v
                      where v.jobid = s.jobid and v.dataid = s.dataid and v.claim_id = s.claim_id limit 1) v on true
 where s.locktype = 'OUT' and s.claim_id is not null
 order by v.asked, s.datasetid, s.dataid
 limit %(count)s

-- name: is_dataset
-- Is the DataSet registered, or does it have a chunk?
select exists (select from dataflow.dataset where datasetid = %(datasetid)s)
       or exists (select from dataflow.datastatus where datasetid = %(datasetid)s and locktype = 'OUT') as found

-- name: outputs_of
-- The DataSets that a Job produces.
select j.datasetid from dataflow.job j where j.jobid = %(jobid)s and j.itemtype = 'OUT' order by 1

-- name: job_datasets
-- The DataSets that a Job reads and produces.
select j.itemtype, j.datasetid, j.mapping, d.partitions
  from dataflow.job j left join dataflow.dataset d on d.datasetid = j.datasetid
 where j.jobid = %(jobid)s and j.itemtype in ('IN', 'OUT')
 order by j.itemtype desc, j.datasetid

-- name: unfinished_chunks
-- The chunks of a Job that have a row and are not finished, and those that can run.
select c.dataid
  from (select s.dataid
          from dataflow.job j
          join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT' and coalesce(s.status, '') not in ('READY', 'SKIPPED')
         where j.jobid = %(jobid)s and j.itemtype = 'OUT'
        union
        select r.dataid from dataflow.runnable r where r.jobid = %(jobid)s) c
 order by dataflow.natural_key(c.dataid), c.dataid
 limit %(count)s

-- name: known_dataids
-- The dataids that the outputs of a Job have, and those that its inputs with the same dataid have.
select distinct s.dataid
  from dataflow.job j
  join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
 where j.jobid = %(jobid)s and j.itemtype in ('IN', 'OUT') and j.mapping = 'equal'

-- name: matching_chunks
-- Chunks of some DataSets by name, range in natural order, status, and time of the last change.
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
-- The FAILED chunks of all DataSets or of some, optionally within a time window.
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
-- The inputs of a version that a newer version has superseded.
select o.datasetid, o.dataid, o.used, o.current
  from dataflow.data_manifest m cross join lateral dataflow.newer_inputs(m.inputs) o
 where m.manifest_id = %(manifest_id)s

-- name: consumers_of
-- The chunks of Jobs that read this chunk.
select c.jobid, c.dataid from dataflow.consumers_of(array[%(datasetid)s::text], array[%(dataid)s::text]) c order by 1, 2

-- name: runs
-- Executions of Jobs, newest first.
select r.run_id, r.jobid, r.runner, r.external_id, r.started, r.ended, r.outcome, coalesce(r.ended, now()) - r.started as duration,
       (select count(*) from dataflow.datastatus s where s.locktype = 'OUT' and s.claim_id is not null and s.run_id = r.run_id) as holds
  from dataflow.job_run r
 where (%(jobid)s::text is null or r.jobid = %(jobid)s)
   and (%(run_ids)s::bigint[] is null or r.run_id = any (%(run_ids)s))
   and (not %(running)s or r.ended is null)
   and (not %(failed)s or r.outcome = 'FAILED')
 order by r.run_id desc
 limit %(count)s

-- name: latest_runs
-- The newest run of each registered Job, beside the newest 25 earlier runs that ended well. The run itself is not among them:
-- a slow run must not raise the figure it is compared with.
select j.jobid, l.run_id, coalesce(l.ended, now()) - l.started as duration, l.ended is null as running, f.finished, f.p95, f.longest
  from (select distinct jobid from dataflow.job) j
 cross join lateral (select r.run_id, r.started, r.ended from dataflow.job_run r
                      where r.jobid = j.jobid order by r.run_id desc limit 1) l
 cross join lateral (select count(*) as finished, percentile_cont(0.95) within group (order by t.duration) as p95, max(t.duration) as longest
                       from (select r.ended - r.started as duration from dataflow.job_run r
                              where r.jobid = j.jobid and r.run_id < l.run_id and r.outcome = 'ENDED' order by r.run_id desc limit 25) t) f
 order by j.jobid

-- name: recent_events
-- Changes of chunks, newest first.
select e.* from dataflow.chunk_event e
 where e.at >= coalesce(%(since)s::timestamptz, '-infinity')
   and (%(datasetid)s::text is null or e.datasetid = %(datasetid)s)
   and (%(jobid)s::text is null or e.jobid = %(jobid)s)
   and (%(by)s::text is null or e.actor = %(by)s or e.login = %(by)s)
   and (%(statuses)s::text[] is null or e.new_status = any (%(statuses)s))
   and (%(with_reads)s or e.locktype = 'OUT')
 order by e.event_id desc
 limit %(count)s

-- name: refused_chunks
-- The refused chunks of a Job with their newest stored answers.
select r.dataid, v.asked, v.claim_id, v.problems, v.inputs
  from dataflow.runnable r
 cross join lateral (select * from dataflow.verdict v
                      where v.jobid = r.jobid and v.dataid = r.dataid order by v.verdict_id desc limit 1) v
 where r.jobid = %(jobid)s and r.blocked is not null
 order by r.sort_key, r.dataid
 limit %(count)s

-- name: unready_chunks
-- The chunks of a Job that are PENDING or RESUBMIT and not runnable: they wait for their inputs. With their total number.
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
-- The chunks of a Job on HOLD, or in a status that only a foreign client knows. With their total number.
select s.dataid, count(*) over () as total
  from dataflow.job j
  join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
                            and coalesce(s.status, '') not in ('PENDING', 'RESUBMIT', 'RUNNING', 'READY', 'FAILED', 'SKIPPED')
 where j.jobid = %(jobid)s and j.itemtype = 'OUT'
 group by s.dataid
 order by dataflow.natural_key(s.dataid), s.dataid
 limit %(count)s

-- name: controls
-- The Jobs that operators limit.
select c.jobid, c.concurrency, c.paused, c.reason from dataflow.job_control c where c.concurrency is not null or c.paused is not null order by 1

-- name: control_changes
-- Changes of the limits of a Job, newest first.
select e.at, e.concurrency, e.paused is not null as paused, e.reason, coalesce(e.actor, e.login) as by from dataflow.job_event e
 where e.jobid = %(jobid)s order by e.event_id desc limit %(count)s
