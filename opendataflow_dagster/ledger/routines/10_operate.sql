-- What operators and their programs do beyond typing a status. The columns and tables that these functions write are closed
-- to them, so that nobody makes a claim, a version or a run that never was.

-- Every claim that is still held has its lease from now on. A row that another transaction holds keeps its lease (is_busy) and
-- delays no other.
create function dataflow.renew(p_datasetids text[], p_jobids text[], p_dataids text[], p_claim_ids bigint[], p_leases interval[])
    returns table (claim_id bigint, lease_until timestamptz, is_busy boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    with given as materialized (
        select g.*, s.lease_until
          from unnest(p_datasetids, p_jobids, p_dataids, p_claim_ids, p_leases) as g(datasetid, jobid, dataid, claim_id, lease)
         cross join lateral (select t.lease_until from dataflow.datastatus t
                              where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                                and t.claim_id = g.claim_id and t.lease_until > clock_timestamp() offset 0) s
    ), held as materialized (
        select g.lease, s.place
          from given g
         cross join lateral (select t.ctid as place from dataflow.datastatus t
                              where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                                and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                                for update skip locked) s
    ), renewed as (
        update dataflow.datastatus s set lease_until = clock_timestamp() + least(h.lease, '366 days')
          from held h where s.ctid = h.place
        returning s.datasetid, s.claim_id, s.lease_until
    )
    select g.claim_id, coalesce(r.lease_until, g.lease_until), r.claim_id is null
      from given g left join renewed r on r.claim_id = g.claim_id and r.datasetid = g.datasetid;
end
$$;

-- Chunks that were made outside this system become READY, with a version where a manifest is given.
create function dataflow.announce(p_datasetid text, p_dataids text[], p_manifests jsonb[]) returns setof text
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    if not exists (select from dataflow.dataset d where d.datasetid = p_datasetid)
       or exists (select from dataflow.job j where j.datasetid = p_datasetid and j.itemtype = 'OUT') then
        raise exception 'DataSet % is not registered, or a job produces it', p_datasetid
            using errcode = 'DF002', hint = 'register it, or run the job';
    end if;
    if exists (select from unnest(p_manifests) m where m is not null and dataflow.is_readable(m ->> 'location', m -> 'files', m -> 'checks') is not true) then
        raise exception 'a manifest of DataSet % is not readable', p_datasetid
            using errcode = 'DF002', hint = 'give location, files and checks as data_manifest describes them, without . and .. in a path';
    end if;
    -- When the same content is announced as two chunks at the same time, the second must see the first. The lock covers the
    -- whole DataSet rather than each content: a server holds only some thousands of locks.
    perform pg_advisory_xact_lock(hashtextextended('announce ' || p_datasetid, 0));
    -- Here, because new chunks come before those that are announced again, and wake their consumers.
    if exists (select from dataflow.datastatus s where s.datasetid = p_datasetid and s.dataid = any (p_dataids) and s.locktype = 'OUT') then
        perform dataflow.lock_versions('{}', array[p_datasetid], p_dataids);
    end if;
    return query
    with given as materialized (
        select g.dataid, g.manifest from unnest(p_dataids, p_manifests) as g(dataid, manifest)
    ), made as (
        insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, files, bytes, row_count, schema_hash, content_digest, checks,
                                            code_version)
        select p_datasetid, g.dataid,
               1 + coalesce((select max(m.version) from dataflow.data_manifest m where m.datasetid = p_datasetid and m.dataid = g.dataid), 0),
               'announced', g.manifest ->> 'location', g.manifest -> 'files', (g.manifest ->> 'bytes')::bigint, (g.manifest ->> 'row_count')::bigint,
               g.manifest ->> 'schema_hash', g.manifest ->> 'content_digest', g.manifest -> 'checks',
               g.manifest ->> 'code_version'
          from given g where g.manifest is not null
        returning dataid, manifest_id, code_version
    )
    insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, manifest_id, code_version)
    select p_datasetid, 'announced', g.dataid, 'OUT', 'READY', m.manifest_id, m.code_version
      from given g left join made m on m.dataid = g.dataid
        on conflict (datasetid, jobid, dataid) do update
       set status = 'READY', manifest_id = excluded.manifest_id, code_version = excluded.code_version
     where s.status is distinct from 'READY' or excluded.manifest_id is not null
    returning s.dataid::text;
end
$$;

-- Publishes an old version again under a new number. No bytes move, and consumers become stale. Null: the chunk is not free.
create function dataflow.rollback(p_manifest_id bigint, p_reason text) returns integer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    version integer;
begin
    with old as materialized (
        select m.*, pg_advisory_xact_lock(dataflow.content_lock(m.datasetid, m.content_digest))
          from dataflow.data_manifest m where m.manifest_id = p_manifest_id
    ), made as (
        insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, files, bytes, row_count, schema_hash, content_digest,
                                            checks, code_version, inputs)
        select m.datasetid, m.dataid, (select max(n.version) + 1 from dataflow.data_manifest n where n.datasetid = m.datasetid and n.dataid = m.dataid),
               m.jobid, m.location, m.files, m.bytes, m.row_count, m.schema_hash, m.content_digest, m.checks, m.code_version, m.inputs
          from old m
         where exists (select from dataflow.datastatus s
                        where s.datasetid = m.datasetid and s.dataid = m.dataid and s.locktype = 'OUT' and s.claim_id is null and s.status <> 'HOLD')
        returning datasetid, dataid, manifest_id, data_manifest.version, data_manifest.code_version
    ), ready as (
        update dataflow.datastatus s set status = 'READY', manifest_id = m.manifest_id, code_version = m.code_version, reason = p_reason
          from made m
         where s.datasetid = m.datasetid and s.dataid = m.dataid and s.locktype = 'OUT' and s.claim_id is null and s.status <> 'HOLD'
        returning m.version
    )
    select r.version into version from ready r limit 1;
    return version;
end
$$;

-- Runs. One that ended is not changed any more, and only one that claimed nothing can be deleted.

create function dataflow.begin_run(p_jobid text, p_runner text, p_external_id text) returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    insert into dataflow.job_run (jobid, runner, external_id) values (p_jobid, p_runner, p_external_id) returning run_id;
end;

create function dataflow.record_heartbeat(p_run_id bigint) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    update dataflow.job_run set heard = now() where run_id = p_run_id and ended is null;
end;

create function dataflow.end_run(p_run_id bigint, p_outcome text) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    update dataflow.job_run set ended = now(), outcome = p_outcome where run_id = p_run_id and ended is null;
end;

-- Runs that hold nothing and that their orchestrator never ended.
create function dataflow.end_forgotten_runs() returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    with ended as (
        update dataflow.job_run r set ended = now(), outcome = 'FAILED'
         where r.ended is null and r.started < now() - interval '1 day'
           and not exists (select from dataflow.datastatus s where s.locktype = 'OUT' and s.claim_id is not null and s.run_id = r.run_id)
        returning r.run_id
    )
    select count(*) from ended;
end;

create function dataflow.delete_empty_run(p_run_id bigint) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    delete from dataflow.job_run r
     where r.run_id = p_run_id and not exists (select from dataflow.chunk_event e where e.at >= r.started and e.run_id = r.run_id);
end;

-- The script that runs for a Job is the code of its outputs, unless their code is declared, or is no script.
create function dataflow.register_script(p_jobid text, p_code_version text) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    if p_code_version !~ '^script:[0-9a-f]{16}$' then
        raise exception '% is not the fingerprint of a script', quote_literal(p_code_version) using errcode = 'DF002', hint = 'odf run records it';
    end if;
    update dataflow.dataset d set code_version = p_code_version
      from dataflow.job j
     where j.jobid = p_jobid and j.itemtype = 'OUT' and d.datasetid = j.datasetid
       and coalesce(d.code_version, 'script:') ~ '^script:' and d.code_version is distinct from p_code_version;
end
$$;

-- Passwords, encrypted. Nobody reads the column itself.

-- What the scripts of a Job get: its DataSets, as far as they are registered, and its variables.
create function dataflow.script_items(p_jobid text)
    returns table (itemtype text, itemvalue text, datasetid text, hostname text, database text, schemaname text, tablename text,
                   username text, encryptedpass text, location text)
    language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
    select j.itemtype, j.itemvalue, j.datasetid, d.hostname, d.database, d.schemaname, d.tablename, d.username, d.encryptedpass, d.location
      from dataflow.job j
      left join dataflow.dataset d on d.datasetid = j.datasetid
     where j.jobid = p_jobid
     order by j.datasetid, j.itemtype;
end;

-- For an administrator, who verifies and rotates them. p_lock: nobody else changes them until the transaction ends.
create function dataflow.stored_passwords(p_lock boolean) returns table (datasetid text, encryptedpass text)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if p_lock then
        perform from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid for update;
    end if;
    return query select d.datasetid::text, d.encryptedpass from dataflow.dataset d where d.encryptedpass <> '' order by d.datasetid;
end
$$;
