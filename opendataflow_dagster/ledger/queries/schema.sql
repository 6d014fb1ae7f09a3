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

-- name: act_as
-- Whom the history names for the rest of the transaction, and the reason.
select set_config('dataflow.actor', %(actor)s, true), set_config('dataflow.reason', %(reason)s, true)

-- name: has_upstream_tables
-- Tables of these names that this system did not create.
select coalesce(to_regclass('dataflow.job'), to_regclass('dataflow.dataset'), to_regclass('dataflow.datastatus')) is not null
       and not exists (select from dataflow.migration) as found

-- name: make_dagster_schema
-- Where Dagster keeps its own tables.
create schema if not exists dagster
