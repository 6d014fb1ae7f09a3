-- name: cancel_chunks
-- The claims of these chunks are revoked. All outputs of a claim fail together.
with meant as (
    select s.claim_id, s.datasetid, s.jobid, s.dataid
      from unnest(%(datasetids)s::text[], %(dataids)s::text[]) as g(datasetid, dataid)
      join dataflow.datastatus s on s.datasetid = g.datasetid and s.dataid = g.dataid and s.locktype = 'OUT' and s.status = 'RUNNING'
)
update dataflow.datastatus s
   set status = 'FAILED', reason = %(reason)s,
       -- Exhausts the retry budget: a retry policy must not undo what an operator has cancelled.
       retries = greatest(s.retries, dataflow.max_attempts_of(s.jobid))
  from (select m.datasetid, m.jobid, m.dataid from meant m
        union
        select j.datasetid, m.jobid, m.dataid from meant m join dataflow.job j on j.jobid = m.jobid and j.itemtype = 'OUT' where m.claim_id is not null) t
 where s.datasetid = t.datasetid and s.jobid = t.jobid and s.dataid = t.dataid and s.locktype = 'OUT' and s.status = 'RUNNING'
returning s.datasetid, s.dataid

-- name: cancel_run
-- The claims of the run are revoked. Chunks that were requested of it and have not begun fail, too.
update dataflow.datastatus s
   set status = 'FAILED', reason = %(reason)s,
       retries = greatest(s.retries, dataflow.max_attempts_of(s.jobid))
  from dataflow.job_run r
  join dataflow.job j on j.jobid = r.jobid and j.itemtype = 'OUT'
 where r.run_id = %(run_id)s and s.datasetid = j.datasetid and s.jobid = j.jobid and s.locktype = 'OUT' and s.run_id = r.run_id
   and (s.claim_id is not null or s.status in ('PENDING', 'RESUBMIT'))
returning s.datasetid, s.dataid

-- name: run_claims
-- The live claims of a run, one row for each output, with the input versions they pinned.
select s.jobid, s.claim_id, s.dataid, s.datasetid as output, s.attempt, s.lease_until, dataflow.lease_of(s.jobid) as lease,
       coalesce(v.inputs, '[]') as inputs, d.location
  from dataflow.datastatus s
  left join dataflow.dataset d on d.datasetid = s.datasetid
  left join lateral (select v.inputs from dataflow.verdict v
                      where v.jobid = s.jobid and v.dataid = s.dataid and v.claim_id = s.claim_id limit 1) v on true
 where s.locktype = 'OUT' and s.claim_id is not null and s.run_id = %(run_id)s
 order by s.claim_id, s.datasetid

-- name: delete_empty_run
-- A run that claimed nothing.
select dataflow.delete_empty_run(%(run_id)s)
