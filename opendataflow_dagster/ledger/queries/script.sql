-- name: script_items
-- What the scripts of a Job get: its DataSets with their encrypted passwords, and its variables.
select i.* from dataflow.script_items(%(jobid)s) i

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
-- Every stored password, encrypted; locked until the transaction ends if asked.
select p.datasetid, p.encryptedpass from dataflow.stored_passwords(%(lock)s) p

-- name: stored_password
-- The encrypted password of one DataSet.
select (select p.encryptedpass from dataflow.stored_passwords(false) p where p.datasetid = d.datasetid) as encryptedpass
  from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: store_passwords
-- Takes ciphertexts only.
update dataflow.dataset d set encryptedpass = n.encryptedpass
  from unnest(%(datasetids)s::text[], %(encryptedpasses)s::text[]) as n(datasetid, encryptedpass)
 where d.datasetid = n.datasetid
