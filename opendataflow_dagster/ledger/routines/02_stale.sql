-- Stale chunks. The marks are kept by every transaction that gives a chunk another version, from that chunk down, as far as
-- they change. They follow from data_manifest and datastatus alone, so they can be compared with those at any time.

create type dataflow.chunk as (
    datasetid text collate "C",
    dataid    text collate "C"
);

-- Which of these inputs of a chunk (as its manifest records them) make it stale? Those that have another current version
-- (is_newer), and those that are stale themselves. An input that the Job no longer reads does not count.
--
-- A chunk that is being made again counts with its old version until the new one is published. One that became READY without a
-- manifest is another version. A SKIPPED chunk keeps its version, and is nothing for a consumer that ran without it.
create function dataflow.stale_inputs(p_datasetid text, p_dataid text, p_inputs jsonb)
    returns table (datasetid text, dataid text, used_id bigint, used integer, current_id bigint, is_newer boolean)
    language sql stable
begin atomic
    select i.datasetid, i.dataid, i.manifest_id, i.version, c.manifest_id, c.is_current is false
      from jsonb_to_recordset(case jsonb_typeof(p_inputs) when 'array' then p_inputs end) as i(datasetid text, dataid text, manifest_id bigint, version integer)
      join (select r.jobid, r.datasetid, r.mapping
              from dataflow.job o
              join dataflow.job r on r.jobid = o.jobid and r.itemtype = 'IN'
             where o.datasetid = p_datasetid and o.itemtype = 'OUT' offset 0) j
        on j.datasetid = i.datasetid
           and case j.mapping when 'equal' then i.dataid = p_dataid
                              when 'listed' then exists (select from dataflow.chunk_input e
                                                          where e.jobid = j.jobid and e.dataid = p_dataid
                                                            and e.datasetid = i.datasetid and e.input_dataid = i.dataid)
                              else true end
     cross join lateral (select bool_or(s.manifest_id is not distinct from i.manifest_id or s.status = 'SKIPPED' and i.manifest_id is null) as is_current,
                                max(s.manifest_id) as manifest_id
                           from dataflow.datastatus s
                          where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT'
                            and (s.manifest_id is not null or s.status in ('READY', 'SKIPPED')) offset 0) c
     where c.is_current is false
        or exists (select from dataflow.stale t
                    where t.datasetid = i.datasetid and t.dataid = i.dataid and t.manifest_id = i.manifest_id);
end;

-- Which of 64 shares of a DataSet's chunks is this one in? A server holds only some thousands of locks, so there is none for each chunk.
create function dataflow.share_of(p_dataid text) returns integer
    language sql immutable parallel safe
    return hashtext(p_dataid) & 63;

-- Of two transactions, one that gives an input another version and one that publishes something made from the input, the second
-- must see the first. All locks are taken at once and in one order, before any row below: in a mode that publications
-- share where their chunks are read (p_read), and alone where a version is replaced, with everything that is made
-- from it (p_replaced).
--
-- First of each DataSet, then of the share of these chunks (p_dataids) in it. Where every chunk below has the same dataid, the DataSets
-- are locked in the shared mode, so other chunks do not wait. Where one does not, or p_dataids is null, they are locked as a whole.
create function dataflow.lock_versions(p_read text[], p_replaced text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    below     text[] := '{}';
    are_whole boolean := p_dataids is null;
begin
    if p_replaced is not null then
        with recursive made as (
            select u.datasetid collate "C" as datasetid, false as is_other from unnest(p_replaced) as u(datasetid)
            union
            select o.datasetid, r.mapping <> 'equal'
              from made b
              join dataflow.job r on r.datasetid = b.datasetid and r.itemtype = 'IN'
              join dataflow.job o on o.jobid = r.jobid and o.itemtype = 'OUT'
        )
        select array_agg(distinct m.datasetid), are_whole or bool_or(m.is_other) into below, are_whole from made m;
    end if;
    perform case when are_whole and l.is_replaced then pg_advisory_xact_lock(hashtext('dataflow versions'), l.key)
                 else pg_advisory_xact_lock_shared(hashtext('dataflow versions'), l.key) end
       from (select hashtext(d.datasetid) as key, bool_or(d.is_replaced) as is_replaced
               from (select u.datasetid, true as is_replaced from unnest(below) as u(datasetid)
                     union all
                     select u.datasetid, false from unnest(p_read) as u(datasetid)) d
              group by 1 order by 1) l;
    perform case when l.is_replaced then pg_advisory_xact_lock(hashtext('dataflow share'), l.key)
                 else pg_advisory_xact_lock_shared(hashtext('dataflow share'), l.key) end
       from (select hashtext(d.datasetid || '/' || c.share) as key, bool_or(d.is_replaced) as is_replaced
               from (select u.datasetid, true as is_replaced from unnest(below) as u(datasetid) where not are_whole
                     union all
                     select u.datasetid, false from unnest(p_read) as u(datasetid)) d
              cross join (select distinct dataflow.share_of(u.dataid) as share from unnest(p_dataids) as u(dataid)) c
              group by 1 order by 1) l;
end
$$;

-- The chunks that may have been made from these: those of consumers that have a version.
create function dataflow.made_from(p_chunks dataflow.chunk[]) returns dataflow.chunk[]
    language plpgsql stable
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return array(
        select distinct row (o.datasetid, r.dataid)::dataflow.chunk
          from dataflow.consumers_of(array(select c.datasetid from unnest(p_chunks) c), array(select c.dataid from unnest(p_chunks) c)) r
          join dataflow.job o on o.jobid = r.jobid and o.itemtype = 'OUT'
         cross join lateral (select from dataflow.datastatus s
                              where s.datasetid = o.datasetid and s.dataid = r.dataid and s.locktype = 'OUT' and s.manifest_id is not null
                              limit 1) made);
end
$$;

-- Was one of these chunks, which get a first version, used before: in place, or before its row was deleted? Or is it being used?
create function dataflow.were_used(p_chunks dataflow.chunk[]) returns boolean
    language plpgsql stable
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return exists (
               select from unnest(p_chunks) u
                cross join lateral (select j.jobid from dataflow.job j where j.datasetid = u.datasetid and j.itemtype = 'IN' offset 0) j
                cross join lateral (select from dataflow.datastatus s
                                     where s.datasetid = u.datasetid and s.jobid = j.jobid and s.dataid = u.dataid and s.locktype = 'IN' offset 0) i)
        or exists (
               select from unnest(dataflow.made_from(p_chunks)) c
                cross join lateral (select s.manifest_id from dataflow.datastatus s
                                     where s.datasetid = c.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' offset 0) s
                 join dataflow.data_manifest m on m.manifest_id = s.manifest_id and jsonb_typeof(m.inputs) = 'array'
                cross join lateral jsonb_to_recordset(m.inputs) as i(datasetid text, dataid text)
                 join unnest(p_chunks) u on u.datasetid = i.datasetid and u.dataid = i.dataid);
end
$$;

-- Is one of these chunks stale, or marked so? Most are neither, and this costs less than to look again.
create function dataflow.were_made_stale(p_chunks dataflow.chunk[]) returns boolean
    language plpgsql stable
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return exists (
        select from unnest(p_chunks) c
         cross join lateral (select s.manifest_id from dataflow.datastatus s
                              where s.datasetid = c.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' offset 0) s
          join dataflow.data_manifest m on m.manifest_id = s.manifest_id
         cross join lateral dataflow.stale_inputs(c.datasetid, c.dataid, m.inputs))
        or exists (select from unnest(p_chunks) c
                    cross join lateral (select from dataflow.stale t where t.datasetid = c.datasetid and t.dataid = c.dataid offset 0) t);
end
$$;

-- Look at these chunks, and correct their marks. Of their inputs, those in p_changed and the recorded cause are looked at; where that
-- cause is gone, and where p_changed is null, all. Returns the chunks whose mark came or went, and those whose consumers may run
-- or must not any more, because a direct cause came or went.
create function dataflow.look_again(p_chunks dataflow.chunk[], p_changed dataflow.chunk[], out turned dataflow.chunk[], out redirected dataflow.chunk[])
    language plpgsql
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    doubtful dataflow.chunk[];
    rest     record;
begin
    with looked as materialized (
        select c.datasetid, c.dataid, v.manifest_id, t.manifest_id is not null as was_stale, coalesce(t.is_direct, false) as was_direct,
               (t.manifest_id, t.input_datasetid, t.input_dataid, t.used_id, t.is_direct)
               is distinct from (v.manifest_id, x.datasetid collate "C", x.dataid collate "C", x.used_id, x.is_newer) as differs,
               x.datasetid as input_datasetid, x.dataid as input_dataid, x.used_id, x.current_id, x.is_newer
          from (select distinct u.datasetid, u.dataid from unnest(p_chunks) u) c
         cross join lateral (select coalesce(max(s.manifest_id) filter (where s.status is distinct from 'SKIPPED'), max(s.manifest_id)) as manifest_id
                               from dataflow.datastatus s
                              where s.datasetid = c.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' offset 0) v
          left join dataflow.stale t on t.datasetid = c.datasetid and t.dataid = c.dataid
          -- Inputs that nobody can read make nothing stale, and stop no publication.
          left join dataflow.data_manifest m on m.manifest_id = v.manifest_id and jsonb_typeof(m.inputs) = 'array'
         cross join lateral (
                select case when p_changed is null then m.inputs
                            else (select coalesce(jsonb_agg(e.value), '[]')
                                    from jsonb_array_elements(m.inputs) e
                                   where exists (select from unnest(p_changed) u
                                                  where u.datasetid = e.value ->> 'datasetid' and u.dataid = e.value ->> 'dataid'))
                                 || case when t.manifest_id = v.manifest_id
                                         then jsonb_build_array(jsonb_build_object('datasetid', t.input_datasetid, 'dataid', t.input_dataid,
                                                                                   'manifest_id', t.used_id))
                                         else '[]' end end as inputs offset 0) e
          left join lateral (
                select i.* from dataflow.stale_inputs(c.datasetid, c.dataid, e.inputs) i
                 order by i.is_newer desc, (i.datasetid, i.dataid) is not distinct from (t.input_datasetid, t.input_dataid) desc, i.datasetid, i.dataid
                 limit 1) x on true
    ), sure as materialized (
        select * from looked l
         where p_changed is null or not l.was_stale or l.is_newer or l.is_newer is false and not l.was_direct
    ), gone as (
        delete from dataflow.stale t using sure l
         where l.was_stale and l.is_newer is null and t.datasetid = l.datasetid and t.dataid = l.dataid
    ), marked as (
        insert into dataflow.stale as t (datasetid, dataid, manifest_id, input_datasetid, input_dataid, used_id, is_direct, since, by)
        select l.datasetid, l.dataid, l.manifest_id, l.input_datasetid, l.input_dataid, l.used_id, l.is_newer,
               coalesce(o.since, e.at, now()), case when l.is_newer then e.by else o.by end
          from sure l
          -- A chunk that is stale through another one has the time and the person of that one.
          left join dataflow.stale o on not l.is_newer and o.datasetid = l.input_datasetid and o.dataid = l.input_dataid
          left join lateral (select e.at, coalesce(e.actor, e.login) as by from dataflow.chunk_event e
                              where l.is_newer and e.datasetid = l.input_datasetid and e.dataid = l.input_dataid and e.locktype = 'OUT'
                                and e.new_status in ('READY', 'SKIPPED') and e.old_status is distinct from 'HOLD'
                                and (l.current_id is null or e.manifest_id = l.current_id)
                              order by e.event_id desc limit 1) e on true
         where l.is_newer is not null and l.differs
         order by l.datasetid, l.dataid
            on conflict (datasetid, dataid) do update
           set manifest_id = excluded.manifest_id, input_datasetid = excluded.input_datasetid, input_dataid = excluded.input_dataid,
               used_id = excluded.used_id, is_direct = excluded.is_direct, since = excluded.since, by = excluded.by
    )
    select array(select row (l.datasetid, l.dataid)::dataflow.chunk from sure l where l.was_stale <> (l.is_newer is not null)),
           array(select row (l.datasetid, l.dataid)::dataflow.chunk from sure l where l.was_direct <> coalesce(l.is_newer, false)),
           array(select row (l.datasetid, l.dataid)::dataflow.chunk from looked l
                  where not exists (select from sure s where s.datasetid = l.datasetid and s.dataid = l.dataid))
      into turned, redirected, doubtful;
    if doubtful <> '{}' then
        select * into rest from dataflow.look_again(doubtful, null);
        turned := turned || rest.turned;
        redirected := redirected || rest.redirected;
    end if;
end
$$;

-- These chunks have another version (p_own), or are another thing for their consumers (p_changed): correct the marks from there
-- down, until nothing changes. Returns the chunks whose consumers must be asked again.
create function dataflow.mark_stale(p_own dataflow.chunk[], p_changed dataflow.chunk[], out turned dataflow.chunk[], out redirected dataflow.chunk[])
    language plpgsql
as $$
declare
    changed dataflow.chunk[] := p_changed;
    looked  record;
begin
    turned := '{}';
    redirected := '{}';
    if p_changed = '{}' and not dataflow.were_made_stale(p_own) then
        return;
    end if;
    if p_own <> '{}' then
        select * into looked from dataflow.look_again(p_own, null);
        turned := looked.turned;
        redirected := looked.redirected;
        changed := array(select distinct c from unnest(changed || looked.turned) c);
    end if;
    while changed <> '{}' loop
        select l.* into looked from dataflow.look_again(dataflow.made_from(changed), changed) l;
        changed := looked.turned;
        turned := turned || looked.turned;
        redirected := redirected || looked.redirected;
    end loop;
end
$$;

-- Compare the next made chunks of a Job with their marks, and correct these. Returns where to go on (null: these were the last),
-- how many were compared, and how many marks came or went.
create function dataflow.rebuild_stale(p_jobid text, p_after text, p_count integer, out last text, out seen bigint, out corrected bigint)
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    outputs text[] := array(select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT');
    -- Their Job is gone, or another one.
    orphans text[] := array(select distinct t.datasetid from dataflow.stale t
                             where p_after = '' and not exists (select from dataflow.job j where j.datasetid = t.datasetid and j.itemtype = 'OUT'));
    dataids text[];
    marked  record;
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform dataflow.refuse_isolation();
    end if;
    perform dataflow.lock_versions('{}', outputs || orphans, null);
    dataids := array(
        select c.dataid
          from (select s.dataid
                  from unnest(outputs) as o(datasetid)
                 cross join lateral (select t.dataid from dataflow.datastatus t
                                      where t.datasetid = o.datasetid and t.locktype = 'OUT' and t.dataid > p_after and t.manifest_id is not null
                                      order by t.dataid limit p_count) s
                union
                select s.dataid
                  from unnest(outputs) as o(datasetid)
                 cross join lateral (select t.dataid from dataflow.stale t
                                      where t.datasetid = o.datasetid and t.dataid > p_after order by t.dataid limit p_count) s) c
         order by 1 limit p_count);
    last := dataids[p_count];
    seen := cardinality(dataids);
    select * into marked
      from dataflow.mark_stale(array(select row (o.datasetid, d.dataid)::dataflow.chunk
                                       from unnest(outputs) as o(datasetid) cross join unnest(dataids) as d(dataid)
                                     union all
                                     select row (t.datasetid, t.dataid)::dataflow.chunk from dataflow.stale t where t.datasetid = any (orphans)), '{}');
    perform dataflow.ask_consumers(marked.redirected);
    corrected := cardinality(marked.turned);
end
$$;

-- Ask the consumers of these chunks again.
create function dataflow.ask_consumers(p_chunks dataflow.chunk[]) returns void
    language plpgsql
as $$
begin
    if p_chunks <> '{}' then
        perform dataflow.evaluate(array_agg(c.jobid), array_agg(c.dataid))
           from dataflow.consumers_of(array(select u.datasetid from unnest(p_chunks) u), array(select u.dataid from unnest(p_chunks) u)) c
         having count(*) > 0;
    end if;
end
$$;
