-- name: dataset_definitions
-- DataSets as they are registered. Passwords are not read.
select d.datasetid, d.location, d.partitions, d.schema_hash, d.foreign_ready, d.skipped_input, d.repeats, d.timezone, d.owner, d.domain,
       d.description, d.hostname, d.database, d.schemaname, d.tablename, d.username
  from dataflow.dataset d
 where %(datasetids)s::text[] is null or d.datasetid = any (%(datasetids)s)
 order by d.datasetid

-- name: job_definitions
-- The items of Jobs, each with its policy.
select j.jobid, j.itemtype, j.datasetid, j.itemvalue, j.mapping, p.lease, p.max_attempts, p.retry_delay, p.retry_on, p.ordered, p.cascade, p.catch_up
  from dataflow.job j
  left join dataflow.job_policy p on p.jobid = j.jobid
 where %(jobids)s::text[] is null or j.jobid = any (%(jobids)s)
 order by j.jobid, j.itemtype, j.datasetid

-- name: put_connection
-- Where an upstream client or a script finds a DataSet. Code does not say this; operators do.
update dataflow.dataset d
   set hostname = %(hostname)s, database = %(database)s, schemaname = %(schemaname)s, tablename = %(tablename)s, username = %(username)s
 where d.datasetid = %(datasetid)s
   and (d.hostname, d.database, d.schemaname, d.tablename, d.username)
       is distinct from (%(hostname)s, %(database)s, %(schemaname)s, %(tablename)s, %(username)s)
