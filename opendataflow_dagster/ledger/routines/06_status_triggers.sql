-- The triggers of datastatus. Any change by any client - a verb, a foreign client, a person in psql - leaves a valid row,
-- enters the history, releases what the chunk held, and updates the runnable set.
--
-- The history names `dataflow.actor`, the person or program on whose behalf the session acts. `dataflow.reason` is the
-- reason of a change whose row has none. Nothing else depends on a setting of the session.
--
-- Functions with the rights of the owner act on rows of these tables alone, whoever attached them to which table, and before
-- they look at a row: its columns may have types whose casts run a function of somebody else.

create function dataflow.guard_row() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    new.modified := now();
    if tg_op = 'INSERT' or new.dataid <> old.dataid or new.datasetid <> old.datasetid or new.jobid <> old.jobid
       or new.locktype <> old.locktype then
        -- Here and not in a constraint, which every change of a status would pay for.
        if btrim(new.dataid) = '' or octet_length(new.dataid) > 500 or not dataflow.is_name(new.datasetid) or not dataflow.is_name(new.jobid)
           or new.dataid ~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]' then
            raise exception 'datastatus: %/%/% is not a printable id', new.datasetid, new.jobid, left(new.dataid, 60)
                using errcode = 'check_violation', constraint = 'ids_are_printable',
                      hint = 'at least one visible character, at most 500 bytes (names: 200), no control characters';
        end if;
        if tg_op = 'UPDATE' then
            -- The answers were about another chunk.
            new.claim_id := null;
            new.lease_until := null;
        end if;
    end if;
    if new.held_status in ('HOLD', 'RUNNING') then
        new.held_status := 'RESUBMIT';  -- a hold that ended by these would not end
    end if;
    -- Operators may set it; one that cannot be counted further would never heal.
    new.retries := greatest(0, least(new.retries, 1000000));
    if tg_op = 'INSERT' or new.status is not distinct from old.status then
        return new;
    end if;
    -- A chunk that leaves RUNNING loses its claim, also when a person types RESUBMIT.
    if new.status is distinct from 'RUNNING' then
        new.claim_id := null;
        new.lease_until := null;
    end if;
    if new.status in ('READY', 'RESUBMIT') and new.reason is not distinct from old.reason then
        new.reason := null;  -- the reason of the last failure is in the history
    end if;
    if new.status = 'READY' then
        new.retries := 0;
        -- READY without a new version: a foreign client made it, and the old version is not what it made.
        if new.manifest_id is not distinct from old.manifest_id and new.locktype = 'OUT'
           and not (old.status = 'HOLD' and old.held_status = 'READY') then
            new.manifest_id := null;
            new.code_version := null;
        end if;
    elsif new.status = 'RESUBMIT' and new.retries = old.retries then
        new.retries := 0;  -- not counted as a retry, so a person asked
    elsif new.status = 'HOLD' and new.held_status is null then
        new.held_status := case when old.status = 'RUNNING' then 'RESUBMIT' else old.status end;
    end if;
    if new.status is distinct from 'HOLD' then
        new.held_status := null;
    end if;
    return new;
end
$$;
create trigger guard_row before insert or update on dataflow.datastatus for each row execute function dataflow.guard_row();

create function dataflow.after_insert() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    changes     dataflow.change[];
    has_version boolean;
    is_read     boolean;
begin
    if tg_relid <> 'dataflow.datastatus'::regclass then
        raise exception 'after_insert is a trigger of datastatus alone';
    end if;
    with recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, new_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
        select n.datasetid, n.jobid, n.dataid, n.locktype, n.status, n.claim_id, n.attempt, n.run_id, n.manifest_id,
               coalesce(n.reason, nullif(current_setting('dataflow.reason', true), '')), session_user, current_setting('dataflow.actor', true)
          from new_rows n
    )
    select array(select row (n.datasetid, n.jobid, n.dataid, 'NEW', case when n.claim_id is null then n.status else 'CLAIMED' end,
                             n.claim_id, null, n.manifest_id)::dataflow.change
                   from new_rows n where n.locktype = 'OUT'),
           exists (select from new_rows n where n.locktype = 'OUT' and (n.manifest_id is not null or n.status in ('READY', 'SKIPPED'))),
           exists (select from new_rows n where n.locktype = 'IN' and n.manifest_id is null)
      into changes, has_version, is_read;
    if changes <> '{}' then
        perform dataflow.follow(changes, has_version);
    end if;
    if is_read then
        perform dataflow.evaluate_around_reader(array_agg(n.datasetid), array_agg(n.dataid))
           from new_rows n where n.locktype = 'IN' and n.manifest_id is null;
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
    changes         dataflow.change[];
    is_another      boolean;
    read_datasetids text[];
    read_dataids    text[];
    bad             text;
    late            text;
    -- A row is RESUBMIT now; null: there is no row.
    is_resubmit     boolean;
begin
    if tg_relid <> 'dataflow.datastatus'::regclass then
        raise exception 'after_update is a trigger of datastatus alone';
    end if;
    select bool_or(n.locktype = 'OUT' and coalesce(n.status, '') = 'RESUBMIT') into is_resubmit from new_rows n;
    if is_resubmit is null then
        return null;  -- an `insert ... on conflict do update` that only inserted
    end if;
    -- A renewed lease is no event. A changed key is one row that went and another that came.
    with changed as (
        select coalesce(n.datasetid, o.datasetid) as datasetid, coalesce(n.jobid, o.jobid) as jobid,
               coalesce(n.dataid, o.dataid) as dataid, coalesce(n.locktype, o.locktype) as locktype,
               -- It locks out a producer that overwrites in place. A changed key is enough to make or end that.
               coalesce(o.locktype = 'IN' and o.manifest_id is null, false) as was_in,
               coalesce(n.locktype = 'IN' and n.manifest_id is null, false) as is_in,
               o.status as old_status, n.status, coalesce(n.claim_id, o.claim_id) as claim_id, coalesce(n.attempt, o.attempt) as attempt,
               coalesce(n.run_id, o.run_id) as run_id, o.manifest_id as old_manifest_id, n.manifest_id,
               -- The row may still hold the reason of an older change.
               coalesce(case when n.reason is distinct from o.reason then n.reason end, nullif(current_setting('dataflow.reason', true), ''),
                        n.reason) as reason,
               -- For the producers and consumers of the chunk.
               case when o.locktype = 'OUT' then o.status else 'NEW' end as old_out_status,
               case when n.locktype is distinct from 'OUT' then 'GONE' when n.claim_id is distinct from o.claim_id and n.claim_id is not null then 'CLAIMED'
                    else n.status end as out_status,
               (o.locktype = 'OUT' or n.locktype = 'OUT')
               and (n.status, n.locktype, n.manifest_id, n.claim_id, n.dataid) is distinct from
                   (o.status, o.locktype, o.manifest_id, o.claim_id, o.dataid) as is_out,
               -- What was made from it becomes stale, or current again.
               n.manifest_id is distinct from o.manifest_id
               or n.status is distinct from o.status
                  and ('SKIPPED' in (n.status, o.status) or n.manifest_id is null and 'READY' in (n.status, o.status)) as is_another,
               case when o.locktype is distinct from 'OUT' then false
                    -- A hold ends by what it held, RESUBMIT or SKIPPED: by no other word, and not by becoming another row.
                    when o.status = 'HOLD' then
                         n.locktype is distinct from 'OUT'
                         or case n.status when 'HOLD' then n.held_status is distinct from o.held_status
                                          when 'RUNNING' then true
                                          else coalesce(n.status not in ('RESUBMIT', 'SKIPPED', o.held_status), true) end
                    else n.locktype = 'OUT' and n.status <> o.status
                         and o.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'SKIPPED')
                         and n.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
                         and not exists (select from dataflow.status_transition t where t.old_status = o.status and t.new_status = n.status) end as is_bad,
               -- Made by a client that lost it to the RESUBMIT. An external chunk is not claimed before it is made.
               o.status = 'RESUBMIT' and n.status = 'READY' and n.locktype = 'OUT' and n.manifest_id is null
               and exists (select from dataflow.job j where j.datasetid = n.datasetid and j.itemtype = 'OUT') as is_late
          from new_rows n
          full join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
         where (n.status, n.locktype, n.manifest_id, n.claim_id, n.attempt, n.retries, n.run_id, n.reason, n.held_status) is distinct from
               (o.status, o.locktype, o.manifest_id, o.claim_id, o.attempt, o.retries, o.run_id, o.reason, o.held_status)
    ), recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, new_status, claim_id, attempt, run_id,
                                          manifest_id, reason, login, actor)
        select c.datasetid, c.jobid, c.dataid, c.locktype, c.old_status, c.status, c.claim_id, c.attempt,
               c.run_id, coalesce(c.manifest_id, c.old_manifest_id), c.reason, session_user, current_setting('dataflow.actor', true)
          from changed c
    )
    select array(select row (c.datasetid, c.jobid, c.dataid, c.old_out_status, c.out_status, c.claim_id,
                             case when c.manifest_id is distinct from c.old_manifest_id then c.old_manifest_id end,
                             case when c.manifest_id is distinct from c.old_manifest_id then c.manifest_id end)::dataflow.change
                   from changed c where c.is_out),
           exists (select from changed c where c.is_out and c.is_another),
           array(select c.datasetid from changed c where c.was_in <> c.is_in),
           array(select c.dataid from changed c where c.was_in <> c.is_in),
           (select format('%s/%s cannot go from %s to %s', c.datasetid, c.dataid, c.old_status,
                          case c.status when c.old_status then 'another row' else coalesce(c.status, 'none') end) from changed c where c.is_bad
             order by 1 limit 1),
           (select min(c.datasetid || '/' || c.dataid) from changed c where c.is_late)
      into changes, is_another, read_datasetids, read_dataids, bad, late;
    if late is not null then
        raise exception '% was resubmitted and has not run since, so it cannot become READY', late
            using errcode = 'DF001', hint = 'claim it again (set RUNNING), then end it';
    end if;
    if bad is not null then
        raise exception '%', bad using errcode = 'DF001', hint = 'set RESUBMIT to run it again, or unhold it if it is on hold';
    end if;
    if changes <> '{}' then
        perform dataflow.follow(changes, is_another);
    end if;
    if read_datasetids <> '{}' then
        perform dataflow.evaluate_around_reader(read_datasetids, read_dataids);
    end if;
    if is_resubmit then
        -- RESUBMIT once more, which changes nothing: the IN row of a crash may have come after the first.
        perform dataflow.release_in_rows(array_agg(row (n.datasetid, n.jobid, n.dataid, o.status, n.status, null, null, null)::dataflow.change))
           from new_rows n
           join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
          where n.locktype = 'OUT' and o.locktype = 'OUT' and n.status = 'RESUBMIT' and o.status = 'RESUBMIT' and dataflow.has_left_over(n.jobid, n.dataid)
         having count(*) > 0;
    end if;
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
    changes  dataflow.change[];
    was_read boolean;
    held     text;
begin
    if tg_relid <> 'dataflow.datastatus'::regclass then
        raise exception 'after_delete is a trigger of datastatus alone';
    end if;
    with recorded as (
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
        select o.datasetid, o.jobid, o.dataid, o.locktype, o.status, o.claim_id, o.attempt, o.run_id, o.manifest_id,
               nullif(current_setting('dataflow.reason', true), ''), session_user, current_setting('dataflow.actor', true)
          from old_rows o
    )
    select array(select row (o.datasetid, o.jobid, o.dataid, o.status, 'GONE', o.claim_id, o.manifest_id, null)::dataflow.change
                   from old_rows o where o.locktype = 'OUT'),
           exists (select from old_rows o where o.locktype = 'IN' and o.manifest_id is null),
           (select min(o.datasetid || '/' || o.dataid) from old_rows o where o.locktype = 'OUT' and o.status = 'HOLD')
      into changes, was_read, held;
    if held is not null then
        raise exception '% is on HOLD and cannot be deleted', held using errcode = 'DF001', hint = 'unhold it, or set SKIPPED';
    end if;
    if was_read then
        perform dataflow.evaluate_around_reader(array_agg(o.datasetid), array_agg(o.dataid))
           from old_rows o where o.locktype = 'IN' and o.manifest_id is null;
    end if;
    if changes <> '{}' then
        perform dataflow.follow(changes, true);
    end if;
    return null;
end
$$;
create trigger after_delete after delete on dataflow.datastatus
    referencing old table as old_rows for each statement execute function dataflow.after_delete();

create function dataflow.refuse_truncate() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception '% cannot be truncated: the history and the runnable set would not follow', tg_table_name using hint = 'delete the rows';
end
$$;
create trigger refuse_truncate before truncate on dataflow.datastatus for each statement execute function dataflow.refuse_truncate();

create function dataflow.refuse_change() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'rows of % are never changed', tg_table_name using hint = 'publish a new version';
end
$$;
create trigger refuse_change before update on dataflow.data_manifest for each statement execute function dataflow.refuse_change();
