-- name: dataset_definitions
-- DataSets as registered, without their passwords.
select d.datasetid, d.location, d.partitions, d.schema_hash, d.foreign_ready, d.skipped_input, d.on_new_input, d.repeats, d.timezone, d.owner, d.domain,
       d.description, d.code_version, d.expected_by, d.fresh_within, d.hostname, d.database, d.schemaname, d.tablename, d.username
  from dataflow.dataset d
 where %(datasetids)s::text[] is null or d.datasetid = any (%(datasetids)s)
 order by d.datasetid

-- name: job_definitions
-- The items of Jobs, each with the policy of its Job.
select j.jobid, j.itemtype, j.datasetid, j.itemvalue, j.mapping, p.lease, p.max_attempts, p.retry_delay, p.retry_on, p.ordered, p.cascade, p.catch_up
  from dataflow.job j
  left join dataflow.job_policy p on p.jobid = j.jobid
 where %(jobids)s::text[] is null or j.jobid = any (%(jobids)s)
 order by j.jobid, j.itemtype, j.datasetid

-- name: overlapping_roots
-- DataSets that share a root, or whose root is inside another's.
select r.datasetid, r.other_datasetid, r.problem from dataflow.overlapping_roots() r

-- name: put_connections
-- Where upstream clients and scripts find DataSets. Operators maintain this, not code. A single statement rebuilds the
-- runnable set only once.
update dataflow.dataset d
   set hostname = n.hostname, database = n.database, schemaname = n.schemaname, tablename = n.tablename, username = n.username
  from unnest(%(datasetids)s::text[], %(hostname)s::text[], %(database)s::text[], %(schemaname)s::text[], %(tablename)s::text[],
              %(username)s::text[]) as n(datasetid, hostname, database, schemaname, tablename, username)
 where d.datasetid = n.datasetid
   and (d.hostname, d.database, d.schemaname, d.tablename, d.username)
       is distinct from (n.hostname, n.database, n.schemaname, n.tablename, n.username)

-- name: definition_events
-- The newest changes of a DataSet, or of a Job and its policy; newest first. All rows of one change have the same time.
select e.at, e.relation, e.before, e.after, e.password_changed, e.reason, coalesce(e.actor, e.login) as by
  from dataflow.registry_event e
 where e.name = %(name)s and e.relation = any (%(relations)s)
   and e.at in (select distinct a.at from dataflow.registry_event a where a.name = %(name)s and a.relation = any (%(relations)s)
                 order by a.at desc limit %(changes)s)
 order by e.at desc, e.event_id
