-- Three roles with grants; run at each installation, because a role may come later. A role belongs to the whole server, so it may be there already; a server whose
-- administrator lets us make none works without them, for the owner alone.
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
                raise notice 'role % cannot be made by %; ask the administrator of the server for it', wanted, current_user;
            when unique_violation or duplicate_object then
                null;  -- another installation on this server has just made it
        end;
    end loop;
end
$$;

do $$
begin
    if (select count(*) from pg_roles where rolname in ('dataflow_reader', 'dataflow_operator', 'dataflow_admin')) < 3 then
        return;
    end if;
    -- Reads everything except stored passwords.
    grant usage on schema dataflow to dataflow_reader, dataflow_operator, dataflow_admin;
    grant select on all tables in schema dataflow to dataflow_reader, dataflow_operator, dataflow_admin;
    revoke select on dataflow.dataset from dataflow_reader;
    grant select (datasetid, hostname, database, schemaname, tablename, username, modified, location, partitions, schema_hash,
                  foreign_ready, skipped_input, repeats, timezone, owner, domain, description) on dataflow.dataset to dataflow_reader;
    -- Runs jobs and sets statuses; what is append-only stays so, and the registry is not theirs.
    grant insert, update, delete on dataflow.datastatus to dataflow_operator, dataflow_admin;
    grant insert, update, delete on dataflow.chunk_input, dataflow.job_run, dataflow.job_control, dataflow.reported to dataflow_operator, dataflow_admin;
    grant insert on dataflow.data_manifest, dataflow.verdict to dataflow_operator, dataflow_admin;
    grant insert, update on dataflow.version_sweep to dataflow_operator, dataflow_admin;
    grant update, delete on dataflow.runnable to dataflow_operator, dataflow_admin;
    grant execute on function dataflow.settle_runnable(text[], text[]), dataflow.rebuild_runnable(text[]),
                              dataflow.offer(text, text, text[], bigint[], integer[], jsonb[]) to dataflow_operator, dataflow_admin;
    grant usage on all sequences in schema dataflow to dataflow_operator, dataflow_admin;
    -- Changes the registry.
    grant insert, update, delete on dataflow.job, dataflow.dataset, dataflow.job_policy to dataflow_admin;
end
$$;
