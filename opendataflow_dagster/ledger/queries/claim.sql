-- name: gate
-- All five answers, without taking anything.
select a.* from dataflow.ask(%(jobid)s, %(dataids)s::text[]) a

-- name: record_verdicts
-- Answers of a gate; one that is the same as the last is not stored again.
insert into dataflow.verdict (jobid, dataid, ready, right_data, placed, valid, safe, code, inputs)
select distinct on (n.dataid) %(jobid)s, n.dataid, n.ready, n.right_data, n.placed, n.valid, n.safe,
       dataflow.code_of(n.ready, n.right_data, n.placed, n.valid, n.safe), n.inputs
  from unnest(%(dataids)s::text[], %(ready)s::text[], %(right_data)s::text[], %(placed)s::text[], %(valid)s::text[], %(safe)s::text[],
              %(inputs)s::jsonb[]) as n(dataid, ready, right_data, placed, valid, safe, inputs)
 where dataflow.is_news(%(jobid)s, n.dataid, n.ready, n.right_data, n.placed, n.valid, n.safe)

-- name: claim_next
-- The next chunks of a Job, RESUBMIT first, in natural order; those that others are claiming are passed over.
-- As text: the driver would read JSON four times as slowly as Python does.
select dataflow.take(%(jobid)s, null, %(count)s, %(run_id)s, %(with_files)s)::text

-- name: lock_runnable
-- Chunks by name: wait for whoever is claiming them, so that the answers are of after that.
select r.dataid from dataflow.runnable r
 where r.jobid = %(jobid)s and r.dataid = any (%(dataids)s)
 order by r.jobid, r.dataid
   for update

-- name: claim_named
-- Take these chunks, whose runnable rows are locked as far as there are any.
select dataflow.take(%(jobid)s, %(dataids)s::text[], null, %(run_id)s, true)::text

-- name: block
-- Chunks that got a no which the ledger cannot know, about files: heal asks again.
update dataflow.runnable r set blocked = n.code
  from unnest(%(dataids)s::text[], %(codes)s::text[]) as n(dataid, code)
 where r.jobid = %(jobid)s and r.dataid = n.dataid

-- name: give_way
-- Shorter than deadlock_timeout: who types a statement is never the victim of a claim.
select set_config('lock_timeout', '200ms', true)

-- name: settle
-- Ask the five questions of these chunks again, and keep the answers in the runnable set.
select dataflow.settle_runnable(array_agg(%(jobid)s::text), array_agg(p.dataid)) from unnest(%(dataids)s::text[]) as p(dataid)

-- name: renew
-- Every claim that is still held has its lease from now on.
update dataflow.datastatus s set lease_until = clock_timestamp() + g.lease
  from unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(leases)s::interval[])
       as g(datasetid, jobid, dataid, claim_id, lease)
 where s.datasetid = g.datasetid and s.jobid = g.jobid and s.dataid = g.dataid and s.locktype = 'OUT'
   and s.claim_id = g.claim_id and s.lease_until > clock_timestamp()
returning s.claim_id, s.lease_until

-- name: runnable_count
-- What can run now, for one Job.
select count(*) filter (where r.blocked is null) as runnable, count(*) filter (where r.blocked is not null) as blocked
  from dataflow.runnable r where r.jobid = %(jobid)s

-- name: runnable_chunks
-- The next chunks that can run, as advice: nothing is locked.
select r.dataid, r.resubmit, r.since, r.blocked from dataflow.runnable r
 where r.jobid = %(jobid)s and r.blocked is null
 order by r.resubmit desc, r.sort_key, r.dataid
 limit %(count)s
