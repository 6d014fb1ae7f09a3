-- name: release_failed
-- The work failed.
select f.claim_id
  from dataflow.fail(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(reasons)s::text[],
                     %(tracebacks)s::text[]) as f(claim_id)

-- name: release_abandoned
-- The work was abandoned without a result: the crash rule applies.
update dataflow.datastatus s
   set status = dataflow.status_after_crash(s.jobid, s.retries), retries = s.retries + 1, reason = g.reason
  from unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(reasons)s::text[])
       as g(datasetid, jobid, dataid, claim_id, reason)
 where s.datasetid = g.datasetid and s.jobid = g.jobid and s.dataid = g.dataid and s.locktype = 'OUT'
   and s.status = 'RUNNING' and s.claim_id = g.claim_id and s.lease_until > clock_timestamp()
returning g.claim_id

-- name: release_unbegun
-- The work never began: RESUBMIT, which does not count as a retry.
update dataflow.datastatus s set status = 'RESUBMIT', reason = g.reason
  from unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(reasons)s::text[])
       as g(datasetid, jobid, dataid, claim_id, reason)
 where s.datasetid = g.datasetid and s.jobid = g.jobid and s.dataid = g.dataid and s.locktype = 'OUT'
   and s.status = 'RUNNING' and s.claim_id = g.claim_id and s.lease_until > clock_timestamp()
returning g.claim_id

-- name: release_run
-- A run is dead: the crash rule applies to all its claims.
update dataflow.datastatus s
   set status = dataflow.status_after_crash(s.jobid, s.retries), retries = s.retries + 1, reason = %(reason)s
 where s.locktype = 'OUT' and s.claim_id is not null and s.run_id = %(run_id)s
returning s.datasetid, s.dataid

-- name: begin_run
-- A run of a Job begins.
select dataflow.begin_run(%(jobid)s, %(runner)s, %(external_id)s)

-- name: be_heard
-- A heartbeat of the process of this run.
select dataflow.record_heartbeat(%(run_id)s)

-- name: end_run
-- A run ended, successfully or not.
select dataflow.end_run(%(run_id)s, %(outcome)s)
