-- name: registered
-- Every DataSet, and every Job with its items; new definitions are checked against them.
select 'dataset' as what, d.datasetid as name, null as itemtype, null as datasetid from dataflow.dataset d
union all
select 'job', j.jobid, j.itemtype, j.datasetid from dataflow.job j where j.itemtype in ('IN', 'OUT')

-- name: is_job
-- Is the Job registered, and does an operator limit it?
select exists (select from dataflow.job where jobid = %(jobid)s) as found,
       exists (select from dataflow.job_control where jobid = %(jobid)s) as steered

-- name: room
-- The concurrency limit of a Job, and how many more of its chunks may run.
select r.concurrency, r.paused, r.reason, r.running, r.free from dataflow.room(%(jobid)s) r

-- name: lock_registry
-- Serializes registration when several code locations load at the same time.
select dataflow.hold_registry()

-- name: put_datasets
-- Code is the master: the rows become what the code declares. A single statement rebuilds the runnable set only once.
insert into dataflow.dataset as d (datasetid, location, partitions, schema_hash, foreign_ready, skipped_input, on_new_input, repeats, timezone,
                                   owner, domain, description, code_version, expected_by, fresh_within)
select n.datasetid, n.location, n.partitions, n.schema_hash, n.foreign_ready, n.skipped_input, n.on_new_input, n.repeats, n.timezone, n.owner, n.domain, n.description,
       n.code_version, n.expected_by, n.fresh_within
  from unnest(%(datasetid)s::text[], %(location)s::text[], %(partitions)s::jsonb[], %(schema_hash)s::text[], %(foreign_ready)s::text[],
              %(skipped_input)s::text[], %(on_new_input)s::text[], %(repeats)s::boolean[], %(timezone)s::text[], %(owner)s::text[], %(domain)s::text[], %(description)s::text[],
              %(code_version)s::text[], %(expected_by)s::text[], %(fresh_within)s::interval[])
       as n(datasetid, location, partitions, schema_hash, foreign_ready, skipped_input, on_new_input, repeats, timezone, owner, domain, description,
            code_version, expected_by, fresh_within)
on conflict (datasetid) do update
   set location = excluded.location, partitions = excluded.partitions, schema_hash = excluded.schema_hash,
       foreign_ready = excluded.foreign_ready, skipped_input = excluded.skipped_input, on_new_input = excluded.on_new_input, repeats = excluded.repeats,
       expected_by = excluded.expected_by, fresh_within = excluded.fresh_within,
       timezone = excluded.timezone, owner = excluded.owner, domain = excluded.domain, description = excluded.description,
       -- A definition that does not know its code, such as an imported one, leaves what is known.
       code_version = coalesce(excluded.code_version, d.code_version)

-- name: register_script
-- The script that a Job runs is the code of its outputs.
select dataflow.register_script(%(jobid)s, %(code_version)s)

-- name: drop_job_items
-- Items that the code no longer declares.
delete from dataflow.job j
 using unnest(%(jobids)s::text[], %(itemtypes)s::text[], %(datasetids)s::text[]) as n(jobid, itemtype, datasetid)
 where j.jobid = n.jobid and j.itemtype = n.itemtype and j.datasetid is not distinct from n.datasetid

-- name: add_job_items
-- Items that are new in the code.
insert into dataflow.job (jobid, itemtype, datasetid, itemvalue, mapping)
select n.jobid, n.itemtype, n.datasetid, n.itemvalue, n.mapping
  from unnest(%(jobids)s::text[], %(itemtypes)s::text[], %(datasetids)s::text[], %(itemvalues)s::text[], %(mappings)s::text[])
       as n(jobid, itemtype, datasetid, itemvalue, mapping)

-- name: put_policy
-- Leases, retries and ordering of Jobs.
insert into dataflow.job_policy as p (jobid, lease, max_attempts, retry_delay, retry_on, ordered, cascade, catch_up)
select n.*
  from unnest(%(jobid)s::text[], %(lease)s::interval[], %(max_attempts)s::integer[], %(retry_delay)s::interval[], %(retry_on)s::text[],
              %(ordered)s::boolean[], %(cascade)s::boolean[], %(catch_up)s::boolean[]) as n
on conflict (jobid) do update
   set lease = excluded.lease, max_attempts = excluded.max_attempts, retry_delay = excluded.retry_delay, retry_on = excluded.retry_on,
       ordered = excluded.ordered, cascade = excluded.cascade, catch_up = excluded.catch_up

-- name: running_chunks_of
-- The chunks that a Job is making, whoever claimed them.
select s.datasetid, s.dataid
  from dataflow.job j
  join dataflow.datastatus s on s.datasetid = j.datasetid and s.jobid = j.jobid and s.locktype = 'OUT' and s.status = 'RUNNING'
 where j.jobid = %(jobid)s and j.itemtype = 'OUT'
 order by s.datasetid, dataflow.natural_key(s.dataid), s.dataid

-- name: chunk_counts
-- The chunks of some DataSets by status.
select s.datasetid, coalesce(s.status, 'NULL') as status, count(*) as chunks
  from dataflow.datastatus s
 where s.datasetid = any (%(datasetids)s::text[]) and s.locktype = 'OUT'
 group by 1, 2 order by 1, 2

-- name: users_of
-- The Jobs that name a DataSet, each with the itemtype.
select j.jobid, j.itemtype from dataflow.job j where j.datasetid = %(datasetid)s order by (j.itemtype = 'OUT') desc, j.jobid

-- name: remove_items
-- All items of a Job, its variables included.
delete from dataflow.job where jobid = %(jobid)s

-- name: remove_policy
-- The policy of a Job.
delete from dataflow.job_policy where jobid = %(jobid)s

-- name: remove_limits
-- The operators' limits of a Job.
delete from dataflow.job_control where jobid = %(jobid)s

-- name: remove_chunks
-- The rows of a DataSet's chunks. Versions and history stay.
delete from dataflow.datastatus where datasetid = %(datasetid)s

-- name: remove_dataset
-- The definition of a DataSet.
delete from dataflow.dataset where datasetid = %(datasetid)s
