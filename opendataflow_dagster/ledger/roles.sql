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

-- Nobody executes a function that is not granted below, nor one that is created later. Triggers fire without it.
alter default privileges revoke execute on functions from public;
revoke all on all functions in schema dataflow from public;
-- Constraints of the tables call these as the user who writes.
grant execute on function dataflow.is_name(text), dataflow.is_whole(text, text, bigint, timestamptz, text) to public;

do $$
declare
    everyone constant text := 'dataflow_reader, dataflow_operator, dataflow_admin';
    item     text;
begin
    for item in select t.oid::regtype::text from pg_type t join pg_class c on c.oid = t.typrelid
                 where t.typnamespace = 'dataflow'::regnamespace and c.relkind = 'c'
    loop
        execute format('revoke all on type %s from public', item);
    end loop;
    -- An upstream installation may have let others create there.
    for item in select coalesce(quote_ident(r.rolname), 'public') from pg_namespace n cross join lateral aclexplode(n.nspacl) g
                  left join pg_roles r on r.oid = g.grantee
                 where n.nspname = 'dataflow' and g.privilege_type = 'CREATE' and g.grantee <> n.nspowner
    loop
        execute format('revoke create on schema dataflow from %s', item);
    end loop;
    if (select count(*) from pg_roles where rolname in ('dataflow_reader', 'dataflow_operator', 'dataflow_admin')) < 3 then
        return;
    end if;
    -- What an older release granted is not kept.
    foreach item in array array['tables', 'sequences', 'functions'] loop
        execute format('revoke all on all %s in schema dataflow from %s', item, everyone);
    end loop;
    execute format('grant usage on schema dataflow to %s', everyone);

    -- Reads everything except stored passwords. Functions that only read are those that Postgres knows as such.
    execute format('grant select on all tables in schema dataflow to %s', everyone);
    execute format('revoke select on dataflow.dataset from %s', everyone);
    execute format('grant select (%s) on dataflow.dataset to %s',
                   (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                     where a.attrelid = 'dataflow.dataset'::regclass and a.attnum > 0 and not a.attisdropped and a.attname <> 'encryptedpass'),
                   everyone);
    for item in
        select p.oid::regprocedure::text from pg_proc p
         where p.pronamespace = 'dataflow'::regnamespace and p.provolatile <> 'v' and not p.prosecdef and p.proname not in ('is_name', 'is_whole')
    loop
        execute format('grant execute on function %s to %s', item, everyone);
    end loop;
    execute format('grant execute on function dataflow.room(text), dataflow.answers(text, text[]) to %s', everyone);
    -- Who is in the way, for those who only read, too.
    execute format('grant execute on function dataflow.refuse_to_wait(text, integer[]), dataflow.idle_writers() to %s', everyone);

    -- Runs jobs and sets statuses. Claims, versions, answers, the runnable set, runs and the history belong to the functions.
    grant delete,
          insert (datasetid, jobid, dataid, locktype, status, modified, reason, held_status),
          update (locktype, status, modified, reason, retries)
        on dataflow.datastatus to dataflow_operator, dataflow_admin;
    grant insert (jobid, concurrency, paused, reason), update (concurrency, paused, reason) on dataflow.job_control to dataflow_operator, dataflow_admin;
    grant insert, delete on dataflow.reported to dataflow_operator, dataflow_admin;
    grant execute on function
        dataflow.request(text, text[], timestamptz, bigint, text, text, text[], text[], text[]),
        dataflow.plan(text, text[], bigint, text[], text[], text[]),
        dataflow.claim(text, json, integer, bigint, boolean), dataflow.force(text, text, bigint, text),
        dataflow.record(text, text[], text[], boolean), dataflow.publish(json),
        dataflow.fail(text[], text[], text[], bigint[], text[], text[]),
        dataflow.renew(text[], text[], text[], bigint[], interval[]),
        dataflow.announce(text, text[], jsonb[]), dataflow.rollback(bigint, text),
        dataflow.evaluate(text[], text[]), dataflow.open_days(), dataflow.remove_left_over(), dataflow.patrol(integer), dataflow.settle(text, integer, text[]),
        dataflow.evaluate_again(text, text[]), dataflow.rebuild_turns(text), dataflow.rebuild_stale(text, text, integer),
        dataflow.begin_run(text, text, text), dataflow.record_heartbeat(bigint), dataflow.end_run(bigint, text),
        dataflow.end_forgotten_runs(), dataflow.delete_empty_run(bigint),
        dataflow.drop_versions(text, integer, interval, interval, text), dataflow.versions_dropped(bigint[]),
        dataflow.script_items(text), dataflow.register_script(text, text)
        to dataflow_operator, dataflow_admin;

    -- Changes the registry.
    grant insert, update, delete on dataflow.job, dataflow.dataset, dataflow.job_policy to dataflow_admin;
    grant delete on dataflow.job_control to dataflow_admin;
    grant execute on function dataflow.stored_passwords(boolean), dataflow.hold_registry() to dataflow_admin;
end
$$;
