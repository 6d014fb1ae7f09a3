-- The runnable set: which chunks can run, with the answers to the five questions. Derived from datastatus by its triggers.
--
-- A session plans these statements once, perhaps while the tables are still empty, and such a plan must not read a million
-- rows later. So every access goes by index from the few rows at hand: the triggers forbid sequential scans, and
-- `offset 0` after a lateral look-up fixes its direction. And rows are locked in one statement and changed in the next,
-- which sees what others did to them in the meantime.

-- A transaction that keeps its first snapshot looks past what others have committed since: it would miss an input that became
-- READY, or a claim within the same limit. Stable, because that decides who may execute it.
create function dataflow.refuse_isolation() returns void
    language plpgsql stable
as $$
begin
    raise exception 'the ledger cannot be changed in a % transaction, which does not see what others commit', current_setting('transaction_isolation')
        using errcode = 'invalid_transaction_state',
              hint = 'begin isolation level read committed; where another level is the default: set default_transaction_isolation = ''read committed''';
end
$$;

-- A row of the runnable set that this transaction holds.
create type dataflow.runnable_row as (
    jobid  text collate "C",
    dataid text collate "C",
    place  tid
);

-- Ask the five questions of these chunks and update their rows of the runnable set.
-- The rows are inserted before the questions are asked, because the row is the lock on which two transactions meet that
-- each make one input READY: the second waits here for the first, and its next statement sees both inputs. If each only
-- looked, neither would see the other, and the consumer would never wake up.
create function dataflow.evaluate(p_jobids text[], p_dataids text[]) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_memoize = off
as $$
declare
    -- A change of the registry waits for us, or we for it.
    latch   text := pg_advisory_xact_lock_shared(hashtext('dataflow'), hashtext('evaluation'));
    held    dataflow.runnable_row[];
    awake   text[];
    ordered boolean := exists (select from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered);
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    if ordered then
        perform dataflow.lock_turns(p_jobids);
    end if;
    -- In one order, so that two evaluations never wait for each other in a circle. This transaction then holds every row, so
    -- each stays in its place.
    with put as (
        insert into dataflow.runnable (jobid, dataid, sort_key)
        select c.jobid, c.dataid, dataflow.natural_key(c.dataid)
          from (select distinct u.jobid, u.dataid from unnest(p_jobids, p_dataids) as u(jobid, dataid)) c
         order by c.jobid, c.dataid
            on conflict (jobid, dataid) do update set since = now()
        returning jobid, dataid, ctid as place
    )
    select array(select row (p.jobid, p.dataid, p.place)::dataflow.runnable_row from put p) into held;
    if ordered then
        perform dataflow.keep_turns(p_jobids, p_dataids);
    end if;

    with asked as materialized (
        select j.jobid, a.*, dataflow.code_of(a.problems) as code, h.place
          from (select h.jobid, array_agg(h.dataid) as dataids from unnest(held) h group by h.jobid) j
         cross join lateral dataflow.ask(j.jobid, j.dataids) a
          join unnest(held) h on h.jobid = j.jobid and h.dataid = a.dataid
    ), gone as (
        delete from dataflow.runnable where ctid = any (array(select a.place from asked a where not a.is_runnable))
    ), answered as (
        update dataflow.runnable r
           set resubmit = a.resubmit, blocked = a.code, inputs = a.inputs
          from asked a
         where r.ctid = a.place and a.is_runnable
    ), refused as (
        insert into dataflow.verdict (jobid, dataid, problems, code, inputs)
        select a.jobid, a.dataid, a.problems, a.code, a.inputs
          from asked a
         where a.is_runnable and a.code is not null and dataflow.is_news(a.jobid, a.dataid, a.problems)
    )
    select array(select distinct a.jobid from asked a where a.is_runnable and a.code is null) into awake;
    -- A NOTIFY serialises the commits of its senders, so it is sent only when there is work to do.
    if awake <> '{}' then
        perform pg_notify('dataflow_runnable', jobid) from unnest(awake) as jobid;
    end if;
    if ordered then
        perform dataflow.pass_turns(p_jobids, p_dataids);
    end if;
end
$$;

-- Is this another answer than the last one that was stored? A repeated no is stored once.
create function dataflow.is_news(p_jobid text, p_dataid text, p_problems jsonb) returns boolean
    language plpgsql stable
as $$
begin
    return not exists (
        select from (select v.claim_id, v.problems from dataflow.verdict v
                      where v.jobid = p_jobid and v.dataid = p_dataid order by v.verdict_id desc limit 1) l
         where l.claim_id is null and l.problems = p_problems);
end
$$;

-- Changes to the chunks of a strictly ordered Job come one after the other: of two at the same moment the second must
-- see the first.
create function dataflow.lock_turns(p_jobids text[]) returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow turn'), hashtext(o.jobid))
       from (select p.jobid from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered order by 1) o;
end
$$;

-- Which of these chunks of ordered Jobs are unfinished: those with an OUT row that is not READY or SKIPPED, or with a place in the
-- runnable set.
create function dataflow.keep_turns(p_jobids text[], p_dataids text[]) returns void
    language plpgsql
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    with chunk as materialized (
        select u.jobid, u.dataid, x.is_running
          from (select distinct u.jobid collate "C" as jobid, u.dataid collate "C" as dataid from unnest(p_jobids, p_dataids) as u(jobid, dataid)) u
          join dataflow.job_policy p on p.jobid = u.jobid and p.ordered
         -- Null: it is finished.
         cross join lateral (
            select bool_or(o.is_running) as is_running
              from (select coalesce(t.status, '') = 'RUNNING' as is_running
                      from dataflow.job j
                      join dataflow.datastatus t on t.datasetid = j.datasetid and t.dataid = u.dataid and t.locktype = 'OUT'
                     where j.jobid = u.jobid and j.itemtype = 'OUT' and coalesce(t.status, '') not in ('READY', 'SKIPPED')
                    union all
                    select false from dataflow.runnable r where r.jobid = u.jobid and r.dataid = u.dataid) o
            offset 0) x
    ), finished as (
        delete from dataflow.turn t using chunk c where t.jobid = c.jobid and t.dataid = c.dataid and c.is_running is null
    )
    insert into dataflow.turn as t (jobid, dataid, is_running, sort_key)
    select c.jobid, c.dataid, c.is_running, dataflow.natural_key(c.dataid) from chunk c where c.is_running is not null
        on conflict (jobid, dataid) do update set is_running = excluded.is_running where t.is_running <> excluded.is_running;
end
$$;

-- The turns of a Job from its chunks alone: after it was declared ordered, or changed.
create function dataflow.rebuild_turns(p_jobid text) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    dataids text[];
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    perform dataflow.lock_turns(array[p_jobid]);
    delete from dataflow.turn t
     where t.jobid = p_jobid and not exists (select from dataflow.job_policy p where p.jobid = p_jobid and p.ordered);
    dataids := array(select t.dataid from dataflow.turn t where t.jobid = p_jobid
                     union
                     select r.dataid from dataflow.runnable r where r.jobid = p_jobid
                     union
                     select s.dataid from dataflow.job j
                      cross join lateral (select t.dataid from dataflow.datastatus t
                                           where t.datasetid = j.datasetid and t.locktype = 'OUT' and coalesce(t.status, '') not in ('READY', 'SKIPPED')
                                          offset 0) s
                      where j.jobid = p_jobid and j.itemtype = 'OUT');
    perform dataflow.keep_turns(array_fill(p_jobid, array[cardinality(dataids)]), dataids);
end
$$;

-- At most one chunk of a strictly ordered Job can run: the one whose turn it is. After a change of these chunks, those whose
-- answers say otherwise are asked again.
create function dataflow.pass_turns(p_jobids text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    turn    record;
    dataids text[];
begin
    perform dataflow.keep_turns(p_jobids, p_dataids);
    for turn in
        select p.jobid, (dataflow.whose_turn(p.jobid))[1] as dataid from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered order by 1
    loop
        -- The first by the primary key: without the coalesce, the planner may read all that wait.
        dataids := array(
            select r.dataid from dataflow.runnable r
             where r.jobid = turn.jobid and r.dataid = turn.dataid and coalesce(r.blocked, '') = 'DATA_NOT_READY'
            union all
            select r.dataid from dataflow.runnable r where r.jobid = turn.jobid and r.dataid <> turn.dataid and r.blocked is null
            union all
            select r.dataid from dataflow.runnable r
             where r.jobid = turn.jobid and r.dataid <> turn.dataid and r.blocked in ('WRONG_DATA', 'INVALID_PATH', 'NOT_VALIDATED', 'LOCKED'));
        if dataids <> '{}' then
            perform dataflow.evaluate(array_fill(turn.jobid::text, array[cardinality(dataids)]), dataids);
        end if;
    end loop;
end
$$;

-- One change of an OUT row, as the triggers tell it.
create type dataflow.change as (
    datasetid       text collate "C",
    jobid           text collate "C",
    dataid          text collate "C",
    -- NEW: the row was inserted.
    old_status      text,
    -- CLAIMED: a claim took the chunk. GONE: the row was deleted.
    status          text,
    claim_id        bigint,
    -- The versions, where they differ.
    old_manifest_id bigint,
    manifest_id     bigint
);

-- OUT rows changed: release what the chunks held, and update the runnable set. A free output can make its producer runnable,
-- a READY input its consumers. Every other change can only take chunks out of the set, which is cheap.
-- p_is_another: what was made from one of the chunks becomes stale, or current again.
create function dataflow.follow(p_changes dataflow.change[], p_is_another boolean) returns void
    language plpgsql
as $$
declare
    -- A change of the registry waits for us, or we for it.
    latch        text := pg_advisory_xact_lock_shared(hashtext('dataflow'), hashtext('evaluation'));
    around       record;
    lost         record;
    jobids       text[];
    dataids      text[];
    -- The changed chunks as chunks of the ordered Jobs around.
    turn_jobids  text[];
    turn_dataids text[];
    -- The changed chunks, and those with another version.
    chunks       dataflow.chunk[];
    own          dataflow.chunk[];
    is_replaced  boolean;
    redirected   dataflow.chunk[] := '{}';
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    -- The DataSets, what their chunks were and are, and the Jobs that make or read them.
    select c.*, j.*
      into around
      from (select array_agg(distinct u.datasetid) as datasetids, array_agg(u.old_status) as were, array_agg(coalesce(u.status, '')) as are
              from unnest(p_changes) u) c
     cross join lateral (
        select coalesce(bool_or(t.itemtype = 'IN'), false) as are_read,
               coalesce(bool_or(o.lists), false) as have_lists,
               coalesce(bool_or(t.itemtype = 'OUT' and o.outputs > 1), false) as have_siblings,
               coalesce(bool_or(t.itemtype = 'OUT' and o.reads_today), false) as follow_today,
               array_agg(distinct p.jobid) filter (where p.ordered) as ordered,
               array_agg(distinct i.datasetid) filter (where i.datasetid is not null) as inputs
          from dataflow.job t
         cross join lateral (select bool_or(i.mapping <> 'equal') as lists, count(*) filter (where i.itemtype = 'OUT') as outputs,
                                    bool_or(i.itemtype = 'IN' and i.datasetid = 'today' and i.mapping = 'equal') as reads_today
                               from dataflow.job i where i.jobid = t.jobid and i.itemtype in ('IN', 'OUT') offset 0) o
          left join dataflow.job_policy p on p.jobid = t.jobid
          left join dataflow.job i on i.jobid = t.jobid and t.itemtype = 'OUT' and i.itemtype = 'IN'
         where t.datasetid = any (c.datasetids)) j;
    if around.are <@ array['CLAIMED'] and not around.have_lists and around.ordered is null then
        return;  -- a claim takes its own chunks out of the set, and nobody gains or loses by it
    end if;

    if p_is_another then
        -- Most chunks have their first version, which replaces nothing.
        select array_agg(row (c.datasetid, c.dataid)::dataflow.chunk),
               array_agg(row (c.datasetid, c.dataid)::dataflow.chunk) filter (where c.old_manifest_id is distinct from c.manifest_id),
               bool_or(c.old_manifest_id is not null or c.old_status in ('READY', 'SKIPPED'))
          into chunks, own, is_replaced from unnest(p_changes) c;
        if around.inputs is null then
            own := null;
        end if;
        is_replaced := is_replaced or around.are_read and dataflow.were_used(chunks);
        if own is not null or is_replaced then
            perform dataflow.lock_versions(around.inputs, case when is_replaced then around.datasetids end, array(select c.dataid from unnest(chunks) c));
            select m.redirected into redirected
              from dataflow.mark_stale(coalesce(own, '{}'), case when is_replaced then chunks else '{}' end) m;
        end if;
    end if;
    if not around.are <@ array['RUNNING', 'CLAIMED', 'PENDING'] then
        perform dataflow.release_in_rows(p_changes);
    end if;
    if around.follow_today and around.are && array['RESUBMIT'] then
        perform dataflow.open_former_days(array(select c.dataid from unnest(p_changes) c where c.status = 'RESUBMIT'));
    end if;
    if around.ordered is not null then
        perform dataflow.lock_turns(around.ordered);
        select array_agg(o.jobid), array_agg(c.dataid) into turn_jobids, turn_dataids
          from unnest(around.ordered) as o(jobid) cross join (select distinct u.dataid from unnest(p_changes) u) c;
        perform dataflow.keep_turns(turn_jobids, turn_dataids);
    end if;

    if around.were && array['NEW', 'PENDING', 'RESUBMIT', 'READY', 'SKIPPED'] then
        -- In order, so that two updates never wait for each other in a circle; one by one, which waits for the holder of a row
        -- and then sees what became of it.
        for lost in
            select j.jobid, c.dataid
              from unnest(p_changes) c
              join dataflow.job j on j.datasetid = c.datasetid and j.itemtype in ('IN', 'OUT') and j.mapping = 'equal'
             where not coalesce(c.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT', 'GONE', 'CLAIMED']
                                                                else array['READY', 'SKIPPED', 'GONE', 'CLAIMED'] end), false)
               -- A producer loses nothing by an output that was not free, a consumer nothing by a chunk that was not READY; by a
               -- new row only if there was another.
               and (case j.itemtype when 'OUT' then c.old_status in ('PENDING', 'RESUBMIT', 'NEW') else c.old_status in ('READY', 'SKIPPED') end
                    or j.itemtype = 'IN' and c.old_status = 'NEW' and 1 < (select count(*) from dataflow.datastatus s
                                                      where s.datasetid = c.datasetid and s.dataid = c.dataid and s.locktype = 'OUT'))
             order by j.jobid, c.dataid
        loop
            delete from dataflow.runnable r where r.jobid = lost.jobid and r.dataid = lost.dataid;
            if not found then
                -- Another transaction may be inserting the row without seeing our change: wait for it on the row.
                insert into dataflow.runnable (jobid, dataid, sort_key) values (lost.jobid, lost.dataid, '') on conflict do nothing;
                delete from dataflow.runnable r where r.jobid = lost.jobid and r.dataid = lost.dataid;
            end if;
        end loop;
    end if;

    if around.have_lists then
        -- A consumer of listed chunks, or of all, that is being planned right now cannot be seen yet: wait for it.
        perform pg_advisory_xact_lock_shared(hashtext('dataflow inputs'), hashtext(d.datasetid))
           from (select u.datasetid from unnest(around.datasetids) as u(datasetid) order by 1) d;
        if around.are && array['PENDING', 'RESUBMIT', 'GONE'] then
            perform dataflow.lock_planned_inputs(array(select j.jobid from dataflow.job j where j.datasetid = any (around.datasetids) and j.itemtype = 'OUT'));
        end if;
    end if;

    select array_agg(g.jobid), array_agg(g.dataid)
      into jobids, dataids
      from (select j.jobid, c.dataid
              from unnest(p_changes) c
              join dataflow.job j on j.datasetid = c.datasetid and j.mapping = 'equal'
             where case j.itemtype
                   when 'IN' then c.status in ('READY', 'SKIPPED', 'GONE')
                   -- A plan changes no answer: a chunk that is in the set already stays there as it is.
                   when 'OUT' then c.status in ('RESUBMIT', 'GONE')
                                   or c.status = 'PENDING' and not (c.old_status = 'NEW' and exists (select from dataflow.runnable r
                                                                                           where r.jobid = j.jobid and r.dataid = c.dataid)) end) g;
    if around.have_lists then
        select jobids || array_agg(n.jobid), dataids || array_agg(n.dataid)
          into jobids, dataids
          from dataflow.consumers_of(array(select c.datasetid from unnest(p_changes) c), array(select c.dataid from unnest(p_changes) c)) n;
    end if;
    if jobids is not null then
        perform dataflow.evaluate(jobids, dataids);
    end if;
    if p_is_another and around.are_read then
        select d.jobids, d.dataids into jobids, dataids from dataflow.dependents_of(p_changes) d;
        if jobids is not null then
            perform dataflow.evaluate(jobids, dataids);
        end if;
    end if;
    perform dataflow.ask_consumers(redirected);
    if around.ordered is not null then
        perform dataflow.pass_turns(turn_jobids, turn_dataids);
    end if;
    -- Last, because it changes other rows again.
    if around.have_siblings then
        perform dataflow.align_outputs(p_changes);
    end if;
end
$$;

-- Chunks of these Jobs are planned. Where their inputs are listed, or all of a DataSet, a transaction that changes one of
-- the inputs does not see the plan yet: wait for it, and let the next one wait for us.
create function dataflow.lock_planned_inputs(p_jobids text[]) returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow inputs'), hashtext(d.datasetid))
       from (select distinct j.datasetid from dataflow.job j
              where j.jobid = any (p_jobids) and j.itemtype = 'IN' and j.mapping <> 'equal' order by 1) d;
end
$$;

-- The current versions of these chunks changed. Whether a chunk repeats the content of a neighbour depends on the versions of
-- other chunks: the consumers of such neighbours, to be asked again.
create function dataflow.dependents_of(p_changes dataflow.change[], out jobids text[], out dataids text[])
    language plpgsql
as $$
#variable_conflict use_variable
declare
    of_datasetids text[];
    of_dataids    text[];
begin
    select array_agg(n.datasetid), array_agg(n.dataid)
      into of_datasetids, of_dataids
      from unnest(p_changes) c
     cross join lateral (select t.datasetid, t.dataid, t.content_digest from dataflow.data_manifest t
                          where t.manifest_id in (c.old_manifest_id, c.manifest_id) offset 0) m
     cross join lateral (select t.datasetid, t.dataid from dataflow.data_manifest t
                          where t.datasetid = m.datasetid and t.content_digest = m.content_digest and t.dataid <> m.dataid offset 0) n;
    if of_datasetids is not null then
        select array_agg(c.jobid), array_agg(c.dataid) into jobids, dataids from dataflow.consumers_of(of_datasetids, of_dataids) c;
    end if;
end
$$;

-- A consumer started or stopped reading these chunks in place. The chunks that it blocks are asked again, also those that
-- are not in the set yet: another transaction may be inserting them without seeing our change.
create function dataflow.evaluate_around_reader(p_datasetids text[], p_dataids text[]) returns void
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
        perform dataflow.evaluate(jobids, dataids);
    end if;
end
$$;

-- A resubmitted chunk runs on a day before `today` was first used, too. The day opens for it, whatever made it RESUBMIT.
-- Of these dataids; null: of all.
create function dataflow.open_former_days(p_dataids text[]) returns void
    language plpgsql
as $$
begin
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)
    select 'today', 'resubmitted', s.dataid, 'OUT', 'READY'
      from (select to_char(now() at time zone d.timezone, 'YYYY-MM-DD') as today from dataflow.dataset d where d.datasetid = 'today') t
      join dataflow.job j on j.datasetid = 'today' and j.itemtype = 'IN' and j.mapping = 'equal'
     cross join lateral (select o.dataid from dataflow.datastatus o
                          where o.jobid = j.jobid and o.locktype = 'OUT' and o.status = 'RESUBMIT'
                            and (p_dataids is null or o.dataid = any (p_dataids)) offset 0) s
     where s.dataid < t.today and dataflow.is_day(s.dataid)
       and not exists (select from dataflow.datastatus o where o.datasetid = 'today' and o.dataid = s.dataid and o.locktype = 'OUT')
     group by s.dataid
     order by s.dataid
        on conflict do nothing;
end
$$;

-- `today` has a READY chunk for each day since it was first used, for Jobs that catch up; whether a day may still run is
-- a question (is_its_day). Returns the number of new days.
create function dataflow.open_days() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    days bigint;
begin
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)
    select 'today', 'today', to_char(day, 'YYYY-MM-DD'), 'OUT', 'READY'
      from (select (now() at time zone d.timezone)::date as today from dataflow.dataset d where d.datasetid = 'today') t
     cross join generate_series(coalesce((select max(s.dataid)::date from dataflow.datastatus s
                                           where s.datasetid = 'today' and s.locktype = 'OUT' and s.jobid <> 'resubmitted' and dataflow.is_day(s.dataid)
                                             and s.dataid <= to_char(t.today, 'YYYY-MM-DD')), t.today), t.today, interval '1 day') as day
        on conflict do nothing;
    get diagnostics days = row_count;
    perform dataflow.open_former_days(null);
    if days > 0 then
        perform dataflow.evaluate(array_agg(r.jobid), array_agg(r.dataid))
           from dataflow.runnable r
          where r.jobid in (select j.jobid from dataflow.job j where j.datasetid = 'today' and j.itemtype = 'IN')
         having count(*) > 0;
    end if;
    return days;
end
$$;
