-- The rows of a request, a claim and a publication, in plain SQL. The tables are copies of the ledger's, with the same indexes.
-- Nothing asks, checks, wakes or waits: no triggers, no constraints but the keys, no NOTIFY. Each step is one statement.

-- name: add
-- The chunks and the queue hold the same rows as in the ledger.
create schema plain;
create sequence plain.claim_id;
create table plain.datastatus (like dataflow.datastatus including defaults including indexes) with (fillfactor = 80);
create table plain.data_manifest (like dataflow.data_manifest including defaults including identity including generated including indexes);
create table plain.verdict (like dataflow.verdict including defaults including identity including indexes);
create table plain.chunk_event (like dataflow.chunk_event including defaults including identity including indexes);
create table plain.runnable (like dataflow.runnable including defaults including indexes)
    with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);
insert into plain.datastatus select * from dataflow.datastatus;
insert into plain.runnable select * from dataflow.runnable;

-- name: settings
-- Plans are kept, and every row is found by index: neither planning nor the reading of a table is what we compare with.
set enable_seqscan = off;
set plan_cache_mode = force_generic_plan;
set search_path = plain;

-- name: request
with planned as (
    insert into datastatus (datasetid, jobid, dataid, locktype, status)
    select 'tidy', 'clean', d.dataid, 'OUT', 'PENDING' from unnest(%(dataids)s::text[]) as d(dataid)
    returning datasetid, jobid, dataid, locktype, status, attempt
)
insert into chunk_event (datasetid, jobid, dataid, locktype, new_status, attempt, login, actor)
select p.*, session_user, 'bench' from planned p

-- name: named
select r.ctid from runnable r where r.jobid = 'clean' and r.dataid = any (%(dataids)s::text[]) for update

-- name: next
select r.ctid from runnable r where r.jobid = 'clean' and r.blocked is null
 order by r.resubmit desc, r.sort_key, r.dataid limit %(count)s for update skip locked

-- name: claim
with taken as (
    delete from runnable where ctid = any (array({chosen})) returning dataid, inputs
), chunk as materialized (
    select t.dataid, t.inputs, nextval('claim_id') as claim_id from taken t
), output as (
    insert into datastatus as s (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt)
    select 'tidy', 'clean', c.dataid, 'OUT', 'RUNNING', c.claim_id, now() + interval '10 minutes', 1 from chunk c
        on conflict (datasetid, jobid, dataid) do update
       set status = 'RUNNING', claim_id = excluded.claim_id, lease_until = excluded.lease_until, attempt = s.attempt + 1, modified = now()
    returning datasetid, jobid, dataid, locktype, status, claim_id, attempt, manifest_id
), input as (
    insert into datastatus (datasetid, jobid, dataid, locktype, status, claim_id, manifest_id)
    select i.datasetid, 'clean', i.dataid, 'IN', 'RUNNING', c.claim_id, i.manifest_id
      from chunk c cross join jsonb_to_recordset(c.inputs) as i(datasetid text, dataid text, manifest_id bigint)
    returning datasetid, jobid, dataid, locktype, status, claim_id, attempt, manifest_id
), recorded as (
    insert into verdict (jobid, dataid, claim_id, inputs) select 'clean', c.dataid, c.claim_id, c.inputs from chunk c
), event as (
    insert into chunk_event (datasetid, jobid, dataid, locktype, new_status, claim_id, attempt, manifest_id, login, actor)
    select e.*, session_user, 'bench' from (select * from output union all select * from input) e
)
select c.dataid, c.claim_id, c.inputs::text from chunk c

-- name: publish
with given as materialized (
    select g.*, nextval('data_manifest_manifest_id_seq') as manifest_id
      from unnest(%(dataids)s::text[], %(claim_ids)s::bigint[], %(inputs)s::jsonb[], %(locations)s::text[], %(files)s::jsonb[])
           as g(dataid, claim_id, inputs, location, files)
), made as (
    insert into data_manifest (manifest_id, datasetid, dataid, version, jobid, claim_id, location, files, bytes, row_count, content_digest, inputs)
    overriding system value
    select g.manifest_id, 'tidy', g.dataid, 1, 'clean', g.claim_id, g.location, g.files, 4, 1000, 'claim ' || g.claim_id, g.inputs from given g
), output as (
    update datastatus s set status = 'READY', claim_id = null, lease_until = null, manifest_id = g.manifest_id, modified = now()
      from (select g.*, t.place from given g
             cross join lateral (select t.ctid as place from datastatus t where t.datasetid = 'tidy' and t.jobid = 'clean' and t.dataid = g.dataid
                                 offset 0) t) g
     where s.ctid = g.place and s.claim_id = g.claim_id
    returning s.datasetid, s.dataid, s.locktype, s.status, g.claim_id, s.attempt, s.manifest_id
), input as (
    delete from datastatus s
     where s.ctid = any (array(select t.place from given g
                                cross join lateral (select t.ctid as place from datastatus t
                                                     where t.datasetid = 'raw' and t.jobid = 'clean' and t.dataid = g.dataid offset 0) t))
       and s.locktype = 'IN'
    returning s.datasetid, s.dataid, s.locktype, null, s.claim_id, s.attempt, s.manifest_id
), event as (
    insert into chunk_event (jobid, old_status, datasetid, dataid, locktype, new_status, claim_id, attempt, manifest_id, login, actor)
    select 'clean', 'RUNNING', e.*, session_user, 'bench' from (select * from output union all select * from input) e
), consumer as (
    insert into runnable (jobid, dataid, sort_key, inputs)
    select 'report', o.dataid, lpad(o.dataid, 20, '0'),
           jsonb_build_array(jsonb_build_object('datasetid', 'tidy', 'dataid', o.dataid, 'manifest_id', o.manifest_id, 'version', 1))
      from output o
)
select o.dataid, o.manifest_id from output o
