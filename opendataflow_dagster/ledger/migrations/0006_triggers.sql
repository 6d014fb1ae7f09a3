-- The triggers of datastatus: whoever changes it - a verb, a foreign client, a person in psql - the row is kept
-- whole, the change enters the history, crash debris goes, and the runnable set follows.
--
-- The history names `dataflow.actor`, the person or program that the session acts for; `dataflow.reason` is the reason of
-- a change that brings none in its row.

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
        if new.reason is not distinct from old.reason then
            new.reason := null;  -- why it failed before is in the history
        end if;
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
-- A plain publication changes rows that it holds, and says all that there is to say.
create trigger keep_row before update on dataflow.datastatus
    for each row when (current_setting('dataflow.publishing', true) is distinct from 'on') execute function dataflow.keep_row();
-- The ids of a claim come from rows that were looked at before.
create trigger keep_new_row before insert on dataflow.datastatus
    for each row when (new.claim_id is null) execute function dataflow.keep_row();

create function dataflow.follow_insert(p_datasetids text[], p_dataids text[], p_statuses text[], p_manifests bigint[], p_has_version boolean,
                                       p_read_datasetids text[], p_read_dataids text[]) returns void
    language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    if p_has_version then
        perform dataflow.wait_for_readers(p_datasetids, p_dataids);
    end if;
    if p_datasetids is not null then
        perform dataflow.keep_runnable(p_datasetids, p_dataids, array_fill('NEW'::text, array[cardinality(p_dataids)]), p_statuses);
    end if;
    if p_has_version then
        perform dataflow.keep_answers(p_datasetids, p_dataids, '{}', p_manifests);
    end if;
    if p_read_datasetids is not null then
        perform dataflow.keep_readers(p_read_datasetids, p_read_dataids);
    end if;
end
$$;

-- Without settings of its own, which a claim of one chunk would pay for.
create function dataflow.after_insert() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    datasetids      text[];
    dataids         text[];
    statuses        text[];
    manifests       bigint[];
    has_version     boolean;
    read_datasetids text[];
    read_dataids    text[];
begin
    insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, new_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
    select n.datasetid, n.jobid, n.dataid, n.locktype, n.status, n.claim_id, n.attempt, n.run_id, n.manifest_id,
           coalesce(n.reason, nullif(current_setting('dataflow.reason', true), '')), session_user, current_setting('dataflow.actor', true)
      from new_rows n;
    if current_setting('dataflow.taking', true) = 'on' then
        return null;  -- a claim, which sees to the runnable set itself
    end if;
    select array_agg(n.datasetid) filter (where n.locktype = 'OUT'), array_agg(n.dataid) filter (where n.locktype = 'OUT'),
           array_agg(n.status) filter (where n.locktype = 'OUT'), array_agg(n.manifest_id) filter (where n.locktype = 'OUT'),
           bool_or(n.locktype = 'OUT' and (n.manifest_id is not null or n.status in ('READY', 'SKIPPED'))),
           array_agg(n.datasetid) filter (where n.locktype = 'IN' and n.manifest_id is null),
           array_agg(n.dataid) filter (where n.locktype = 'IN' and n.manifest_id is null)
      into datasetids, dataids, statuses, manifests, has_version, read_datasetids, read_dataids
      from new_rows n;
    perform dataflow.follow_insert(datasetids, dataids, statuses, manifests, has_version, read_datasetids, read_dataids);
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
    is_another      boolean;
    bad             text;
    published       bigint;
begin
    if not exists (select from new_rows) then
        return null;  -- an `insert ... on conflict do update` that only inserted
    end if;
    if current_setting('dataflow.publishing', true) = 'on' then
        -- A plain publication, which sees to all but the history itself.
        insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, new_status, claim_id, attempt, run_id, manifest_id,
                                          reason, login, actor)
        select n.datasetid, n.jobid, n.dataid, n.locktype, o.status, n.status, o.claim_id, n.attempt, n.run_id, n.manifest_id,
               nullif(current_setting('dataflow.reason', true), ''), session_user, current_setting('dataflow.actor', true)
          from new_rows n
          join old_rows o on o.datasetid = n.datasetid and o.jobid = n.jobid and o.dataid = n.dataid
                         and o.claim_id is not null and n.claim_id is null and n.status = 'READY';
        get diagnostics published = row_count;
        if published <> (select count(*) from new_rows) then
            raise exception 'dataflow.publishing is on, and this is no publication' using hint = 'reset dataflow.publishing';
        end if;
        return null;
    end if;
    -- A renewed lease is no change; all else is, though only some of it concerns others. Whoever changes a key has taken one row away and made another.
    with changed as (
        select coalesce(n.datasetid, o.datasetid) as datasetid, coalesce(n.jobid, o.jobid) as jobid,
               coalesce(n.dataid, o.dataid) as dataid, coalesce(n.locktype, o.locktype) as locktype, o.locktype as old_locktype,
               o.status as old_status, n.status, coalesce(n.claim_id, o.claim_id) as claim_id, coalesce(n.attempt, o.attempt) as attempt,
               coalesce(n.run_id, o.run_id) as run_id, o.manifest_id as old_manifest_id, n.manifest_id,
               -- The row may still have the reason of an older change.
               coalesce(case when n.reason is distinct from o.reason then n.reason end, nullif(current_setting('dataflow.reason', true), ''),
                        n.reason) as reason,
               -- For the producers and consumers of the chunk.
               case when o.locktype = 'OUT' then o.status else 'NEW' end as old_out_status,
               case when n.locktype = 'OUT' then n.status else 'GONE' end as out_status,
               (o.locktype = 'OUT' or n.locktype = 'OUT')
               and (n.status, n.locktype, n.manifest_id, n.claim_id, n.dataid) is distinct from
                   (o.status, o.locktype, o.manifest_id, o.claim_id, o.dataid) as is_out,
               -- Who was made from it is out of date, or no longer.
               n.manifest_id is distinct from o.manifest_id
               or n.status is distinct from o.status
                  and ('SKIPPED' in (n.status, o.status) or n.manifest_id is null and 'READY' in (n.status, o.status)) as is_another,
               n.locktype = 'OUT' and o.locktype = 'OUT' and n.status <> o.status
               and o.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
               and n.status in ('PENDING', 'RUNNING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED')
               and (not exists (select from dataflow.status_transition t where t.old_status = o.status and t.new_status = n.status)
                    -- A hold gives back what it held, and nothing else that looks as if the chunk had been made.
                    or o.status = 'HOLD' and n.status in ('PENDING', 'READY', 'FAILED') and n.status is distinct from o.held_status) as is_bad
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
    select array_agg(c.datasetid) filter (where c.is_out), array_agg(c.jobid) filter (where c.is_out),
           array_agg(c.dataid) filter (where c.is_out), array_agg(c.old_out_status) filter (where c.is_out),
           array_agg(c.out_status) filter (where c.is_out),
           array_agg(c.claim_id) filter (where c.is_out),
           array_agg(case when c.manifest_id is distinct from c.old_manifest_id then c.old_manifest_id end) filter (where c.is_out),
           array_agg(case when c.manifest_id is distinct from c.old_manifest_id then c.manifest_id end) filter (where c.is_out),
           array_agg(c.datasetid) filter (where c.old_locktype is distinct from c.locktype),
           array_agg(c.dataid) filter (where c.old_locktype is distinct from c.locktype),
           bool_or(c.is_out and c.is_another),
           min(format('%s/%s cannot go from %s to %s', c.datasetid, c.dataid, c.old_status, c.status)) filter (where c.is_bad)
      into datasetids, jobids, dataids, old_statuses, statuses, claim_ids, old_manifests, new_manifests, read_datasetids, read_dataids, is_another, bad
      from changed c;
    if bad is not null then
        raise exception '%', bad using errcode = 'DF001', hint = 'set RESUBMIT to run it again; unhold what is on hold';
    end if;
    if datasetids is null then
        return null;
    end if;

    if is_another then
        perform dataflow.wait_for_readers(datasetids, dataids);
    end if;
    perform dataflow.drop_in_rows(array_agg(c.jobid), array_agg(c.dataid), array_agg(c.claim_id))
       from unnest(jobids, dataids, claim_ids, statuses) as c(jobid, dataid, claim_id, status)
      where c.status is distinct from 'RUNNING' and c.status is distinct from 'PENDING';

    perform dataflow.keep_runnable(datasetids, dataids, old_statuses, statuses);
    if is_another then
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
    datasetids   text[];
    jobids       text[];
    dataids      text[];
    old_statuses text[];
    statuses     text[];
    claim_ids    bigint[];
    manifests    bigint[];
begin
    insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, old_status, claim_id, attempt, run_id, manifest_id, reason, login, actor)
    select o.datasetid, o.jobid, o.dataid, o.locktype, o.status, o.claim_id, o.attempt, o.run_id, o.manifest_id,
           nullif(current_setting('dataflow.reason', true), ''), session_user, current_setting('dataflow.actor', true)
      from old_rows o;

    perform dataflow.keep_readers(array_agg(o.datasetid), array_agg(o.dataid))
       from old_rows o where o.locktype = 'IN' and o.manifest_id is null having count(*) > 0;

    select array_agg(o.datasetid), array_agg(o.jobid), array_agg(o.dataid), array_agg(o.status), array_agg('GONE'::text), array_agg(o.claim_id),
           array_agg(o.manifest_id)
      into datasetids, jobids, dataids, old_statuses, statuses, claim_ids, manifests
      from old_rows o where o.locktype = 'OUT';
    if datasetids is not null then
        perform dataflow.wait_for_readers(datasetids, dataids);
        perform dataflow.drop_in_rows(jobids, dataids, claim_ids);
        perform dataflow.keep_runnable(datasetids, dataids, old_statuses, statuses);
        perform dataflow.keep_answers(datasetids, dataids, manifests, '{}');
        perform dataflow.keep_together(datasetids, jobids, dataids, statuses, claim_ids);
    end if;
    return null;
end
$$;
create trigger after_delete after delete on dataflow.datastatus
    referencing old table as old_rows for each statement execute function dataflow.after_delete();

create function dataflow.refuse_truncate() returns trigger language plpgsql as $$
begin
    raise exception '% is not truncated: the history and the runnable set would not follow', tg_table_name using hint = 'delete the rows';
end
$$;
create trigger refuse_truncate before truncate on dataflow.datastatus for each statement execute function dataflow.refuse_truncate();
