-- The triggers: whoever changes datastatus - a verb, a foreign client, a person in psql - the row is kept
-- whole, the change enters the history, crash debris goes, and the runnable set follows.

-- Is a chunk of a Job runnable now? The one definition, for the triggers and for the rebuild.
create function dataflow.is_runnable(p_jobid text, p_dataid text)
    returns table (ok boolean, resubmit boolean)
    language sql stable rows 1
begin atomic
    select -- its outputs are known and free, whoever may hold them,
           o.output_count > 0 and o.free
           -- it was asked for: by an input with the same dataid, or by a row of its own,
           and (o.own_count > 0 or exists (select from dataflow.job j
                                            where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping = 'equal'))
           -- and every input chunk is there, READY exactly.
           and not exists (
               select from dataflow.inputs_of(p_jobid, p_dataid) x
                where not coalesce((select bool_and(s.status = 'READY' or s.status = 'SKIPPED' and d.skipped_input = 'passes')
                                      from dataflow.datastatus s
                                      left join dataflow.dataset d on d.datasetid = s.datasetid
                                     where s.datasetid = x.datasetid and s.dataid = x.dataid and s.locktype = 'OUT'), false))
           and not exists (
               select from dataflow.job j
                where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping <> 'equal'
                  and not exists (select from dataflow.chunk_input e
                                   where e.jobid = p_jobid and e.dataid = p_dataid and e.datasetid = j.datasetid)
                  and not (j.mapping = 'all' and exists (select from dataflow.datastatus s
                                                          where s.datasetid = j.datasetid and s.locktype = 'OUT'))),
           o.resubmit
      from (select count(distinct j.datasetid) as output_count,
                   count(s.dataid) filter (where s.jobid = j.jobid) as own_count,
                   coalesce(bool_and(s.dataid is null or coalesce(s.status, '') in ('PENDING', 'RESUBMIT')), false) as free,
                   coalesce(bool_or(s.status = 'RESUBMIT'), false) as resubmit
              from dataflow.job j
              left join dataflow.datastatus s on s.datasetid = j.datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
             where j.jobid = p_jobid and j.itemtype = 'OUT') o;
end;

-- OUT rows changed: p_statuses has their new status, and 'GONE' for a deleted row. A producer may gain by a
-- free output, a consumer by a READY input; otherwise they can only lose, which is the cheap and common case.
create function dataflow.keep_runnable(p_datasetids text[], p_dataids text[], p_statuses text[]) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    jobids  text[];
    dataids text[];
begin
    -- In order, so that two of these never wait for each other in a circle.
    delete from dataflow.runnable
     where ctid = any (array(
           select r.ctid
             from unnest(p_datasetids, p_dataids, p_statuses) as c(datasetid, dataid, status)
             join dataflow.job j on j.datasetid = c.datasetid and j.mapping = 'equal'
             join dataflow.runnable r on r.jobid = j.jobid and r.dataid = c.dataid
            where not coalesce(c.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT', 'GONE']
                                                               else array['READY', 'SKIPPED', 'GONE'] end), false)
            order by r.jobid, r.dataid
              for update of r));

    if p_statuses && array['PENDING', 'RESUBMIT', 'READY', 'SKIPPED', 'GONE'] then
        select array_agg(g.jobid), array_agg(g.dataid)
          into jobids, dataids
          from (select distinct j.jobid, c.dataid
                  from unnest(p_datasetids, p_dataids, p_statuses) as c(datasetid, dataid, status)
                  join dataflow.job j on j.datasetid = c.datasetid and j.mapping = 'equal'
                 where c.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT', 'GONE']
                                                       else array['READY', 'SKIPPED', 'GONE'] end)) g;
        if jobids is not null then
            perform dataflow.settle_runnable(jobids, dataids);
        end if;
    end if;

    -- Consumers of listed chunks, and of all chunks of a DataSet.
    if exists (select from dataflow.job j where j.mapping <> 'equal' and j.datasetid = any (p_datasetids)) then
        select array_agg(g.jobid), array_agg(g.dataid)
          into jobids, dataids
          from (select e.jobid, e.dataid
                  from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
                  join dataflow.chunk_input e on e.datasetid = c.datasetid and e.input_dataid = c.dataid
                union
                select j.jobid, s.dataid
                  from dataflow.job j
                  join dataflow.job o on o.jobid = j.jobid and o.itemtype = 'OUT'
                  join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT')
                 where j.datasetid = any (p_datasetids) and j.itemtype = 'IN' and j.mapping = 'all') g;
        if jobids is not null then
            perform dataflow.settle_runnable(jobids, dataids);
        end if;
    end if;

    -- A strictly ordered Job: what waited for its turn is asked again.
    if exists (select from dataflow.job_policy p where p.ordered) then
        update dataflow.runnable r set blocked = null
          from dataflow.job_policy p
          join dataflow.job j on j.jobid = p.jobid and j.itemtype = 'OUT'
         where p.ordered and j.datasetid = any (p_datasetids) and r.jobid = p.jobid and r.blocked is not null;
    end if;
end
$$;

-- Put these chunks in, then take out again those that are not runnable. Put in first: the row is the lock on
-- which two transactions meet that each make one input READY. The second waits here for the first, and its
-- next statement then sees both inputs; if each only looked, neither would see the other, and nobody would
-- wake the consumer.
create function dataflow.settle_runnable(p_jobids text[], p_dataids text[]) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    announced text;
begin
    insert into dataflow.runnable (jobid, dataid, resubmit, sort_key)
    select c.jobid, c.dataid, false, dataflow.natural_key(c.dataid)
      from unnest(p_jobids, p_dataids) as c(jobid, dataid)
     order by c.jobid, c.dataid
        on conflict (jobid, dataid) do update set since = now(), blocked = null;

    delete from dataflow.runnable r
     using unnest(p_jobids, p_dataids) as c(jobid, dataid)
     cross join lateral dataflow.is_runnable(c.jobid, c.dataid) n
     where r.jobid = c.jobid and r.dataid = c.dataid and not n.ok;

    update dataflow.runnable r set resubmit = n.resubmit
      from unnest(p_jobids, p_dataids) as c(jobid, dataid)
     cross join lateral dataflow.is_runnable(c.jobid, c.dataid) n
     where r.jobid = c.jobid and r.dataid = c.dataid and r.resubmit <> n.resubmit;

    -- A NOTIFY serialises the commits of those who send it, so it is sent only when there is news: work to do.
    for announced in
        select distinct r.jobid
          from unnest(p_jobids, p_dataids) as c(jobid, dataid)
          join dataflow.runnable r on r.jobid = c.jobid and r.dataid = c.dataid
    loop
        perform pg_notify('dataflow_runnable', announced);
    end loop;
end
$$;

-- What a Job that ended, failed or was resubmitted leaves behind: the IN rows of its chunks. An input that
-- another running chunk of the Job reads too stays locked.
create function dataflow.drop_in_rows(p_jobids text[], p_dataids text[]) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    delete from dataflow.datastatus i
     using unnest(p_jobids, p_dataids) as c(jobid, dataid)
     cross join lateral dataflow.inputs_of(c.jobid, c.dataid) x
     where i.datasetid = x.datasetid and i.jobid = c.jobid and i.dataid = x.dataid and i.locktype = 'IN'
       and (x.mapping = 'equal'
            or not exists (select from dataflow.job o
                             join dataflow.datastatus s on s.datasetid = o.datasetid and s.jobid = o.jobid
                                                       and s.locktype = 'OUT' and s.status = 'RUNNING'
                            where o.jobid = c.jobid and o.itemtype = 'OUT' and s.dataid <> c.dataid
                              and exists (select from dataflow.inputs_of(o.jobid, s.dataid) y
                                           where y.datasetid = x.datasetid and y.dataid = x.dataid)));
end;

create function dataflow.keep_row() returns trigger
    language plpgsql
as $$
begin
    new.modified := now();
    if tg_op = 'INSERT' or new.status is not distinct from old.status then
        return new;
    end if;
    -- A chunk that leaves RUNNING has no claim any more: a RESUBMIT typed by hand revokes it, too.
    if new.status is distinct from 'RUNNING' then
        new.claim_id := null;
        new.lease_until := null;
    end if;
    if new.status = 'READY' then
        new.retries := 0;
        new.reason := null;
        -- READY without a new version: made by someone else, and the old version is not what they made.
        if new.manifest_id is not distinct from old.manifest_id and new.locktype = 'OUT'
           and not (old.status = 'HOLD' and old.held_status = 'READY') then
            new.manifest_id := null;
        end if;
    elsif new.status = 'RESUBMIT' and new.retries = old.retries then
        -- Nobody counted this one as a retry: a person asked.
        new.retries := 0;
    elsif new.status = 'HOLD' and new.held_status is null then
        new.held_status := case when old.status = 'RUNNING' then 'RESUBMIT' else old.status end;
    end if;
    if new.status is distinct from 'HOLD' then
        new.held_status := null;
    end if;
    return new;
end
$$;
create trigger keep_row before insert or update on dataflow.datastatus
    for each row execute function dataflow.keep_row();

create function dataflow.after_insert() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    datasetids text[];
    dataids    text[];
    statuses   text[];
begin
    insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, new_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
    select n.datasetid, n.jobid, n.dataid, n.locktype, n.status, n.claim_id, n.attempt, n.run_id, n.manifest_id, n.reason,
           session_user, current_setting('dataflow.actor', true)
      from new_rows n;

    select array_agg(n.datasetid), array_agg(n.dataid), array_agg(n.status)
      into datasetids, dataids, statuses
      from new_rows n where n.locktype = 'OUT';
    if datasetids is not null then
        perform dataflow.keep_runnable(datasetids, dataids, statuses);
    end if;
    return null;
end
$$;
create trigger after_insert after insert on dataflow.datastatus
    referencing new table as new_rows for each statement execute function dataflow.after_insert();

create function dataflow.after_update() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    datasetids text[];
    jobids     text[];
    dataids    text[];
    statuses   text[];
    bad        record;
begin
    if not exists (select from new_rows) then
        return null;  -- an `insert ... on conflict do update` that only inserted
    end if;
    -- A renewed lease is no change; all else is.
    with changed as (
        select n.*, o.status as old_status, o.claim_id as old_claim_id
          from new_rows n
          join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
         where n.status is distinct from o.status or n.locktype <> o.locktype
            or n.manifest_id is distinct from o.manifest_id or n.claim_id is distinct from o.claim_id
    ), recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, new_status, claim_id, attempt, run_id,
                                          manifest_id, reason, login, actor)
        select c.datasetid, c.jobid, c.dataid, c.locktype, c.old_status, c.status, coalesce(c.claim_id, c.old_claim_id), c.attempt,
               c.run_id, c.manifest_id, c.reason, session_user, current_setting('dataflow.actor', true)
          from changed c
    )
    select array_agg(c.datasetid), array_agg(c.jobid), array_agg(c.dataid), array_agg(c.status)
      into datasetids, jobids, dataids, statuses
      from changed c where c.locktype = 'OUT';
    if datasetids is null then
        return null;
    end if;

    select o.datasetid, o.dataid, o.status as old_status, n.status as new_status
      into bad
      from new_rows n
      join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
     where n.status <> o.status and n.locktype = 'OUT'
       and o.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
       and n.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
       and not exists (select from dataflow.status_transition t where t.old_status = o.status and t.new_status = n.status)
     limit 1;
    if found then
        raise exception '%/% cannot go from % to %', bad.datasetid, bad.dataid, bad.old_status, bad.new_status
            using errcode = 'DF001', hint = 'set RESUBMIT to run it again';
    end if;

    perform dataflow.drop_in_rows(array_agg(c.jobid), array_agg(c.dataid))
       from unnest(jobids, dataids, statuses) as c(jobid, dataid, status)
      where c.status is distinct from 'RUNNING' and c.status is distinct from 'PENDING';

    -- The outputs of a Job are made together: RESUBMIT of one is RESUBMIT of all.
    update dataflow.datastatus s set status = 'RESUBMIT'
      from unnest(datasetids, jobids, dataids, statuses) as c(datasetid, jobid, dataid, status)
      join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT' and j.datasetid <> c.datasetid
     where c.status = 'RESUBMIT'
       and s.datasetid = j.datasetid and s.jobid = c.jobid and s.dataid = c.dataid and s.locktype = 'OUT'
       and s.status in ('RUNNING', 'READY', 'FAILED', 'PENDING');

    perform dataflow.keep_runnable(datasetids, dataids, statuses);
    return null;
end
$$;
create trigger after_update after update on dataflow.datastatus
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.after_update();

create function dataflow.after_delete() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    datasetids text[];
    jobids     text[];
    dataids    text[];
    statuses   text[];
begin
    insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, claim_id, attempt, run_id, manifest_id, login, actor)
    select o.datasetid, o.jobid, o.dataid, o.locktype, o.status, o.claim_id, o.attempt, o.run_id, o.manifest_id,
           session_user, current_setting('dataflow.actor', true)
      from old_rows o;

    -- A reader in place is gone: who was refused because of it is asked again.
    update dataflow.runnable r set blocked = null
      from old_rows o
      join dataflow.job j on j.datasetid = o.datasetid
     where o.locktype = 'IN' and o.manifest_id is null and r.jobid = j.jobid and r.dataid = o.dataid and r.blocked is not null;

    select array_agg(o.datasetid), array_agg(o.jobid), array_agg(o.dataid), array_agg('GONE'::text)
      into datasetids, jobids, dataids, statuses
      from old_rows o where o.locktype = 'OUT';
    if datasetids is not null then
        perform dataflow.drop_in_rows(jobids, dataids);
        perform dataflow.keep_runnable(datasetids, dataids, statuses);
    end if;
    return null;
end
$$;
create trigger after_delete after delete on dataflow.datastatus
    referencing old table as old_rows for each statement execute function dataflow.after_delete();

-- Make the runnable set anew for these Jobs (null: all). Returns how many chunks it put in and took out.
create function dataflow.rebuild_runnable(p_jobids text[] default null, out added bigint, out removed bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    -- Nobody may change a status between our look and our write.
    lock table dataflow.datastatus in share row exclusive mode;
    create temporary table runnable_now on commit drop as
    select c.jobid, c.dataid, n.resubmit
      from (select j.jobid, s.dataid
              from dataflow.job j
              join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
             where (j.itemtype = 'IN' and j.mapping = 'equal' and s.status in ('READY', 'SKIPPED')
                    or j.itemtype = 'OUT' and s.status in ('PENDING', 'RESUBMIT'))
               and (p_jobids is null or j.jobid = any (p_jobids))
             group by j.jobid, s.dataid) c
     cross join lateral dataflow.is_runnable(c.jobid, c.dataid) n
     where n.ok;

    delete from dataflow.runnable r
     where (p_jobids is null or r.jobid = any (p_jobids))
       and not exists (select from runnable_now n where n.jobid = r.jobid and n.dataid = r.dataid);
    get diagnostics removed = row_count;

    update dataflow.runnable r set resubmit = n.resubmit, blocked = null
      from runnable_now n
     where n.jobid = r.jobid and n.dataid = r.dataid and (r.resubmit <> n.resubmit or r.blocked is not null);

    insert into dataflow.runnable (jobid, dataid, resubmit, sort_key)
    select n.jobid, n.dataid, n.resubmit, dataflow.natural_key(n.dataid)
      from runnable_now n
        on conflict (jobid, dataid) do nothing;
    get diagnostics added = row_count;
    drop table runnable_now;
end
$$;

-- A change of the registry: the runnable set of the Jobs it touches is made anew.
create function dataflow.after_job_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    loop_of text;
begin
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
        raise exception 'DataSets made from themselves: %', loop_of
            using errcode = 'DF002', hint = 'remove one IN or OUT item of the jobs in the cycle';
    end if;
    if tg_op <> 'INSERT' then
        perform dataflow.rebuild_runnable(array(select distinct jobid from old_rows));
    end if;
    if tg_op <> 'DELETE' then
        perform dataflow.rebuild_runnable(array(select distinct jobid from new_rows));
    end if;
    return null;
end
$$;
create trigger job_inserted after insert on dataflow.job
    referencing new table as new_rows for each statement execute function dataflow.after_job_change();
create trigger job_updated after update on dataflow.job
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.after_job_change();
create trigger job_deleted after delete on dataflow.job
    referencing old table as old_rows for each statement execute function dataflow.after_job_change();

create function dataflow.after_dataset_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
begin
    perform dataflow.rebuild_runnable(array(select distinct j.jobid from new_rows n join dataflow.job j on j.datasetid = n.datasetid));
    return null;
end
$$;
create trigger dataset_inserted after insert on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.after_dataset_change();
create trigger dataset_updated after update on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.after_dataset_change();

create function dataflow.keep_modified() returns trigger language plpgsql as $$
begin
    new.modified := now();
    return new;
end
$$;
create trigger keep_modified before insert or update on dataflow.job for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.dataset for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.job_policy for each row execute function dataflow.keep_modified();
