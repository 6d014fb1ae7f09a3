-- The triggers of the registry: its changes enter the history, and mark the Jobs whose chunks must be evaluated again.

-- The lock is taken before a row is touched, as a registration does.
create function dataflow.lock_registry() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_relid not in ('dataflow.dataset'::regclass, 'dataflow.job'::regclass, 'dataflow.job_policy'::regclass) then
        raise exception 'lock_registry is a trigger of dataset, job and job_policy alone';
    end if;
    perform dataflow.hold_registry();
    return null;
end
$$;
create trigger lock_registry before insert or update or delete on dataflow.job
    for each statement execute function dataflow.lock_registry();
create trigger lock_registry before insert or update or delete on dataflow.job_policy
    for each statement execute function dataflow.lock_registry();

-- The default of the server, because a session sets its own. Postgres may know a zone that it does not list.
create function dataflow.server_timezone() returns text
    language sql stable
    return coalesce((select z.name from pg_timezone_names z where z.name = (select s.reset_val from pg_settings s where s.name = 'TimeZone')), 'UTC');

-- `today` belongs to nobody: a Job that reads it registers it.
create function dataflow.register_today() returns void
    language plpgsql
as $$
begin
    if exists (select from dataflow.job j where j.datasetid = 'today' and j.itemtype = 'IN')
       and not exists (select from dataflow.dataset d where d.datasetid = 'today') then
        insert into dataflow.dataset (datasetid, timezone) values ('today', dataflow.server_timezone()) on conflict do nothing;
    end if;
end
$$;

-- Only IN and OUT items decide which chunks may run; most rows are variables.
create function dataflow.after_job_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    jobids  text[] := '{}';
    loop_of text;
begin
    if tg_relid <> 'dataflow.job'::regclass then
        raise exception 'after_job_change is a trigger of job alone';
    end if;
    if tg_op <> 'INSERT' then
        jobids := jobids || array(select o.jobid from old_rows o where o.itemtype in ('IN', 'OUT'));
    end if;
    if tg_op <> 'DELETE' then
        jobids := jobids || array(select n.jobid from new_rows n where n.itemtype in ('IN', 'OUT'));
    end if;
    if jobids = '{}' then
        return null;
    end if;
    with recursive made_from as (
        select o.datasetid as target, i.datasetid as source
          from dataflow.job o join dataflow.job i on i.jobid = o.jobid and i.itemtype = 'IN'
         where o.itemtype = 'OUT'
    ), reach as (
        select m.target, m.source from made_from m
        union
        select r.target, m.source from reach r join made_from m on m.target = r.source
    )
    select string_agg(r.target, ', ' order by r.target) into loop_of from reach r where r.source = r.target;
    if loop_of is not null then
        raise exception 'DataSets are made from themselves: %', loop_of
            using errcode = 'DF002', hint = 'remove one IN or OUT item of the jobs in the cycle';
    end if;
    perform dataflow.register_today();
    perform dataflow.unsettle(jobids, true);
    return null;
end
$$;
create trigger job_inserted after insert on dataflow.job
    referencing new table as new_rows for each statement execute function dataflow.after_job_change();
create trigger job_updated after update on dataflow.job
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.after_job_change();
create trigger job_deleted after delete on dataflow.job
    referencing old table as old_rows for each statement execute function dataflow.after_job_change();

create trigger lock_registry before insert or update of location on dataflow.dataset
    for each statement execute function dataflow.lock_registry();

-- A root of its own for each DataSet: what is below it belongs to nobody else. Roots that overlap since before this was
-- refused stay as they are. The time zone must be one that we can compute with: other programs know other names.
-- The connection, owner, domain and description decide nothing.
create function dataflow.after_dataset_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    moved  text[];
    clash  record;
    lost   record;
begin
    if tg_relid <> 'dataflow.dataset'::regclass then
        raise exception 'after_dataset_change is a trigger of dataset alone';
    end if;
    if tg_op <> 'DELETE' then
        if tg_op = 'INSERT' then
            moved := array(select n.datasetid from new_rows n where n.location is not null);
        else
            moved := array(select n.datasetid from new_rows n left join old_rows o on o.datasetid = n.datasetid
                            where n.location is distinct from o.location and n.location is not null);
        end if;
        if cardinality(moved) > 0 then
            select n.datasetid, n.location into lost from new_rows n
             where n.datasetid = any (moved) and (n.location ~ '(^|/)[.]{1,2}(/|$)' or btrim(n.location, '/ ') = '')
             order by 1 limit 1;
            if found then
                raise exception 'DataSet %: % is not a root', lost.datasetid, quote_literal(left(lost.location, 100))
                    using errcode = 'DF002', hint = 'use a folder or URL without . and .., or null where none is managed here';
            end if;
            select r.* into clash from dataflow.overlapping_roots() r where r.datasetid = any (moved) or r.other_datasetid = any (moved) limit 1;
            if found then
                raise exception 'DataSet %: %', clash.datasetid, clash.problem
                    using errcode = 'DF002', hint = 'give each a root of its own; to free the root of an unused DataSet, run: odf dataset set NAME --location ""';
            end if;
        end if;
        select n.datasetid, n.timezone into lost from new_rows n
         where n.timezone <> 'UTC' and n.timezone not in (select z.name from pg_timezone_names z)
         order by 1 limit 1;
        if found then
            raise exception 'DataSet %: Postgres knows no time zone %', lost.datasetid, quote_literal(lost.timezone)
                using errcode = 'DF002', hint = 'use one such as UTC or Europe/Berlin; select name from pg_timezone_names lists them';
        end if;
        select n.datasetid, n.partitions into lost from new_rows n
         where n.partitions is not null and not dataflow.is_scheme(n.partitions)
         order by 1 limit 1;
        if found then
            raise exception 'DataSet %: % are not partitions', lost.datasetid, left(lost.partitions::text, 100)
                using errcode = 'DF002',
                      hint = 'use {"kind": "daily", "first": "2024-01-01"}, or kind hourly, weekly, monthly, static (keys) or range (first, last, step)';
        end if;
    end if;
    if tg_op = 'INSERT' then
        perform dataflow.unsettle(array(select j.jobid from new_rows n join dataflow.job j on j.datasetid = n.datasetid));
    elsif tg_op = 'DELETE' then
        perform dataflow.unsettle(array(select j.jobid from old_rows o join dataflow.job j on j.datasetid = o.datasetid));
    else
        perform dataflow.unsettle(array(
            select j.jobid
              from (select datasetid, location, partitions, schema_hash, foreign_ready, skipped_input, repeats, timezone
                      from (select * from new_rows union all select * from old_rows) b
                     group by 1, 2, 3, 4, 5, 6, 7, 8 having count(*) = 1) n
              join dataflow.job j on j.datasetid = n.datasetid));
    end if;
    return null;
end
$$;
create trigger dataset_inserted after insert on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.after_dataset_change();
create trigger dataset_updated after update on dataflow.dataset
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.after_dataset_change();
create trigger dataset_deleted after delete on dataflow.dataset
    referencing old table as old_rows for each statement execute function dataflow.after_dataset_change();

-- Of a policy, only `ordered` and `catch_up` decide which chunks may run.
create function dataflow.after_policy_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_relid <> 'dataflow.job_policy'::regclass then
        raise exception 'after_policy_change is a trigger of job_policy alone';
    end if;
    if tg_op = 'INSERT' and (new.ordered or new.catch_up)
       or tg_op = 'UPDATE' and (new.ordered, new.catch_up) <> (old.ordered, old.catch_up) then
        perform dataflow.unsettle(array[new.jobid]);
    elsif tg_op = 'DELETE' and (old.ordered or old.catch_up) then
        perform dataflow.unsettle(array[old.jobid]);
    end if;
    return null;
end
$$;
create trigger policy_changed after insert or update or delete on dataflow.job_policy
    for each row execute function dataflow.after_policy_change();

create function dataflow.after_listing() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    jobids     text[];
    dataids    text[];
    made       dataflow.chunk[];
    redirected dataflow.chunk[] := '{}';
begin
    if tg_relid <> 'dataflow.chunk_input'::regclass then
        raise exception 'after_listing is a trigger of chunk_input alone';
    end if;
    if tg_op = 'DELETE' then
        select array_agg(o.jobid), array_agg(o.dataid) into jobids, dataids from old_rows o;
    else
        select array_agg(n.jobid), array_agg(n.dataid) into jobids, dataids from new_rows n;
    end if;
    if jobids is null then
        return null;
    end if;
    -- What was made already may be stale by other inputs now.
    made := array(select distinct row (j.datasetid, c.dataid)::dataflow.chunk
                    from unnest(jobids, dataids) as c(jobid, dataid)
                   cross join lateral (select t.datasetid from dataflow.job t where t.jobid = c.jobid and t.itemtype = 'OUT' offset 0) j
                   cross join lateral (select from dataflow.datastatus s
                                        where s.datasetid = j.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' and s.manifest_id is not null
                                        limit 1) s);
    if made <> '{}' then
        perform dataflow.lock_versions('{}', array(select distinct m.datasetid from unnest(made) m), null);
        select m.redirected into redirected from dataflow.mark_stale(made, '{}') m;
    end if;
    perform dataflow.lock_planned_inputs(array(select distinct j.jobid from unnest(jobids) as j(jobid)));
    perform dataflow.evaluate(jobids, dataids);
    perform dataflow.ask_consumers(redirected);
    return null;
end
$$;
create trigger chunk_input_inserted after insert on dataflow.chunk_input
    referencing new table as new_rows for each statement execute function dataflow.after_listing();
create trigger chunk_input_updated after update on dataflow.chunk_input
    referencing new table as new_rows for each statement execute function dataflow.after_listing();
create trigger chunk_input_deleted after delete on dataflow.chunk_input
    referencing old table as old_rows for each statement execute function dataflow.after_listing();

create function dataflow.keep_modified() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    new.modified := now();
    return new;
end
$$;
create trigger keep_modified before insert or update on dataflow.job for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.dataset for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.job_policy for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.job_control for each row execute function dataflow.keep_modified();

-- The operators' limits of a Job.
create function dataflow.after_control_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_relid <> 'dataflow.job_control'::regclass then
        raise exception 'after_control_change is a trigger of job_control alone';
    end if;
    if tg_op = 'DELETE' then
        insert into dataflow.job_event (jobid, login, actor) values (old.jobid, session_user, current_setting('dataflow.actor', true));
    elsif tg_op = 'INSERT' or (new.jobid, new.concurrency, new.paused, new.reason) is distinct from (old.jobid, old.concurrency, old.paused, old.reason) then
        insert into dataflow.job_event (jobid, concurrency, paused, reason, login, actor)
        values (new.jobid, new.concurrency, new.paused, new.reason, session_user, current_setting('dataflow.actor', true));
        -- There may be work again.
        perform pg_notify('dataflow_runnable', new.jobid);
    end if;
    return null;
end
$$;
create trigger control_changed after insert or update or delete on dataflow.job_control
    for each row execute function dataflow.after_control_change();

-- The history of DataSets, Jobs and policies, of a whole statement at once. Passwords are left out; only that one changed is
-- recorded. A changed key is one row that went and another that came.
create function dataflow.record_definition() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    hidden  text[] := array['encryptedpass', 'modified'];
    befores jsonb[];
    afters  jsonb[];
begin
    if tg_relid not in ('dataflow.dataset'::regclass, 'dataflow.job'::regclass, 'dataflow.job_policy'::regclass) then
        raise exception 'record_definition is a trigger of dataset, job and job_policy alone';
    end if;
    if tg_op = 'INSERT' then
        select array_agg(null::jsonb), array_agg(to_jsonb(n)) into befores, afters from new_rows n;
    elsif tg_op = 'DELETE' then
        select array_agg(to_jsonb(o)), array_agg(null::jsonb) into befores, afters from old_rows o;
    else
        -- Of a Job, the DataSet names an item; a variable is named by its itemtype.
        select array_agg(o.line), array_agg(n.line) into befores, afters
          from (select r.line, jsonb_build_array(r.line -> 'jobid', r.line -> 'datasetid', case when r.line ->> 'datasetid' is null then r.line -> 'itemtype' end) as key
                  from (select to_jsonb(s) as line from old_rows s) r) o
          full join (select r.line, jsonb_build_array(r.line -> 'jobid', r.line -> 'datasetid', case when r.line ->> 'datasetid' is null then r.line -> 'itemtype' end) as key
                       from (select to_jsonb(s) as line from new_rows s) r) n on n.key = o.key;
    end if;
    insert into dataflow.registry_event (relation, name, before, after, password_changed, reason, login, actor)
    select tg_table_name, coalesce(c.is_now, c.was) ->> tg_argv[0],
           case when c.is_now is null then c.was - hidden
                when c.was is not null then (select coalesce(jsonb_object_agg(w.key, w.value), '{}') from jsonb_each(c.was - hidden) w
                                              where w.value is distinct from c.is_now -> w.key) end,
           case when c.was is null then c.is_now - hidden
                when c.is_now is not null then (select coalesce(jsonb_object_agg(w.key, w.value), '{}') from jsonb_each(c.is_now - hidden) w
                                                 where w.value is distinct from c.was -> w.key) end,
           p.has_changed, nullif(current_setting('dataflow.reason', true), ''), session_user, current_setting('dataflow.actor', true)
      from unnest(befores, afters) as c(was, is_now)
     cross join lateral (select c.was -> 'encryptedpass' is distinct from c.is_now -> 'encryptedpass'
                                and coalesce(c.was ->> 'encryptedpass', c.is_now ->> 'encryptedpass') is not null as has_changed offset 0) p
     where (c.was - hidden) is distinct from (c.is_now - hidden) or p.has_changed;
    return null;
end
$$;
create trigger record_inserted after insert on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.record_definition('datasetid');
create trigger record_updated after update on dataflow.dataset
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.record_definition('datasetid');
create trigger record_deleted after delete on dataflow.dataset
    referencing old table as old_rows for each statement execute function dataflow.record_definition('datasetid');
create trigger record_inserted after insert on dataflow.job
    referencing new table as new_rows for each statement execute function dataflow.record_definition('jobid');
create trigger record_updated after update on dataflow.job
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.record_definition('jobid');
create trigger record_deleted after delete on dataflow.job
    referencing old table as old_rows for each statement execute function dataflow.record_definition('jobid');
create trigger record_inserted after insert on dataflow.job_policy
    referencing new table as new_rows for each statement execute function dataflow.record_definition('jobid');
create trigger record_updated after update on dataflow.job_policy
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.record_definition('jobid');
create trigger record_deleted after delete on dataflow.job_policy
    referencing old table as old_rows for each statement execute function dataflow.record_definition('jobid');
