-- What happens after a change of the registry. The change itself waits for the transactions that evaluate chunks, for a
-- moment and last of all, at its commit: then no answer was given on the old registry without being known. It marks
-- the Jobs that it touches. Afterwards the marked Jobs are settled: their chunks are evaluated in portions, each in a short
-- transaction, while other work goes on. Nobody claims chunks of a marked Job.

-- Who holds this lock of ours. The keys of pg_locks are unsigned.
create function dataflow.holders_of(p_lock text) returns integer[]
    language sql stable
    return array(select l.pid from pg_locks l
                  where l.locktype = 'advisory' and l.granted and l.pid <> pg_backend_pid() and l.objsubid = 2
                    and l.database = (select d.oid from pg_database d where d.datname = current_database())
                    and l.classid::bigint = hashtext('dataflow')::bigint & 4294967295
                    and l.objid::bigint = hashtext(p_lock)::bigint & 4294967295);

-- Sessions that hold a lock on our tables, or one of our advisory locks, and do nothing. An owner who may not read the statistics of
-- other logins does not see what they do; then the lock alone counts.
create function dataflow.idle_writers() returns integer[]
    language sql security definer set search_path = pg_catalog, pg_temp
    return array(select a.pid from pg_stat_activity a
                  where a.datname = current_database() and a.pid <> pg_backend_pid() and coalesce(a.state, 'idle') like 'idle%'
                    and exists (select from pg_locks l left join pg_class c on c.oid = l.relation
                                 where l.pid = a.pid and l.granted
                                   and (l.locktype = 'relation' and c.relnamespace = 'dataflow'::regnamespace
                                        and l.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock')
                                        or l.locktype = 'advisory' and l.objsubid = 2
                                        and l.classid::bigint in (select hashtext(k.lock)::bigint & 4294967295
                                                                    from unnest(array['dataflow', 'dataflow room', 'dataflow turn', 'dataflow inputs', 'dataflow versions', 'dataflow share']) k(lock))))
                  order by a.xact_start limit 3);

-- The sessions in words, and the next step. DF004 tells our program that waiting longer is no use.
create function dataflow.refuse_to_wait(p_what text, p_pids integer[]) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    sessions text := (
        select string_agg(format('pid %s (login %s, %s%s)', a.pid, a.usename, coalesce(nullif(a.application_name, ''), 'no application name'),
                                 case when a.state = 'idle' then ', idle for '
                                      when a.state like 'idle in transaction%' then ', idle in a transaction for '
                                      when a.state is not null then ', in a transaction for ' end
                                 || date_trunc('second', clock_timestamp() - case when a.state like 'idle%' then a.state_change else a.xact_start end)), ', '
                          order by a.xact_start)
          from pg_stat_activity a where a.pid = any (p_pids));
begin
    raise exception '%', p_what || case when sessions is null then ' waited too long for other transactions' else ' waits for ' || sessions end
        using errcode = 'DF004',
              hint = case when sessions is null then 'try again'
                          else format('commit or roll back there, or end it: select pg_terminate_backend(%s); then try again', p_pids[1]) end;
end
$$;

-- Of two changes of the registry at the same moment the second must see the first: each might close half a cycle.
create function dataflow.hold_registry() returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s'
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    perform pg_advisory_xact_lock(hashtext('dataflow'), hashtext('registry'));
exception
    when lock_not_available then
        perform dataflow.refuse_to_wait('this change of the registry', dataflow.holders_of('registry'));
end
$$;

-- Every chunk of these Jobs is to be evaluated again, and compared with its mark where other inputs may make it stale now.
create function dataflow.unsettle(p_jobids text[], p_have_other_inputs boolean default false) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    insert into dataflow.unsettled as u (jobid, stale_after)
    select distinct j.jobid, case when p_have_other_inputs then '' end from unnest(p_jobids) as j(jobid) order by 1
        on conflict (jobid, dataid) do update set after = '', stale_after = coalesce(excluded.stale_after, u.stale_after);
end
$$;

-- At the commit of a change of the registry. A writer waits behind us for 100 ms at the most; then we let it pass, and try
-- again a little later. The errors stay in here, so they are in no log.
create function dataflow.await_evaluations() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms'
as $$
declare
    pause double precision := 0.05;
    until timestamptz := clock_timestamp() + interval '5 seconds';
begin
    if tg_relid <> 'dataflow.unsettled'::regclass then
        raise exception 'await_evaluations is a trigger of unsettled alone';
    end if;
    loop
        begin
            perform pg_advisory_xact_lock(hashtext('dataflow'), hashtext('evaluation'));
            return null;
        exception
            when lock_not_available then
                null;
        end;
        if clock_timestamp() > until then
            perform dataflow.refuse_to_wait('this change of the registry', dataflow.holders_of('evaluation'));
        end if;
        perform pg_sleep(pause);
        pause := least(2 * pause, 0.8);
    end loop;
end
$$;
create constraint trigger await_evaluations after insert or update of after on dataflow.unsettled
    deferrable initially deferred for each row when (new.dataid = '' and new.after = '') execute function dataflow.await_evaluations();

-- The next chunks of a Job, after this one, that can have a place in the runnable set or have one.
create function dataflow.chunks_after(p_jobid text, p_after text, p_count integer) returns text[]
    language plpgsql stable
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return array(
        select c.dataid
          from (select s.dataid
                  from dataflow.job j
                 cross join lateral (select t.dataid from dataflow.datastatus t
                                      where t.datasetid = j.datasetid and t.locktype = 'OUT' and t.dataid > p_after
                                        and t.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT'] else array['READY', 'SKIPPED'] end)
                                      order by t.dataid limit p_count) s
                 where j.jobid = p_jobid and (j.itemtype = 'OUT' or j.itemtype = 'IN' and j.mapping = 'equal')
                union
                select r.dataid from (select t.dataid from dataflow.runnable t
                                       where t.jobid = p_jobid and t.dataid > p_after order by t.dataid limit p_count) r) c
         order by 1 limit p_count);
end
$$;

-- Evaluate those of these chunks whose rows differ from what a look at them gives; to the others nothing is done, not even a
-- lock. Chunks that another transaction holds are left: `busy`.
create function dataflow.evaluate_differing(p_jobid text, p_dataids text[], out added bigint, out removed bigint, out busy text[])
    language plpgsql
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    differing text[];
begin
    -- One statement, so one moment: of a change that is being made we see all or nothing.
    select coalesce(array_agg(a.dataid), '{}'), count(*) filter (where r.dataid is null), count(*) filter (where not a.is_runnable)
      into differing, added, removed
      from dataflow.ask(p_jobid, p_dataids) a
      left join dataflow.runnable r on r.jobid = p_jobid and r.dataid = a.dataid
     where case when a.is_runnable
                then (r.dataid, r.resubmit, r.blocked, r.inputs) is distinct from (a.dataid, a.resubmit, dataflow.code_of(a.problems), a.inputs)
                     or a.problems <> '[]' and dataflow.is_news(p_jobid, a.dataid, a.problems)
                else r.dataid is not null end;
    busy := array(select r.dataid from dataflow.runnable r where r.jobid = p_jobid and r.dataid = any (differing)
                  except
                  select l.dataid from (select r.dataid from dataflow.runnable r
                                         where r.jobid = p_jobid and r.dataid = any (differing) for update skip locked) l);
    perform dataflow.evaluate(array_agg(p_jobid), array_agg(d.dataid))
       from unnest(differing) as d(dataid) where d.dataid <> all (busy) having count(*) > 0;
end
$$;

-- The same, where a chunk that cannot be evaluated stops no other. It is marked with the error, so that nobody claims it on old
-- answers, and heal reports it; once it can be evaluated again, heal does.
create function dataflow.evaluate_again(p_jobid text, p_dataids text[],
                                        out added bigint, out removed bigint, out busy text[], out broken text[])
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    half integer := cardinality(p_dataids) / 2;
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    if p_dataids = '{}' then
        select 0, 0, '{}', '{}' into added, removed, busy, broken;
        return;
    end if;
    select e.added, e.removed, e.busy, '{}' into added, removed, busy, broken from dataflow.evaluate_differing(p_jobid, p_dataids) e;
exception
    when invalid_transaction_state or lock_not_available or deadlock_detected or operator_intervention or insufficient_resources then
        raise;
    when others then
        if half = 0 then
            insert into dataflow.unsettled (jobid, dataid, problem) values (p_jobid, p_dataids[1], sqlerrm)
                on conflict (jobid, dataid) do update set problem = excluded.problem;
            -- A claim of the next chunks passes it over.
            update dataflow.runnable r set blocked = 'WRONG_DATA'
             where r.jobid = p_jobid and r.dataid = p_dataids[1] and r.blocked is distinct from 'WRONG_DATA';
            select 0, 0, '{}', p_dataids into added, removed, busy, broken;
        else
            select l.added + r.added, l.removed + r.removed, l.busy || r.busy, l.broken || r.broken
              into added, removed, busy, broken
              from dataflow.evaluate_again(p_jobid, p_dataids[:half]) l cross join dataflow.evaluate_again(p_jobid, p_dataids[half + 1:]) r;
        end if;
end
$$;

-- Settle the marked Jobs (null: all), about p_count chunks, from this mark on: {jobid, dataid}. What another session is settling
-- is passed over. Returns the mark to go on with; null: that was the last. A mark that stays, because its chunk is busy or
-- broken, is met once on the way. What is stale comes first, because the answers depend on it.
create function dataflow.settle(p_jobid text, p_count integer, p_from text[]) returns text[]
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    mark   record;
    chunks text[];
    result record;
    seen   integer := 0;
begin
    loop
        select u.jobid, u.stale_after into mark
          from dataflow.unsettled u
         where (p_jobid is null or u.jobid = p_jobid) and u.stale_after is not null
         order by u.jobid limit 1 for update skip locked;
        exit when not found;
        select * into result from dataflow.rebuild_stale(mark.jobid, mark.stale_after, p_count);
        update dataflow.unsettled u set stale_after = result.last where u.jobid = mark.jobid and u.dataid = '';
        seen := seen + result.seen;
        if seen >= p_count then
            return p_from;
        end if;
    end loop;
    for mark in
        select u.jobid, u.dataid, u.after from dataflow.unsettled u
         where (p_jobid is null or u.jobid = p_jobid) and (u.jobid, u.dataid) >= (p_from[1], p_from[2]) and u.stale_after is null
         order by u.jobid, u.dataid for update skip locked
    loop
        if seen >= p_count then
            return array[mark.jobid, mark.dataid];
        end if;
        if mark.dataid = '' and mark.after = '' then
            perform dataflow.rebuild_turns(mark.jobid);
        end if;
        chunks := case when mark.dataid <> '' then array[mark.dataid] else dataflow.chunks_after(mark.jobid, mark.after, p_count - seen) end;
        select * into result from dataflow.evaluate_again(mark.jobid, chunks);
        if mark.dataid <> '' then
            delete from dataflow.unsettled u
             where u.jobid = mark.jobid and u.dataid = mark.dataid and result.busy = '{}' and result.broken = '{}';
        else
            insert into dataflow.unsettled (jobid, dataid) select mark.jobid, b.dataid from unnest(result.busy) as b(dataid) on conflict do nothing;
            if cardinality(chunks) = p_count - seen then
                update dataflow.unsettled u set after = chunks[p_count - seen] where u.jobid = mark.jobid and u.dataid = '';
                return array[mark.jobid, ''];
            end if;
            delete from dataflow.unsettled u where u.jobid = mark.jobid and u.dataid = '';
        end if;
        -- A Job without chunks costs something, too.
        seen := seen + greatest(1, cardinality(chunks));
    end loop;
    return null;
end
$$;
