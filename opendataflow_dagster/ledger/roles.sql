-- Three roles with grants, applied at every installation, because a role may be created later. A role belongs to the whole server, so it may exist already. Where the administrator lets us
-- create none, the schema works for its owner alone.
do $$
declare
    wanted text;
begin
    foreach wanted in array array['dataflow_reader', 'dataflow_operator', 'dataflow_admin'] loop
        begin
            if not exists (select from pg_roles where rolname = wanted) then
                execute format('create role %I nologin', wanted);
            end if;
        exception
            when insufficient_privilege then
                raise notice 'role % cannot be created by %; ask the administrator of the server for it', wanted, current_user;
            when unique_violation or duplicate_object then
                null;  -- another installation on this server has just created it
        end;
    end loop;
end
$$;

-- Nobody executes a function that is not granted below. Triggers fire without it.
revoke execute on all functions in schema dataflow from public;
-- Constraints of the tables call these as the user who writes.
grant execute on function dataflow.is_name(text), dataflow.is_whole(text, text, bigint, timestamptz, text) to public;

do $$
declare
    reading text;
begin
    if (select count(*) from pg_roles where rolname in ('dataflow_reader', 'dataflow_operator', 'dataflow_admin')) < 3 then
        return;
    end if;
    -- Reads everything except stored passwords. Functions that only read are those that Postgres knows as such.
    grant usage on schema dataflow to dataflow_reader, dataflow_operator, dataflow_admin;
    grant select on all tables in schema dataflow to dataflow_reader, dataflow_operator, dataflow_admin;
    revoke select on dataflow.dataset from dataflow_reader;
    grant select (datasetid, hostname, database, schemaname, tablename, username, modified, location, partitions, schema_hash,
                  foreign_ready, skipped_input, repeats, timezone, owner, domain, description) on dataflow.dataset to dataflow_reader;
    for reading in
        select p.oid::regprocedure::text from pg_proc p
         where p.pronamespace = 'dataflow'::regnamespace and p.provolatile <> 'v' and p.proname not in ('is_name', 'is_whole')
    loop
        execute format('grant execute on function %s to dataflow_reader, dataflow_operator, dataflow_admin', reading);
    end loop;
    grant execute on function dataflow.room(text), dataflow.answers(text, text[]) to dataflow_reader, dataflow_operator, dataflow_admin;
    -- Runs jobs and sets statuses. The answers, the runnable set and the history belong to the functions.
    grant insert, update, delete on dataflow.datastatus to dataflow_operator, dataflow_admin;
    grant insert, update, delete on dataflow.chunk_input, dataflow.job_run, dataflow.job_control, dataflow.reported to dataflow_operator, dataflow_admin;
    grant insert on dataflow.data_manifest to dataflow_operator, dataflow_admin;
    grant insert, update on dataflow.version_sweep to dataflow_operator, dataflow_admin;
    grant execute on function
        dataflow.request(text, text[], timestamptz, bigint, text, text, text[], text[], text[]),
        dataflow.plan(text, text[], bigint, text[], text[], text[]),
        dataflow.claim(text, json, integer, bigint, boolean), dataflow.force(text, text, bigint, text),
        dataflow.record(text, text[], jsonb[], jsonb[], boolean), dataflow.publish(json),
        dataflow.evaluate(text[], text[]), dataflow.open_days(), dataflow.rebuild_runnable(text[]),
        dataflow.drop_versions(text, integer, interval, interval, text)
        to dataflow_operator, dataflow_admin;
    grant usage on all sequences in schema dataflow to dataflow_operator, dataflow_admin;
    -- Changes the registry.
    grant insert, update, delete on dataflow.job, dataflow.dataset, dataflow.job_policy to dataflow_admin;
end
$$;
