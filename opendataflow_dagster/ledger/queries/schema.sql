-- name: has_migrations
-- Was the schema ever installed here?
select to_regclass('dataflow.migration') is not null as found

-- name: recorded_migrations
-- What was applied, with the checksum of the file as it was then.
select name, checksum from dataflow.migration

-- name: record_migration
-- Goes with the migration, in its transaction.
insert into dataflow.migration (name, checksum) values (%(name)s, %(checksum)s)

-- name: dataflow_roles
-- Which of our roles the server has.
select rolname from pg_roles where rolname in ('dataflow_reader', 'dataflow_operator', 'dataflow_admin')

-- name: act_as
-- Who the history names for the rest of the transaction, and why.
select set_config('dataflow.actor', %(actor)s, true), set_config('dataflow.reason', %(reason)s, true)

-- name: has_upstream_tables
-- Tables of these names that no migration of ours has made.
select coalesce(to_regclass('dataflow.job'), to_regclass('dataflow.dataset'), to_regclass('dataflow.datastatus')) is not null
       and not exists (select from dataflow.migration) as found

-- name: make_dagster_schema
-- Where Dagster keeps its own tables.
create schema if not exists dagster
