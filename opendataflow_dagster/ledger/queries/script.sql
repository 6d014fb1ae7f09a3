-- name: script_items
-- What the scripts of a Job get: its DataSets, as far as they are registered, and its variables.
select j.itemtype, j.itemvalue, j.datasetid, d.hostname, d.database, d.schemaname, d.tablename, d.username, d.encryptedpass, d.location
  from dataflow.job j
  left join dataflow.dataset d on d.datasetid = j.datasetid
 where j.jobid = %(jobid)s
 order by j.datasetid, j.itemtype

-- name: idle_reasons
-- Why a Job has nothing to run: refused chunks, failed chunks, and failed chunks without retries left, with examples.
select (select count(*) from dataflow.runnable r where r.jobid = %(jobid)s and r.blocked is not null) as refused,
       (select min(r.dataid) from dataflow.runnable r where r.jobid = %(jobid)s and r.blocked is not null) as refused_dataid,
       f.failed, f.gave_up, f.gave_up_dataid
  from (select count(distinct s.dataid) as failed,
               count(distinct s.dataid) filter (where dataflow.status_after_crash(s.jobid, s.retries) = 'FAILED') as gave_up,
               min(s.dataid) filter (where dataflow.status_after_crash(s.jobid, s.retries) = 'FAILED') as gave_up_dataid
          from dataflow.datastatus s
         where s.jobid = %(jobid)s and s.locktype = 'OUT' and s.status = 'FAILED') f

-- name: stored_passwords
-- Every stored password, encrypted.
select d.datasetid, d.encryptedpass from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid

-- name: lock_passwords
-- The same, locked until the transaction ends.
select d.datasetid, d.encryptedpass from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid for update

-- name: stored_password
-- The encrypted password of one DataSet.
select d.encryptedpass from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: store_passwords
-- Takes ciphertexts only.
update dataflow.dataset d set encryptedpass = n.encryptedpass
  from unnest(%(datasetids)s::text[], %(encryptedpasses)s::text[]) as n(datasetid, encryptedpass)
 where d.datasetid = n.datasetid
