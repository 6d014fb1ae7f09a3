-- name: heat_cells
-- The chunks of some DataSets in natural order, with the declared past partitions that have none, in at most so many cells of
-- each DataSet: how many chunks of a cell have each status, and an example. A READY chunk that is stale is
-- stale, since it became so.
with expected as (
    select d.datasetid, x.dataid
      from dataflow.dataset d
     cross join lateral dataflow.past_partitions(d.partitions, now() at time zone d.timezone) x
     where d.datasetid = any (%(incomplete)s)
       and not exists (select from dataflow.datastatus s
                        where s.datasetid = d.datasetid and s.dataid = x.dataid and s.locktype = 'OUT')
), chunk as (
    select s.datasetid, s.dataid, case when t.dataid is not null then 'stale' else coalesce(s.status, 'NULL') end as status,
           coalesce(t.since, s.modified) as modified, s.reason
      from dataflow.datastatus s
      left join dataflow.stale t on t.datasetid = s.datasetid and t.dataid = s.dataid and s.status = 'READY'
     where s.locktype = 'OUT' and s.datasetid = any (%(datasetids)s)
    union all
    select e.datasetid, e.dataid, 'missing', null, null from expected e
), placed as (
    select c.*, row_number() over (partition by c.datasetid order by dataflow.natural_key(c.dataid), c.dataid) - 1 as place,
           count(*) over (partition by c.datasetid) as chunks,
           ceil(count(*) over (partition by c.datasetid) / %(most)s::numeric)::bigint as size
      from chunk c
)
select p.datasetid, p.place / p.size as cell, p.status, count(*) as chunks,
       min(p.dataid) filter (where p.place %% p.size = 0) as first,
       min(p.dataid) filter (where (p.place + 1) %% p.size = 0 or p.place + 1 = p.chunks) as last,
       min(p.dataid) as example, max(p.modified) as since, min(p.reason) as reason
  from placed p
 group by 1, 2, 3
 order by 1, 2, 3

-- name: chunk_durations
-- Time from claim to publication for each Job, over the newest versions.
select m.jobid, count(*) as chunks,
       percentile_cont(0.5) within group (order by m.published - v.asked) as median,
       percentile_cont(0.95) within group (order by m.published - v.asked) as p95,
       max(m.published - v.asked) as longest
  from (select n.jobid, n.dataid, n.claim_id, n.published from dataflow.data_manifest n order by n.manifest_id desc limit %(count)s) m
 cross join lateral (select v.asked from dataflow.verdict v
                      where v.jobid = m.jobid and v.dataid = m.dataid and v.claim_id = m.claim_id limit 1) v
 group by m.jobid
 order by m.jobid

-- name: throughput
-- Versions published between each two of these times, over the newest versions. A span that begins before the oldest of those
-- is not counted in full.
with newest as materialized (
    select n.published, n.row_count, n.bytes from dataflow.data_manifest n order by n.manifest_id desc limit %(count)s
), counted as (
    select width_bucket(n.published, %(bounds)s::timestamptz[]) as place, count(*) as versions,
           coalesce(sum(n.row_count), 0)::bigint as rows, coalesce(sum(n.bytes), 0)::bigint as bytes
      from newest n group by 1
)
select b.begins, coalesce(c.versions, 0) as versions, coalesce(c.rows, 0) as rows, coalesce(c.bytes, 0) as bytes,
       b.begins >= (select case when count(*) < %(count)s then '-infinity' else min(n.published) end from newest n) as is_complete
  from unnest(%(bounds)s::timestamptz[]) with ordinality as b(begins, place)
  left join counted c on c.place = b.place
 where b.place < cardinality(%(bounds)s::timestamptz[])
 order by b.place
