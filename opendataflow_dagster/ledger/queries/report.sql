-- name: chunk_statuses
-- The status of every chunk of some DataSets, in natural order.
select s.datasetid, s.dataid, s.status
  from dataflow.datastatus s
 where s.locktype = 'OUT' and s.datasetid = any (%(datasetids)s)
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid

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

-- name: hourly_throughput
-- Versions published in each of the last hours, including hours without any; over the newest versions.
select h.hour, count(m.published) as versions, coalesce(sum(m.row_count), 0)::bigint as rows, coalesce(sum(m.bytes), 0)::bigint as bytes
  from generate_series(date_trunc('hour', now()) - make_interval(hours => %(hours)s - 1), date_trunc('hour', now()), '1 hour') as h(hour)
  left join (select n.published, n.row_count, n.bytes from dataflow.data_manifest n order by n.manifest_id desc limit %(count)s) m
         on m.published >= h.hour and m.published < h.hour + interval '1 hour'
 group by h.hour
 order by h.hour
