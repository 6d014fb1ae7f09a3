-- name: script_items
-- What a script of a Job is told: its DataSets, as far as they are registered, and its variables.
select j.itemtype, j.itemvalue, j.datasetid, d.hostname, d.database, d.schemaname, d.tablename, d.username, d.encryptedpass, d.location
  from dataflow.job j
  left join dataflow.dataset d on d.datasetid = j.datasetid
 where j.jobid = %(jobid)s
 order by j.datasetid, j.itemtype

-- name: why_nothing_runs
-- A Job has nothing to do now: what waits, and what waits for a person. An example of each.
select (select count(*) from dataflow.runnable r where r.jobid = %(jobid)s and r.blocked is not null) as refused,
       (select min(r.dataid) from dataflow.runnable r where r.jobid = %(jobid)s and r.blocked is not null) as refused_dataid,
       f.failed, f.gave_up, f.gave_up_dataid
  from (select count(distinct s.dataid) as failed,
               count(distinct s.dataid) filter (where s.retries + 1 >= coalesce(p.max_attempts, 3)) as gave_up,
               min(s.dataid) filter (where s.retries + 1 >= coalesce(p.max_attempts, 3)) as gave_up_dataid
          from dataflow.datastatus s
          left join dataflow.job_policy p on p.jobid = s.jobid
         where s.jobid = %(jobid)s and s.locktype = 'OUT' and s.status = 'FAILED') f

-- name: stored_secrets
-- Every stored password.
select d.datasetid, d.encryptedpass from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid

-- name: lock_secrets
-- Every stored password, locked until it is written anew.
select d.datasetid, d.encryptedpass from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid for update

-- name: stored_secret
-- The stored password of one DataSet.
select d.datasetid, d.encryptedpass from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: store_secrets
-- Ciphertexts only.
update dataflow.dataset d set encryptedpass = n.encryptedpass
  from unnest(%(datasetids)s::text[], %(encryptedpasses)s::text[]) as n(datasetid, encryptedpass)
 where d.datasetid = n.datasetid
