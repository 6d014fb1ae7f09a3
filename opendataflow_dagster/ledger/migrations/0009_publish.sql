-- The same content, published as two chunks at the same moment: the second must see the first.
create function dataflow.content_lock(p_datasetid text, p_content_digest text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(p_datasetid || ' ' || p_content_digest, 0);

-- The publication: only the holder of a live claim gets its rows; then the manifests come in, and the rows become READY.
-- p_outputs has a manifest for each output of each claim, with its datasetid, jobid, dataid and claim_id. The answer:
-- `made`, the new versions; `refused`, the manifests that do not fit their DataSets, and nothing of their claims was done.
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
    made         json;
    refused      json;
    ready        bigint;
begin
    -- Locked in one statement and used in the next, which sees what others did while we waited. From here on the rows are
    -- ours, and stay in their places. The outputs of a claim are published together, or not at all.
    with given as materialized (
        select (u.manifest ->> 'datasetid') collate "C" as datasetid, (u.manifest ->> 'jobid') collate "C" as jobid,
               (u.manifest ->> 'dataid') collate "C" as dataid, (u.manifest -> 'claim_id')::bigint as claim_id, u.manifest
          -- Each by itself: a jsonb of all would have no room for the files of some hundred large chunks.
          from (select e.one::jsonb as manifest from json_array_elements(p_outputs) as e(one) offset 0) u
         order by 1, 2, 3
    ), fenced as materialized (
        select g.*, s.*
          from given g
         cross join lateral (select t.run_id, t.ctid as place from dataflow.datastatus t
                              where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                                and t.status = 'RUNNING' and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                                for update) s
    ), held as (
        select f.claim_id from (select f.claim_id, count(*) as count from fenced f group by f.claim_id) f
          join (select g.claim_id, count(*) as count from given g group by g.claim_id) g on g.claim_id = f.claim_id and g.count = f.count
    )
    select array_agg(f.datasetid), array_agg(f.jobid), array_agg(f.dataid), array_agg(f.claim_id), array_agg(f.run_id), array_agg(f.manifest),
           array_agg(f.place)
      into datasetids, jobids, dataids, claim_ids, run_ids, manifests, places
      from fenced f join held h on h.claim_id = f.claim_id;

    perform pg_advisory_xact_lock(d.key)
       from (select distinct dataflow.content_lock(u.datasetid, u.manifest ->> 'content_digest') as key
               from unnest(datasetids, manifests) as u(datasetid, manifest)
              where u.manifest ->> 'content_digest' is not null order by 1) d;

    with given as materialized (
        select g.*, d.location as root, d.schema_hash as declared, 1 + coalesce(v.newest, 0) as version,
               case when not starts_with(g.manifest ->> 'location', d.location || '/') then 'OUTSIDE'
                    when d.schema_hash is not null and g.manifest ->> 'schema_hash' is distinct from d.schema_hash then 'OTHER_SCHEMA'
                    when v.is_same_place and g.manifest ->> 'location' <> 'elsewhere' then 'SAME_PLACE' end as problem
          from unnest(datasetids, jobids, dataids, claim_ids, run_ids, manifests, places)
               as g(datasetid, jobid, dataid, claim_id, run_id, manifest, place)
          left join dataflow.dataset d on d.datasetid = g.datasetid
         cross join lateral (select max(m.version) as newest, bool_or(m.location = g.manifest ->> 'location') as is_same_place
                               from dataflow.data_manifest m where m.datasetid = g.datasetid and m.dataid = g.dataid offset 0) v
    ), made as (
        insert into dataflow.data_manifest (datasetid, dataid, version, jobid, claim_id, run_id, location, files, bytes, row_count, schema_hash,
                                            content_digest, checks, inputs)
        select g.datasetid, g.dataid, g.version, g.jobid, g.claim_id, g.run_id, g.manifest ->> 'location', g.manifest -> 'files',
               (g.manifest ->> 'bytes')::bigint, (g.manifest ->> 'row_count')::bigint, g.manifest ->> 'schema_hash',
               g.manifest ->> 'content_digest', g.manifest -> 'checks',
               coalesce((select v.inputs from dataflow.verdict v
                          where v.jobid = g.jobid and v.dataid = g.dataid and v.claim_id = g.claim_id limit 1), '[]')
          from given g
         where not exists (select from given b where b.claim_id = g.claim_id and b.problem is not null)
        returning manifest_id, datasetid, claim_id, version
    )
    select array_agg(g.place) filter (where m.manifest_id is not null), array_agg(m.manifest_id) filter (where m.manifest_id is not null),
           json_agg(m) filter (where m.manifest_id is not null),
           json_agg(json_build_object('claim_id', g.claim_id, 'datasetid', g.datasetid, 'problem', g.problem, 'root', g.root, 'declared', g.declared))
               filter (where g.problem is not null)
      into places, manifest_ids, made, refused
      from given g
      left join made m on m.claim_id = g.claim_id and m.datasetid = g.datasetid;

    update dataflow.datastatus s set status = 'READY', manifest_id = m.manifest_id
      from unnest(places, manifest_ids) as m(place, manifest_id)
     where s.ctid = m.place;
    get diagnostics ready = row_count;
    if ready <> coalesce(cardinality(places), 0) then
        raise exception 'publish made % of % chunks READY', ready, cardinality(places);
    end if;
    return json_build_object('made', coalesce(made, '[]'), 'refused', coalesce(refused, '[]'));
end
$$;
