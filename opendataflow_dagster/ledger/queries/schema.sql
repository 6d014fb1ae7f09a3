-- name: has_migrations
-- Was the schema ever installed here?
select to_regclass('dataflow.migration') is not null as found

-- name: recorded_migrations
-- What was applied, with the checksum of the file at that time.
select name, checksum from dataflow.migration

-- name: record_migrations
-- In the transaction that applies the files.
insert into dataflow.migration (name, checksum)
select n.name, n.checksum from unnest(%(names)s::text[], %(checksums)s::text[]) as n(name, checksum)
on conflict (name) do update set checksum = excluded.checksum, applied = now()

-- name: forget_migrations
-- Records of a release that another record replaces.
delete from dataflow.migration where name = any (%(names)s)

-- name: dataflow_roles
-- Which of our roles the server has.
select rolname from pg_roles where rolname in ('dataflow_reader', 'dataflow_operator', 'dataflow_admin')

-- name: superuser_owner
-- The owner of the schema, if it is a superuser.
select r.rolname from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'dataflow' and r.rolsuper

-- name: refuse_to_wait
-- An error that names the sessions that have left a transaction open; nothing, if there are none.
select dataflow.refuse_to_wait(%(what)s, w.pids) from dataflow.idle_writers() as w(pids) where w.pids <> '{}'

-- name: act_as
-- Whom the history names for the rest of the transaction, and the reason.
select set_config('dataflow.actor', %(actor)s, true), set_config('dataflow.reason', %(reason)s, true)

-- name: set
-- The settings of a session that is ours, or of the transaction. A pooler announces a process of its own making instead of
-- the server's: its sessions belong to others, too, and nothing is set. Every name has its schema, because the search_path
-- may be anybody's.
select pg_catalog.count(pg_catalog.set_config(s.name, s.value, %(is_local)s::pg_catalog.bool))
  from rows from (pg_catalog.unnest(%(names)s::pg_catalog.text[]), pg_catalog.unnest(%(values)s::pg_catalog.text[])) as s(name, value)
 where %(is_local)s::pg_catalog.bool or pg_catalog.pg_backend_pid() operator(pg_catalog.=) %(pid)s::pg_catalog.int4

-- name: has_upstream_tables
-- Tables of these names that this system did not create.
select coalesce(to_regclass('dataflow.job'), to_regclass('dataflow.dataset'), to_regclass('dataflow.datastatus')) is not null
       and not exists (select from dataflow.migration) as found

-- name: make_dagster_schema
-- Where Dagster keeps its own tables.
create schema if not exists dagster
