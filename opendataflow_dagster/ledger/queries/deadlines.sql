-- name: late_chunks
-- Chunks that were expected by now and are not READY, of each DataSet the newest first. See dataflow.deadlines.
select d.datasetid, t.dataid, s.status, t.due at time zone d.timezone as due
  from dataflow.dataset d
 cross join lateral dataflow.deadlines(d.partitions, d.expected_by::interval, now() at time zone d.timezone) t
  left join lateral (select s.status from dataflow.datastatus s
                      where s.datasetid = d.datasetid and s.dataid = t.dataid and s.locktype = 'OUT'
                      order by s.status in ('READY', 'SKIPPED') limit 1) s on true
 where d.expected_by is not null and s.status is distinct from 'READY' and s.status is distinct from 'SKIPPED'
 order by d.datasetid, t.due desc

-- name: freshness
-- DataSets that must have a new chunk regularly: when the newest one became READY.
select d.datasetid, d.fresh_within, n.newest, now() - n.newest as age
  from dataflow.dataset d
 cross join lateral (select max(s.modified) as newest from dataflow.datastatus s
                      where s.datasetid = d.datasetid and s.locktype = 'OUT' and s.status = 'READY') n
 where d.fresh_within is not null
 order by d.datasetid
