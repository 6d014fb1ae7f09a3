-- A ledger of release 0.1.0 with rows in every status, by pg_dump --schema=dataflow --inserts -O -x. Never edited.
--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: dataflow; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA dataflow;


--
-- Name: after_control_change(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_control_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'DELETE' then
        insert into dataflow.job_event (jobid, login, actor) values (old.jobid, session_user, current_setting('dataflow.actor', true));
    elsif tg_op = 'INSERT' or (new.concurrency, new.paused) is distinct from (old.concurrency, old.paused) then
        insert into dataflow.job_event (jobid, concurrency, paused, reason, login, actor)
        values (new.jobid, new.concurrency, new.paused, new.reason, session_user, current_setting('dataflow.actor', true));
        -- There may be work to do again.
        perform pg_notify('dataflow_runnable', new.jobid);
    end if;
    return null;
end
$$;


--
-- Name: after_dataset_change(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_dataset_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    jobids text[];
begin
    if tg_op = 'DELETE' then
        jobids := array(select distinct j.jobid from old_rows o join dataflow.job j on j.datasetid = o.datasetid);
    else
        jobids := array(select distinct j.jobid from new_rows n join dataflow.job j on j.datasetid = n.datasetid);
    end if;
    if cardinality(jobids) > 0 then
        perform dataflow.rebuild_runnable(jobids);
    end if;
    return null;
end
$$;


--
-- Name: after_delete(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: after_insert(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: after_job_change(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_job_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    loop_of text;
begin
    if tg_op = 'DELETE' then
        if not exists (select from old_rows) then
            return null;  -- a statement that changed nothing; a rebuild would lock everybody out for a moment
        end if;
    elsif not exists (select from new_rows) then
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


--
-- Name: after_listing(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_listing() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: after_policy_change(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_policy_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'INSERT' and (new.ordered or new.catch_up)
       or tg_op = 'UPDATE' and (new.ordered, new.catch_up) <> (old.ordered, old.catch_up) then
        perform dataflow.rebuild_runnable(array[new.jobid]);
    elsif tg_op = 'DELETE' and (old.ordered or old.catch_up) then
        perform dataflow.rebuild_runnable(array[old.jobid]);
    end if;
    return null;
end
$$;


--
-- Name: after_update(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.after_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: first_three(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.first_three(reasons text[]) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (cardinality(reasons) <= 3) THEN array_to_string(reasons, '; '::text) ELSE (array_to_string((reasons)[1:3], '; '::text) || format('; and %s more'::text, (cardinality(reasons) - 3))) END;


--
-- Name: is_day(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_day(day text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN ((day ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$'::text) AND (day >= '0001'::text)) THEN ((("right"(day, 2))::integer)::numeric <= EXTRACT(day FROM ((("left"(day, 8) || '01'::text))::date + '1 mon -1 days'::interval))) ELSE false END;


--
-- Name: has_dataid(jsonb, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.has_dataid(partitions jsonb, dataid text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (partitions IS NULL) THEN true WHEN ((partitions ->> 'kind'::text) = 'static'::text) THEN ((partitions -> 'keys'::text) ? dataid) WHEN ((partitions ->> 'kind'::text) = 'range'::text) THEN CASE WHEN (dataid ~ '^(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})$'::text) THEN (((split_part(dataid, '-'::text, 1))::bigint >= ((partitions ->> 'first'::text))::bigint) AND ((((split_part(dataid, '-'::text, 1))::bigint - ((partitions ->> 'first'::text))::bigint) % ((partitions ->> 'step'::text))::bigint) = 0) AND ((split_part(dataid, '-'::text, 1))::bigint <= ((partitions ->> 'last'::text))::bigint) AND ((split_part(dataid, '-'::text, 2))::bigint = LEAST((((split_part(dataid, '-'::text, 1))::bigint + ((partitions ->> 'step'::text))::bigint) - 1), ((partitions ->> 'last'::text))::bigint))) ELSE false END WHEN ((dataid COLLATE "C") < (partitions ->> 'first'::text)) THEN false WHEN ((dataid COLLATE "C") > (partitions ->> 'last'::text)) THEN false WHEN ((partitions ->> 'kind'::text) = 'hourly'::text) THEN ((dataid ~ '-([01][0-9]|2[0-3]):00$'::text) AND dataflow.is_day("left"(dataid, '-6'::integer))) WHEN (NOT dataflow.is_day(dataid)) THEN false WHEN ((partitions ->> 'kind'::text) = 'weekly'::text) THEN ((((dataid)::date - ((partitions ->> 'first'::text))::date) % 7) = 0) WHEN ((partitions ->> 'kind'::text) = 'monthly'::text) THEN ("right"(dataid, 2) = '01'::text) ELSE ((partitions ->> 'kind'::text) = 'daily'::text) END;


--
-- Name: is_its_day(text, text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_its_day(p_jobid text, p_dataid text, p_day text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
declare
    today text := (select to_char(now() at time zone d.timezone, 'YYYY-MM-DD') from dataflow.dataset d where d.datasetid = 'today');
begin
    return p_day = today
        or p_day < today
           and (exists (select from dataflow.job_policy p where p.jobid = p_jobid and p.catch_up)
                or exists (select from dataflow.job j
                            cross join lateral (select from dataflow.datastatus s
                                                 where s.datasetid = j.datasetid and s.jobid = j.jobid and s.dataid = p_dataid
                                                   and s.locktype = 'OUT' and s.status = 'RESUBMIT' offset 0) t
                            where j.jobid = p_jobid and j.itemtype = 'OUT'));
end
$$;


--
-- Name: is_name(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_name(name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((btrim(name) <> ''::text) AND (octet_length(name) <= 200) AND (name !~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]'::text));


--
-- Name: is_whole(text, text, bigint, timestamp with time zone, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_whole(p_locktype text, p_status text, p_claim_id bigint, p_lease_until timestamp with time zone, p_held_status text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    broken text;
begin
    broken := case when p_locktype not in ('IN', 'OUT') then 'locktype_is_in_or_out'
                   when p_claim_id is not null and p_status is distinct from 'RUNNING' then 'a_claim_is_running'
                   when p_locktype = 'OUT' and (p_claim_id is null) <> (p_lease_until is null) then 'an_out_claim_has_a_lease'
                   when p_held_status is not null and p_status is distinct from 'HOLD' then 'only_a_held_chunk_remembers' end;
    if broken is not null then
        raise exception 'datastatus: a row with locktype %, status %, claim %, lease until %, held status % cannot be: %',
                        p_locktype, p_status, p_claim_id, p_lease_until, p_held_status, replace(broken, '_', ' ')
            using errcode = 'check_violation', constraint = broken;
    end if;
    return true;
end
$$;


--
-- Name: natural_key(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.natural_key(dataid text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (CASE WHEN (dataid ~ '^[0-9]{1,20}$'::text) THEN lpad(dataid, 20, '0'::text) WHEN (dataid ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'::text) THEN ((((('0000000000000000'::text || "left"(dataid, 4)) || '-000000000000000000'::text) || substr(dataid, 6, 2)) || '-000000000000000000'::text) || "right"(dataid, 2)) WHEN (dataid ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}$'::text) THEN ((((((((('0000000000000000'::text || "left"(dataid, 4)) || '-000000000000000000'::text) || substr(dataid, 6, 2)) || '-000000000000000000'::text) || substr(dataid, 9, 2)) || '-000000000000000000'::text) || substr(dataid, 12, 2)) || ':000000000000000000'::text) || "right"(dataid, 2)) ELSE "left"(regexp_replace(regexp_replace(dataid, '[0-9]+'::text, '00000000000000000000\&'::text, 'g'::text), '[0-9]*([0-9]{20})'::text, '\1'::text, 'g'::text), 300) END COLLATE "C");


--
-- Name: must_wait(text[], text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.must_wait(p_turn text[], p_dataid text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (((p_turn)[1] <> p_dataid) AND (((p_turn)[2] = 'RUNNING'::text) OR (ROW(dataflow.natural_key((p_turn)[1]), ((p_turn)[1] COLLATE "C")) < ROW(dataflow.natural_key(p_dataid), (p_dataid COLLATE "C")))));


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: data_manifest; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.data_manifest (
    manifest_id bigint NOT NULL,
    datasetid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    jobid text NOT NULL COLLATE pg_catalog."C",
    claim_id bigint,
    run_id bigint,
    location text NOT NULL,
    files jsonb DEFAULT '[]'::jsonb NOT NULL,
    file_count integer GENERATED ALWAYS AS (jsonb_array_length(files)) STORED NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    row_count bigint,
    schema_hash text,
    content_digest text,
    checks jsonb DEFAULT '[]'::jsonb NOT NULL,
    inputs jsonb DEFAULT '[]'::jsonb NOT NULL,
    published timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT data_manifest_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT data_manifest_row_count_check CHECK ((row_count >= 0)),
    CONSTRAINT data_manifest_version_check CHECK ((version >= 1))
);


--
-- Name: TABLE data_manifest; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.data_manifest IS 'The immutable record of each published version of a chunk.';


--
-- Name: datastatus; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.datastatus (
    datasetid text NOT NULL COLLATE pg_catalog."C",
    jobid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    locktype text NOT NULL COLLATE pg_catalog."C",
    status text COLLATE pg_catalog."C",
    modified timestamp with time zone DEFAULT now() NOT NULL,
    claim_id bigint,
    lease_until timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    retries integer DEFAULT 0 NOT NULL,
    run_id bigint,
    manifest_id bigint,
    reason text,
    held_status text,
    CONSTRAINT a_row_is_whole CHECK (dataflow.is_whole(locktype, status, claim_id, lease_until, held_status))
)
WITH (fillfactor='80');


--
-- Name: TABLE datastatus; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.datastatus IS 'OUT: the producer''s row, a lock for everyone. IN: a consumer''s row, a lock for that Job alone.';


--
-- Name: newer_inputs(jsonb); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.newer_inputs(p_inputs jsonb) RETURNS TABLE(datasetid text, dataid text, used integer, current integer)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT i.datasetid,
     i.dataid,
     i.version,
     ( SELECT max(n.version) AS max
            FROM dataflow.data_manifest n
           WHERE (n.manifest_id = c.manifest_id)) AS max
    FROM (jsonb_to_recordset(newer_inputs.p_inputs) i(datasetid text, dataid text, manifest_id bigint, version integer)
      CROSS JOIN LATERAL ( SELECT bool_or(((NOT (s.manifest_id IS DISTINCT FROM i.manifest_id)) OR ((s.status = 'SKIPPED'::text) AND (i.manifest_id IS NULL)))) AS is_current,
             max(s.manifest_id) AS manifest_id
            FROM dataflow.datastatus s
           WHERE ((s.datasetid = i.datasetid) AND (s.dataid = i.dataid) AND (s.locktype = 'OUT'::text) AND ((s.manifest_id IS NOT NULL) OR (s.status = ANY (ARRAY['READY'::text, 'SKIPPED'::text]))))
          OFFSET 0) c)
   WHERE (NOT c.is_current);
END;


--
-- Name: other_inputs_of(text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.other_inputs_of(p_jobid text, p_dataid text) RETURNS TABLE(datasetid text, dataid text)
    LANGUAGE plpgsql STABLE ROWS 10
    AS $$
#variable_conflict use_column
begin
    return query
    select e.datasetid, e.input_dataid
      from dataflow.chunk_input e
      join dataflow.job j on j.jobid = e.jobid and j.datasetid = e.datasetid and j.itemtype = 'IN' and j.mapping = 'listed'
     where e.jobid = p_jobid and e.dataid = p_dataid and e.input_dataid <> ''
    union all
    select distinct j.datasetid, s.dataid
      from dataflow.job j
      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
     where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping = 'all'
     order by 1, 2;
end
$$;


--
-- Name: reason(text, text, text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.reason(problem text, p_jobid text, p_datasetid text, p_dataid text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
declare
    chunk text := p_datasetid || '/' || p_dataid;
    held  text;
    d     record;
    m     dataflow.data_manifest;
begin
    select format('%s (job %s, since %s%s%s)', coalesce(s.status, 'NULL'), s.jobid, to_char(s.modified, 'YYYY-MM-DD HH24:MI:SS'),
                  ', claim ' || s.claim_id, ', ' || s.reason)
      into held
      from dataflow.datastatus s
     where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
     -- The row that is the obstacle: for an input one that is not READY, for an output one that is not free.
     order by case when problem = 'TAKEN' then coalesce(s.status, '') in ('PENDING', 'RESUBMIT')
                   else coalesce(s.status, '') = 'READY' end
     limit 1;
    -- Not the whole row: a reader does not see the password in it.
    select t.timezone, t.schema_hash, t.location into d from dataflow.dataset t where t.datasetid = p_datasetid;
    select n.* into m
      from dataflow.datastatus s
      join dataflow.data_manifest n on n.manifest_id = s.manifest_id
     where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
     order by n.manifest_id desc
     limit 1;
    return case problem
        when 'ABSENT' then format('%s is not there; run its producer, or announce it', chunk)
        when 'NOT_READY' then format('%s is %s; wait for its producer, or resubmit it if it failed', chunk, held)
        when 'NOT_TODAY' then format('%s is not the current day in %s; wait for the day, or resubmit a day that is over', chunk, d.timezone)
        when 'UNREGISTERED' then format('DataSet %s is not registered; register it', p_datasetid)
        when 'NO_SUCH_PARTITION' then format('%s has no chunk %s in its partitions; use a dataid it has, or correct the partitions', p_datasetid, p_dataid)
        when 'NOT_ITS_MANIFEST' then format('%s points to a manifest that is not a version of it; resubmit it', chunk)
        when 'OLD_MANIFEST' then format('%s points to version %s, which is not its current one; resubmit it', chunk, m.version)
        when 'OTHER_SCHEMA' then format('%s has schema %s, declared is %s; resubmit it, or declare the new schema',
                                        chunk, coalesce(m.schema_hash, 'none'), d.schema_hash)
        when 'REPEATED' then format('%s has the same content as %s/%s; resubmit the wrong one, or allow repeats', chunk, p_datasetid,
                                    (select min(n.dataid) from dataflow.data_manifest n
                                       join dataflow.datastatus c on c.datasetid = n.datasetid and c.dataid = n.dataid and c.manifest_id = n.manifest_id
                                      where n.datasetid = m.datasetid and n.content_digest = m.content_digest and n.dataid <> m.dataid))
        when 'OUT_OF_DATE' then (
            select format('%s is out of date: made from %s/%s version %s, current is version %s; resubmit it', chunk, o.datasetid, o.dataid,
                          coalesce(o.used::text, 'of someone else'), coalesce(o.current::text, 'of someone else'))
              from dataflow.newer_inputs(m.inputs) o limit 1)
        when 'OUTSIDE' then format('%s is at %s, outside of its root %s; resubmit it in this environment', chunk, m.location, d.location)
        when 'NOTHING_THERE' then format('nothing is published for %s; wait for its producer', chunk)
        when 'FAILED_CHECK' then format('%s version %s failed a check; resubmit it', chunk, m.version)
        when 'NO_MANIFEST' then format('%s was made READY without a manifest, which %s refuses; resubmit it', chunk, p_datasetid)
        when 'LOCKED' then format('%s is %s; wait until it is released', chunk, held)
        when 'READING' then format('job %s reads %s already; wait for it, or resubmit its output', p_jobid, chunk)
        when 'TAKEN' then format('%s is %s; %s', chunk, held,
                                 case when held like 'RUNNING%' then 'wait for it, or resubmit it'
                                      when held like 'HOLD%' then 'unhold it' else 'resubmit it to run it again' end)
        when 'READ_IN_PLACE' then format('%s is being read in place by a consumer; wait for it', chunk)
    end;
end
$$;


--
-- Name: unlisted_input(text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.unlisted_input(p_jobid text, p_dataid text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (select min(j.datasetid)
              from dataflow.job j
             where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping <> 'equal'
               and not exists (select from dataflow.chunk_input e
                                where e.jobid = p_jobid and e.dataid = p_dataid and e.datasetid = j.datasetid)
               and not (j.mapping = 'all' and exists (select from dataflow.datastatus s
                                                       where s.datasetid = j.datasetid and s.locktype = 'OUT')));
end
$$;


--
-- Name: whose_turn(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.whose_turn(p_jobid text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (select array[e.dataid, case when e.is_running then 'RUNNING' end]
              from (select s.dataid, coalesce(s.status, '') = 'RUNNING' as is_running
                      from dataflow.job j
                      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
                                                and coalesce(s.status, '') not in ('READY', 'SKIPPED')
                     where j.jobid = p_jobid and j.itemtype = 'OUT'
                    union all
                    select r.dataid, false from dataflow.runnable r where r.jobid = p_jobid) e
             order by e.is_running desc, dataflow.natural_key(e.dataid), e.dataid
             limit 1);
end
$$;


--
-- Name: dataset; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.dataset (
    datasetid text NOT NULL COLLATE pg_catalog."C",
    hostname text,
    database text,
    schemaname text,
    tablename text,
    username text,
    encryptedpass text,
    modified timestamp with time zone DEFAULT now() NOT NULL,
    location text,
    partitions jsonb,
    schema_hash text,
    foreign_ready text DEFAULT 'trusted'::text NOT NULL,
    skipped_input text DEFAULT 'waits'::text NOT NULL,
    repeats boolean DEFAULT false NOT NULL,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    owner text,
    domain text,
    description text,
    CONSTRAINT dataset_foreign_ready_check CHECK ((foreign_ready = ANY (ARRAY['trusted'::text, 'refused'::text]))),
    CONSTRAINT dataset_id_is_a_name CHECK (dataflow.is_name(datasetid)),
    CONSTRAINT dataset_skipped_input_check CHECK ((skipped_input = ANY (ARRAY['waits'::text, 'passes'::text])))
);


--
-- Name: TABLE dataset; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.dataset IS 'A DataSet: a named, partitioned set of data. A row put here by plain SQL is external and trusted.';


--
-- Name: job; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job (
    jobid text NOT NULL COLLATE pg_catalog."C",
    itemtype text NOT NULL COLLATE pg_catalog."C",
    datasetid text COLLATE pg_catalog."C",
    itemvalue text,
    modified timestamp with time zone DEFAULT now() NOT NULL,
    mapping text DEFAULT 'equal'::text NOT NULL,
    CONSTRAINT job_dataset_id_is_a_name CHECK (dataflow.is_name(datasetid)),
    CONSTRAINT job_id_is_a_name CHECK (dataflow.is_name(jobid)),
    CONSTRAINT job_item_is_a_dataset_or_a_variable CHECK (((itemtype <> ALL (ARRAY['IN'::text, 'OUT'::text])) OR (datasetid IS NOT NULL))),
    CONSTRAINT job_mapping_check CHECK ((mapping = ANY (ARRAY['equal'::text, 'listed'::text, 'all'::text])))
);


--
-- Name: TABLE job; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job IS 'One row for each IN and OUT DataSet of a Job, and one for each of its environment variables (itemtype is the name).';


--
-- Name: job_policy; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job_policy (
    jobid text NOT NULL COLLATE pg_catalog."C",
    lease interval DEFAULT '00:10:00'::interval NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    retry_delay interval DEFAULT '00:00:00'::interval NOT NULL,
    retry_on text,
    ordered boolean DEFAULT false NOT NULL,
    cascade boolean DEFAULT false NOT NULL,
    catch_up boolean DEFAULT false NOT NULL,
    modified timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT job_policy_lease_check CHECK (((lease > '00:00:00'::interval) AND (lease <= '366 days'::interval))),
    CONSTRAINT job_policy_max_attempts_check CHECK ((max_attempts >= 1)),
    CONSTRAINT job_policy_retry_delay_check CHECK (((retry_delay >= '00:00:00'::interval) AND (retry_delay <= '366 days'::interval))),
    CONSTRAINT policy_job_id_is_a_name CHECK (dataflow.is_name(jobid)),
    CONSTRAINT retry_on_is_a_regular_expression CHECK ((((''::text ~ retry_on) IS NOT NULL) OR (retry_on IS NULL)))
);


--
-- Name: TABLE job_policy; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job_policy IS 'How a Job is run. A Job without a row here has the defaults.';


--
-- Name: ask(text, text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.ask(p_jobid text, p_dataids text[]) RETURNS TABLE(dataid text, ready text, right_data text, placed text, valid text, safe text, inputs jsonb, file_count bigint, is_runnable boolean, resubmit boolean, is_plain boolean)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 WITH job AS MATERIALIZED (
          SELECT (EXISTS ( SELECT
                    FROM dataflow.job t
                   WHERE ((t.jobid = ask.p_jobid) AND (t.mapping <> 'equal'::text)))) AS lists,
                 CASE
                     WHEN (EXISTS ( SELECT
                        FROM dataflow.job_policy t
                       WHERE ((t.jobid = ask.p_jobid) AND t.ordered))) THEN dataflow.whose_turn(ask.p_jobid)
                     ELSE NULL::text[]
                 END AS turn
         ), item AS MATERIALIZED (
          SELECT j.itemtype,
             j.datasetid,
             j.mapping,
             (d.datasetid IS NOT NULL) AS is_registered,
             d.location,
             d.partitions,
             d.schema_hash,
             d.foreign_ready,
             d.skipped_input,
             d.repeats
            FROM (dataflow.job j
              LEFT JOIN dataflow.dataset d ON ((d.datasetid = j.datasetid)))
           WHERE (j.jobid = ask.p_jobid)
         )
  SELECT chunk.dataid,
         CASE
             WHEN ((i.ready IS NOT NULL) OR (w.unlisted IS NOT NULL) OR (w.earlier IS NOT NULL)) THEN concat_ws('; '::text, dataflow.first_three(i.ready), (((((('no input chunks of '::text || w.unlisted) || ' are known for '::text) || ask.p_jobid) || '/'::text) || chunk.dataid) || '; plan the chunk'::text), (((('job '::text || ask.p_jobid) || ' is strictly ordered, and it is the turn of its chunk '::text) || w.earlier) || '; finish or skip that one first'::text))
             ELSE NULL::text
         END AS "case",
         CASE
             WHEN ((i.right_data IS NOT NULL) OR (o.right_data IS NOT NULL) OR (o.output_count = 0)) THEN concat_ws('; '::text, dataflow.first_three(i.right_data), dataflow.first_three(o.right_data),
             CASE
                 WHEN (o.output_count = 0) THEN format('job %s has no OUT DataSet; register one'::text, ask.p_jobid)
                 ELSE NULL::text
             END)
             ELSE NULL::text
         END AS "case",
     dataflow.first_three(i.placed) AS first_three,
     dataflow.first_three(i.valid) AS first_three,
         CASE
             WHEN ((o.safe IS NOT NULL) OR (i.safe IS NOT NULL)) THEN concat_ws('; '::text, dataflow.first_three(o.safe), dataflow.first_three(i.safe))
             ELSE NULL::text
         END AS "case",
     COALESCE(i.inputs, '[]'::jsonb) AS "coalesce",
     COALESCE(i.file_count, (0)::bigint) AS "coalesce",
     ((i.ready IS NULL) AND (w.unlisted IS NULL) AND (o.output_count > 0) AND (NOT o.is_taken) AND ((i.equal_count > 0) OR (o.row_count > 0))),
     COALESCE(o.resubmit, false) AS "coalesce",
     ((o.row_count = 0) AND COALESCE(i.is_pinned, true))
    FROM ((((unnest(ask.p_dataids) chunk(dataid)
      CROSS JOIN job)
      CROSS JOIN LATERAL ( SELECT
                 CASE
                     WHEN job.lists THEN dataflow.unlisted_input(ask.p_jobid, chunk.dataid)
                     ELSE NULL::text
                 END AS unlisted,
                 CASE
                     WHEN ((job.turn IS NOT NULL) AND dataflow.must_wait(job.turn, chunk.dataid)) THEN job.turn[1]
                     ELSE NULL::text
                 END AS earlier
          OFFSET 0) w)
      CROSS JOIN LATERAL ( SELECT sum(m.file_count) AS file_count,
             count(*) FILTER (WHERE (x.mapping = 'equal'::text)) AS equal_count,
             bool_and(COALESCE((m.location <> 'elsewhere'::text), false)) AS is_pinned,
             jsonb_agg(
                 CASE
                     WHEN (m.location = 'elsewhere'::text) THEN jsonb_build_object('datasetid', x.datasetid, 'dataid', x.dataid, 'manifest_id', m.manifest_id, 'version', m.version, 'in_place', true)
                     ELSE jsonb_build_object('datasetid', x.datasetid, 'dataid', x.dataid, 'manifest_id', m.manifest_id, 'version', m.version)
                 END) AS inputs,
             array_agg(dataflow.reason(a.ready, ask.p_jobid, x.datasetid, x.dataid)) FILTER (WHERE (a.ready IS NOT NULL)) AS ready,
             array_agg(dataflow.reason(a.right_data, ask.p_jobid, x.datasetid, x.dataid)) FILTER (WHERE (a.right_data IS NOT NULL)) AS right_data,
             array_agg(dataflow.reason(a.placed, ask.p_jobid, x.datasetid, x.dataid)) FILTER (WHERE (a.placed IS NOT NULL)) AS placed,
             array_agg(dataflow.reason(a.valid, ask.p_jobid, x.datasetid, x.dataid)) FILTER (WHERE (a.valid IS NOT NULL)) AS valid,
             array_agg(dataflow.reason(a.safe, ask.p_jobid, x.datasetid, x.dataid)) FILTER (WHERE (a.safe IS NOT NULL)) AS safe
            FROM (((( SELECT t.itemtype,
                     t.datasetid,
                     t.mapping,
                     t.is_registered,
                     t.location,
                     t.partitions,
                     t.schema_hash,
                     t.foreign_ready,
                     t.skipped_input,
                     t.repeats,
                     chunk.dataid
                    FROM item t
                   WHERE ((t.itemtype = 'IN'::text) AND (t.mapping = 'equal'::text))
                 UNION ALL
                  SELECT t.itemtype,
                     t.datasetid,
                     t.mapping,
                     t.is_registered,
                     t.location,
                     t.partitions,
                     t.schema_hash,
                     t.foreign_ready,
                     t.skipped_input,
                     t.repeats,
                     o_1.dataid
                    FROM (dataflow.other_inputs_of(ask.p_jobid, chunk.dataid) o_1(datasetid, dataid)
                      JOIN item t ON (((t.datasetid = o_1.datasetid) AND (t.itemtype = 'IN'::text))))
                   WHERE job.lists) x
              CROSS JOIN LATERAL ( SELECT count(*) AS row_count,
                     count(*) FILTER (WHERE (t.status = 'READY'::text)) AS ready_count,
                     count(*) FILTER (WHERE ((t.status = 'SKIPPED'::text) AND (x.skipped_input = 'passes'::text))) AS passing_count,
                     bool_or((COALESCE(t.status, ''::text) <> ALL (ARRAY['PENDING'::text, 'READY'::text, 'FAILED'::text, 'RESUBMIT'::text, 'SKIPPED'::text]))) AS is_locked,
                     max(t.manifest_id) FILTER (WHERE (t.status IS DISTINCT FROM 'SKIPPED'::text)) AS manifest_id
                    FROM dataflow.datastatus t
                   WHERE ((t.datasetid = x.datasetid) AND (t.dataid = x.dataid) AND (t.locktype = 'OUT'::text))) s)
              LEFT JOIN dataflow.data_manifest m ON ((m.manifest_id = s.manifest_id)))
              CROSS JOIN LATERAL ( SELECT
                         CASE
                             WHEN (s.row_count = 0) THEN 'ABSENT'::text
                             WHEN ((s.ready_count + s.passing_count) < s.row_count) THEN 'NOT_READY'::text
                             WHEN ((x.datasetid = 'today'::text) AND (NOT dataflow.is_its_day(ask.p_jobid, chunk.dataid, x.dataid))) THEN 'NOT_TODAY'::text
                             ELSE NULL::text
                         END AS ready,
                         CASE
                             WHEN (NOT x.is_registered) THEN 'UNREGISTERED'::text
                             WHEN ((x.partitions IS NOT NULL) AND (NOT dataflow.has_dataid(x.partitions, x.dataid))) THEN 'NO_SUCH_PARTITION'::text
                             WHEN (s.manifest_id IS NULL) THEN NULL::text
                             WHEN ((m.dataid IS DISTINCT FROM x.dataid) OR (m.datasetid IS DISTINCT FROM x.datasetid)) THEN 'NOT_ITS_MANIFEST'::text
                             WHEN (EXISTS ( SELECT
                                FROM dataflow.data_manifest n
                               WHERE ((n.datasetid = m.datasetid) AND (n.dataid = m.dataid) AND (n.version > m.version)))) THEN 'OLD_MANIFEST'::text
                             WHEN ((x.schema_hash IS NOT NULL) AND (m.schema_hash IS DISTINCT FROM x.schema_hash)) THEN 'OTHER_SCHEMA'::text
                             WHEN ((m.content_digest IS NOT NULL) AND (NOT x.repeats) AND (EXISTS ( SELECT
                                FROM (dataflow.data_manifest n
                                  CROSS JOIN LATERAL ( SELECT
                                        FROM dataflow.datastatus c_1
                                       WHERE ((c_1.datasetid = n.datasetid) AND (c_1.dataid = n.dataid) AND (c_1.locktype = 'OUT'::text) AND (c_1.manifest_id = n.manifest_id))
                                      OFFSET 0) c)
                               WHERE ((n.datasetid = m.datasetid) AND (n.content_digest = m.content_digest) AND (n.dataid <> m.dataid))))) THEN 'REPEATED'::text
                             WHEN ((m.inputs <> '[]'::jsonb) AND (EXISTS ( SELECT
                                FROM dataflow.newer_inputs(m.inputs) newer_inputs(datasetid, dataid, used, current)))) THEN 'OUT_OF_DATE'::text
                             ELSE NULL::text
                         END AS right_data,
                         CASE
                             WHEN (s.passing_count > 0) THEN NULL::text
                             WHEN (m.manifest_id IS NULL) THEN
                             CASE
                                 WHEN (s.ready_count = 0) THEN 'NOTHING_THERE'::text
                                 ELSE NULL::text
                             END
                             WHEN (NOT starts_with(m.location, (x.location || '/'::text))) THEN 'OUTSIDE'::text
                             ELSE NULL::text
                         END AS placed,
                         CASE
                             WHEN (s.passing_count > 0) THEN NULL::text
                             WHEN (m.manifest_id IS NULL) THEN
                             CASE
                                 WHEN (s.ready_count = 0) THEN 'NOTHING_THERE'::text
                                 WHEN (x.foreign_ready = 'refused'::text) THEN 'NO_MANIFEST'::text
                                 ELSE NULL::text
                             END
                             WHEN ((m.checks <> '[]'::jsonb) AND (m.checks @> '[{"passed": false}]'::jsonb)) THEN 'FAILED_CHECK'::text
                             ELSE NULL::text
                         END AS valid,
                         CASE
                             WHEN s.is_locked THEN 'LOCKED'::text
                             WHEN (EXISTS ( SELECT
                                FROM dataflow.datastatus l
                               WHERE ((l.datasetid = x.datasetid) AND (l.jobid = ask.p_jobid) AND (l.dataid = x.dataid) AND (l.locktype = 'IN'::text) AND ((x.mapping = 'equal'::text) OR (l.claim_id IS NULL))))) THEN 'READING'::text
                             ELSE NULL::text
                         END AS safe
                  OFFSET 0) a)) i)
      CROSS JOIN LATERAL ( SELECT count(*) AS output_count,
             count(s.dataid) AS row_count,
             COALESCE(bool_or((a.safe = 'TAKEN'::text)), false) AS is_taken,
             bool_or((s.status = 'RESUBMIT'::text)) AS resubmit,
             array_agg(dataflow.reason(a.right_data, ask.p_jobid, t.datasetid, chunk.dataid)) FILTER (WHERE (a.right_data IS NOT NULL)) AS right_data,
             array_agg(dataflow.reason(a.safe, ask.p_jobid, t.datasetid, chunk.dataid)) FILTER (WHERE (a.safe IS NOT NULL)) AS safe
            FROM ((item t
              LEFT JOIN LATERAL ( SELECT s_1.datasetid,
                     s_1.jobid,
                     s_1.dataid,
                     s_1.locktype,
                     s_1.status,
                     s_1.modified,
                     s_1.claim_id,
                     s_1.lease_until,
                     s_1.attempt,
                     s_1.retries,
                     s_1.run_id,
                     s_1.manifest_id,
                     s_1.reason,
                     s_1.held_status
                    FROM dataflow.datastatus s_1
                   WHERE ((s_1.datasetid = t.datasetid) AND (s_1.dataid = chunk.dataid) AND (s_1.locktype = 'OUT'::text))
                  OFFSET 0) s ON (true))
              CROSS JOIN LATERAL ( SELECT
                         CASE
                             WHEN (NOT t.is_registered) THEN 'UNREGISTERED'::text
                             WHEN ((t.partitions IS NOT NULL) AND (NOT dataflow.has_dataid(t.partitions, chunk.dataid))) THEN 'NO_SUCH_PARTITION'::text
                             ELSE NULL::text
                         END AS right_data,
                         CASE
                             WHEN ((s.dataid IS NOT NULL) AND (COALESCE(s.status, ''::text) <> ALL (ARRAY['PENDING'::text, 'RESUBMIT'::text]))) THEN 'TAKEN'::text
                             WHEN (EXISTS ( SELECT
                                FROM dataflow.datastatus l
                               WHERE ((l.datasetid = t.datasetid) AND (l.dataid = chunk.dataid) AND (l.locktype = 'IN'::text) AND (l.manifest_id IS NULL)))) THEN 'READ_IN_PLACE'::text
                             ELSE NULL::text
                         END AS safe
                  OFFSET 0) a)
           WHERE (t.itemtype = 'OUT'::text)) o);
END;


--
-- Name: claimed_inputs(text, text, bigint); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.claimed_inputs(p_jobid text, p_dataid text, p_claim_id bigint) RETURNS TABLE(datasetid text, dataid text)
    LANGUAGE plpgsql STABLE ROWS 10
    AS $$
#variable_conflict use_column
begin
    return query
    select i.datasetid, i.dataid
      from dataflow.verdict v
     cross join lateral jsonb_to_recordset(v.inputs) as i(datasetid text, dataid text)
     where v.jobid = p_jobid and v.dataid = p_dataid and v.claim_id = p_claim_id;
end
$$;


--
-- Name: code_of(text, text, text, text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.code_of(ready text, right_data text, placed text, valid text, safe text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (ready IS NOT NULL) THEN 'DATA_NOT_READY'::text WHEN (right_data IS NOT NULL) THEN 'WRONG_DATA'::text WHEN (placed IS NOT NULL) THEN 'INVALID_PATH'::text WHEN (valid IS NOT NULL) THEN 'NOT_VALIDATED'::text WHEN (safe IS NOT NULL) THEN 'LOCKED'::text ELSE NULL::text END;


--
-- Name: consumers_of(text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.consumers_of(p_datasetids text[], p_dataids text[]) RETURNS TABLE(jobid text, dataid text)
    LANGUAGE plpgsql STABLE
    AS $$
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


--
-- Name: content_lock(text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.content_lock(p_datasetid text, p_content_digest text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hashtextextended(((p_datasetid || ' '::text) || p_content_digest), (0)::bigint);


--
-- Name: drop_in_rows(text[], text[], bigint[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.drop_in_rows(p_jobids text[], p_dataids text[], p_claim_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    jobids           text[];
    dataids          text[];
    input_datasetids text[];
    input_dataids    text[];
    are_equal        boolean[];
    places           tid[];
begin
    select array_agg(x.jobid), array_agg(x.dataid), array_agg(x.input_datasetid), array_agg(x.input_dataid), array_agg(x.is_equal),
           array_agg(i.place)
      into jobids, dataids, input_datasetids, input_dataids, are_equal, places
      from (select c.jobid collate "C" as jobid, c.dataid, j.datasetid as input_datasetid, c.dataid collate "C" as input_dataid, true as is_equal
              from unnest(p_jobids, p_dataids) as c(jobid, dataid)
             cross join lateral (select t.datasetid from dataflow.job t
                                  where t.jobid = c.jobid and t.itemtype = 'IN' and t.mapping = 'equal' offset 0) j
            union all
            select c.jobid collate "C", c.dataid, o.datasetid collate "C", o.dataid collate "C", false
              from unnest(p_jobids, p_dataids, p_claim_ids) as c(jobid, dataid, claim_id)
             cross join lateral (select * from dataflow.other_inputs_of(c.jobid, c.dataid)
                                 union all
                                 select * from dataflow.claimed_inputs(c.jobid, c.dataid, c.claim_id)) o
             where exists (select from dataflow.job j where j.jobid = c.jobid and j.mapping <> 'equal')
             order by 1, 3, 4) x
     cross join lateral (select s.ctid as place from dataflow.datastatus s
                          where s.datasetid = x.input_datasetid and s.jobid = x.jobid and s.dataid = x.input_dataid and s.locktype = 'IN'
                            for update) i;
    if places is null then
        return;
    end if;
    delete from dataflow.datastatus
     where ctid = any (array(
           select c.place
             from unnest(jobids, dataids, input_datasetids, input_dataids, are_equal, places)
                  as c(jobid, dataid, input_datasetid, input_dataid, is_equal, place)
            where c.is_equal or not dataflow.is_shared(c.jobid, c.dataid, c.input_datasetid, c.input_dataid)));
end
$$;


--
-- Name: drop_versions(text, integer, interval, interval, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.drop_versions(p_datasetid text, p_versions integer, p_time interval, p_grace interval, p_by text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    decided bigint;
begin
    perform pg_advisory_xact_lock(dataflow.sweep_lock(p_datasetid));
    insert into dataflow.version_sweep (manifest_id, by)
    select m.manifest_id, p_by from dataflow.versions_to_drop(p_datasetid, p_versions, p_time, p_grace) m
        on conflict do nothing;
    get diagnostics decided = row_count;
    return decided;
end
$$;


--
-- Name: follow_insert(text[], text[], text[], bigint[], boolean, text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.follow_insert(p_datasetids text[], p_dataids text[], p_statuses text[], p_manifests bigint[], p_has_version boolean, p_read_datasetids text[], p_read_dataids text[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: is_news(text, text, text, text, text, text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_news(p_jobid text, p_dataid text, p_ready text, p_right_data text, p_placed text, p_valid text, p_safe text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return not exists (
        select from (select * from dataflow.verdict v
                      where v.jobid = p_jobid and v.dataid = p_dataid order by v.verdict_id desc limit 1) l
         where l.claim_id is null
           and row (l.ready, l.right_data, l.placed, l.valid, l.safe)
               is not distinct from row (p_ready, p_right_data, p_placed, p_valid, p_safe));
end
$$;


--
-- Name: is_shared(text, text, text, text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.is_shared(p_jobid text, p_dataid text, p_input_datasetid text, p_input_dataid text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return exists (select from dataflow.job o
                    cross join lateral (select t.dataid, t.claim_id from dataflow.datastatus t
                                         where t.datasetid = o.datasetid and t.jobid = o.jobid and t.locktype = 'OUT'
                                           and t.claim_id is not null and t.dataid <> p_dataid offset 0) s
                    cross join lateral dataflow.claimed_inputs(p_jobid, s.dataid, s.claim_id) x
                    where o.jobid = p_jobid and o.itemtype = 'OUT' and x.datasetid = p_input_datasetid and x.dataid = p_input_dataid);
end
$$;


--
-- Name: keep_answers(text[], text[], bigint[], bigint[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_answers(p_datasetids text[], p_dataids text[], p_old_manifest_ids bigint[], p_new_manifest_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: keep_modified(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_modified() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.modified := now();
    return new;
end
$$;


--
-- Name: keep_readers(text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_readers(p_datasetids text[], p_dataids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: keep_row(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_row() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: keep_runnable(text[], text[], text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_runnable(p_datasetids text[], p_dataids text[], p_old_statuses text[], p_statuses text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: keep_terms(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_terms() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    jobids text[] := array[old.jobid, new.jobid];
begin
    if tg_table_name = 'job' then
        -- Who produces what is consumed in another way now.
        jobids := jobids || array(select o.jobid from dataflow.job o where o.itemtype = 'OUT' and o.datasetid in (old.datasetid, new.datasetid));
    end if;
    delete from dataflow.job_terms t
     where t.jobid = any (jobids) and not exists (select from dataflow.job j where j.jobid = t.jobid);
    insert into dataflow.job_terms as t
    select n.* from dataflow.terms_now n where n.jobid = any (jobids) order by n.jobid
        on conflict (jobid) do update
       set lease = excluded.lease, outputs = excluded.outputs, is_plain = excluded.is_plain, is_ordered = excluded.is_ordered,
           is_steered = excluded.is_steered
     where (t.lease, t.outputs, t.is_plain, t.is_ordered, t.is_steered)
           is distinct from (excluded.lease, excluded.outputs, excluded.is_plain, excluded.is_ordered, excluded.is_steered);
    return null;
end
$$;


--
-- Name: keep_together(text[], text[], text[], text[], bigint[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_together(p_datasetids text[], p_jobids text[], p_dataids text[], p_statuses text[], p_claim_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: keep_turns(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.keep_turns(p_jobids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: offer(text, text, text[], bigint[], integer[], jsonb[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.offer(p_jobid text, p_datasetid text, p_dataids text[], p_manifest_ids bigint[], p_file_counts integer[], p_inputs jsonb[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    input    record;
    consumer record;
    is_new   boolean;
    doubtful text[];
    asked    text[] := '{}';
begin
    -- In order, so that one who waits for them never waits for us in a circle.
    for input in select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'IN' order by 1 loop
        delete from dataflow.datastatus s
         where s.datasetid = input.datasetid and s.jobid = p_jobid and s.dataid = any (p_dataids) and s.locktype = 'IN';
    end loop;

    for consumer in
        select j.jobid,
               not coalesce(p.ordered, false) and j.datasetid <> 'today'
               and exists (select from dataflow.job o where o.jobid = j.jobid and o.itemtype = 'OUT')
               and not exists (select from dataflow.job i where i.jobid = j.jobid and i.itemtype = 'IN' and i.datasetid <> j.datasetid) as is_plain
          from dataflow.job j
          left join dataflow.job_policy p on p.jobid = j.jobid
         where j.datasetid = p_datasetid and j.itemtype = 'IN'
         -- Others wait for the turn of an ordered Job before they touch the runnable set.
         order by coalesce(p.ordered, false) desc, j.jobid
    loop
        doubtful := p_dataids;
        if consumer.is_plain then
            begin
                -- Put in by one statement, looked at by the next: settle_runnable says why.
                insert into dataflow.runnable (jobid, dataid, sort_key, inputs, file_count, is_plain)
                select consumer.jobid, c.dataid, dataflow.natural_key(c.dataid),
                       jsonb_build_array(jsonb_build_object('datasetid', p_datasetid, 'dataid', c.dataid, 'manifest_id', c.manifest_id, 'version', 1)),
                       c.file_count, true
                  from unnest(p_dataids, p_manifest_ids, p_file_counts) as c(dataid, manifest_id, file_count)
                 order by c.dataid;
                is_new := true;
            exception
                when unique_violation then
                    is_new := false;  -- one of them was there. `on conflict` would cost all the others a fifth.
            end;
            if is_new then
                select array_agg(distinct d.dataid) into doubtful from (
                    -- Somebody else makes this chunk, too.
                    select s.dataid from dataflow.datastatus s
                     where s.datasetid = p_datasetid and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.jobid <> p_jobid
                    union all
                    -- It was made from what is not current any more.
                    select c.dataid from unnest(p_dataids, p_inputs) as c(dataid, inputs)
                     where c.inputs <> '[]' and exists (select from dataflow.newer_inputs(c.inputs))
                    union all
                    -- The consumer reads it already.
                    select s.dataid from dataflow.datastatus s
                     where s.datasetid = p_datasetid and s.jobid = consumer.jobid and s.dataid = any (p_dataids) and s.locktype = 'IN'
                    union all
                    -- What the consumer would make is planned or there,
                    select s.dataid from dataflow.job o join dataflow.datastatus s on s.datasetid = o.datasetid
                     where o.jobid = consumer.jobid and o.itemtype = 'OUT' and s.dataid = any (p_dataids) and s.locktype = 'OUT'
                    union all
                    -- or is read in place.
                    select s.dataid from dataflow.job o join dataflow.datastatus s on s.datasetid = o.datasetid
                     where o.jobid = consumer.jobid and o.itemtype = 'OUT' and s.dataid = any (p_dataids) and s.locktype = 'IN'
                       and s.manifest_id is null
                    union all
                    -- A DataSet of the consumer is not registered, or has no such chunk.
                    select c.dataid
                      from dataflow.job i
                      left join dataflow.dataset t on t.datasetid = i.datasetid
                     cross join unnest(p_dataids) as c(dataid)
                     where i.jobid = consumer.jobid and i.itemtype in ('IN', 'OUT')
                       and (t.datasetid is null or t.partitions is not null and not dataflow.has_dataid(t.partitions, c.dataid))) d;
            end if;
        end if;
        if doubtful is not null then
            perform dataflow.settle_runnable(array_fill(consumer.jobid, array[cardinality(doubtful)]), doubtful);
            asked := asked || doubtful;
        end if;
        if cardinality(doubtful) is distinct from cardinality(p_dataids) then
            perform pg_notify('dataflow_runnable', consumer.jobid);
        end if;
    end loop;
    if cardinality(asked) > 0 then
        -- Perhaps something was made from what somebody else had put in their place before.
        perform dataflow.keep_answers(array_fill(p_datasetid, array[cardinality(asked)]), asked, '{}', '{}');
    end if;
end
$$;


--
-- Name: publish(json); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.publish(p_outputs json) RETURNS json
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
#variable_conflict use_column
declare
    datasetids   text[];
    jobids       text[];
    dataids      text[];
    claim_ids    bigint[];
    run_ids      bigint[];
    manifests    jsonb[];
    places       tid[];
    manifest_ids bigint[];
    file_counts  integer[];
    inputs       jsonb[];
    versions     integer[];
    refused      json;
    digests      text[];
    are_repeated boolean;
    is_plain     boolean;
    locked       bigint;
    ready        bigint;
    setting      text;
begin
    -- Whoever changes the registry waits here for us, and then asks again about what we have published.
    lock table dataflow.datastatus in row exclusive mode;

    -- Locked in one statement and used in the next, which sees what others did while we waited. From here on the rows are
    -- ours, and stay in their places. The outputs of a claim are published together, or not at all.
    with given as materialized (
        select (u.manifest ->> 'datasetid') collate "C" as datasetid, (u.manifest ->> 'jobid') collate "C" as jobid,
               (u.manifest ->> 'dataid') collate "C" as dataid, coalesce((u.manifest -> 'claim_id')::bigint, 0) as claim_id, u.manifest
          -- Each by itself: a jsonb of all would have no room for the files of some hundred large chunks.
          from (select e.one::jsonb as manifest from json_array_elements(p_outputs) as e(one) offset 0) u
         order by 1, 2, 3
    )
    select array_agg(g.datasetid), array_agg(g.jobid), array_agg(g.dataid), array_agg(g.claim_id), array_agg(g.manifest), array_agg(s.run_id),
           array_agg(s.place)
      into datasetids, jobids, dataids, claim_ids, manifests, run_ids, places
      from given g
      left join lateral (select t.run_id, t.ctid as place from dataflow.datastatus t
                          where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                            and t.status = 'RUNNING' and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                            for update) s on true;

    -- Who publishes the same content waits for us, and the next statement sees what we have waited for.
    select count(pg_advisory_xact_lock(d.key)), array_agg(d.digest), bool_or(d.chunks > 1)
      into locked, digests, are_repeated
      from (select dataflow.content_lock(c.datasetid, c.digest) as key, c.digest, count(*) as chunks
              from (select u.datasetid, u.manifest ->> 'content_digest' as digest
                      from unnest(datasetids, manifests) as u(datasetid, manifest) offset 0) c
             where c.digest is not null group by 1, 2 order by 1) d;

    with given as materialized (
        select g.*, d.location as root, d.schema_hash as declared, 1 + coalesce(v.newest, 0) as version,
               case when g.place is null then 'LOST'
                    when not starts_with(g.manifest ->> 'location', d.location || '/') then 'OUTSIDE'
                    when d.schema_hash is not null and g.manifest ->> 'schema_hash' is distinct from d.schema_hash then 'OTHER_SCHEMA'
                    when g.manifest ->> 'location' = any (v.locations) and g.manifest ->> 'location' <> 'elsewhere' then 'SAME_PLACE' end as problem
          from unnest(datasetids, jobids, dataids, claim_ids, run_ids, manifests, places)
               as g(datasetid, jobid, dataid, claim_id, run_id, manifest, place)
          left join dataflow.dataset d on d.datasetid = g.datasetid
          left join (select m.datasetid, m.dataid, max(m.version) as newest, array_agg(m.location) as locations
                       from dataflow.data_manifest m
                      where m.datasetid = any (datasetids) and m.dataid = any (dataids)
                      group by m.datasetid, m.dataid) v on v.datasetid = g.datasetid and v.dataid = g.dataid
    ), fitting as materialized (
        -- Numbered here, so that nobody needs to look for them among the new manifests.
        select g.*, nextval('dataflow.data_manifest_manifest_id_seq') as manifest_id,
               coalesce((select v.inputs from dataflow.verdict v
                          where v.jobid = g.jobid and v.dataid = g.dataid and v.claim_id = g.claim_id limit 1), '[]') as inputs
          from given g
         where g.claim_id <> all (array(select b.claim_id from given b where b.problem is not null))
    ), made as (
        insert into dataflow.data_manifest (manifest_id, datasetid, dataid, version, jobid, claim_id, run_id, location, files, bytes, row_count,
                                            schema_hash, content_digest, checks, inputs) overriding system value
        select f.manifest_id, f.datasetid, f.dataid, f.version, f.jobid, f.claim_id, f.run_id, f.manifest ->> 'location', f.manifest -> 'files',
               (f.manifest ->> 'bytes')::bigint, (f.manifest ->> 'row_count')::bigint, f.manifest ->> 'schema_hash',
               f.manifest ->> 'content_digest', f.manifest -> 'checks', f.inputs
          from fitting f
    )
    select array_agg(f.datasetid), array_agg(f.jobid), array_agg(f.dataid), array_agg(f.claim_id), array_agg(f.place), array_agg(f.manifest_id),
           array_agg(f.version),
           array_agg(jsonb_array_length(f.manifest -> 'files')), array_agg(f.inputs),
           (select json_agg(json_build_object('claim_id', g.claim_id, 'datasetid', g.datasetid, 'problem', g.problem, 'root', g.root,
                                              'declared', g.declared))
              from given g where g.problem is not null and g.claim_id <> all (array(select l.claim_id from given l where l.problem = 'LOST'))),
           -- First versions, each valid, in a place of its own and with a content that no other chunk has.
           bool_and(f.version = 1 and f.manifest ->> 'location' <> 'elsewhere' and not f.manifest -> 'checks' @> '[{"passed": false}]')
           and are_repeated is not true
           and not exists (select from dataflow.data_manifest n where n.datasetid = any (datasetids) and n.content_digest = any (digests))
      into datasetids, jobids, dataids, claim_ids, places, manifest_ids, versions, file_counts, inputs, refused, is_plain
      from fitting f;

    -- All of one Job that has one output, and consumers that need the chunk of the same name.
    is_plain := is_plain
                and jobids[1] = all (jobids) and datasetids[1] = all (datasetids)
                and exists (select from dataflow.job_terms t where t.jobid = jobids[1] and t.is_plain and t.outputs = datasetids[1:1]);
    if is_plain then
        -- It does for its own chunks what the triggers would find out from the changed rows.
        setting := set_config('dataflow.publishing', 'on', true);
    end if;
    update dataflow.datastatus s
       set status = 'READY', manifest_id = m.manifest_id, claim_id = null, lease_until = null, retries = 0, reason = null, modified = now()
      from unnest(places, manifest_ids) as m(place, manifest_id)
     where s.ctid = m.place;
    get diagnostics ready = row_count;
    if ready <> coalesce(cardinality(places), 0) then
        raise exception 'publish made % of % chunks READY', ready, cardinality(places);
    end if;
    if is_plain then
        setting := set_config('dataflow.publishing', '', true);
        perform dataflow.offer(jobids[1], datasetids[1], dataids, manifest_ids, file_counts, inputs);
    end if;
    return json_build_object('claim_ids', coalesce(claim_ids, '{}'), 'datasetids', coalesce(datasetids, '{}'),
                             'manifest_ids', coalesce(manifest_ids, '{}'), 'versions', coalesce(versions, '{}'), 'refused', coalesce(refused, '[]'));
end
$$;


--
-- Name: rebuild_runnable(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.rebuild_runnable(p_jobids text[] DEFAULT NULL::text[], OUT added bigint, OUT removed bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: record_definition(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.record_definition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    id       text  := tg_argv[0];
    was      jsonb := to_jsonb(old);
    is_now   jsonb := to_jsonb(new);
    password boolean := was -> 'encryptedpass' is distinct from is_now -> 'encryptedpass'
                        and coalesce(was ->> 'encryptedpass', is_now ->> 'encryptedpass') is not null;
    named    text  := coalesce(is_now, was) ->> id;
begin
    was := was - array['encryptedpass', 'modified'];
    is_now := is_now - array['encryptedpass', 'modified'];
    if tg_op = 'UPDATE' then
        if was = is_now and not password then
            return null;
        end if;
        select coalesce(jsonb_object_agg(w.key, w.value), '{}'), coalesce(jsonb_object_agg(w.key, is_now -> w.key), '{}')
          into was, is_now
          from jsonb_each(was) w where w.value is distinct from is_now -> w.key;
    end if;
    insert into dataflow.registry_event (relation, name, before, after, password_changed, reason, login, actor)
    values (tg_table_name, named, was, is_now, password, nullif(current_setting('dataflow.reason', true), ''),
            session_user, current_setting('dataflow.actor', true));
    return null;
end
$$;


--
-- Name: refuse_change(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception '% is never changed', tg_table_name using hint = 'publish a new version';
end
$$;


--
-- Name: refuse_stale(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.refuse_stale(p_dataids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    raise exception 'the answers about these chunks do not stand any more' using errcode = 'DF003', detail = to_json(p_dataids)::text;
end
$$;


--
-- Name: refuse_swept(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.refuse_swept() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock_shared(dataflow.sweep_lock(new.datasetid));
    if exists (select from dataflow.data_manifest m join dataflow.version_sweep w on w.manifest_id = m.manifest_id
                where m.datasetid = new.datasetid and m.dataid = new.dataid and m.location = new.location) then
        raise exception 'the files at % were swept', new.location using hint = 'choose a newer version, or resubmit the chunk';
    end if;
    return new;
end
$$;


--
-- Name: refuse_truncate(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.refuse_truncate() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception '% is not truncated: the history and the runnable set would not follow', tg_table_name using hint = 'delete the rows';
end
$$;


--
-- Name: room(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.room(p_jobid text, OUT concurrency integer, OUT paused timestamp with time zone, OUT reason text, OUT running bigint, OUT free bigint) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    select c.concurrency, c.paused, c.reason into concurrency, paused, reason from dataflow.job_control c where c.jobid = p_jobid;
    if concurrency is not null then
        perform pg_advisory_xact_lock(hashtext('dataflow room'), hashtext(p_jobid));
    end if;
    -- The outputs of a chunk are claimed together.
    select coalesce(max(o.running), 0) into running
      from (select count(s.claim_id) as running
              from dataflow.job j
              join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT' and s.claim_id is not null and s.jobid = p_jobid
             where j.jobid = p_jobid and j.itemtype = 'OUT' group by j.datasetid) o;
    free := case when paused is not null then 0 when concurrency is not null then greatest(concurrency - running, 0) end;
end
$$;


--
-- Name: settle_runnable(text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.settle_runnable(p_jobids text[], p_dataids text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: sweep_lock(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.sweep_lock(p_datasetid text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hashtextextended(('sweep '::text || p_datasetid), (0)::bigint);


--
-- Name: take(text, text[], integer, bigint, boolean); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.take(p_jobid text, p_names text[], p_count integer, p_run_id bigint, p_with_files boolean) RETURNS json
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    job         record;
    lease_until timestamptz;
    most        bigint;
    places      tid[];
    dataids     text[];
    pins        jsonb[];
    claim_ids   bigint[];
    have_files  boolean;
    pin_count   bigint;
    is_plain    boolean;
    added       bigint;
    attempts    integer[];
    setting     text;
begin
    -- Others lock datastatus first and the runnable row after it. We give way before Postgres calls that a deadlock
    -- and chooses its victim: a statement that somebody typed is never given up for our claim.
    setting := set_config('lock_timeout', '200ms', true);
    select t.* into job from dataflow.job_terms t where t.jobid = p_jobid;
    if job.is_ordered then
        perform dataflow.wait_for_turns(array[p_jobid]);
        p_count := least(p_count, 1);
    end if;
    if job.is_steered then
        most := (dataflow.room(p_jobid)).free;
    end if;
    if p_names is null then
        select array_agg(r.ctid), array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), bool_or(r.file_count > 0),
               sum(jsonb_array_length(r.inputs)), bool_and(r.is_plain)
          into places, dataids, pins, claim_ids, have_files, pin_count, is_plain
          from (select t.ctid, t.dataid, t.inputs, t.file_count, t.is_plain
                  from dataflow.runnable t
                 where t.jobid = p_jobid and t.blocked is null
                 order by t.resubmit desc, t.sort_key, t.dataid
                 limit least(p_count, most)
                   for update skip locked) r;
    else
        select array_agg(r.ctid), array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), bool_or(r.file_count > 0),
               sum(jsonb_array_length(r.inputs)), bool_and(r.is_plain)
          into places, dataids, pins, claim_ids, have_files, pin_count, is_plain
          from dataflow.runnable r
         where r.jobid = p_jobid and r.dataid = any (p_names) and r.blocked is null;
    end if;
    if dataids is null then
        return null;
    elsif have_files and not p_with_files then
        raise exception 'the inputs of job % have files', p_jobid using errcode = 'DF004';
    elsif job.is_ordered and (cardinality(dataids) > 1 or dataflow.must_wait(dataflow.whose_turn(p_jobid), dataids[1])) then
        perform dataflow.refuse_stale(dataids);
    end if;
    delete from dataflow.runnable r where r.ctid = any (places);

    lease_until := now() + job.lease;
    if is_plain and job.is_plain then
        -- It does for its own chunks what the triggers would find out from the new rows.
        setting := set_config('dataflow.taking', 'on', true);
        insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
        select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, lease_until, 1, p_run_id, null::bigint
          from unnest(dataids, claim_ids) as g(dataid, claim_id) cross join unnest(job.outputs) as o(datasetid)
        union all
        select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', g.claim_id, null, 0, p_run_id, i.manifest_id
          from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs)
         cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint)
         -- The evidence still stands.
         cross join lateral (select from dataflow.datastatus s
                              where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT'
                                and s.status = 'READY' and s.manifest_id = i.manifest_id offset 0) s
         -- The one fact that changes by itself.
         where i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, g.dataid, i.dataid);
        get diagnostics added = row_count;
        setting := set_config('dataflow.taking', '', true);
        if added <> cardinality(dataids) * cardinality(job.outputs) + pin_count then
            perform dataflow.refuse_stale(dataids);
        end if;
    else
        attempts := dataflow.take_with_care(p_jobid, dataids, claim_ids, pins, job.outputs, lease_until, p_run_id);
    end if;

    insert into dataflow.verdict (jobid, dataid, claim_id, inputs)
    select p_jobid, g.dataid, g.claim_id, g.inputs from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs);
    return json_build_object('dataids', dataids, 'claim_ids', claim_ids, 'attempts', attempts, 'inputs', pins, 'outputs', job.outputs,
                             'lease', extract(epoch from job.lease), 'lease_until', lease_until, 'have_files', have_files);
end
$$;


--
-- Name: take_over(text, text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.take_over(p_jobid text, p_outputs text[], p_dataids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    other record;
begin
    for other in
        select s.datasetid, s.jobid, s.dataid, s.manifest_id from dataflow.datastatus s
         where s.datasetid = any (p_outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.jobid <> p_jobid
           and s.status in ('PENDING', 'RESUBMIT')
         order by s.datasetid, s.dataid, s.jobid
           for update
    loop
        -- The version that readers get until there is a new one comes along.
        update dataflow.datastatus s set manifest_id = greatest(s.manifest_id, other.manifest_id)
         where s.datasetid = other.datasetid and s.jobid = p_jobid and s.dataid = other.dataid and s.locktype = 'OUT';
        if found then
            delete from dataflow.datastatus s
             where s.datasetid = other.datasetid and s.jobid = other.jobid and s.dataid = other.dataid;
        else
            update dataflow.datastatus s set jobid = p_jobid
             where s.datasetid = other.datasetid and s.jobid = other.jobid and s.dataid = other.dataid;
        end if;
    end loop;
end
$$;


--
-- Name: take_with_care(text, text[], bigint[], jsonb[], text[], timestamp with time zone, bigint); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.take_with_care(p_jobid text, p_dataids text[], p_claim_ids bigint[], p_pins jsonb[], p_outputs text[], p_lease_until timestamp with time zone, p_run_id bigint) RETURNS integer[]
    LANGUAGE plpgsql
    AS $$
declare
    in_datasets  text[];
    in_dataids   text[];
    in_manifests bigint[];
    in_claims    bigint[];
    stale        text[];
    attempts     integer[];
    taken        bigint;
begin
    perform dataflow.take_over(p_jobid, p_outputs, p_dataids);

    -- The inputs, as far as they still are what the answers were given on. One that is read in place is locked for its
    -- producer: its row has no version.
    select array_agg(i.datasetid), array_agg(i.dataid), array_agg(case when i.in_place is null then i.manifest_id end), array_agg(g.claim_id)
      into in_datasets, in_dataids, in_manifests, in_claims
      from unnest(p_dataids, p_claim_ids, p_pins) as g(dataid, claim_id, inputs)
     cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint, in_place boolean)
     cross join lateral (select bool_and(coalesce(s.status, '') in ('READY', 'SKIPPED')) as is_ready,
                                bool_or(s.status = 'SKIPPED' or s.manifest_id is not distinct from i.manifest_id) as is_current
                           from dataflow.datastatus s
                          where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT' offset 0) s
     where s.is_ready and s.is_current
       and (i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, g.dataid, i.dataid));
    stale := array(select g.dataid from unnest(p_dataids, p_claim_ids, p_pins) as g(dataid, claim_id, inputs)
                    where jsonb_array_length(g.inputs) <> (select count(*) from unnest(in_claims) as i(claim_id) where i.claim_id = g.claim_id));
    if cardinality(stale) > 0 then
        perform dataflow.refuse_stale(stale);
    end if;

    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
    select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, p_lease_until, 1, p_run_id, null::bigint
      from unnest(p_dataids, p_claim_ids) as g(dataid, claim_id) cross join unnest(p_outputs) as o(datasetid)
    union all
    select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', i.claim_id, null, 0, p_run_id, i.manifest_id
      from unnest(in_datasets, in_dataids, in_manifests, in_claims) as i(datasetid, dataid, manifest_id, claim_id)
        on conflict do nothing;
    update dataflow.datastatus s
       set status = 'RUNNING', claim_id = p_claim_ids[array_position(p_dataids, s.dataid)], lease_until = p_lease_until, run_id = p_run_id,
           attempt = s.attempt + 1, reason = null
     where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = any (p_dataids)
       and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT');
    -- Whoever ends the other chunk waits for us here, and then leaves the row; or we wait for him, and it is gone.
    update dataflow.datastatus s
       set claim_id = i.claim_id, manifest_id = i.manifest_id, run_id = p_run_id
      from (select distinct on (u.datasetid, u.dataid) *
              from unnest(in_datasets, in_dataids, in_manifests, in_claims) as u(datasetid, dataid, manifest_id, claim_id)
             order by u.datasetid, u.dataid) i
     where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN' and s.claim_id <> all (p_claim_ids);
    select array_agg(o.attempt order by g.place), sum(o.count)
      into attempts, taken
      from unnest(p_dataids, p_claim_ids) with ordinality as g(dataid, claim_id, place)
     cross join lateral (select max(s.attempt) as attempt, count(*) as count from dataflow.datastatus s
                          where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = g.dataid and s.claim_id = g.claim_id offset 0) o;
    if taken <> cardinality(p_dataids) * cardinality(p_outputs)
       or exists (select from unnest(in_datasets, in_dataids) as i(datasetid, dataid)
                   where not exists (select from dataflow.datastatus s
                                      where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN'
                                        and s.claim_id = any (p_claim_ids))) then
        perform dataflow.refuse_stale(p_dataids);
    end if;
    return attempts;
end
$$;


--
-- Name: turn_the_day(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.turn_the_day() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: verdict; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.verdict (
    verdict_id bigint NOT NULL,
    jobid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    asked timestamp with time zone DEFAULT now() NOT NULL,
    claim_id bigint,
    ready text,
    right_data text,
    placed text,
    valid text,
    safe text,
    code text,
    inputs jsonb DEFAULT '[]'::jsonb NOT NULL,
    forced boolean DEFAULT false NOT NULL,
    CONSTRAINT a_claim_has_five_yes CHECK (((claim_id IS NULL) OR forced OR (COALESCE(ready, right_data, placed, valid, safe, code) IS NULL)))
);


--
-- Name: TABLE verdict; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.verdict IS 'The five answers, kept for ever. Append only.';


--
-- Name: versions_read(text); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.versions_read(p_datasetid text) RETURNS SETOF bigint
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT i.manifest_id
    FROM ((dataflow.datastatus s
      JOIN dataflow.verdict v ON (((v.jobid = s.jobid) AND (v.dataid = s.dataid) AND (v.claim_id = s.claim_id))))
      CROSS JOIN LATERAL jsonb_to_recordset(v.inputs) i(datasetid text, manifest_id bigint))
   WHERE ((s.locktype = 'OUT'::text) AND (s.claim_id IS NOT NULL) AND (i.datasetid = versions_read.p_datasetid) AND (i.manifest_id IS NOT NULL));
END;


--
-- Name: version_sweep; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.version_sweep (
    manifest_id bigint NOT NULL,
    decided timestamp with time zone DEFAULT now() NOT NULL,
    removed timestamp with time zone,
    by text,
    reason text DEFAULT NULLIF(current_setting('dataflow.reason'::text, true), ''::text)
);


--
-- Name: TABLE version_sweep; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.version_sweep IS 'Versions whose files were swept by retention; nobody can go back to them.';


--
-- Name: versions_to_drop(text, integer, interval, interval); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.versions_to_drop(p_datasetid text, p_versions integer, p_time interval, p_grace interval) RETURNS SETOF dataflow.data_manifest
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT m.manifest_id,
     m.datasetid,
     m.dataid,
     m.version,
     m.jobid,
     m.claim_id,
     m.run_id,
     m.location,
     m.files,
     m.file_count,
     m.bytes,
     m.row_count,
     m.schema_hash,
     m.content_digest,
     m.checks,
     m.inputs,
     m.published
    FROM (( SELECT r.manifest_id,
             bool_and(r.may_go) OVER (PARTITION BY r.dataid, r.location) AS all_may_go
            FROM ( SELECT n.manifest_id,
                     n.dataid,
                     n.location,
                     ((n.place > COALESCE(versions_to_drop.p_versions, 1)) AND (n.superseded < (now() - GREATEST(COALESCE(versions_to_drop.p_time, '00:00:00'::interval), versions_to_drop.p_grace))) AND (NOT (EXISTS ( SELECT
                            FROM dataflow.datastatus s
                           WHERE ((s.datasetid = versions_to_drop.p_datasetid) AND (s.dataid = n.dataid) AND (s.manifest_id = n.manifest_id))))) AND (NOT (n.manifest_id IN ( SELECT dataflow.versions_read(versions_to_drop.p_datasetid) AS versions_read)))) AS may_go
                    FROM ( SELECT v.manifest_id,
                             v.dataid,
                             v.location,
                             row_number() OVER newest_first AS place,
                             lag(v.published) OVER newest_first AS superseded
                            FROM dataflow.data_manifest v
                           WHERE (v.datasetid = versions_to_drop.p_datasetid)
                           WINDOW newest_first AS (PARTITION BY v.dataid ORDER BY v.version DESC)) n
                   WHERE (NOT (EXISTS ( SELECT
                            FROM dataflow.version_sweep w
                           WHERE (w.manifest_id = n.manifest_id))))) r) g
      JOIN dataflow.data_manifest m ON ((m.manifest_id = g.manifest_id)))
   WHERE (g.all_may_go AND ((versions_to_drop.p_versions IS NOT NULL) OR (versions_to_drop.p_time IS NOT NULL)));
END;


--
-- Name: wait_for_inputs(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.wait_for_inputs(p_jobids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow inputs'), hashtext(d.datasetid))
       from (select distinct j.datasetid from dataflow.job j
              where j.jobid = any (p_jobids) and j.itemtype = 'IN' and j.mapping <> 'equal' order by 1) d;
end
$$;


--
-- Name: wait_for_readers(text[], text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.wait_for_readers(p_datasetids text[], p_dataids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: wait_for_registry(); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.wait_for_registry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow'), hashtext('registry'));
    return null;
end
$$;


--
-- Name: wait_for_turns(text[]); Type: FUNCTION; Schema: dataflow; Owner: -
--

CREATE FUNCTION dataflow.wait_for_turns(p_jobids text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(hashtext('dataflow turn'), hashtext(o.jobid))
       from (select p.jobid from dataflow.job_policy p where p.jobid = any (p_jobids) and p.ordered order by 1) o;
end
$$;


--
-- Name: chunk_event; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.chunk_event (
    event_id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    datasetid text NOT NULL COLLATE pg_catalog."C",
    jobid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    locktype text NOT NULL COLLATE pg_catalog."C",
    old_status text COLLATE pg_catalog."C",
    new_status text COLLATE pg_catalog."C",
    claim_id bigint,
    attempt integer,
    run_id bigint,
    manifest_id bigint,
    reason text,
    login text NOT NULL,
    actor text
);


--
-- Name: TABLE chunk_event; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.chunk_event IS 'Every change of datastatus, whoever made it. Append only.';


--
-- Name: chunk_event_event_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.chunk_event ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.chunk_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: chunk_input; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.chunk_input (
    jobid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    datasetid text NOT NULL COLLATE pg_catalog."C",
    input_dataid text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: TABLE chunk_input; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.chunk_input IS 'Which input chunks a chunk needs, where the mapping is `listed`.';


--
-- Name: claim_id; Type: SEQUENCE; Schema: dataflow; Owner: -
--

CREATE SEQUENCE dataflow.claim_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: SEQUENCE claim_id; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON SEQUENCE dataflow.claim_id IS 'Fencing tokens: a newer claim always has a larger one.';


--
-- Name: data_manifest_manifest_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.data_manifest ALTER COLUMN manifest_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.data_manifest_manifest_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: job_control; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job_control (
    jobid text NOT NULL COLLATE pg_catalog."C",
    concurrency integer,
    paused timestamp with time zone,
    reason text,
    modified timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT controlled_job_id_is_a_name CHECK (dataflow.is_name(jobid)),
    CONSTRAINT job_control_concurrency_check CHECK ((concurrency >= 0))
);


--
-- Name: TABLE job_control; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job_control IS 'Live limits of a Job: how many chunks at a time, and whether it is paused.';


--
-- Name: job_event; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job_event (
    event_id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    jobid text NOT NULL COLLATE pg_catalog."C",
    concurrency integer,
    paused timestamp with time zone,
    reason text,
    login text NOT NULL,
    actor text
);


--
-- Name: TABLE job_event; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job_event IS 'Every change of job_control, whoever made it. Append only.';


--
-- Name: job_event_event_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.job_event ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.job_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: job_run; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job_run (
    run_id bigint NOT NULL,
    jobid text NOT NULL COLLATE pg_catalog."C",
    runner text DEFAULT SESSION_USER NOT NULL,
    external_id text,
    started timestamp with time zone DEFAULT now() NOT NULL,
    heard timestamp with time zone DEFAULT now() NOT NULL,
    ended timestamp with time zone,
    outcome text,
    CONSTRAINT a_run_has_an_outcome_when_it_ended CHECK (((ended IS NULL) = (outcome IS NULL))),
    CONSTRAINT job_run_outcome_check CHECK ((outcome = ANY (ARRAY['ENDED'::text, 'FAILED'::text])))
);


--
-- Name: TABLE job_run; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job_run IS 'One execution of a Job, over one chunk or many.';


--
-- Name: job_run_run_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.job_run ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.job_run_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: job_terms; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.job_terms (
    jobid text NOT NULL COLLATE pg_catalog."C",
    lease interval NOT NULL,
    outputs text[] NOT NULL,
    is_plain boolean NOT NULL,
    is_ordered boolean NOT NULL,
    is_steered boolean NOT NULL
);


--
-- Name: TABLE job_terms; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.job_terms IS 'Derived: what a claim and a publication must know of a Job. Triggers keep it equal to terms_now.';


--
-- Name: migration; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.migration (
    name text NOT NULL,
    checksum text NOT NULL,
    applied timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: registry_event; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.registry_event (
    event_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    relation text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    before jsonb,
    after jsonb,
    password_changed boolean DEFAULT false NOT NULL,
    reason text,
    login text NOT NULL,
    actor text
);


--
-- Name: TABLE registry_event; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.registry_event IS 'Every change of dataset, job and job_policy, whoever made it. Append only.';


--
-- Name: registry_event_event_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.registry_event ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.registry_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: reported; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.reported (
    orchestrator text NOT NULL COLLATE pg_catalog."C",
    manifest_id bigint NOT NULL
);


--
-- Name: TABLE reported; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.reported IS 'Versions that an orchestrator knows of. Derived: rows may be deleted at any time; it is then told again.';


--
-- Name: runnable; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.runnable (
    jobid text NOT NULL COLLATE pg_catalog."C",
    dataid text NOT NULL COLLATE pg_catalog."C",
    resubmit boolean DEFAULT false NOT NULL,
    sort_key text NOT NULL COLLATE pg_catalog."C",
    since timestamp with time zone DEFAULT now() NOT NULL,
    blocked text COLLATE pg_catalog."C",
    inputs jsonb DEFAULT '[]'::jsonb NOT NULL,
    file_count bigint DEFAULT 0 NOT NULL,
    is_plain boolean DEFAULT false NOT NULL
)
WITH (fillfactor='30', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0.01');


--
-- Name: TABLE runnable; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON TABLE dataflow.runnable IS 'Derived: the chunks whose inputs are all READY and whose output is free, with the answers to the five questions. Triggers keep it; rebuild_runnable makes it anew.';


--
-- Name: status_transition; Type: TABLE; Schema: dataflow; Owner: -
--

CREATE TABLE dataflow.status_transition (
    old_status text NOT NULL COLLATE pg_catalog."C",
    new_status text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: terms_now; Type: VIEW; Schema: dataflow; Owner: -
--

CREATE VIEW dataflow.terms_now AS
 SELECT j.jobid,
    COALESCE(p.lease, '00:10:00'::interval) AS lease,
    ARRAY( SELECT o.datasetid
           FROM dataflow.job o
          WHERE ((o.jobid = j.jobid) AND (o.itemtype = 'OUT'::text))
          ORDER BY o.datasetid) AS outputs,
    ((NOT COALESCE(p.ordered, false)) AND (NOT (EXISTS ( SELECT
           FROM dataflow.job i
          WHERE ((i.jobid = j.jobid) AND (i.mapping <> 'equal'::text))))) AND (NOT (EXISTS ( SELECT
           FROM (dataflow.job o
             JOIN dataflow.job i ON (((i.datasetid = o.datasetid) AND (i.itemtype = 'IN'::text) AND (i.mapping <> 'equal'::text))))
          WHERE ((o.jobid = j.jobid) AND (o.itemtype = 'OUT'::text)))))) AS is_plain,
    COALESCE(p.ordered, false) AS is_ordered,
    (EXISTS ( SELECT
           FROM dataflow.job_control c
          WHERE (c.jobid = j.jobid))) AS is_steered
   FROM (( SELECT DISTINCT i.jobid
           FROM dataflow.job i) j
     LEFT JOIN dataflow.job_policy p ON ((p.jobid = j.jobid)));


--
-- Name: VIEW terms_now; Type: COMMENT; Schema: dataflow; Owner: -
--

COMMENT ON VIEW dataflow.terms_now IS 'What job_terms must hold.';


--
-- Name: verdict_verdict_id_seq; Type: SEQUENCE; Schema: dataflow; Owner: -
--

ALTER TABLE dataflow.verdict ALTER COLUMN verdict_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME dataflow.verdict_verdict_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Data for Name: chunk_event; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-18 15:28:45.172023+00', 'feed', 'announced', '2024-01-01', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-18 15:28:45.172214+00', 'feed', 'announced', '2024-01-02', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (3, '2026-11-18 15:28:45.172242+00', 'feed', 'announced', '2024-01-03', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (4, '2026-11-18 15:28:45.172245+00', 'feed', 'announced', '2024-01-04', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (5, '2026-11-18 15:28:45.172248+00', 'feed', 'announced', '2024-01-05', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (6, '2026-11-18 15:28:45.17225+00', 'feed', 'announced', '2024-01-06', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (7, '2026-11-18 15:28:45.172252+00', 'feed', 'announced', '2024-01-07', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (8, '2026-11-18 15:28:45.172254+00', 'feed', 'announced', '2024-01-08', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (9, '2026-11-18 15:28:45.172256+00', 'feed', 'announced', '2024-01-09', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (10, '2026-11-18 15:28:45.172258+00', 'feed', 'announced', '2024-01-10', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (11, '2026-11-18 15:28:45.17226+00', 'feed', 'announced', '2024-01-11', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (12, '2026-11-18 15:28:45.172262+00', 'feed', 'announced', '2024-01-12', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (13, '2026-11-18 15:28:45.216309+00', 'codes', 'announced', 'iso', 'OUT', NULL, 'READY', NULL, 0, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (14, '2026-11-18 15:28:45.230951+00', 'raw', 'load', '2024-01-01', 'OUT', NULL, 'RUNNING', 1, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (15, '2026-11-18 15:28:45.230977+00', 'raw', 'load', '2024-01-02', 'OUT', NULL, 'RUNNING', 2, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (16, '2026-11-18 15:28:45.23098+00', 'raw', 'load', '2024-01-03', 'OUT', NULL, 'RUNNING', 3, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (17, '2026-11-18 15:28:45.230983+00', 'raw', 'load', '2024-01-04', 'OUT', NULL, 'RUNNING', 4, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (18, '2026-11-18 15:28:45.230985+00', 'raw', 'load', '2024-01-05', 'OUT', NULL, 'RUNNING', 5, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (19, '2026-11-18 15:28:45.230987+00', 'raw', 'load', '2024-01-06', 'OUT', NULL, 'RUNNING', 6, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (20, '2026-11-18 15:28:45.230989+00', 'raw', 'load', '2024-01-07', 'OUT', NULL, 'RUNNING', 7, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (21, '2026-11-18 15:28:45.230992+00', 'raw', 'load', '2024-01-08', 'OUT', NULL, 'RUNNING', 8, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (22, '2026-11-18 15:28:45.230994+00', 'raw', 'load', '2024-01-09', 'OUT', NULL, 'RUNNING', 9, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (23, '2026-11-18 15:28:45.230996+00', 'raw', 'load', '2024-01-10', 'OUT', NULL, 'RUNNING', 10, 1, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (24, '2026-11-18 15:28:45.230998+00', 'feed', 'load', '2024-01-01', 'IN', NULL, 'RUNNING', 1, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (25, '2026-11-18 15:28:45.231001+00', 'feed', 'load', '2024-01-02', 'IN', NULL, 'RUNNING', 2, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (26, '2026-11-18 15:28:45.231006+00', 'feed', 'load', '2024-01-03', 'IN', NULL, 'RUNNING', 3, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (27, '2026-11-18 15:28:45.231008+00', 'feed', 'load', '2024-01-04', 'IN', NULL, 'RUNNING', 4, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (28, '2026-11-18 15:28:45.23101+00', 'feed', 'load', '2024-01-05', 'IN', NULL, 'RUNNING', 5, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (29, '2026-11-18 15:28:45.231013+00', 'feed', 'load', '2024-01-06', 'IN', NULL, 'RUNNING', 6, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (30, '2026-11-18 15:28:45.231015+00', 'feed', 'load', '2024-01-07', 'IN', NULL, 'RUNNING', 7, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (31, '2026-11-18 15:28:45.231017+00', 'feed', 'load', '2024-01-08', 'IN', NULL, 'RUNNING', 8, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (32, '2026-11-18 15:28:45.231019+00', 'feed', 'load', '2024-01-09', 'IN', NULL, 'RUNNING', 9, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (33, '2026-11-18 15:28:45.231022+00', 'feed', 'load', '2024-01-10', 'IN', NULL, 'RUNNING', 10, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (34, '2026-11-18 15:28:45.250791+00', 'raw', 'load', '2024-01-01', 'OUT', 'RUNNING', 'READY', 1, 1, 1, 1, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (35, '2026-11-18 15:28:45.251366+00', 'feed', 'load', '2024-01-01', 'IN', 'RUNNING', NULL, 1, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (36, '2026-11-18 15:28:45.285837+00', 'raw', 'load', '2024-01-02', 'OUT', 'RUNNING', 'READY', 2, 1, 1, 2, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (37, '2026-11-18 15:28:45.285956+00', 'feed', 'load', '2024-01-02', 'IN', 'RUNNING', NULL, 2, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (38, '2026-11-18 15:28:45.294289+00', 'raw', 'load', '2024-01-03', 'OUT', 'RUNNING', 'READY', 3, 1, 1, 3, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (39, '2026-11-18 15:28:45.294392+00', 'feed', 'load', '2024-01-03', 'IN', 'RUNNING', NULL, 3, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (40, '2026-11-18 15:28:45.29905+00', 'raw', 'load', '2024-01-04', 'OUT', 'RUNNING', 'READY', 4, 1, 1, 4, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (41, '2026-11-18 15:28:45.299147+00', 'feed', 'load', '2024-01-04', 'IN', 'RUNNING', NULL, 4, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (42, '2026-11-18 15:28:45.31146+00', 'raw', 'load', '2024-01-05', 'OUT', 'RUNNING', 'READY', 5, 1, 1, 5, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (43, '2026-11-18 15:28:45.311642+00', 'feed', 'load', '2024-01-05', 'IN', 'RUNNING', NULL, 5, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (44, '2026-11-18 15:28:45.320635+00', 'raw', 'load', '2024-01-06', 'OUT', 'RUNNING', 'READY', 6, 1, 1, 6, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (45, '2026-11-18 15:28:45.320758+00', 'feed', 'load', '2024-01-06', 'IN', 'RUNNING', NULL, 6, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (46, '2026-11-18 15:28:45.331925+00', 'raw', 'load', '2024-01-07', 'OUT', 'RUNNING', 'READY', 7, 1, 1, 7, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (47, '2026-11-18 15:28:45.332029+00', 'feed', 'load', '2024-01-07', 'IN', 'RUNNING', NULL, 7, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (48, '2026-11-18 15:28:45.336326+00', 'raw', 'load', '2024-01-08', 'OUT', 'RUNNING', 'READY', 8, 1, 1, 8, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (49, '2026-11-18 15:28:45.336415+00', 'feed', 'load', '2024-01-08', 'IN', 'RUNNING', NULL, 8, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (50, '2026-11-18 15:28:45.345477+00', 'raw', 'load', '2024-01-09', 'OUT', 'RUNNING', 'READY', 9, 1, 1, 9, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (51, '2026-11-18 15:28:45.345637+00', 'feed', 'load', '2024-01-09', 'IN', 'RUNNING', NULL, 9, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (52, '2026-11-18 15:28:45.354995+00', 'raw', 'load', '2024-01-10', 'OUT', 'RUNNING', 'READY', 10, 1, 1, 10, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (53, '2026-11-18 15:28:45.35511+00', 'feed', 'load', '2024-01-10', 'IN', 'RUNNING', NULL, 10, 0, 1, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (54, '2026-11-18 15:28:45.364619+00', 'notes', 'clean', '2024-01-01', 'OUT', NULL, 'RUNNING', 11, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (55, '2026-11-18 15:28:45.364643+00', 'tidy', 'clean', '2024-01-01', 'OUT', NULL, 'RUNNING', 11, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (56, '2026-11-18 15:28:45.364647+00', 'raw', 'clean', '2024-01-01', 'IN', NULL, 'RUNNING', 11, 0, NULL, 1, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (57, '2026-11-18 15:28:45.374597+00', 'notes', 'clean', '2024-01-01', 'OUT', 'RUNNING', 'READY', 11, 1, NULL, 11, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (58, '2026-11-18 15:28:45.374625+00', 'tidy', 'clean', '2024-01-01', 'OUT', 'RUNNING', 'READY', 11, 1, NULL, 12, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (59, '2026-11-18 15:28:45.375601+00', 'raw', 'clean', '2024-01-01', 'IN', 'RUNNING', NULL, 11, 0, NULL, 1, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (60, '2026-11-18 15:28:45.386863+00', 'notes', 'clean', '2024-01-02', 'OUT', NULL, 'RUNNING', 12, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (61, '2026-11-18 15:28:45.386888+00', 'tidy', 'clean', '2024-01-02', 'OUT', NULL, 'RUNNING', 12, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (62, '2026-11-18 15:28:45.386892+00', 'raw', 'clean', '2024-01-02', 'IN', NULL, 'RUNNING', 12, 0, NULL, 2, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (63, '2026-11-18 15:28:45.389288+00', 'notes', 'clean', '2024-01-02', 'OUT', 'RUNNING', 'READY', 12, 1, NULL, 13, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (64, '2026-11-18 15:28:45.389309+00', 'tidy', 'clean', '2024-01-02', 'OUT', 'RUNNING', 'READY', 12, 1, NULL, 14, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (65, '2026-11-18 15:28:45.389511+00', 'raw', 'clean', '2024-01-02', 'IN', 'RUNNING', NULL, 12, 0, NULL, 2, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (66, '2026-11-18 15:28:45.398402+00', 'notes', 'clean', '2024-01-03', 'OUT', NULL, 'RUNNING', 13, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (67, '2026-11-18 15:28:45.398423+00', 'tidy', 'clean', '2024-01-03', 'OUT', NULL, 'RUNNING', 13, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (68, '2026-11-18 15:28:45.398595+00', 'raw', 'clean', '2024-01-03', 'IN', NULL, 'RUNNING', 13, 0, NULL, 3, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (69, '2026-11-18 15:28:45.402078+00', 'notes', 'clean', '2024-01-03', 'OUT', 'RUNNING', 'READY', 13, 1, NULL, 15, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (70, '2026-11-18 15:28:45.402093+00', 'tidy', 'clean', '2024-01-03', 'OUT', 'RUNNING', 'READY', 13, 1, NULL, 16, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (71, '2026-11-18 15:28:45.402271+00', 'raw', 'clean', '2024-01-03', 'IN', 'RUNNING', NULL, 13, 0, NULL, 3, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (72, '2026-11-18 15:28:45.410534+00', 'notes', 'clean', '2024-01-04', 'OUT', NULL, 'RUNNING', 14, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (73, '2026-11-18 15:28:45.410555+00', 'tidy', 'clean', '2024-01-04', 'OUT', NULL, 'RUNNING', 14, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (74, '2026-11-18 15:28:45.410559+00', 'raw', 'clean', '2024-01-04', 'IN', NULL, 'RUNNING', 14, 0, NULL, 4, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (75, '2026-11-18 15:28:45.414198+00', 'notes', 'clean', '2024-01-05', 'OUT', NULL, 'RUNNING', 15, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (76, '2026-11-18 15:28:45.414215+00', 'tidy', 'clean', '2024-01-05', 'OUT', NULL, 'RUNNING', 15, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (77, '2026-11-18 15:28:45.414219+00', 'raw', 'clean', '2024-01-05', 'IN', NULL, 'RUNNING', 15, 0, NULL, 5, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (78, '2026-11-18 15:28:45.421038+00', 'notes', 'clean', '2024-01-05', 'OUT', 'RUNNING', 'FAILED', 15, 1, NULL, NULL, 'disk full', 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (79, '2026-11-18 15:28:45.421061+00', 'tidy', 'clean', '2024-01-05', 'OUT', 'RUNNING', 'FAILED', 15, 1, NULL, NULL, 'disk full', 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (80, '2026-11-18 15:28:45.421297+00', 'raw', 'clean', '2024-01-05', 'IN', 'RUNNING', NULL, 15, 0, NULL, 5, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (81, '2026-11-18 15:28:45.426446+00', 'notes', 'clean', '2024-01-06', 'OUT', NULL, 'RUNNING', 16, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (82, '2026-11-18 15:28:45.426466+00', 'tidy', 'clean', '2024-01-06', 'OUT', NULL, 'RUNNING', 16, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (83, '2026-11-18 15:28:45.426469+00', 'raw', 'clean', '2024-01-06', 'IN', NULL, 'RUNNING', 16, 0, NULL, 6, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (84, '2026-11-18 15:28:45.429856+00', 'notes', 'clean', '2024-01-06', 'OUT', 'RUNNING', 'FAILED', 16, 1, NULL, NULL, 'disk full', 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (85, '2026-11-18 15:28:45.429876+00', 'tidy', 'clean', '2024-01-06', 'OUT', 'RUNNING', 'FAILED', 16, 1, NULL, NULL, 'disk full', 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (86, '2026-11-18 15:28:45.430031+00', 'raw', 'clean', '2024-01-06', 'IN', 'RUNNING', NULL, 16, 0, NULL, 6, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (87, '2026-11-18 15:28:45.437727+00', 'tidy', 'clean', '2024-01-06', 'OUT', 'FAILED', 'RESUBMIT', NULL, 1, NULL, NULL, 'disk is back', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (88, '2026-11-18 15:28:45.439329+00', 'notes', 'clean', '2024-01-06', 'OUT', 'FAILED', 'RESUBMIT', NULL, 1, NULL, NULL, NULL, 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (89, '2026-11-18 15:28:45.446414+00', 'notes', 'clean', '2024-01-07', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (90, '2026-11-18 15:28:45.446434+00', 'notes', 'clean', '2024-01-08', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (91, '2026-11-18 15:28:45.446437+00', 'notes', 'clean', '2024-01-09', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (92, '2026-11-18 15:28:45.44644+00', 'tidy', 'clean', '2024-01-07', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (93, '2026-11-18 15:28:45.446443+00', 'tidy', 'clean', '2024-01-08', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (94, '2026-11-18 15:28:45.446445+00', 'tidy', 'clean', '2024-01-09', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (95, '2026-11-18 15:28:45.454799+00', 'notes', 'clean', '2024-01-07', 'OUT', 'PENDING', 'HOLD', NULL, 0, NULL, NULL, 'wait', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (96, '2026-11-18 15:28:45.454824+00', 'tidy', 'clean', '2024-01-07', 'OUT', 'PENDING', 'HOLD', NULL, 0, NULL, NULL, 'wait', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (97, '2026-11-18 15:28:45.462052+00', 'notes', 'clean', '2024-01-08', 'OUT', 'PENDING', 'SKIPPED', NULL, 0, NULL, NULL, 'holiday', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (98, '2026-11-18 15:28:45.462076+00', 'tidy', 'clean', '2024-01-08', 'OUT', 'PENDING', 'SKIPPED', NULL, 0, NULL, NULL, 'holiday', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (99, '2026-11-18 15:28:45.466104+00', 'raw', 'load', '2024-01-01', 'OUT', 'READY', 'RESUBMIT', NULL, 1, 1, 1, 'late rows', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (100, '2026-11-18 15:28:45.470928+00', 'feed', 'load', '2024-01-01', 'IN', NULL, 'RUNNING', 17, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (101, '2026-11-18 15:28:45.472205+00', 'raw', 'load', '2024-01-01', 'OUT', 'RESUBMIT', 'RUNNING', 17, 2, 1, 1, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (102, '2026-11-18 15:28:45.480954+00', 'raw', 'load', '2024-01-01', 'OUT', 'RUNNING', 'READY', 17, 2, NULL, 17, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (103, '2026-11-18 15:28:45.481206+00', 'feed', 'load', '2024-01-01', 'IN', 'RUNNING', NULL, 17, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (104, '2026-11-18 15:28:45.495115+00', 'report', 'report', '2024-01-01', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (105, '2026-11-18 15:28:45.49514+00', 'report', 'report', '2024-01-02', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (106, '2026-11-18 15:28:45.495144+00', 'report', 'report', '2024-01-03', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (107, '2026-11-18 15:28:45.495147+00', 'report', 'report', '2024-01-04', 'OUT', NULL, 'PENDING', NULL, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (108, '2026-11-18 15:28:45.523354+00', 'codes', 'report', 'iso', 'IN', NULL, 'RUNNING', 18, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (109, '2026-11-18 15:28:45.52338+00', 'tidy', 'report', '2024-01-02', 'IN', NULL, 'RUNNING', 18, 0, NULL, 14, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (110, '2026-11-18 15:28:45.524752+00', 'report', 'report', '2024-01-02', 'OUT', 'PENDING', 'RUNNING', 18, 1, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (111, '2026-11-18 15:28:45.530835+00', 'report', 'report', '2024-01-02', 'OUT', 'RUNNING', 'READY', 18, 1, NULL, 18, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (112, '2026-11-18 15:28:45.531578+00', 'codes', 'report', 'iso', 'IN', 'RUNNING', NULL, 18, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (113, '2026-11-18 15:28:45.531592+00', 'tidy', 'report', '2024-01-02', 'IN', 'RUNNING', NULL, 18, 0, NULL, 14, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (114, '2026-11-18 15:28:45.542401+00', 'report', 'report', '2024-01-02', 'OUT', 'READY', 'RESUBMIT', NULL, 1, NULL, 18, 'again', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (115, '2026-11-18 15:28:45.550466+00', 'codes', 'report', 'iso', 'IN', NULL, 'RUNNING', 19, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (116, '2026-11-18 15:28:45.550516+00', 'tidy', 'report', '2024-01-02', 'IN', NULL, 'RUNNING', 19, 0, NULL, 14, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (117, '2026-11-18 15:28:45.55133+00', 'report', 'report', '2024-01-02', 'OUT', 'RESUBMIT', 'RUNNING', 19, 2, NULL, 18, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (118, '2026-11-18 15:28:45.581438+00', 'report', 'report', '2024-01-02', 'OUT', 'RUNNING', 'READY', 19, 2, NULL, 19, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (119, '2026-11-18 15:28:45.581852+00', 'codes', 'report', 'iso', 'IN', 'RUNNING', NULL, 19, 0, NULL, NULL, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (120, '2026-11-18 15:28:45.581862+00', 'tidy', 'report', '2024-01-02', 'IN', 'RUNNING', NULL, 19, 0, NULL, 14, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (121, '2026-11-18 15:28:45.591865+00', 'report', 'report', '2024-01-02', 'OUT', 'READY', 'READY', NULL, 2, NULL, 20, 'rolled back to version 1: v2 is wrong', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (122, '2026-11-18 15:28:45.601237+00', 'report', 'report', '2024-01-01', 'OUT', 'PENDING', 'RUNNING', 20, 1, NULL, NULL, 'forced by ada', 'odf', 'ada');
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (123, '2026-11-18 15:28:45.627957+00', 'raw', 'legacy', '2023-12-31', 'OUT', NULL, 'LOADING', NULL, 0, NULL, NULL, NULL, 'odf', NULL);
INSERT INTO dataflow.chunk_event OVERRIDING SYSTEM VALUE VALUES (124, '2026-11-18 15:28:45.653665+00', 'raw', 'legacy', '2023-12-30', 'OUT', NULL, NULL, NULL, 0, NULL, NULL, NULL, 'odf', NULL);


--
-- Data for Name: chunk_input; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.chunk_input VALUES ('report', '2024-01-01', 'tidy', '2024-01-01');
INSERT INTO dataflow.chunk_input VALUES ('report', '2024-01-02', 'tidy', '2024-01-02');
INSERT INTO dataflow.chunk_input VALUES ('report', '2024-01-03', 'tidy', '2024-01-03');
INSERT INTO dataflow.chunk_input VALUES ('report', '2024-01-04', 'tidy', '2024-01-04');


--
-- Data for Name: data_manifest; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (1, 'raw', '2024-01-01', 1, 'load', 1, 1, '/warehouse/raw/2024-01-01/1', '[]', DEFAULT, 0, 1001, NULL, 'raw-1', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-01", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.248355+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (2, 'raw', '2024-01-02', 1, 'load', 2, 1, '/warehouse/raw/2024-01-02/2', '[]', DEFAULT, 0, 1001, NULL, 'raw-2', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-02", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.285167+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (3, 'raw', '2024-01-03', 1, 'load', 3, 1, '/warehouse/raw/2024-01-03/3', '[]', DEFAULT, 0, 1001, NULL, 'raw-3', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-03", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.293739+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (4, 'raw', '2024-01-04', 1, 'load', 4, 1, '/warehouse/raw/2024-01-04/4', '[]', DEFAULT, 0, 1001, NULL, 'raw-4', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-04", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.298597+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (5, 'raw', '2024-01-05', 1, 'load', 5, 1, '/warehouse/raw/2024-01-05/5', '[]', DEFAULT, 0, 1001, NULL, 'raw-5', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-05", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.310834+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (6, 'raw', '2024-01-06', 1, 'load', 6, 1, '/warehouse/raw/2024-01-06/6', '[]', DEFAULT, 0, 1001, NULL, 'raw-6', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-06", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.319998+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (7, 'raw', '2024-01-07', 1, 'load', 7, 1, '/warehouse/raw/2024-01-07/7', '[]', DEFAULT, 0, 1001, NULL, 'raw-7', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-07", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.331356+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (8, 'raw', '2024-01-08', 1, 'load', 8, 1, '/warehouse/raw/2024-01-08/8', '[]', DEFAULT, 0, 1001, NULL, 'raw-8', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-08", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.335913+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (9, 'raw', '2024-01-09', 1, 'load', 9, 1, '/warehouse/raw/2024-01-09/9', '[]', DEFAULT, 0, 1001, NULL, 'raw-9', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-09", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.344781+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (10, 'raw', '2024-01-10', 1, 'load', 10, 1, '/warehouse/raw/2024-01-10/10', '[]', DEFAULT, 0, 1001, NULL, 'raw-10', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-10", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.354325+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (11, 'notes', '2024-01-01', 1, 'clean', 11, NULL, '/warehouse/notes/2024-01-01/11', '[]', DEFAULT, 0, 1001, NULL, 'notes-11', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-01", "version": 1, "datasetid": "raw", "manifest_id": 1}]', '2026-11-18 15:28:45.370115+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (12, 'tidy', '2024-01-01', 1, 'clean', 11, NULL, '/warehouse/tidy/2024-01-01/11', '[]', DEFAULT, 0, 1001, NULL, 'tidy-11', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-01", "version": 1, "datasetid": "raw", "manifest_id": 1}]', '2026-11-18 15:28:45.370115+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (13, 'notes', '2024-01-02', 1, 'clean', 12, NULL, '/warehouse/notes/2024-01-02/12', '[]', DEFAULT, 0, 1001, NULL, 'notes-12', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-02", "version": 1, "datasetid": "raw", "manifest_id": 2}]', '2026-11-18 15:28:45.388621+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (14, 'tidy', '2024-01-02', 1, 'clean', 12, NULL, '/warehouse/tidy/2024-01-02/12', '[]', DEFAULT, 0, 1001, NULL, 'tidy-12', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-02", "version": 1, "datasetid": "raw", "manifest_id": 2}]', '2026-11-18 15:28:45.388621+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (15, 'notes', '2024-01-03', 1, 'clean', 13, NULL, '/warehouse/notes/2024-01-03/13', '[]', DEFAULT, 0, 1001, NULL, 'notes-13', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-03", "version": 1, "datasetid": "raw", "manifest_id": 3}]', '2026-11-18 15:28:45.401512+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (16, 'tidy', '2024-01-03', 1, 'clean', 13, NULL, '/warehouse/tidy/2024-01-03/13', '[]', DEFAULT, 0, 1001, NULL, 'tidy-13', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-03", "version": 1, "datasetid": "raw", "manifest_id": 3}]', '2026-11-18 15:28:45.401512+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (17, 'raw', '2024-01-01', 2, 'load', 17, NULL, '/warehouse/raw/2024-01-01/17', '[]', DEFAULT, 0, 1002, NULL, 'raw-17', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "2024-01-01", "version": null, "datasetid": "feed", "manifest_id": null}]', '2026-11-18 15:28:45.480284+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (18, 'report', '2024-01-02', 1, 'report', 18, NULL, '/warehouse/report/2024-01-02/18', '[]', DEFAULT, 0, 1001, NULL, 'report-18', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', '2026-11-18 15:28:45.530283+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (19, 'report', '2024-01-02', 2, 'report', 19, NULL, '/warehouse/report/2024-01-02/19', '[]', DEFAULT, 0, 1002, NULL, 'report-19', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', '2026-11-18 15:28:45.580675+00');
INSERT INTO dataflow.data_manifest OVERRIDING SYSTEM VALUE VALUES (20, 'report', '2024-01-02', 3, 'report', NULL, NULL, '/warehouse/report/2024-01-02/18', '[]', DEFAULT, 0, 1001, NULL, 'report-18', '[{"name": "rows", "detail": "1000 rows", "passed": true}]', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', '2026-11-18 15:28:45.589555+00');


--
-- Data for Name: dataset; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.dataset VALUES ('tidy', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-18 15:28:45.119113+00', '/warehouse/tidy', NULL, NULL, 'refused', 'waits', false, 'UTC', NULL, NULL, NULL);
INSERT INTO dataflow.dataset VALUES ('report', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-18 15:28:45.119113+00', '/warehouse/report', NULL, NULL, 'refused', 'waits', false, 'UTC', NULL, NULL, NULL);
INSERT INTO dataflow.dataset VALUES ('notes', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-18 15:28:45.119113+00', '/warehouse/notes', NULL, NULL, 'refused', 'waits', false, 'UTC', NULL, NULL, NULL);
INSERT INTO dataflow.dataset VALUES ('feed', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-18 15:28:45.119113+00', NULL, NULL, NULL, 'trusted', 'waits', false, 'UTC', NULL, NULL, NULL);
INSERT INTO dataflow.dataset VALUES ('codes', NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-18 15:28:45.119113+00', NULL, NULL, NULL, 'trusted', 'waits', false, 'UTC', NULL, NULL, NULL);
INSERT INTO dataflow.dataset VALUES ('raw', 'h', NULL, NULL, NULL, 'u', 'bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk', '2026-11-18 15:28:45.66518+00', '/warehouse/raw', NULL, NULL, 'refused', 'waits', false, 'UTC', NULL, NULL, NULL);


--
-- Data for Name: datastatus; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-01', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-02', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-03', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-04', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-05', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-06', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-07', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-08', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-09', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-10', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-11', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('feed', 'announced', '2024-01-12', 'OUT', 'READY', '2026-11-18 15:28:45.16797+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('codes', 'announced', 'iso', 'OUT', 'READY', '2026-11-18 15:28:45.214357+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-02', 'OUT', 'READY', '2026-11-18 15:28:45.285167+00', NULL, NULL, 1, 0, 1, 2, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-03', 'OUT', 'READY', '2026-11-18 15:28:45.293739+00', NULL, NULL, 1, 0, 1, 3, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-04', 'OUT', 'READY', '2026-11-18 15:28:45.298597+00', NULL, NULL, 1, 0, 1, 4, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-05', 'OUT', 'READY', '2026-11-18 15:28:45.310834+00', NULL, NULL, 1, 0, 1, 5, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-06', 'OUT', 'READY', '2026-11-18 15:28:45.319998+00', NULL, NULL, 1, 0, 1, 6, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-07', 'OUT', 'READY', '2026-11-18 15:28:45.331356+00', NULL, NULL, 1, 0, 1, 7, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-08', 'OUT', 'READY', '2026-11-18 15:28:45.335913+00', NULL, NULL, 1, 0, 1, 8, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-09', 'OUT', 'READY', '2026-11-18 15:28:45.344781+00', NULL, NULL, 1, 0, 1, 9, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-10', 'OUT', 'READY', '2026-11-18 15:28:45.354325+00', NULL, NULL, 1, 0, 1, 10, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-01', 'OUT', 'READY', '2026-11-18 15:28:45.370115+00', NULL, NULL, 1, 0, NULL, 11, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-01', 'OUT', 'READY', '2026-11-18 15:28:45.370115+00', NULL, NULL, 1, 0, NULL, 12, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-02', 'OUT', 'READY', '2026-11-18 15:28:45.388621+00', NULL, NULL, 1, 0, NULL, 13, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-02', 'OUT', 'READY', '2026-11-18 15:28:45.388621+00', NULL, NULL, 1, 0, NULL, 14, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-03', 'OUT', 'READY', '2026-11-18 15:28:45.401512+00', NULL, NULL, 1, 0, NULL, 15, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-03', 'OUT', 'READY', '2026-11-18 15:28:45.401512+00', NULL, NULL, 1, 0, NULL, 16, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-04', 'OUT', 'RUNNING', '2026-11-18 15:28:45.409569+00', 14, '2027-11-19 15:28:45.409569+00', 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-04', 'OUT', 'RUNNING', '2026-11-18 15:28:45.409569+00', 14, '2027-11-19 15:28:45.409569+00', 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'clean', '2024-01-04', 'IN', 'RUNNING', '2026-11-18 15:28:45.409569+00', 14, NULL, 0, 0, NULL, 4, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-05', 'OUT', 'FAILED', '2026-11-18 15:28:45.4204+00', NULL, NULL, 1, 0, NULL, NULL, 'disk full', NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-05', 'OUT', 'FAILED', '2026-11-18 15:28:45.4204+00', NULL, NULL, 1, 0, NULL, NULL, 'disk full', NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-06', 'OUT', 'RESUBMIT', '2026-11-18 15:28:45.436126+00', NULL, NULL, 1, 0, NULL, NULL, 'disk is back', NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-06', 'OUT', 'RESUBMIT', '2026-11-18 15:28:45.436126+00', NULL, NULL, 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-09', 'OUT', 'PENDING', '2026-11-18 15:28:45.445399+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-09', 'OUT', 'PENDING', '2026-11-18 15:28:45.445399+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-07', 'OUT', 'HOLD', '2026-11-18 15:28:45.45338+00', NULL, NULL, 0, 0, NULL, NULL, 'wait', 'PENDING');
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-07', 'OUT', 'HOLD', '2026-11-18 15:28:45.45338+00', NULL, NULL, 0, 0, NULL, NULL, 'wait', 'PENDING');
INSERT INTO dataflow.datastatus VALUES ('notes', 'clean', '2024-01-08', 'OUT', 'SKIPPED', '2026-11-18 15:28:45.461388+00', NULL, NULL, 0, 0, NULL, NULL, 'holiday', NULL);
INSERT INTO dataflow.datastatus VALUES ('tidy', 'clean', '2024-01-08', 'OUT', 'SKIPPED', '2026-11-18 15:28:45.461388+00', NULL, NULL, 0, 0, NULL, NULL, 'holiday', NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'load', '2024-01-01', 'OUT', 'READY', '2026-11-18 15:28:45.480284+00', NULL, NULL, 2, 0, NULL, 17, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('report', 'report', '2024-01-03', 'OUT', 'PENDING', '2026-11-18 15:28:45.486807+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('report', 'report', '2024-01-04', 'OUT', 'PENDING', '2026-11-18 15:28:45.486807+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('report', 'report', '2024-01-02', 'OUT', 'READY', '2026-11-18 15:28:45.589555+00', NULL, NULL, 2, 0, NULL, 20, 'rolled back to version 1: v2 is wrong', NULL);
INSERT INTO dataflow.datastatus VALUES ('report', 'report', '2024-01-01', 'OUT', 'RUNNING', '2026-11-18 15:28:45.59738+00', 20, '2026-11-18 15:38:45.59738+00', 1, 0, NULL, NULL, 'forced by ada', NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'legacy', '2023-12-31', 'OUT', 'LOADING', '2026-11-18 15:28:45.62516+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);
INSERT INTO dataflow.datastatus VALUES ('raw', 'legacy', '2023-12-30', 'OUT', NULL, '2026-11-18 15:28:45.653406+00', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL);


--
-- Data for Name: job; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job VALUES ('clean', 'IN', 'raw', NULL, '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('clean', 'OUT', 'notes', NULL, '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('clean', 'OUT', 'tidy', NULL, '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('load', 'IN', 'feed', NULL, '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('load', 'OUT', 'raw', NULL, '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('report', 'IN', 'codes', NULL, '2026-11-18 15:28:45.119113+00', 'all');
INSERT INTO dataflow.job VALUES ('report', 'IN', 'tidy', NULL, '2026-11-18 15:28:45.119113+00', 'listed');
INSERT INTO dataflow.job VALUES ('report', 'MODE', NULL, 'full', '2026-11-18 15:28:45.119113+00', 'equal');
INSERT INTO dataflow.job VALUES ('report', 'OUT', 'report', NULL, '2026-11-18 15:28:45.119113+00', 'equal');


--
-- Data for Name: job_control; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job_control VALUES ('load', 2, NULL, 'quiet hours', '2026-11-18 15:28:45.605317+00');
INSERT INTO dataflow.job_control VALUES ('report', NULL, '2026-11-18 15:28:45.609329+00', 'month end', '2026-11-18 15:28:45.609329+00');


--
-- Data for Name: job_event; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job_event OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-18 15:28:45.606229+00', 'load', 2, NULL, 'quiet hours', 'odf', 'ada');
INSERT INTO dataflow.job_event OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-18 15:28:45.609847+00', 'report', NULL, '2026-11-18 15:28:45.609329+00', 'month end', 'odf', 'ada');


--
-- Data for Name: job_policy; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job_policy VALUES ('load', '366 days', 3, '00:00:00', NULL, false, false, false, '2026-11-18 15:28:45.119113+00');
INSERT INTO dataflow.job_policy VALUES ('clean', '366 days', 5, '00:00:00', NULL, false, false, false, '2026-11-18 15:28:45.119113+00');
INSERT INTO dataflow.job_policy VALUES ('report', '00:10:00', 3, '00:00:00', NULL, false, false, false, '2026-11-18 15:28:45.119113+00');


--
-- Data for Name: job_run; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job_run OVERRIDING SYSTEM VALUE VALUES (1, 'load', 'dagster', 'run-1', '2026-11-18 15:28:45.219864+00', '2026-11-18 15:28:45.219864+00', NULL, NULL);


--
-- Data for Name: job_terms; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.job_terms VALUES ('clean', '366 days', '{notes,tidy}', false, false, false);
INSERT INTO dataflow.job_terms VALUES ('load', '366 days', '{raw}', true, false, true);
INSERT INTO dataflow.job_terms VALUES ('report', '00:10:00', '{report}', false, false, true);


--
-- Data for Name: migration; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.migration VALUES ('0001_registry', '1e9b321c5071b469246367f5e40d4e37e530a32ecc66de171bfb550c516152cd', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0002_chunks', 'de39fa8cd072f189f969be2d05ca42b0780c3272adab452ea907bc7112851661', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0003_questions', '36be0b16d4b3c601ec07f3379b4d7499bb76487aa8948a6957e0b3cb362691d4', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0004_runnable', '4e93f0c1e3e7598bc97e38b85153a01a2b4a233ca410eb8595b7cea1de13ed40', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0005_locks', 'a71cb36ba706127dce5833d06d1ce985f9e6147018ce8e5dfc0bc90765262673', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0006_triggers', '09a1f5fc729ebeb6f5ae67ee11ae94550b7547c5c0cb7b6d06c982ab1a1c09a1', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0007_registry_triggers', '9cfe397b35c30471a8f9ee9968edae78fe67cda2675d454595100b12f863657b', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0008_claim', '6e653e20df7812534b9f9a2b2a903bb50e50994a224f6b848344bd41ba75de84', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0009_publish', 'b77b737304aaa9c356a1d7ab63d74e611865bcdf0f8b71b44f7a02fba2e268cb', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0010_see', 'd631ed36f8d7ea6376832cd331a865f52d9b7ddcf567b69374c55c6f266bef9a', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0011_steering', '8ac6bf6f67d98b3b31d490bf254c437b9ab06b3d9b420f03e5d6c02e513b9bce', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0012_reported', '15da023ff8fd3c87455109ef63b84accecc4b05906a9d8007622a2fac315dc27', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0013_sweep', 'c6db7200648b4151a5355f58b70f9a8df65e28293ab81168cf049c068cf6e66e', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0014_terms', 'db4efe37c04245a252257a4289d53f9191eb7fe413f534be5c96ff08db3efe69', '2026-11-18 15:28:45.016369+00');
INSERT INTO dataflow.migration VALUES ('0015_registry_history', '99299864517f9cfb63d36b34d4b54703b3200b6767e6c57dd45150bfee25306b', '2026-11-18 15:28:45.016369+00');


--
-- Data for Name: registry_event; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-18 15:28:45.119113+00', 'dataset', 'raw', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": "/warehouse/raw", "timezone": "UTC", "username": null, "datasetid": "raw", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "refused", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-18 15:28:45.119113+00', 'dataset', 'tidy', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": "/warehouse/tidy", "timezone": "UTC", "username": null, "datasetid": "tidy", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "refused", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (3, '2026-11-18 15:28:45.119113+00', 'dataset', 'report', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": "/warehouse/report", "timezone": "UTC", "username": null, "datasetid": "report", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "refused", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (4, '2026-11-18 15:28:45.119113+00', 'dataset', 'notes', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": "/warehouse/notes", "timezone": "UTC", "username": null, "datasetid": "notes", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "refused", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (5, '2026-11-18 15:28:45.119113+00', 'dataset', 'feed', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": null, "timezone": "UTC", "username": null, "datasetid": "feed", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "trusted", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (6, '2026-11-18 15:28:45.119113+00', 'dataset', 'codes', NULL, '{"owner": null, "domain": null, "repeats": false, "database": null, "hostname": null, "location": null, "timezone": "UTC", "username": null, "datasetid": "codes", "tablename": null, "partitions": null, "schemaname": null, "description": null, "schema_hash": null, "foreign_ready": "trusted", "skipped_input": "waits"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (7, '2026-11-18 15:28:45.119113+00', 'job', 'clean', NULL, '{"jobid": "clean", "mapping": "equal", "itemtype": "IN", "datasetid": "raw", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (8, '2026-11-18 15:28:45.119113+00', 'job', 'clean', NULL, '{"jobid": "clean", "mapping": "equal", "itemtype": "OUT", "datasetid": "notes", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (9, '2026-11-18 15:28:45.119113+00', 'job', 'clean', NULL, '{"jobid": "clean", "mapping": "equal", "itemtype": "OUT", "datasetid": "tidy", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (10, '2026-11-18 15:28:45.119113+00', 'job', 'load', NULL, '{"jobid": "load", "mapping": "equal", "itemtype": "IN", "datasetid": "feed", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (11, '2026-11-18 15:28:45.119113+00', 'job', 'load', NULL, '{"jobid": "load", "mapping": "equal", "itemtype": "OUT", "datasetid": "raw", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (12, '2026-11-18 15:28:45.119113+00', 'job', 'report', NULL, '{"jobid": "report", "mapping": "all", "itemtype": "IN", "datasetid": "codes", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (13, '2026-11-18 15:28:45.119113+00', 'job', 'report', NULL, '{"jobid": "report", "mapping": "listed", "itemtype": "IN", "datasetid": "tidy", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (14, '2026-11-18 15:28:45.119113+00', 'job', 'report', NULL, '{"jobid": "report", "mapping": "equal", "itemtype": "MODE", "datasetid": null, "itemvalue": "full"}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (15, '2026-11-18 15:28:45.119113+00', 'job', 'report', NULL, '{"jobid": "report", "mapping": "equal", "itemtype": "OUT", "datasetid": "report", "itemvalue": null}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (16, '2026-11-18 15:28:45.119113+00', 'job_policy', 'load', NULL, '{"jobid": "load", "lease": "366 days", "cascade": false, "ordered": false, "catch_up": false, "retry_on": null, "retry_delay": "00:00:00", "max_attempts": 3}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (17, '2026-11-18 15:28:45.119113+00', 'job_policy', 'clean', NULL, '{"jobid": "clean", "lease": "366 days", "cascade": false, "ordered": false, "catch_up": false, "retry_on": null, "retry_delay": "00:00:00", "max_attempts": 5}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (18, '2026-11-18 15:28:45.119113+00', 'job_policy', 'report', NULL, '{"jobid": "report", "lease": "00:10:00", "cascade": false, "ordered": false, "catch_up": false, "retry_on": null, "retry_delay": "00:00:00", "max_attempts": 3}', false, NULL, 'odf', 'ada@example');
INSERT INTO dataflow.registry_event OVERRIDING SYSTEM VALUE VALUES (19, '2026-11-18 15:28:45.66518+00', 'dataset', 'raw', '{"hostname": null, "username": null}', '{"hostname": "h", "username": "u"}', true, NULL, 'odf', NULL);


--
-- Data for Name: reported; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.reported VALUES ('dagster', 1);


--
-- Data for Name: runnable; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.runnable VALUES ('load', '2024-01-11', false, '00000000000000002024-00000000000000000001-00000000000000000011', '2026-11-18 15:28:45.16797+00', NULL, '[{"dataid": "2024-01-11", "version": null, "datasetid": "feed", "manifest_id": null}]', 0, false);
INSERT INTO dataflow.runnable VALUES ('load', '2024-01-12', false, '00000000000000002024-00000000000000000001-00000000000000000012', '2026-11-18 15:28:45.16797+00', NULL, '[{"dataid": "2024-01-12", "version": null, "datasetid": "feed", "manifest_id": null}]', 0, false);
INSERT INTO dataflow.runnable VALUES ('clean', '2024-01-10', false, '00000000000000002024-00000000000000000001-00000000000000000010', '2026-11-18 15:28:45.354325+00', NULL, '[{"dataid": "2024-01-10", "version": 1, "datasetid": "raw", "manifest_id": 10}]', 0, true);
INSERT INTO dataflow.runnable VALUES ('clean', '2024-01-09', false, '00000000000000002024-00000000000000000001-00000000000000000009', '2026-11-18 15:28:45.445399+00', NULL, '[{"dataid": "2024-01-09", "version": 1, "datasetid": "raw", "manifest_id": 9}]', 0, false);
INSERT INTO dataflow.runnable VALUES ('clean', '2024-01-06', true, '00000000000000002024-00000000000000000001-00000000000000000006', '2026-11-18 15:28:45.436126+00', NULL, '[{"dataid": "2024-01-06", "version": 1, "datasetid": "raw", "manifest_id": 6}]', 0, false);
INSERT INTO dataflow.runnable VALUES ('report', '2024-01-03', false, '00000000000000002024-00000000000000000001-00000000000000000003', '2026-11-18 15:28:45.486807+00', NULL, '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-03", "version": 1, "datasetid": "tidy", "manifest_id": 16}]', 0, false);


--
-- Data for Name: status_transition; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.status_transition VALUES ('PENDING', 'RUNNING');
INSERT INTO dataflow.status_transition VALUES ('PENDING', 'READY');
INSERT INTO dataflow.status_transition VALUES ('PENDING', 'FAILED');
INSERT INTO dataflow.status_transition VALUES ('PENDING', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('PENDING', 'HOLD');
INSERT INTO dataflow.status_transition VALUES ('PENDING', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('RUNNING', 'READY');
INSERT INTO dataflow.status_transition VALUES ('RUNNING', 'FAILED');
INSERT INTO dataflow.status_transition VALUES ('RUNNING', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('RUNNING', 'HOLD');
INSERT INTO dataflow.status_transition VALUES ('RUNNING', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('READY', 'RUNNING');
INSERT INTO dataflow.status_transition VALUES ('READY', 'FAILED');
INSERT INTO dataflow.status_transition VALUES ('READY', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('READY', 'HOLD');
INSERT INTO dataflow.status_transition VALUES ('READY', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('FAILED', 'RUNNING');
INSERT INTO dataflow.status_transition VALUES ('FAILED', 'READY');
INSERT INTO dataflow.status_transition VALUES ('FAILED', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('FAILED', 'HOLD');
INSERT INTO dataflow.status_transition VALUES ('FAILED', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('RESUBMIT', 'RUNNING');
INSERT INTO dataflow.status_transition VALUES ('RESUBMIT', 'READY');
INSERT INTO dataflow.status_transition VALUES ('RESUBMIT', 'FAILED');
INSERT INTO dataflow.status_transition VALUES ('RESUBMIT', 'HOLD');
INSERT INTO dataflow.status_transition VALUES ('RESUBMIT', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('HOLD', 'PENDING');
INSERT INTO dataflow.status_transition VALUES ('HOLD', 'READY');
INSERT INTO dataflow.status_transition VALUES ('HOLD', 'FAILED');
INSERT INTO dataflow.status_transition VALUES ('HOLD', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('HOLD', 'SKIPPED');
INSERT INTO dataflow.status_transition VALUES ('SKIPPED', 'RESUBMIT');
INSERT INTO dataflow.status_transition VALUES ('SKIPPED', 'HOLD');


--
-- Data for Name: verdict; Type: TABLE DATA; Schema: dataflow; Owner: -
--

INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (1, 'load', '2024-01-01', '2026-11-18 15:28:45.222597+00', 1, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-01", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (2, 'load', '2024-01-02', '2026-11-18 15:28:45.222597+00', 2, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-02", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (3, 'load', '2024-01-03', '2026-11-18 15:28:45.222597+00', 3, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-03", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (4, 'load', '2024-01-04', '2026-11-18 15:28:45.222597+00', 4, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-04", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (5, 'load', '2024-01-05', '2026-11-18 15:28:45.222597+00', 5, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-05", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (6, 'load', '2024-01-06', '2026-11-18 15:28:45.222597+00', 6, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-06", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (7, 'load', '2024-01-07', '2026-11-18 15:28:45.222597+00', 7, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-07", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (8, 'load', '2024-01-08', '2026-11-18 15:28:45.222597+00', 8, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-08", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (9, 'load', '2024-01-09', '2026-11-18 15:28:45.222597+00', 9, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-09", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (10, 'load', '2024-01-10', '2026-11-18 15:28:45.222597+00', 10, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-10", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (11, 'clean', '2024-01-01', '2026-11-18 15:28:45.362661+00', 11, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-01", "version": 1, "datasetid": "raw", "manifest_id": 1}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (12, 'clean', '2024-01-02', '2026-11-18 15:28:45.385747+00', 12, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-02", "version": 1, "datasetid": "raw", "manifest_id": 2}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (13, 'clean', '2024-01-03', '2026-11-18 15:28:45.39716+00', 13, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-03", "version": 1, "datasetid": "raw", "manifest_id": 3}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (14, 'clean', '2024-01-04', '2026-11-18 15:28:45.409569+00', 14, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-04", "version": 1, "datasetid": "raw", "manifest_id": 4}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (15, 'clean', '2024-01-05', '2026-11-18 15:28:45.41337+00', 15, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-05", "version": 1, "datasetid": "raw", "manifest_id": 5}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (16, 'clean', '2024-01-06', '2026-11-18 15:28:45.425551+00', 16, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-06", "version": 1, "datasetid": "raw", "manifest_id": 6}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (17, 'load', '2024-01-01', '2026-11-18 15:28:45.470073+00', NULL, NULL, NULL, NULL, NULL, 'job load reads feed/2024-01-01 already; wait for it, or resubmit its output', 'LOCKED', '[{"dataid": "2024-01-01", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (18, 'load', '2024-01-01', '2026-11-18 15:28:45.470073+00', 17, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "2024-01-01", "version": null, "datasetid": "feed", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (19, 'report', '2024-01-01', '2026-11-18 15:28:45.486807+00', NULL, NULL, 'tidy/2024-01-01 is out of date: made from raw/2024-01-01 version 1, current is version 2; resubmit it', NULL, NULL, NULL, 'WRONG_DATA', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-01", "version": 1, "datasetid": "tidy", "manifest_id": 12}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (20, 'report', '2024-01-02', '2026-11-18 15:28:45.516574+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (21, 'report', '2024-01-03', '2026-11-18 15:28:45.516574+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-03", "version": 1, "datasetid": "tidy", "manifest_id": 16}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (22, 'report', '2024-01-04', '2026-11-18 15:28:45.516574+00', NULL, 'tidy/2024-01-04 is RUNNING (job clean, since 2026-11-18 15:28:45, claim 14); wait for its producer, or resubmit it if it failed', NULL, 'nothing is published for tidy/2024-01-04; wait for its producer', 'nothing is published for tidy/2024-01-04; wait for its producer', 'tidy/2024-01-04 is RUNNING (job clean, since 2026-11-18 15:28:45, claim 14); wait until it is released', 'DATA_NOT_READY', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-04", "version": null, "datasetid": "tidy", "manifest_id": null}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (23, 'report', '2024-01-02', '2026-11-18 15:28:45.522455+00', 18, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (24, 'report', '2024-01-02', '2026-11-18 15:28:45.549386+00', 19, NULL, NULL, NULL, NULL, NULL, NULL, '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-02", "version": 1, "datasetid": "tidy", "manifest_id": 14}]', false);
INSERT INTO dataflow.verdict OVERRIDING SYSTEM VALUE VALUES (25, 'report', '2024-01-01', '2026-11-18 15:28:45.59738+00', 20, NULL, 'tidy/2024-01-01 is out of date: made from raw/2024-01-01 version 1, current is version 2; resubmit it', NULL, NULL, NULL, 'WRONG_DATA', '[{"dataid": "iso", "version": null, "datasetid": "codes", "manifest_id": null}, {"dataid": "2024-01-01", "version": 1, "datasetid": "tidy", "manifest_id": 12}]', true);


--
-- Data for Name: version_sweep; Type: TABLE DATA; Schema: dataflow; Owner: -
--



--
-- Name: chunk_event_event_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.chunk_event_event_id_seq', 124, true);


--
-- Name: claim_id; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.claim_id', 20, true);


--
-- Name: data_manifest_manifest_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.data_manifest_manifest_id_seq', 20, true);


--
-- Name: job_event_event_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.job_event_event_id_seq', 2, true);


--
-- Name: job_run_run_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.job_run_run_id_seq', 1, true);


--
-- Name: registry_event_event_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.registry_event_event_id_seq', 19, true);


--
-- Name: verdict_verdict_id_seq; Type: SEQUENCE SET; Schema: dataflow; Owner: -
--

SELECT pg_catalog.setval('dataflow.verdict_verdict_id_seq', 25, true);


--
-- Name: chunk_event chunk_event_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.chunk_event
    ADD CONSTRAINT chunk_event_pkey PRIMARY KEY (datasetid, dataid, event_id);


--
-- Name: chunk_input chunk_input_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.chunk_input
    ADD CONSTRAINT chunk_input_pkey PRIMARY KEY (jobid, dataid, datasetid, input_dataid);


--
-- Name: data_manifest data_manifest_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.data_manifest
    ADD CONSTRAINT data_manifest_pkey PRIMARY KEY (manifest_id);


--
-- Name: dataset dataset_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.dataset
    ADD CONSTRAINT dataset_pkey PRIMARY KEY (datasetid);


--
-- Name: datastatus datastatus_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.datastatus
    ADD CONSTRAINT datastatus_pkey PRIMARY KEY (datasetid, jobid, dataid);


--
-- Name: job_control job_control_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job_control
    ADD CONSTRAINT job_control_pkey PRIMARY KEY (jobid);


--
-- Name: job_event job_event_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job_event
    ADD CONSTRAINT job_event_pkey PRIMARY KEY (event_id);


--
-- Name: job_policy job_policy_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job_policy
    ADD CONSTRAINT job_policy_pkey PRIMARY KEY (jobid);


--
-- Name: job_run job_run_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job_run
    ADD CONSTRAINT job_run_pkey PRIMARY KEY (run_id);


--
-- Name: job_terms job_terms_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job_terms
    ADD CONSTRAINT job_terms_pkey PRIMARY KEY (jobid);


--
-- Name: job job_uses_a_dataset_once; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.job
    ADD CONSTRAINT job_uses_a_dataset_once UNIQUE (datasetid, jobid);


--
-- Name: migration migration_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (name);


--
-- Name: data_manifest one_manifest_per_version; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.data_manifest
    ADD CONSTRAINT one_manifest_per_version UNIQUE (datasetid, dataid, version);


--
-- Name: registry_event registry_event_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.registry_event
    ADD CONSTRAINT registry_event_pkey PRIMARY KEY (event_id);


--
-- Name: reported reported_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.reported
    ADD CONSTRAINT reported_pkey PRIMARY KEY (orchestrator, manifest_id);


--
-- Name: runnable runnable_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.runnable
    ADD CONSTRAINT runnable_pkey PRIMARY KEY (jobid, dataid);


--
-- Name: status_transition status_transition_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.status_transition
    ADD CONSTRAINT status_transition_pkey PRIMARY KEY (old_status, new_status);


--
-- Name: verdict verdict_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.verdict
    ADD CONSTRAINT verdict_pkey PRIMARY KEY (jobid, dataid, verdict_id);


--
-- Name: version_sweep version_sweep_pkey; Type: CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.version_sweep
    ADD CONSTRAINT version_sweep_pkey PRIMARY KEY (manifest_id);


--
-- Name: chunk_event_in_time; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX chunk_event_in_time ON dataflow.chunk_event USING brin (at) WITH (pages_per_range='32', autosummarize='on');


--
-- Name: chunk_input_by_input; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX chunk_input_by_input ON dataflow.chunk_input USING btree (datasetid, input_dataid);


--
-- Name: data_manifest_by_content; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX data_manifest_by_content ON dataflow.data_manifest USING btree (datasetid, content_digest) WHERE (content_digest IS NOT NULL);


--
-- Name: in_rows_without_a_pin; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX in_rows_without_a_pin ON dataflow.datastatus USING btree (datasetid, dataid) WHERE ((locktype = 'IN'::text) AND (manifest_id IS NULL));


--
-- Name: job_by_id; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX job_by_id ON dataflow.job USING btree (jobid, itemtype);


--
-- Name: job_event_by_job; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX job_event_by_job ON dataflow.job_event USING btree (jobid, event_id);


--
-- Name: job_run_by_external_id; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX job_run_by_external_id ON dataflow.job_run USING btree (external_id) WHERE (external_id IS NOT NULL);


--
-- Name: job_run_by_job; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX job_run_by_job ON dataflow.job_run USING btree (jobid, run_id);


--
-- Name: job_sets_a_variable_once; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE UNIQUE INDEX job_sets_a_variable_once ON dataflow.job USING btree (jobid, itemtype) WHERE (datasetid IS NULL);


--
-- Name: one_live_claim_per_chunk; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE UNIQUE INDEX one_live_claim_per_chunk ON dataflow.datastatus USING btree (datasetid, dataid) WHERE ((locktype = 'OUT'::text) AND (claim_id IS NOT NULL));


--
-- Name: one_open_run_of_an_orchestrator; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE UNIQUE INDEX one_open_run_of_an_orchestrator ON dataflow.job_run USING btree (jobid, external_id) WHERE (ended IS NULL);


--
-- Name: one_producer_per_dataset; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE UNIQUE INDEX one_producer_per_dataset ON dataflow.job USING btree (datasetid) WHERE (itemtype = 'OUT'::text);


--
-- Name: out_rows; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX out_rows ON dataflow.datastatus USING btree (datasetid, dataid) WHERE (locktype = 'OUT'::text);


--
-- Name: out_rows_that_need_attention; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX out_rows_that_need_attention ON dataflow.datastatus USING btree (jobid, status, dataid) WHERE ((locktype = 'OUT'::text) AND (status = ANY (ARRAY['FAILED'::text, 'RESUBMIT'::text, 'HOLD'::text, 'SKIPPED'::text])));


--
-- Name: ready_without_a_version; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX ready_without_a_version ON dataflow.datastatus USING btree (modified, datasetid, dataid) WHERE ((locktype = 'OUT'::text) AND (status = 'READY'::text) AND (manifest_id IS NULL));


--
-- Name: registry_event_by_name; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX registry_event_by_name ON dataflow.registry_event USING btree (name, event_id);


--
-- Name: runnable_but_blocked; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX runnable_but_blocked ON dataflow.runnable USING btree (jobid) WHERE (blocked IS NOT NULL);


--
-- Name: runnable_in_order; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX runnable_in_order ON dataflow.runnable USING btree (jobid, resubmit DESC, sort_key, dataid) WHERE (blocked IS NULL);


--
-- Name: version_sweep_to_do; Type: INDEX; Schema: dataflow; Owner: -
--

CREATE INDEX version_sweep_to_do ON dataflow.version_sweep USING btree (manifest_id) WHERE (removed IS NULL);


--
-- Name: datastatus after_delete; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER after_delete AFTER DELETE ON dataflow.datastatus REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_delete();


--
-- Name: datastatus after_insert; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER after_insert AFTER INSERT ON dataflow.datastatus REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_insert();


--
-- Name: datastatus after_update; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER after_update AFTER UPDATE ON dataflow.datastatus REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_update();


--
-- Name: chunk_input chunk_input_deleted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER chunk_input_deleted AFTER DELETE ON dataflow.chunk_input REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_listing();


--
-- Name: chunk_input chunk_input_inserted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER chunk_input_inserted AFTER INSERT ON dataflow.chunk_input REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_listing();


--
-- Name: chunk_input chunk_input_updated; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER chunk_input_updated AFTER UPDATE ON dataflow.chunk_input REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_listing();


--
-- Name: job_control control_changed; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER control_changed AFTER INSERT OR DELETE OR UPDATE ON dataflow.job_control FOR EACH ROW EXECUTE FUNCTION dataflow.after_control_change();


--
-- Name: dataset dataset_deleted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER dataset_deleted AFTER DELETE ON dataflow.dataset REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_dataset_change();


--
-- Name: dataset dataset_inserted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER dataset_inserted AFTER INSERT ON dataflow.dataset REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_dataset_change();


--
-- Name: dataset dataset_updated; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER dataset_updated AFTER UPDATE ON dataflow.dataset REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_dataset_change();


--
-- Name: job job_deleted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER job_deleted AFTER DELETE ON dataflow.job REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_job_change();


--
-- Name: job job_inserted; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER job_inserted AFTER INSERT ON dataflow.job REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_job_change();


--
-- Name: job job_updated; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER job_updated AFTER UPDATE ON dataflow.job REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION dataflow.after_job_change();


--
-- Name: dataset keep_modified; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_modified BEFORE INSERT OR UPDATE ON dataflow.dataset FOR EACH ROW EXECUTE FUNCTION dataflow.keep_modified();


--
-- Name: job keep_modified; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_modified BEFORE INSERT OR UPDATE ON dataflow.job FOR EACH ROW EXECUTE FUNCTION dataflow.keep_modified();


--
-- Name: job_control keep_modified; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_modified BEFORE INSERT OR UPDATE ON dataflow.job_control FOR EACH ROW EXECUTE FUNCTION dataflow.keep_modified();


--
-- Name: job_policy keep_modified; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_modified BEFORE INSERT OR UPDATE ON dataflow.job_policy FOR EACH ROW EXECUTE FUNCTION dataflow.keep_modified();


--
-- Name: datastatus keep_new_row; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_new_row BEFORE INSERT ON dataflow.datastatus FOR EACH ROW WHEN ((new.claim_id IS NULL)) EXECUTE FUNCTION dataflow.keep_row();


--
-- Name: datastatus keep_row; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_row BEFORE UPDATE ON dataflow.datastatus FOR EACH ROW WHEN ((current_setting('dataflow.publishing'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION dataflow.keep_row();


--
-- Name: job keep_terms; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_terms AFTER INSERT OR DELETE OR UPDATE ON dataflow.job FOR EACH ROW EXECUTE FUNCTION dataflow.keep_terms();


--
-- Name: job_control keep_terms; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_terms AFTER INSERT OR DELETE ON dataflow.job_control FOR EACH ROW EXECUTE FUNCTION dataflow.keep_terms();


--
-- Name: job_policy keep_terms; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER keep_terms AFTER INSERT OR DELETE OR UPDATE ON dataflow.job_policy FOR EACH ROW EXECUTE FUNCTION dataflow.keep_terms();


--
-- Name: job_policy policy_changed; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER policy_changed AFTER INSERT OR DELETE OR UPDATE ON dataflow.job_policy FOR EACH ROW EXECUTE FUNCTION dataflow.after_policy_change();


--
-- Name: dataset record_definition; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER record_definition AFTER INSERT OR DELETE OR UPDATE ON dataflow.dataset FOR EACH ROW EXECUTE FUNCTION dataflow.record_definition('datasetid');


--
-- Name: job record_definition; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER record_definition AFTER INSERT OR DELETE OR UPDATE ON dataflow.job FOR EACH ROW EXECUTE FUNCTION dataflow.record_definition('jobid');


--
-- Name: job_policy record_definition; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER record_definition AFTER INSERT OR DELETE OR UPDATE ON dataflow.job_policy FOR EACH ROW EXECUTE FUNCTION dataflow.record_definition('jobid');


--
-- Name: data_manifest refuse_change; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER refuse_change BEFORE UPDATE ON dataflow.data_manifest FOR EACH STATEMENT EXECUTE FUNCTION dataflow.refuse_change();


--
-- Name: data_manifest refuse_swept; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER refuse_swept BEFORE INSERT ON dataflow.data_manifest FOR EACH ROW WHEN ((new.claim_id IS NULL)) EXECUTE FUNCTION dataflow.refuse_swept();


--
-- Name: datastatus refuse_truncate; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON dataflow.datastatus FOR EACH STATEMENT EXECUTE FUNCTION dataflow.refuse_truncate();


--
-- Name: job wait_for_registry; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER wait_for_registry BEFORE INSERT OR DELETE OR UPDATE ON dataflow.job FOR EACH STATEMENT EXECUTE FUNCTION dataflow.wait_for_registry();


--
-- Name: job_control wait_for_registry; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER wait_for_registry BEFORE INSERT OR DELETE ON dataflow.job_control FOR EACH STATEMENT EXECUTE FUNCTION dataflow.wait_for_registry();


--
-- Name: job_policy wait_for_registry; Type: TRIGGER; Schema: dataflow; Owner: -
--

CREATE TRIGGER wait_for_registry BEFORE INSERT OR DELETE OR UPDATE ON dataflow.job_policy FOR EACH STATEMENT EXECUTE FUNCTION dataflow.wait_for_registry();


--
-- Name: version_sweep version_sweep_manifest_id_fkey; Type: FK CONSTRAINT; Schema: dataflow; Owner: -
--

ALTER TABLE ONLY dataflow.version_sweep
    ADD CONSTRAINT version_sweep_manifest_id_fkey FOREIGN KEY (manifest_id) REFERENCES dataflow.data_manifest(manifest_id);


--
-- PostgreSQL database dump complete
--


