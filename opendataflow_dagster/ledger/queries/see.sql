-- name: allow_table_scans
-- Connections disable sequential scans. For a statement that reads a whole table, a scan is faster and can run in parallel.
select set_config('enable_seqscan', 'on', true)

-- name: dataset_counts
-- All DataSets, registered or not, with their chunks by status, and how many of their past partitions have no chunk. One pass
-- over the OUT rows.
with chunk as materialized (
    select s.datasetid, coalesce(s.status, 'NULL') as status, count(*) as chunks,
           min(s.modified) filter (where s.status in ('PENDING', 'RESUBMIT')) as oldest_waiting,
           min(s.dataid) filter (where s.status in ('PENDING', 'RESUBMIT')) as first_waiting,
           min(s.jobid) as low_jobid, max(s.jobid) as high_jobid,
           count(*) filter (where s.status = 'READY' and s.code_version <> p.code_version) as other_code,
           max(s.modified) filter (where s.status = 'READY') as newest_ready,
           -- Past partitions, as far as that is cheap to say of a million.
           count(*) filter (where case p.kind
                 when 'daily' then s.dataid >= p.first and s.dataid <= p.newest and length(s.dataid) = 10
                 when 'hourly' then s.dataid >= p.first and s.dataid <= p.newest and length(s.dataid) = 16
                 when 'monthly' then s.dataid >= p.first and s.dataid <= p.newest and length(s.dataid) = 10 and right(s.dataid, 2) = '01'
                 when 'range' then case when translate(s.dataid, '0123456789', '') = '-' and strpos(s.dataid, '-') between 2 and 19
                                             and length(s.dataid) - strpos(s.dataid, '-') between 1 and 18
                                        then mod(split_part(s.dataid, '-', 1)::bigint - p.low, p.size) = 0
                                             and s.dataid = split_part(s.dataid, '-', 1)::bigint || '-' || least(split_part(s.dataid, '-', 1)::bigint + p.size - 1, p.high)
                                             and split_part(s.dataid, '-', 1)::bigint between p.low and p.high end end) as past
      from dataflow.datastatus s
      left join (select d.datasetid, d.code_version, p.*
                   from dataflow.dataset d left join lateral dataflow.past(d.partitions, now() at time zone d.timezone) p on true) p
        on p.datasetid = s.datasetid
     where s.locktype = 'OUT' group by 1, 2
), counted as (
    select c.datasetid, jsonb_object_agg(c.status, c.chunks) as counts, min(c.oldest_waiting) as oldest_waiting, min(c.first_waiting) as first_waiting,
           sum(c.past)::bigint as past, sum(c.other_code)::bigint as other_code, max(c.newest_ready) as newest_ready,
           min(c.low_jobid) <> max(c.high_jobid) as is_shared
      from chunk c group by 1
)
select coalesce(d.datasetid, c.datasetid) as datasetid, j.jobid, d.datasetid is not null as is_registered, coalesce(c.counts, '{}') as counts,
       c.oldest_waiting, c.first_waiting, coalesce(c.other_code, 0) as other_code,
       c.newest_ready, now() - c.newest_ready as age, d.fresh_within,
       case when p.kind is null then 0
            -- One by one: weeks and listed keys, which are few, and chunks that several producers have a row of.
            when p.kind in ('weekly', 'static') or c.is_shared
            then (select count(*) from dataflow.past_partitions(d.partitions, now() at time zone d.timezone) x
                   where not exists (select from dataflow.datastatus s
                                      where s.datasetid = d.datasetid and s.dataid = x.dataid and s.locktype = 'OUT'))
            else greatest(p.expected - coalesce(c.past, 0), 0) end as missing
  from dataflow.dataset d
  full join counted c on c.datasetid = d.datasetid
  left join lateral dataflow.past(d.partitions, now() at time zone d.timezone) p on true
  left join dataflow.job j on j.datasetid = coalesce(d.datasetid, c.datasetid) and j.itemtype = 'OUT'
 order by 1

-- name: needed_chunks
-- Of DataSets without declared partitions: chunks that do not exist and that a planned chunk of a consumer needs, with an
-- example. The days of `today` come by themselves.
with reader as materialized (
    select j.jobid, j.datasetid, j.mapping
      from dataflow.job j
      left join dataflow.dataset d on d.datasetid = j.datasetid
     where j.itemtype = 'IN' and j.mapping in ('equal', 'listed') and d.partitions is null and j.datasetid <> 'today'
), needed as (
    select i.datasetid, i.input_dataid as dataid
      from reader r
      join dataflow.chunk_input i on i.jobid = r.jobid and i.datasetid = r.datasetid and i.input_dataid <> ''
     where r.mapping = 'listed'
    union
    select r.datasetid, s.dataid
      from reader r
      join dataflow.job o on o.jobid = r.jobid and o.itemtype = 'OUT'
      join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT' and coalesce(s.status, '') not in ('READY', 'SKIPPED')
     where r.mapping = 'equal'
)
select n.datasetid, count(*) as missing, min(n.dataid) as dataid
  from needed n
 where not exists (select from dataflow.datastatus s where s.datasetid = n.datasetid and s.dataid = n.dataid and s.locktype = 'OUT')
 group by n.datasetid
 order by n.datasetid

-- name: newest_missing
-- Of each DataSet with declared partitions, the newest past ones that have no chunk.
select d.datasetid, x.dataid
  from dataflow.dataset d
 cross join lateral (select p.dataid from dataflow.past_partitions(d.partitions, now() at time zone d.timezone) p
                      where not exists (select from dataflow.datastatus s
                                         where s.datasetid = d.datasetid and s.dataid = p.dataid and s.locktype = 'OUT')
                      limit %(count)s) x
 where d.datasetid = any (%(datasetids)s)

-- name: first_unready
-- Of each DataSet, the first waiting chunk that cannot run. The search begins at the first that waits.
select c.datasetid, x.dataid
  from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as c(datasetid, first)
 cross join lateral (select s.dataid from dataflow.datastatus s
                      where s.datasetid = c.datasetid and s.locktype = 'OUT' and s.dataid >= c.first and s.status in ('PENDING', 'RESUBMIT')
                        and not exists (select from dataflow.job j
                                          join dataflow.runnable r on r.jobid = j.jobid and r.dataid = s.dataid and r.blocked is null
                                         where j.datasetid = s.datasetid and j.itemtype = 'OUT')
                      order by s.dataid limit 1) x

-- name: ask_each
-- The answers of the ledger for chunks of several Jobs, and whether each is asked for. A Job that reads all chunks of a DataSet
-- is left out: its question is as dear as those are many.
select c.jobid, a.dataid, a.problems, a.inputs, a.is_runnable,
       exists (select from dataflow.runnable r where r.jobid = c.jobid and r.dataid = c.dataid) as is_evaluated
  from unnest(%(jobids)s::text[], %(dataids)s::text[]) as c(jobid, dataid)
 cross join lateral dataflow.ask(c.jobid, array[c.dataid]) a
 where not exists (select from dataflow.job j where j.jobid = c.jobid and j.itemtype = 'IN' and j.mapping = 'all')

-- name: ask_whether_asked_for
-- The same, for chunks of one Job.
select a.dataid, a.problems, a.inputs, a.is_runnable,
       exists (select from dataflow.runnable r where r.jobid = %(jobid)s and r.dataid = a.dataid) as is_evaluated
  from dataflow.ask(%(jobid)s, %(dataids)s::text[]) a

-- name: missing_chunks
-- Chunks that are expected of a Job, have no row and are not in the runnable set: past partitions, or without declared partitions
-- what planned chunks of consumers need. With their total number.
with output as materialized (
    select o.datasetid, d.partitions, now() at time zone d.timezone as now
      from dataflow.job o left join dataflow.dataset d on d.datasetid = o.datasetid
     where o.jobid = %(jobid)s and o.itemtype = 'OUT'
), expected as (
    select o.datasetid, p.dataid from output o cross join lateral dataflow.past_partitions(o.partitions, o.now) p
    union
    select o.datasetid, i.input_dataid
      from output o
      join dataflow.job r on r.datasetid = o.datasetid and r.itemtype = 'IN' and r.mapping = 'listed'
      join dataflow.chunk_input i on i.jobid = r.jobid and i.datasetid = r.datasetid and i.input_dataid <> ''
     where o.partitions is null
    union
    select o.datasetid, s.dataid
      from output o
      join dataflow.job r on r.datasetid = o.datasetid and r.itemtype = 'IN' and r.mapping = 'equal'
      join dataflow.job c on c.jobid = r.jobid and c.itemtype = 'OUT'
      join dataflow.datastatus s on s.datasetid = c.datasetid and s.locktype = 'OUT' and coalesce(s.status, '') not in ('READY', 'SKIPPED')
     where o.partitions is null
)
select e.dataid, count(*) over () as total
  from expected e
 where not exists (select from dataflow.datastatus s where s.datasetid = e.datasetid and s.dataid = e.dataid and s.locktype = 'OUT')
   and not exists (select from dataflow.runnable r where r.jobid = %(jobid)s and r.dataid = e.dataid)
 group by e.dataid
 order by e.dataid
 limit %(count)s

-- name: job_faults
-- What is wrong with a Job, whatever its chunks are: an item that is neither IN nor OUT nor a variable, a DataSet that is not
-- registered, no output, a day that did not begin, chunks to be evaluated again, and IN rows that no running chunk holds.
select 'ITEM' as kind, j.itemtype, j.datasetid, null as dataid, 1 as count, null as problem
  from dataflow.job j where j.jobid = %(jobid)s and j.datasetid is not null and j.itemtype not in ('IN', 'OUT')
union all
select 'UNREGISTERED', j.itemtype, j.datasetid, null, 1, null
  from dataflow.job j
 where j.jobid = %(jobid)s and j.itemtype in ('IN', 'OUT') and not exists (select from dataflow.dataset d where d.datasetid = j.datasetid)
union all
select 'NO_OUTPUT', 'OUT', null, null, 1, null
 where not exists (select from dataflow.job j where j.jobid = %(jobid)s and j.itemtype = 'OUT')
union all
select 'NO_DAY', j.itemtype, j.datasetid, to_char(now() at time zone d.timezone, 'YYYY-MM-DD'), 1, null
  from dataflow.job j
  join dataflow.dataset d on d.datasetid = j.datasetid
 where j.jobid = %(jobid)s and j.itemtype = 'IN' and j.datasetid = 'today'
   and not exists (select from dataflow.datastatus s
                    where s.datasetid = 'today' and s.locktype = 'OUT' and s.dataid = to_char(now() at time zone d.timezone, 'YYYY-MM-DD'))
union all
select 'UNSETTLED', '', null, min(u.dataid) filter (where u.dataid <> ''), count(*), min(u.problem)
  from dataflow.unsettled u where u.jobid = %(jobid)s having count(*) > 0
union all
select 'LEFT_OVER', j.itemtype, j.datasetid, min(i.dataid), count(*), null
  from dataflow.job j
  join dataflow.datastatus i on i.datasetid = j.datasetid and i.jobid = j.jobid and i.locktype = 'IN'
 where j.jobid = %(jobid)s and j.itemtype = 'IN'
   and not exists (select from dataflow.job o
                     join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT' and s.claim_id is not null and s.claim_id = i.claim_id
                    where o.jobid = j.jobid and o.itemtype = 'OUT')
   and (i.claim_id is not null
        or not exists (select from dataflow.job o
                         join dataflow.datastatus s on s.datasetid = o.datasetid and s.jobid = o.jobid and s.dataid = i.dataid
                                                   and s.locktype = 'OUT' and s.status = 'RUNNING'
                        where o.jobid = j.jobid and o.itemtype = 'OUT'))
 group by j.itemtype, j.datasetid

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
-- Chunks of some DataSets by name, range in natural order, status, time of the last change, and the code that made them.
select s.datasetid, s.jobid, s.dataid, s.status, s.modified, s.claim_id, s.lease_until, s.attempt, s.retries, s.run_id, s.manifest_id, s.reason,
       s.held_status, m.version, s.code_version, coalesce(s.status = 'READY' and s.code_version <> d.code_version, false) as is_other_code,
       coalesce(s.status = 'READY', false) and exists (select from dataflow.stale t where t.datasetid = s.datasetid and t.dataid = s.dataid) as is_stale
  from dataflow.datastatus s
  left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
  left join dataflow.dataset d on d.datasetid = s.datasetid
 where s.locktype = 'OUT' and s.datasetid = any (%(datasetids)s)
   and (%(all)s or s.dataid = any (%(names)s)
        or exists (select from unnest(%(lows)s::text[], %(highs)s::text[]) as r(low, high)
                    where (r.low = '' or dataflow.natural_key(s.dataid) >= dataflow.natural_key(r.low))
                      and (r.high = '' or dataflow.natural_key(s.dataid) <= dataflow.natural_key(r.high))))
   and (%(statuses)s::text[] is null or coalesce(s.status, 'NULL') = any (%(statuses)s))
   and (not %(stale)s
        or s.status = 'READY' and exists (select from dataflow.stale t where t.datasetid = s.datasetid and t.dataid = s.dataid))
   and (not %(other_code)s or s.status = 'READY' and s.code_version <> d.code_version)
   and s.modified >= coalesce(%(since)s::timestamptz, '-infinity') and s.modified <= coalesce(%(until)s::timestamptz, 'infinity')
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid
 limit %(count)s

-- name: failed_chunks
-- The FAILED chunks of all DataSets or of some, optionally within a time window.
select s.datasetid, s.jobid, s.dataid, s.status, s.modified, s.claim_id, s.lease_until, s.attempt, s.retries, s.run_id, s.manifest_id, s.reason,
       s.held_status, null::integer as version, s.code_version, false as is_other_code, false as is_stale
  from dataflow.datastatus s
 where s.locktype = 'OUT' and s.status = 'FAILED'
   and (%(datasetids)s::text[] is null or s.datasetid = any (%(datasetids)s))
   and s.modified >= coalesce(%(since)s::timestamptz, '-infinity') and s.modified <= coalesce(%(until)s::timestamptz, 'infinity')
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid

-- name: other_code
-- READY chunks made by code other than the given one of their DataSet, as ranges in natural order, at most so many of a
-- DataSet. With all their chunks and the number of all ranges. What code made a chunk may be unknown; it is left out.
with made as (
    select s.datasetid, s.dataid, s.code_version, w.code_version as current_code, d.partitions ->> 'kind' as kind,
           coalesce(s.status = 'READY' and s.code_version <> w.code_version, false) as is_other
      from unnest(%(datasetids)s::text[], %(code_versions)s::text[]) as w(datasetid, code_version)
      join dataflow.datastatus s on s.datasetid = w.datasetid and s.locktype = 'OUT'
      left join dataflow.dataset d on d.datasetid = w.datasetid
), placed as (
    -- Only DataSets that have such chunks are put in order. Times are in order as they are written.
    select k.*, lag(case when k.is_other then k.code_version end) over (partition by k.datasetid order by k.sort_key, k.dataid) as code_before
      from (select m.*, case when m.kind in ('hourly', 'daily', 'weekly', 'monthly') then m.dataid else dataflow.natural_key(m.dataid) end as sort_key
              from made m
             where m.datasetid in (select o.datasetid from made o where o.is_other)) k
), numbered as (
    select p.*, count(*) filter (where p.is_other and p.code_before is distinct from p.code_version)
                    over (partition by p.datasetid order by p.sort_key, p.dataid rows unbounded preceding) as number
      from placed p
), range as (
    select n.datasetid, n.code_version, n.current_code, n.number, count(*) as chunks,
           (min(array[n.sort_key, n.dataid]))[2] as first, (max(array[n.sort_key, n.dataid]))[2] as last
      from numbered n where n.is_other group by n.datasetid, n.number, n.code_version, n.current_code
), counted as (
    select r.*, count(*) over (partition by r.datasetid) as ranges, sum(r.chunks) over (partition by r.datasetid)::bigint as all_chunks
      from range r
)
select c.datasetid, c.code_version, c.current_code, c.chunks, c.first, c.last, c.ranges, c.all_chunks
  from counted c where c.number <= %(count)s
 order by c.datasetid, c.number

-- name: versions
-- Every published version of a chunk, oldest first.
select m.* from dataflow.data_manifest m where m.datasetid = %(datasetid)s and m.dataid = %(dataid)s order by m.version

-- name: newer_inputs
-- The inputs of a version that have another version now.
select i.datasetid, i.dataid, i.used, c.version as current
  from dataflow.data_manifest m
 cross join lateral dataflow.stale_inputs(m.datasetid, m.dataid, m.inputs) i
  left join dataflow.data_manifest c on c.manifest_id = i.current_id
 where m.manifest_id = %(manifest_id)s and i.is_newer

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
select r.dataid, v.asked, v.claim_id, coalesce(v.problems, '[]') as problems, coalesce(v.inputs, '[]') as inputs
  from dataflow.runnable r
  left join lateral (select * from dataflow.verdict v
                      where v.jobid = r.jobid and v.dataid = r.dataid order by v.verdict_id desc limit 1) v on true
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

-- name: tracebacks
-- The lines of the author's files in which these claims failed.
select f.claim_id, f.traceback from dataflow.failure f where f.claim_id = any (%(claim_ids)s::bigint[])
