-- The runnable set: which chunks can run, with the answers to the five questions. Derived, and kept by triggers.
--
-- How these functions are written: a plan is made once a session, and one that was made while the tables were
-- empty must not read a million rows later. So every access goes by index from the few rows at hand: the
-- triggers forbid sequential scans, and `offset 0` after a lateral look-up fixes its direction. What the
-- triggers call has no settings of its own: each would cost every change a little. And rows are locked in one
-- statement and changed in the next, which sees what others did to them while we waited for the lock.

-- Ask the five questions of these chunks and put the answers into the runnable set, or take them out of it.
-- They are put in before they are asked: the row is the lock on which two transactions meet that each make one
-- input READY. The second waits here for the first, and its next statement then sees both inputs; if each only
-- looked, neither would see the other, and nobody would wake the consumer.
create function dataflow.settle_runnable(p_jobids text[], p_dataids text[]) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    jobids  text[];
    dataids text[];
    places  tid[];
    work    record;
    awake   boolean;
    orders  boolean := exists (select from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered);
begin
    if orders then
        perform dataflow.wait_for_turns(p_jobids);
    end if;
    -- In one order, so that two of these never wait for each other in a circle.
    with put as (
        insert into dataflow.runnable (jobid, dataid, sort_key)
        select c.jobid, c.dataid, dataflow.natural_key(c.dataid)
          from (select distinct u.jobid, u.dataid from unnest(p_jobids, p_dataids) as u(jobid, dataid)) c
         order by c.jobid, c.dataid
            on conflict (jobid, dataid) do update set since = now()
        returning jobid, dataid, ctid as place
    )
    select array_agg(p.jobid), array_agg(p.dataid), array_agg(p.place) into jobids, dataids, places from put p;

    for work in select u.jobid, array_agg(u.dataid) as dataids, array_agg(u.place) as places
                  from unnest(jobids, dataids, places) as u(jobid, dataid, place) group by u.jobid
    loop
        with asked as materialized (
            -- Every row is there and ours, so it stays in its place.
            select a.*, dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe) as code, r.place
              from dataflow.ask(work.jobid, work.dataids) a
              join unnest(work.dataids, work.places) as r(dataid, place) on r.dataid = a.dataid
        ), gone as (
            delete from dataflow.runnable where ctid = any (array(select a.place from asked a where not a.is_runnable))
        ), settled as (
            update dataflow.runnable r
               set resubmit = a.resubmit, blocked = a.code, inputs = a.inputs, file_count = a.file_count, is_plain = a.is_plain
              from asked a
             where r.ctid = a.place and a.is_runnable
        ), refused as (
            insert into dataflow.verdict (jobid, dataid, ready, right_data, placed, valid, safe, code, inputs)
            select work.jobid, a.dataid, a.ready, a.right_data, a.placed, a.valid, a.safe, a.code, a.inputs
              from asked a
             where a.is_runnable and a.code is not null
               and dataflow.is_news(work.jobid, a.dataid, a.ready, a.right_data, a.placed, a.valid, a.safe)
        )
        select bool_or(a.is_runnable and a.code is null) into awake from asked a;
        -- A NOTIFY serialises the commits of those who send it, so it is sent only when there is news: work to do.
        if awake then
            perform pg_notify('dataflow_runnable', work.jobid);
        end if;
    end loop;
    if orders then
        perform dataflow.keep_turns(p_jobids);
    end if;
end
$$;

-- The chunks of a strictly ordered Job come and go one after the other: of two that come at the same moment the second
-- must see the first.
create function dataflow.wait_for_turns(p_jobids text[]) returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow turn'), hashtext(o.jobid))
       from (select p.jobid from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered order by 1) o;
end
$$;

-- A strictly ordered Job has one chunk at most that can run: the one whose turn it is. Those whose answers say otherwise
-- are asked again.
create function dataflow.keep_turns(p_jobids text[]) returns void
    language plpgsql
as $$
declare
    jobids  text[];
    dataids text[];
begin
    select array_agg(r.jobid), array_agg(r.dataid)
      into jobids, dataids
      from dataflow.job_policy p
     cross join lateral (select (dataflow.whose_turn(p.jobid))[1] as dataid offset 0) turn
      join dataflow.runnable r on r.jobid = p.jobid
     where p.jobid = any (p_jobids) and p.ordered
       and (r.dataid = turn.dataid) = (r.blocked is not distinct from 'DATA_NOT_READY');
    if jobids is not null then
        perform dataflow.settle_runnable(jobids, dataids);
    end if;
end
$$;

-- Is this another answer than the last one that was stored? A no that stays the same is stored once.
create function dataflow.is_news(p_jobid text, p_dataid text, p_ready text, p_right_data text, p_placed text, p_valid text, p_safe text)
    returns boolean
    language plpgsql stable
as $$
begin
    return not exists (
        select from (select * from dataflow.verdict v
                      where v.jobid = p_jobid and v.dataid = p_dataid order by v.verdict_id desc limit 1) l
         where l.claim_id is null
           and row (l.ready, l.right_data, l.placed, l.valid, l.safe)
               is not distinct from row (p_ready, p_right_data, p_placed, p_valid, p_safe));
end
$$;

-- Every chunk of a Job that needs one of these chunks.
create function dataflow.consumers_of(p_datasetids text[], p_dataids text[])
    returns table (jobid text, dataid text)
    language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select j.jobid, c.dataid
      from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
      join dataflow.job j on j.datasetid = c.datasetid and j.itemtype = 'IN' and j.mapping = 'equal';
    if exists (select from dataflow.job j where j.mapping <> 'equal' and j.datasetid = any (p_datasetids)) then
        return query
        select e.jobid, e.dataid
          from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
         cross join lateral (select i.jobid, i.dataid from dataflow.chunk_input i
                              where i.datasetid = c.datasetid and i.input_dataid = c.dataid offset 0) e
        union
        select j.jobid, s.dataid
          from dataflow.job j
          join dataflow.job o on o.jobid = j.jobid and o.itemtype = 'OUT'
          join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT'
         where j.datasetid = any (p_datasetids) and j.itemtype = 'IN' and j.mapping = 'all';
    end if;
end
$$;

-- OUT rows changed: p_statuses has their new status, and 'GONE' for a deleted row; p_old_statuses the one before, and
-- 'NEW' for an inserted row. A producer may gain by a free output, a consumer by a READY input; otherwise they can
-- only lose, which is the cheap and common case.
create function dataflow.keep_runnable(p_datasetids text[], p_dataids text[], p_old_statuses text[], p_statuses text[]) returns void
    language plpgsql
as $$
declare
    lost    record;
    lists   boolean;
    ordered text[];
    jobids  text[];
    dataids text[];
begin
    select bool_or(j.mapping <> 'equal'), array_agg(p.jobid) filter (where p.ordered)
      into lists, ordered
      from dataflow.job j
      left join dataflow.job_policy p on p.jobid = j.jobid
     where j.datasetid = any (p_datasetids);
    if ordered is not null then
        perform dataflow.wait_for_turns(ordered);
    end if;

    -- In order, so that two of these never wait for each other in a circle; one by one, which waits for whoever
    -- holds a row and then sees what became of it.
    for lost in
        select j.jobid, c.dataid
          from unnest(p_datasetids, p_dataids, p_old_statuses, p_statuses) as c(datasetid, dataid, old_status, status)
          join dataflow.job j on j.datasetid = c.datasetid and j.mapping = 'equal'
         where not coalesce(c.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT', 'GONE']
                                                            else array['READY', 'SKIPPED', 'GONE'] end), false)
           -- A producer has nothing to lose by an output that was not free, a consumer nothing by a chunk that was not
           -- READY; by a new row only if there was another.
           and (case j.itemtype when 'OUT' then c.old_status in ('PENDING', 'RESUBMIT', 'NEW') else c.old_status in ('READY', 'SKIPPED') end
                or j.itemtype = 'IN' and c.old_status = 'NEW' and 1 < (select count(*) from dataflow.datastatus s
                                                  where s.datasetid = c.datasetid and s.dataid = c.dataid and s.locktype = 'OUT'))
         order by j.jobid, c.dataid
    loop
        delete from dataflow.runnable r where r.jobid = lost.jobid and r.dataid = lost.dataid;
        if not found then
            -- Perhaps somebody is just putting it in, and does not see our change: meet him on the row.
            insert into dataflow.runnable (jobid, dataid, sort_key) values (lost.jobid, lost.dataid, '') on conflict do nothing;
            delete from dataflow.runnable r where r.jobid = lost.jobid and r.dataid = lost.dataid;
        end if;
    end loop;

    -- A consumer of listed chunks, or of all, that is being planned just now, is not to be seen yet: wait for it.
    if lists then
        perform pg_advisory_xact_lock_shared(hashtext('dataflow inputs'), hashtext(d.datasetid))
           from (select distinct u.datasetid from unnest(p_datasetids) as u(datasetid) order by 1) d;
    end if;
    if p_statuses && array['PENDING', 'RESUBMIT', 'GONE'] then
        perform dataflow.wait_for_inputs(array(select distinct j.jobid from dataflow.job j
                                                where j.datasetid = any (p_datasetids) and j.itemtype = 'OUT'));
    end if;

    if p_statuses && array['PENDING', 'RESUBMIT', 'READY', 'SKIPPED', 'GONE'] or lists then
        select array_agg(g.jobid), array_agg(g.dataid)
          into jobids, dataids
          from (select j.jobid, c.dataid
                  from unnest(p_datasetids, p_dataids, p_statuses) as c(datasetid, dataid, status)
                  join dataflow.job j on j.datasetid = c.datasetid and j.itemtype = 'OUT'
                 where c.status in ('PENDING', 'RESUBMIT', 'GONE')
                union all
                select n.jobid, n.dataid
                  from dataflow.consumers_of(p_datasetids, p_dataids) n
                 where lists or p_statuses && array['READY', 'SKIPPED', 'GONE']) g;
        if jobids is not null then
            perform dataflow.settle_runnable(jobids, dataids);
        end if;
    end if;

    if ordered is not null then
        perform dataflow.keep_turns(ordered);
    end if;
end
$$;

-- A chunk of these Jobs is asked for. Where its inputs are listed, or all of a DataSet, whoever changes one of them does
-- not see that yet: wait for him, and let the next wait for us.
create function dataflow.wait_for_inputs(p_jobids text[]) returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow inputs'), hashtext(d.datasetid))
       from (select distinct j.datasetid from dataflow.job j
              where j.jobid = any (p_jobids) and j.itemtype = 'IN' and j.mapping <> 'equal' order by 1) d;
end
$$;

-- Versions changed. Two answers about a chunk hang on other chunks' versions: does it repeat the content of a
-- neighbour, and was it made from inputs that are current? Who consumes such a chunk is asked again.
create function dataflow.keep_answers(p_datasetids text[], p_dataids text[], p_old_manifest_ids bigint[], p_new_manifest_ids bigint[])
    returns void
    language plpgsql
as $$
declare
    datasetids text[];
    dataids    text[];
begin
    if not exists (select from dataflow.job j where j.datasetid = any (p_datasetids) and j.itemtype = 'IN') then
        return;
    end if;
    select array_agg(n.datasetid), array_agg(n.dataid)
      into datasetids, dataids
      from unnest(p_old_manifest_ids || p_new_manifest_ids) as c(manifest_id)
     cross join lateral (select t.datasetid, t.dataid, t.content_digest from dataflow.data_manifest t
                          where t.manifest_id = c.manifest_id offset 0) m
     cross join lateral (select t.datasetid, t.dataid from dataflow.data_manifest t
                          where t.datasetid = m.datasetid and t.content_digest = m.content_digest and t.dataid <> m.dataid offset 0) n;
    if datasetids is not null then
        perform dataflow.settle_runnable(array_agg(c.jobid), array_agg(c.dataid)) from dataflow.consumers_of(datasetids, dataids) c;
    end if;

    -- What was made from these chunks, and is therefore out of date; a chunk that is new has no such consumers. The triggers have
    -- waited for the readers before they touched the runnable set, as whoever ends does. Until then another may have begun.
    perform dataflow.wait_for_readers(p_datasetids, p_dataids);
    select array_agg(j.datasetid), array_agg(c.dataid)
      into datasetids, dataids
      from dataflow.consumers_of(p_datasetids, p_dataids) c
      join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT'
     cross join lateral (select from dataflow.datastatus s
                          where s.datasetid = j.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' and s.manifest_id is not null offset 0) made;
    if datasetids is not null then
        perform dataflow.settle_runnable(array_agg(c.jobid), array_agg(c.dataid)) from dataflow.consumers_of(datasetids, dataids) c;
    end if;
end
$$;

-- Who reads these chunks just now makes something from the versions before. When he ends, his IN row goes: there we meet, and the
-- second sees what the first has published. In the order in which he removes his rows.
create function dataflow.wait_for_readers(p_datasetids text[], p_dataids text[]) returns void
    language plpgsql
as $$
begin
    perform from (select j.jobid, c.datasetid collate "C", c.dataid collate "C"
                    from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
                   cross join lateral (select t.jobid from dataflow.job t where t.datasetid = c.datasetid and t.itemtype = 'IN' offset 0) j
                   order by 1, 2, 3) r
      cross join lateral (select from dataflow.datastatus s
                           where s.datasetid = r.datasetid and s.jobid = r.jobid and s.dataid = r.dataid and s.locktype = 'IN'
                             for share) i;
end
$$;

-- A consumer that reads in place came or went: whom it locks out is asked again, also who is not in the set yet: somebody may
-- just be putting him in, and does not see our change.
create function dataflow.keep_readers(p_datasetids text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    jobids  text[];
    dataids text[];
begin
    select array_agg(j.jobid), array_agg(c.dataid)
      into jobids, dataids
      from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
     cross join lateral (select t.jobid from dataflow.job t where t.datasetid = c.datasetid offset 0) j;
    if jobids is not null then
        perform dataflow.settle_runnable(jobids, dataids);
    end if;
end
$$;

-- `today` has a READY chunk for each day since it was first asked for, for Jobs that catch up; whether a day is still to
-- be run is a question (is_its_day). How many days are new.
create function dataflow.turn_the_day() returns bigint
    language plpgsql
as $$
declare
    days bigint;
begin
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)
    select 'today', 'today', to_char(day, 'YYYY-MM-DD'), 'OUT', 'READY'
      from (select (now() at time zone d.timezone)::date as today from dataflow.dataset d where d.datasetid = 'today') t
     cross join generate_series(coalesce((select max(s.dataid)::date from dataflow.datastatus s
                                           where s.datasetid = 'today' and s.locktype = 'OUT' and dataflow.is_day(s.dataid)
                                             and s.dataid <= to_char(t.today, 'YYYY-MM-DD')), t.today), t.today, interval '1 day') as day
        on conflict do nothing;
    get diagnostics days = row_count;
    if days > 0 then
        perform dataflow.settle_runnable(array_agg(r.jobid), array_agg(r.dataid))
           from dataflow.runnable r
          where r.jobid in (select j.jobid from dataflow.job j where j.datasetid = 'today' and j.itemtype = 'IN')
         having count(*) > 0;
    end if;
    return days;
end
$$;

-- Make the runnable set anew for these Jobs (null: all). Returns how many chunks it put in and took out.
create function dataflow.rebuild_runnable(p_jobids text[] default null, out added bigint, out removed bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    -- Nobody may change a status between our look and our write.
    lock table dataflow.datastatus in share row exclusive mode;
    create temporary table runnable_now on commit drop as
    select c.jobid, a.*, dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe) as code
      from (select n.jobid, array_agg(n.dataid) as dataids
              from (select distinct j.jobid, s.dataid
                      from dataflow.job j
                      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
                     where (j.itemtype = 'IN' and j.mapping = 'equal' and s.status in ('READY', 'SKIPPED')
                            or j.itemtype = 'OUT' and s.status in ('PENDING', 'RESUBMIT'))
                       and (p_jobids is null or j.jobid = any (p_jobids))) n
             group by n.jobid) c
     cross join lateral dataflow.ask(c.jobid, c.dataids) a
     where a.is_runnable;

    delete from dataflow.runnable r
     where (p_jobids is null or r.jobid = any (p_jobids))
       and not exists (select from runnable_now n where n.jobid = r.jobid and n.dataid = r.dataid);
    get diagnostics removed = row_count;

    update dataflow.runnable r
       set resubmit = n.resubmit, blocked = n.code, inputs = n.inputs, file_count = n.file_count, is_plain = n.is_plain
      from runnable_now n
     where n.jobid = r.jobid and n.dataid = r.dataid
       and (r.resubmit, r.blocked, r.inputs, r.file_count, r.is_plain) is distinct from (n.resubmit, n.code, n.inputs, n.file_count, n.is_plain);

    insert into dataflow.runnable (jobid, dataid, resubmit, sort_key, blocked, inputs, file_count, is_plain)
    select n.jobid, n.dataid, n.resubmit, dataflow.natural_key(n.dataid), n.code, n.inputs, n.file_count, n.is_plain
      from runnable_now n
        on conflict (jobid, dataid) do nothing;
    get diagnostics added = row_count;

    insert into dataflow.verdict (jobid, dataid, ready, right_data, placed, valid, safe, code, inputs)
    select n.jobid, n.dataid, n.ready, n.right_data, n.placed, n.valid, n.safe, n.code, n.inputs
      from runnable_now n
     where n.code is not null and dataflow.is_news(n.jobid, n.dataid, n.ready, n.right_data, n.placed, n.valid, n.safe);
    if added > 0 then
        perform pg_notify('dataflow_runnable', n.jobid) from runnable_now n where n.code is null group by n.jobid;
    end if;
    -- They were asked without knowing each other.
    perform dataflow.keep_turns(array(select distinct n.jobid from runnable_now n));
    drop table runnable_now;
end
$$;

-- These act with the rights of the schema's owner; roles.sql says who may call them.
revoke execute on function dataflow.settle_runnable(text[], text[]), dataflow.rebuild_runnable(text[]) from public;
