-- name: chunk_rows
-- The OUT rows of some chunks, with their current version.
select s.datasetid, s.jobid, s.dataid, s.status, s.modified, s.claim_id, s.lease_until, s.attempt, s.retries, s.run_id, s.manifest_id, s.reason,
       s.held_status, m.version, s.code_version, coalesce(s.status = 'READY' and s.code_version <> d.code_version, false) as is_other_code,
       coalesce(s.status = 'READY', false) and exists (select from dataflow.stale t where t.datasetid = s.datasetid and t.dataid = s.dataid) as is_stale
  from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
  join dataflow.datastatus s on s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT'
  left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
  left join dataflow.dataset d on d.datasetid = s.datasetid

-- name: set_status
-- HOLD or SKIPPED. A chunk without a row gets one if a Job produces its DataSet.
with g as (
    select * from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
), changed as (
    update dataflow.datastatus s set status = %(status)s, reason = %(reason)s
      from g
     where s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT' and s.status is distinct from %(status)s
    returning s.datasetid, s.dataid
), added as (
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, reason, held_status)
    select g.datasetid, j.jobid, g.dataid, 'OUT', %(status)s, %(reason)s, case %(status)s when 'HOLD' then 'PENDING' end
      from g join dataflow.job j on j.datasetid = g.datasetid and j.itemtype = 'OUT'
     where not exists (select from dataflow.datastatus s where s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT')
        on conflict (datasetid, jobid, dataid) do update set status = excluded.status, reason = excluded.reason
    returning datasetid, dataid
)
select c.datasetid, c.dataid from changed c union all select a.datasetid, a.dataid from added a

-- name: unhold
-- Restore the status from before the hold.
update dataflow.datastatus s set status = coalesce(s.held_status, 'RESUBMIT'), reason = %(reason)s
  from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
 where s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT' and s.status = 'HOLD'
returning s.datasetid, s.dataid

-- name: downstream
-- These chunks and all chunks made from them, directly or indirectly.
with recursive below as (
    select g.datasetid collate "C" as datasetid, g.dataid collate "C" as dataid
      from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
    union
    select s.datasetid, s.dataid
      from below b
      join dataflow.job i on i.datasetid = b.datasetid and i.itemtype = 'IN'
      join dataflow.job o on o.jobid = i.jobid and o.itemtype = 'OUT'
      join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT'
     where i.mapping = 'equal' and s.dataid = b.dataid
        or i.mapping = 'all'
        or i.mapping = 'listed' and exists (select from dataflow.chunk_input e
                                             where e.jobid = i.jobid and e.dataid = s.dataid
                                               and e.datasetid = b.datasetid and e.input_dataid = b.dataid)
)
select b.datasetid, b.dataid from below b

-- name: resubmit
-- The triggers revoke live claims and let producers run before consumers. Chunks on HOLD stay as they are, and so do chunks
-- that became READY after the request.
update dataflow.datastatus s set status = 'RESUBMIT', reason = %(reason)s
  from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
 where s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT'
   and s.status is distinct from 'HOLD' and (s.status is distinct from 'RESUBMIT' or dataflow.has_left_over(s.jobid, s.dataid))
   and not (s.status = 'READY' and s.modified > coalesce(%(requested)s::timestamptz, 'infinity'))
returning s.datasetid, s.dataid

-- name: history
-- Every change of a chunk, oldest first.
select e.* from dataflow.chunk_event e where e.datasetid = %(datasetid)s and e.dataid = %(dataid)s order by e.event_id

-- name: verdicts
-- Every stored answer about a chunk of a Job, oldest first.
select v.* from dataflow.verdict v where v.jobid = %(jobid)s and v.dataid = %(dataid)s order by v.verdict_id

-- name: run_begun
-- Every claim a run has ever made, in the columns of `run_claims`. The start time bounds the search.
select e.jobid, e.claim_id, e.dataid, e.datasetid as output, e.attempt, e.at as lease_until, interval '0' as lease, '[]'::jsonb as inputs
  from dataflow.job_run r
  join dataflow.chunk_event e on e.at >= r.started and e.run_id = r.run_id
 where r.run_id = %(run_id)s and e.locktype = 'OUT' and e.new_status = 'RUNNING' and e.claim_id is not null
 order by e.claim_id, e.datasetid
