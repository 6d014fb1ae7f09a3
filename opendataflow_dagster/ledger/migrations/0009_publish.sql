-- The same content, published as two chunks at the same moment: the second must see the first.
create function dataflow.content_lock(p_datasetid text, p_content_digest text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(p_datasetid || ' ' || p_content_digest, 0);

-- The publication: only the holder of a live claim gets its rows; then the manifests come in, and the rows become READY.
-- p_outputs has a manifest for each output of each claim, with its datasetid, jobid, dataid and claim_id. The answer: four
-- arrays of the new versions; `refused`, the manifests that do not fit their DataSets, and nothing of their claims was done.
-- What was not held is in neither.
create function dataflow.publish(p_outputs json) returns json
    language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
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

-- The rest of a publication of first versions: the IN rows of its chunks go, and their consumers are told. A consumer that reads
-- nothing else is put into the runnable set with the answers that a first version gets as a rule; to look for what speaks
-- against them takes a fifth of asking. Where something does, and of the other consumers, all is asked.
create function dataflow.offer(p_jobid text, p_datasetid text, p_dataids text[], p_manifest_ids bigint[], p_file_counts integer[], p_inputs jsonb[])
    returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
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
revoke execute on function dataflow.offer(text, text, text[], bigint[], integer[], jsonb[]) from public;
