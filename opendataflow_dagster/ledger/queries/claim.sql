-- name: ask
-- The five answers that depend on the ledger alone.
select a.dataid, a.problems, a.inputs from dataflow.ask(%(jobid)s, %(dataids)s::text[]) a

-- name: answers
-- The same, with the operators' limits of the Job.
select a.dataid, a.problems, a.inputs from dataflow.answers(%(jobid)s, %(dataids)s::text[]) a

-- name: record_verdicts
-- Whether the files of the inputs are in their place, which the ledger cannot see; a repeated answer is stored once.
select dataflow.record(%(jobid)s, %(dataids)s::text[], %(misplaced)s::text[], %(block)s)

-- name: next_candidates
-- The next chunks with five yes, RESUBMIT first, in natural order, after the first few. Nothing is locked.
select dataflow.with_manifests(array_agg(row (r.dataid, r.state, r.inputs)::dataflow.candidate))::text
  from (select r.dataid, r.xmin::text as state, r.inputs from dataflow.runnable r
         where r.jobid = %(jobid)s and r.blocked is null
         order by r.resubmit desc, r.sort_key, r.dataid
         limit %(count)s offset %(skip)s) r

-- name: named_candidates
-- Those of these chunks that have five yes. Nothing is locked.
select dataflow.with_manifests(array_agg(row (r.dataid, r.xmin::text, r.inputs)::dataflow.candidate))::text
  from dataflow.runnable r
 where r.jobid = %(jobid)s and r.dataid = any (%(dataids)s) and r.blocked is null

-- name: claim
-- As text: the driver parses JSON several times slower than Python does.
select dataflow.claim(%(jobid)s, %(candidates)s::json, %(count)s, %(run_id)s, %(named)s)::text

-- name: force
-- A claim in spite of the answers.
select dataflow.force(%(jobid)s, %(dataid)s, %(run_id)s, %(reason)s)::text

-- name: evaluate
-- Ask the five questions of these chunks again, and keep the answers in the runnable set.
select dataflow.evaluate(array_agg(%(jobid)s::text), array_agg(p.dataid)) from unnest(%(dataids)s::text[]) as p(dataid)

-- name: renew
-- Every claim that is still held has its lease from now on.
select r.claim_id, r.lease_until, r.is_busy
  from dataflow.renew(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(leases)s::interval[]) r

-- name: runnable_count
-- How many chunks of a Job can run now, and how many got a no.
select count(*) filter (where r.blocked is null) as runnable, count(*) filter (where r.blocked is not null) as blocked
  from dataflow.runnable r where r.jobid = %(jobid)s

-- name: runnable_chunks
-- The next chunks that can run. Nothing is locked.
select r.dataid, r.resubmit, r.since, r.blocked from dataflow.runnable r
 where r.jobid = %(jobid)s and r.blocked is null
 order by r.resubmit desc, r.sort_key, r.dataid
 limit %(count)s

-- name: open_days
-- `today` becomes READY for the current date of its time zone; the number of new days.
select dataflow.open_days() as days
