-- The sweep: which versions may lose their files. Manifests stay permanently.

-- Of a whole DataSet, not of each chunk: a server has room for some thousands of locks.
create function dataflow.sweep_lock(p_datasetid text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended('sweep ' || p_datasetid, 0);

-- The versions that live claims have pinned. An IN row that two running chunks of a Job share has the pin of the last.
create function dataflow.versions_read() returns setof bigint
    language sql stable
begin atomic
    select i.manifest_id
      from dataflow.datastatus s
      join dataflow.verdict v on v.jobid = s.jobid and v.dataid = s.dataid and v.claim_id = s.claim_id
     cross join lateral jsonb_to_recordset(v.inputs) as i(manifest_id bigint)
     where s.locktype = 'OUT' and s.claim_id is not null and i.manifest_id is not null;
end;

-- The versions of all DataSets in each of these folders, below it, or above it. Is one needed (current, or read by a live claim),
-- and may it lose its files?
create function dataflow.versions_near(p_folders text[])
    returns table (folder text, manifest_id bigint, datasetid text, dataid text, version integer, is_needed boolean, is_marked boolean)
    language sql stable
begin atomic
    with read as materialized (
        select r.manifest_id from dataflow.versions_read() r(manifest_id)
    )
    select f.folder, m.manifest_id, m.datasetid, m.dataid, m.version,
           m.manifest_id in (select r.manifest_id from read r)
           or exists (select from dataflow.datastatus s
                       where s.datasetid = m.datasetid and s.dataid = m.dataid and s.locktype = 'OUT' and s.manifest_id = m.manifest_id),
           exists (select from dataflow.version_sweep w where w.manifest_id = m.manifest_id)
      from unnest(p_folders) f(folder)
     cross join lateral unnest(dataflow.spellings(f.folder)) s(spelling)
     cross join lateral (select n.* from dataflow.data_manifest n where n.location collate "C" = any (dataflow.folders_above(s.spelling))
                         union all
                         select n.* from dataflow.data_manifest n
                          where n.location collate "C" > s.spelling || '/' and n.location collate "C" < s.spelling || '0') m
     where f.folder <> 'elsewhere';
end;

-- A version that is not current, that nobody reads, and that retention does not keep. Versions that share a folder,
-- as after a rollback, go together or stay together; so do versions of other DataSets that are needed.
create function dataflow.versions_to_drop(p_datasetid text, p_versions integer, p_time interval, p_grace interval)
    returns setof dataflow.data_manifest
    language sql stable
begin atomic
    with expired as materialized (
        select m.*
          from (select r.manifest_id, bool_and(r.may_go) over (partition by r.dataid, r.location) as all_may_go
                  from (select n.manifest_id, n.dataid, n.location,
                               n.place > coalesce(p_versions, 1)
                               and n.superseded < now() - greatest(coalesce(p_time, '0'), p_grace)
                               and not exists (select from dataflow.datastatus s
                                                where s.datasetid = p_datasetid and s.dataid = n.dataid and s.manifest_id = n.manifest_id)
                               and n.manifest_id not in (select dataflow.versions_read()) as may_go
                          from (select v.manifest_id, v.dataid, v.location,
                                       row_number() over newest_first as place,
                                       lag(v.published) over newest_first as superseded
                                  from dataflow.data_manifest v
                                 where v.datasetid = p_datasetid
                                window newest_first as (partition by v.dataid order by v.version desc)) n
                         where not exists (select from dataflow.version_sweep w where w.manifest_id = n.manifest_id)) r) g
          join dataflow.data_manifest m on m.manifest_id = g.manifest_id
         where g.all_may_go and (p_versions is not null or p_time is not null)
    )
    select e.* from expired e
     where e.location not in (select n.folder from dataflow.versions_near(array(select x.location from expired x)) n where n.is_needed);
end;

-- Decide. Locked in one statement and looked at in the next, which sees the rollback that was waited for.
create function dataflow.drop_versions(p_datasetid text, p_versions integer, p_time interval, p_grace interval, p_by text) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    decided bigint;
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    perform pg_advisory_xact_lock(dataflow.sweep_lock(p_datasetid));
    insert into dataflow.version_sweep (manifest_id, by)
    select m.manifest_id, p_by from dataflow.versions_to_drop(p_datasetid, p_versions, p_time, p_grace) m
        on conflict do nothing;
    get diagnostics decided = row_count;
    return decided;
end
$$;

-- The files of these versions are removed.
create function dataflow.versions_dropped(p_manifest_ids bigint[]) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
    update dataflow.version_sweep set removed = clock_timestamp() where manifest_id = any (p_manifest_ids) and removed is null;
end;

-- A version in a folder that exists already (after a rollback or an announcement) needs its files to be there. A claim's own are new.
create function dataflow.refuse_swept() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    -- In order, so that two announcements never wait for each other in a circle.
    perform pg_advisory_xact_lock_shared(k.key)
       from (select distinct dataflow.sweep_lock(d.datasetid) as key from dataflow.dataset d
              where d.datasetid = new.datasetid or starts_with(new.location, d.location || '/') order by 1) k;
    if exists (select from unnest(dataflow.spellings(new.location)) s(spelling)
                 join dataflow.data_manifest m on m.location collate "C" = any (dataflow.folders_above(s.spelling))
                 join dataflow.version_sweep w on w.manifest_id = m.manifest_id
                where new.location <> 'elsewhere') then
        raise exception 'the files at % were swept', new.location using hint = 'choose a newer version, or resubmit the chunk';
    end if;
    return new;
end
$$;
create trigger refuse_swept before insert on dataflow.data_manifest
    for each row when (new.claim_id is null) execute function dataflow.refuse_swept();
