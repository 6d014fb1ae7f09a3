-- The triggers: whoever changes datastatus - a verb, a foreign client, a person in psql - the row is kept
-- whole, the change enters the history, crash debris goes, and the runnable set follows.

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
    work  record;
    awake boolean;
begin
    -- In one order, so that two of these never wait for each other in a circle.
    insert into dataflow.runnable (jobid, dataid, sort_key)
    select c.jobid, c.dataid, dataflow.natural_key(c.dataid)
      from (select distinct u.jobid, u.dataid from unnest(p_jobids, p_dataids) as u(jobid, dataid)) c
     order by c.jobid, c.dataid
        on conflict (jobid, dataid) do update set since = now();

    for work in select u.jobid, array_agg(distinct u.dataid) as dataids
                  from unnest(p_jobids, p_dataids) as u(jobid, dataid) group by u.jobid
    loop
        with asked as materialized (
            select a.*, dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe) as code from dataflow.ask(work.jobid, work.dataids) a
        ), gone as (
            delete from dataflow.runnable
             where ctid = any (array(select r.ctid
                                       from asked a
                                      cross join lateral (select t.ctid from dataflow.runnable t
                                                           where t.jobid = work.jobid and t.dataid = a.dataid offset 0) r
                                      where not a.is_runnable))
        ), settled as (
            -- Every row is there and ours; the conflict is the way to it.
            insert into dataflow.runnable (jobid, dataid, sort_key, resubmit, blocked, inputs, file_count)
            select work.jobid, a.dataid, '', a.resubmit, a.code, a.inputs, a.file_count from asked a where a.is_runnable
                on conflict (jobid, dataid) do update
               set resubmit = excluded.resubmit, blocked = excluded.blocked, inputs = excluded.inputs, file_count = excluded.file_count
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
    orders  boolean;
    jobids  text[];
    dataids text[];
begin
    -- In order, so that two of these never wait for each other in a circle; one by one, which waits for whoever
    -- holds a row and then sees what became of it.
    for lost in
        select j.jobid, c.dataid
          from unnest(p_datasetids, p_dataids, p_old_statuses, p_statuses) as c(datasetid, dataid, old_status, status)
          join dataflow.job j on j.datasetid = c.datasetid and j.mapping = 'equal'
         where not coalesce(c.status = any (case j.itemtype when 'OUT' then array['PENDING', 'RESUBMIT', 'GONE']
                                                            else array['READY', 'SKIPPED', 'GONE'] end), false)
           -- A consumer has nothing to lose by a chunk that was not READY; by a new row only if there was another.
           and (j.itemtype = 'OUT' or c.old_status in ('READY', 'SKIPPED')
                or c.old_status = 'NEW' and 1 < (select count(*) from dataflow.datastatus s
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

    select bool_or(j.mapping <> 'equal'), bool_or(coalesce(p.ordered, false))
      into lists, orders
      from dataflow.job j
      left join dataflow.job_policy p on p.jobid = j.jobid
     where j.datasetid = any (p_datasetids);

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

    -- A strictly ordered Job: what waited for its turn is asked again.
    if orders then
        perform dataflow.settle_runnable(array_agg(r.jobid), array_agg(r.dataid))
           from dataflow.runnable r
          where r.blocked is not null
            and r.jobid in (select j.jobid from dataflow.job j where j.datasetid = any (p_datasetids));
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

    -- What was made from these chunks, and is therefore out of date; a chunk that is new has no such consumers.
    select array_agg(j.datasetid), array_agg(c.dataid)
      into datasetids, dataids
      from dataflow.consumers_of(p_datasetids, p_dataids) c
      join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT'
     cross join lateral (select from dataflow.datastatus s
                          where s.datasetid = j.datasetid and s.jobid = j.jobid and s.dataid = c.dataid and s.manifest_id is not null offset 0) made;
    if datasetids is not null then
        perform dataflow.settle_runnable(array_agg(c.jobid), array_agg(c.dataid)) from dataflow.consumers_of(datasetids, dataids) c;
    end if;
end
$$;

-- What a Job that ended, failed or was resubmitted leaves behind: the IN rows of its chunks. They are those of the
-- inputs that it has, and of those that it had when it was claimed. An input that another running chunk of the
-- Job reads, too, stays locked.
create function dataflow.drop_in_rows(p_jobids text[], p_dataids text[], p_claim_ids bigint[]) returns void
    language plpgsql
as $$
declare
    jobids           text[];
    dataids          text[];
    input_datasetids text[];
    input_dataids    text[];
    are_equal        boolean[];
begin
    select array_agg(x.jobid), array_agg(x.dataid), array_agg(x.input_datasetid), array_agg(x.input_dataid), array_agg(x.mapping = 'equal')
      into jobids, dataids, input_datasetids, input_dataids, are_equal
      from (select c.jobid, c.dataid, n.datasetid as input_datasetid, n.dataid as input_dataid, n.mapping
              from unnest(p_jobids, p_dataids) as c(jobid, dataid)
             cross join lateral dataflow.inputs_of(c.jobid, c.dataid) n
            union all
            select c.jobid, c.dataid, o.datasetid, o.dataid, 'listed'
              from unnest(p_jobids, p_dataids, p_claim_ids) as c(jobid, dataid, claim_id)
             cross join lateral dataflow.claimed_inputs(c.jobid, c.dataid, c.claim_id) o
             where exists (select from dataflow.job j where j.jobid = c.jobid and j.mapping <> 'equal')
             order by 1, 3, 4) x;
    if jobids is null then
        return;
    end if;
    perform i.place
       from unnest(jobids, input_datasetids, input_dataids) as c(jobid, datasetid, dataid)
      cross join lateral (select s.ctid as place from dataflow.datastatus s
                           where s.datasetid = c.datasetid and s.jobid = c.jobid and s.dataid = c.dataid and s.locktype = 'IN' for update) i;
    delete from dataflow.datastatus
     where ctid = any (array(
           select i.ctid
             from unnest(jobids, dataids, input_datasetids, input_dataids, are_equal) as c(jobid, dataid, input_datasetid, input_dataid, is_equal)
            cross join lateral (select s.ctid from dataflow.datastatus s
                                 where s.datasetid = c.input_datasetid and s.jobid = c.jobid and s.dataid = c.input_dataid and s.locktype = 'IN'
                                offset 0) i
            where c.is_equal or not dataflow.is_shared(c.jobid, c.dataid, c.input_datasetid, c.input_dataid)));
end
$$;

-- The inputs that a claim has pinned.
create function dataflow.claimed_inputs(p_jobid text, p_dataid text, p_claim_id bigint)
    returns table (datasetid text, dataid text)
    language plpgsql stable rows 10
as $$
#variable_conflict use_column
begin
    return query
    select i.datasetid, i.dataid
      from dataflow.verdict v
     cross join lateral jsonb_to_recordset(v.inputs) as i(datasetid text, dataid text)
     where v.jobid = p_jobid and v.dataid = p_dataid and v.claim_id = p_claim_id;
end
$$;

-- Does another running chunk of the Job read this input chunk?
create function dataflow.is_shared(p_jobid text, p_dataid text, p_input_datasetid text, p_input_dataid text) returns boolean
    language plpgsql stable
as $$
begin
    return exists (select from dataflow.job o
                    cross join lateral (select t.dataid, t.claim_id from dataflow.datastatus t
                                         where t.datasetid = o.datasetid and t.jobid = o.jobid and t.locktype = 'OUT'
                                           and t.claim_id is not null and t.dataid <> p_dataid offset 0) s
                    cross join lateral dataflow.claimed_inputs(p_jobid, s.dataid, s.claim_id) x
                    where o.jobid = p_jobid and o.itemtype = 'OUT' and x.datasetid = p_input_datasetid and x.dataid = p_input_dataid);
end
$$;

-- The outputs of a Job are claimed and made together: RESUBMIT of one is RESUBMIT of all, and a claim that lost one
-- of its outputs has lost the others.
create function dataflow.keep_together(p_datasetids text[], p_jobids text[], p_dataids text[], p_statuses text[], p_claim_ids bigint[])
    returns void
    language plpgsql
as $$
declare
    other record;
begin
    if not exists (select from dataflow.job j where j.jobid = any (p_jobids) and j.itemtype = 'OUT' group by j.jobid having count(*) > 1) then
        return;
    end if;
    for other in
        select j.datasetid, c.jobid, c.dataid, c.status, c.claim_id
          from unnest(p_datasetids, p_jobids, p_dataids, p_statuses, p_claim_ids) as c(datasetid, jobid, dataid, status, claim_id)
          join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT' and j.datasetid <> c.datasetid
         where c.status is distinct from 'RUNNING'
         order by j.datasetid, c.jobid, c.dataid
    loop
        update dataflow.datastatus t set status = 'RESUBMIT'
         where t.datasetid = other.datasetid and t.jobid = other.jobid and t.dataid = other.dataid and t.locktype = 'OUT'
           and (other.status = 'RESUBMIT' and t.status in ('RUNNING', 'READY', 'FAILED', 'PENDING') or t.claim_id = other.claim_id);
    end loop;
end
$$;

-- A consumer that reads in place came or went: whom it locks out is asked again.
create function dataflow.keep_readers(p_datasetids text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    jobids  text[];
    dataids text[];
begin
    select array_agg(r.jobid), array_agg(r.dataid)
      into jobids, dataids
      from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
      join dataflow.job j on j.datasetid = c.datasetid
     cross join lateral (select t.jobid, t.dataid from dataflow.runnable t where t.jobid = j.jobid and t.dataid = c.dataid offset 0) r;
    if jobids is not null then
        perform dataflow.settle_runnable(jobids, dataids);
    end if;
end
$$;

create function dataflow.keep_row() returns trigger
    language plpgsql
as $$
begin
    new.modified := now();
    if tg_op = 'INSERT' or new.dataid <> old.dataid or new.datasetid <> old.datasetid or new.jobid <> old.jobid then
        -- Here and not as a constraint, which every update of a status would pay for again.
        if btrim(new.dataid) = '' or octet_length(new.dataid) > 500 or not dataflow.is_name(new.datasetid) or not dataflow.is_name(new.jobid)
           or new.dataid ~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]' then
            raise exception 'datastatus: %/%/% is not a printable id', new.datasetid, new.jobid, left(new.dataid, 60)
                using errcode = 'check_violation', constraint = 'ids_are_printable',
                      hint = 'at least one visible character, at most 500 bytes (names: 200), no control characters';
        end if;
    end if;
    if tg_op = 'INSERT' then
        return new;
    end if;
    if new.status is not distinct from old.status then
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
    elsif new.status = 'RESUBMIT' then
        if new.retries = old.retries then
            new.retries := 0;  -- nobody counted this one as a retry: a person asked
        end if;
        if new.reason is not distinct from old.reason then
            new.reason := null;  -- why it failed before is in the history
        end if;
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
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    datasetids text[];
    dataids    text[];
    statuses   text[];
    read_datasetids text[];
    read_dataids    text[];
begin
    with recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, new_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
        select n.datasetid, n.jobid, n.dataid, n.locktype, n.status, n.claim_id, n.attempt, n.run_id, n.manifest_id, n.reason,
               session_user, current_setting('dataflow.actor', true)
          from new_rows n
    )
    select array_agg(n.datasetid) filter (where n.locktype = 'OUT'), array_agg(n.dataid) filter (where n.locktype = 'OUT'),
           array_agg(n.status) filter (where n.locktype = 'OUT'),
           array_agg(n.datasetid) filter (where n.locktype = 'IN' and n.manifest_id is null),
           array_agg(n.dataid) filter (where n.locktype = 'IN' and n.manifest_id is null)
      into datasetids, dataids, statuses, read_datasetids, read_dataids
      from new_rows n;
    if datasetids is not null then
        perform dataflow.keep_runnable(datasetids, dataids, array_fill('NEW'::text, array[cardinality(dataids)]), statuses);
    end if;
    if read_datasetids is not null then
        perform dataflow.keep_readers(read_datasetids, read_dataids);
    end if;
    return null;
end
$$;
create trigger after_insert after insert on dataflow.datastatus
    referencing new table as new_rows for each statement execute function dataflow.after_insert();

create function dataflow.after_update() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    datasetids      text[];
    jobids          text[];
    dataids         text[];
    old_statuses    text[];
    statuses        text[];
    claim_ids       bigint[];
    old_manifests   bigint[];
    new_manifests   bigint[];
    read_datasetids text[];
    read_dataids    text[];
    bad             text;
begin
    if not exists (select from new_rows) then
        return null;  -- an `insert ... on conflict do update` that only inserted
    end if;
    -- A renewed lease is no change; all else is. Whoever changes a key has taken one row away and made another.
    with changed as (
        select coalesce(n.datasetid, o.datasetid) as datasetid, coalesce(n.jobid, o.jobid) as jobid,
               coalesce(n.dataid, o.dataid) as dataid, coalesce(n.locktype, o.locktype) as locktype, o.locktype as old_locktype,
               o.status as old_status, n.status, coalesce(n.claim_id, o.claim_id) as claim_id, coalesce(n.attempt, o.attempt) as attempt,
               coalesce(n.run_id, o.run_id) as run_id, o.manifest_id as old_manifest_id, n.manifest_id, n.reason,
               -- For the producers and consumers of the chunk.
               case when o.locktype = 'OUT' then o.status else 'NEW' end as old_out_status,
               case when n.locktype = 'OUT' then n.status else 'GONE' end as out_status,
               o.locktype = 'OUT' or n.locktype = 'OUT' as is_out,
               n.locktype = 'OUT' and o.locktype = 'OUT' and n.status <> o.status
               and o.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
               and n.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
               and not exists (select from dataflow.status_transition t where t.old_status = o.status and t.new_status = n.status) as is_bad
          from new_rows n
          full join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
         where n.status is distinct from o.status or n.locktype is distinct from o.locktype
            or n.manifest_id is distinct from o.manifest_id or n.claim_id is distinct from o.claim_id or n.dataid is null or o.dataid is null
    ), recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, new_status, claim_id, attempt, run_id,
                                          manifest_id, reason, login, actor)
        select c.datasetid, c.jobid, c.dataid, c.locktype, c.old_status, c.status, c.claim_id, c.attempt,
               c.run_id, coalesce(c.manifest_id, c.old_manifest_id), c.reason, session_user, current_setting('dataflow.actor', true)
          from changed c
    )
    select array_agg(c.datasetid) filter (where c.is_out), array_agg(c.jobid) filter (where c.is_out),
           array_agg(c.dataid) filter (where c.is_out), array_agg(c.old_out_status) filter (where c.is_out),
           array_agg(c.out_status) filter (where c.is_out),
           array_agg(c.claim_id) filter (where c.is_out),
           array_agg(case when c.manifest_id is distinct from c.old_manifest_id then c.old_manifest_id end) filter (where c.is_out),
           array_agg(case when c.manifest_id is distinct from c.old_manifest_id then c.manifest_id end) filter (where c.is_out),
           array_agg(c.datasetid) filter (where c.old_locktype is distinct from c.locktype),
           array_agg(c.dataid) filter (where c.old_locktype is distinct from c.locktype),
           min(format('%s/%s cannot go from %s to %s', c.datasetid, c.dataid, c.old_status, c.status)) filter (where c.is_bad)
      into datasetids, jobids, dataids, old_statuses, statuses, claim_ids, old_manifests, new_manifests, read_datasetids, read_dataids, bad
      from changed c;
    if bad is not null then
        raise exception '%', bad using errcode = 'DF001', hint = 'set RESUBMIT to run it again';
    end if;
    if datasetids is null then
        return null;
    end if;

    perform dataflow.drop_in_rows(array_agg(c.jobid), array_agg(c.dataid), array_agg(c.claim_id))
       from unnest(jobids, dataids, claim_ids, statuses) as c(jobid, dataid, claim_id, status)
      where c.status is distinct from 'RUNNING' and c.status is distinct from 'PENDING';

    perform dataflow.keep_runnable(datasetids, dataids, old_statuses, statuses);
    if exists (select from unnest(old_manifests, new_manifests) as c(before, after) where c.before is not null or c.after is not null) then
        perform dataflow.keep_answers(datasetids, dataids, old_manifests, new_manifests);
    end if;
    if read_datasetids is not null then
        perform dataflow.keep_readers(read_datasetids, read_dataids);
    end if;
    -- Last, because it changes what the others were told.
    perform dataflow.keep_together(datasetids, jobids, dataids, statuses, claim_ids);
    return null;
end
$$;
create trigger after_update after update on dataflow.datastatus
    referencing old table as old_rows new table as new_rows for each statement execute function dataflow.after_update();

create function dataflow.after_delete() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    datasetids text[];
    jobids       text[];
    dataids      text[];
    old_statuses text[];
    statuses     text[];
    claim_ids    bigint[];
begin
    insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, claim_id, attempt, run_id, manifest_id, login, actor)
    select o.datasetid, o.jobid, o.dataid, o.locktype, o.status, o.claim_id, o.attempt, o.run_id, o.manifest_id,
           session_user, current_setting('dataflow.actor', true)
      from old_rows o;

    perform dataflow.keep_readers(array_agg(o.datasetid), array_agg(o.dataid))
       from old_rows o where o.locktype = 'IN' and o.manifest_id is null having count(*) > 0;

    select array_agg(o.datasetid), array_agg(o.jobid), array_agg(o.dataid), array_agg(o.status), array_agg('GONE'::text), array_agg(o.claim_id)
      into datasetids, jobids, dataids, old_statuses, statuses, claim_ids
      from old_rows o where o.locktype = 'OUT';
    if datasetids is not null then
        perform dataflow.drop_in_rows(jobids, dataids, claim_ids);
        perform dataflow.keep_runnable(datasetids, dataids, old_statuses, statuses);
        perform dataflow.keep_together(datasetids, jobids, dataids, statuses, claim_ids);
    end if;
    return null;
end
$$;
create trigger after_delete after delete on dataflow.datastatus
    referencing old table as old_rows for each statement execute function dataflow.after_delete();

-- Make the runnable set anew for these Jobs (null: all). Returns how many chunks it put in and took out.
create function dataflow.rebuild_runnable(p_jobids text[] default null, out added bigint, out removed bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    -- Nobody may change a status between our look and our write.
    lock table dataflow.datastatus in share row exclusive mode;
    create temporary table runnable_now on commit drop as
    select c.jobid, a.dataid, a.resubmit, a.inputs, a.file_count, dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe) as code
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

    update dataflow.runnable r set resubmit = n.resubmit, blocked = n.code, inputs = n.inputs, file_count = n.file_count
      from runnable_now n
     where n.jobid = r.jobid and n.dataid = r.dataid
       and (r.resubmit, r.blocked, r.inputs, r.file_count) is distinct from (n.resubmit, n.code, n.inputs, n.file_count);

    insert into dataflow.runnable (jobid, dataid, resubmit, sort_key, blocked, inputs, file_count)
    select n.jobid, n.dataid, n.resubmit, dataflow.natural_key(n.dataid), n.code, n.inputs, n.file_count
      from runnable_now n
        on conflict (jobid, dataid) do nothing;
    get diagnostics added = row_count;
    drop table runnable_now;
end
$$;

-- A change of the registry: the runnable set of the Jobs it touches is made anew.
create function dataflow.after_job_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
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
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'DELETE' then
        perform dataflow.rebuild_runnable(array(select distinct j.jobid from old_rows o join dataflow.job j on j.datasetid = o.datasetid));
    else
        perform dataflow.rebuild_runnable(array(select distinct j.jobid from new_rows n join dataflow.job j on j.datasetid = n.datasetid));
    end if;
    return null;
end
$$;
create trigger dataset_inserted after insert on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.after_dataset_change();
create trigger dataset_updated after update on dataflow.dataset
    referencing new table as new_rows for each statement execute function dataflow.after_dataset_change();
create trigger dataset_deleted after delete on dataflow.dataset
    referencing old table as old_rows for each statement execute function dataflow.after_dataset_change();

-- Of a policy, only the order decides which chunks may run.
create function dataflow.after_policy_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if (tg_op = 'INSERT' and new.ordered) or (tg_op = 'UPDATE' and new.ordered <> old.ordered) then
        perform dataflow.rebuild_runnable(array[new.jobid]);
    elsif tg_op = 'DELETE' and old.ordered then
        perform dataflow.rebuild_runnable(array[old.jobid]);
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
begin
    if tg_op = 'DELETE' then
        perform dataflow.wait_for_inputs(array(select distinct o.jobid from old_rows o));
        perform dataflow.settle_runnable(array_agg(o.jobid), array_agg(o.dataid)) from old_rows o having count(*) > 0;
    else
        perform dataflow.wait_for_inputs(array(select distinct n.jobid from new_rows n));
        perform dataflow.settle_runnable(array_agg(n.jobid), array_agg(n.dataid)) from new_rows n having count(*) > 0;
    end if;
    return null;
end
$$;
create trigger chunk_input_inserted after insert on dataflow.chunk_input
    referencing new table as new_rows for each statement execute function dataflow.after_listing();
create trigger chunk_input_updated after update on dataflow.chunk_input
    referencing new table as new_rows for each statement execute function dataflow.after_listing();
create trigger chunk_input_deleted after delete on dataflow.chunk_input
    referencing old table as old_rows for each statement execute function dataflow.after_listing();

create function dataflow.keep_modified() returns trigger language plpgsql as $$
begin
    new.modified := now();
    return new;
end
$$;
create trigger keep_modified before insert or update on dataflow.job for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.dataset for each row execute function dataflow.keep_modified();
create trigger keep_modified before insert or update on dataflow.job_policy for each row execute function dataflow.keep_modified();

-- These act with the rights of the schema's owner; roles.sql says who may call them.
revoke execute on function dataflow.settle_runnable(text[], text[]), dataflow.rebuild_runnable(text[]) from public;
