-- publish.

-- Two chunks with the same content, published at the same moment: the second must see the first.
create function dataflow.content_lock(p_datasetid text, p_content_digest text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(p_datasetid || ' ' || p_content_digest, 0);

-- The publication. Only a live claim gets its rows; then the manifests are inserted, and the rows become READY; the triggers
-- do the rest. p_outputs has a manifest for each output of each claim, with its datasetid, jobid, dataid and claim_id.
-- Returns arrays of the new versions, and `refused`: the manifests that do not fit their DataSets, of whose claims nothing
-- was published. A claim that is not held is in neither.
create function dataflow.publish(p_outputs json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
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
    versions     integer[];
    refused      json;
    ready        bigint;
begin
    -- A change of the registry waits here for us, and then evaluates what we published.
    lock table dataflow.datastatus in row exclusive mode;

    -- Locked in one statement and used in the next, which sees what others did in the meantime. From here on the rows are
    -- ours and stay in their places. The outputs of a claim are published together or not at all.
    with given as materialized (
        select (u.manifest ->> 'datasetid') collate "C" as datasetid, (u.manifest ->> 'jobid') collate "C" as jobid,
               (u.manifest ->> 'dataid') collate "C" as dataid, coalesce((u.manifest -> 'claim_id')::bigint, 0) as claim_id, u.manifest
          -- One by one: a single jsonb of all of them has no room for the files of some hundred large chunks.
          from (select e.output::jsonb as manifest from json_array_elements(p_outputs) as e(output) offset 0) u
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

    -- Another publication of the same content waits for us, or we for it.
    perform pg_advisory_xact_lock(d.key)
       from (select distinct dataflow.content_lock(c.datasetid, c.digest) as key
               from (select u.datasetid, u.manifest ->> 'content_digest' as digest
                       from unnest(datasetids, manifests) as u(datasetid, manifest) offset 0) c
              where c.digest is not null order by 1) d;

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
        -- Numbered here, so that they need not be looked up among the new manifests.
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
    select array_agg(f.datasetid), array_agg(f.claim_id), array_agg(f.place), array_agg(f.manifest_id), array_agg(f.version),
           (select json_agg(json_build_object('claim_id', g.claim_id, 'datasetid', g.datasetid, 'problem', g.problem, 'root', g.root,
                                              'declared', g.declared))
              from given g where g.problem is not null and g.claim_id <> all (array(select l.claim_id from given l where l.problem = 'LOST')))
      into datasetids, claim_ids, places, manifest_ids, versions, refused
      from fitting f;

    update dataflow.datastatus s
       set status = 'READY', manifest_id = m.manifest_id
      from unnest(places, manifest_ids) as m(place, manifest_id)
     where s.ctid = m.place;
    get diagnostics ready = row_count;
    if ready <> coalesce(cardinality(places), 0) then
        raise exception 'publish made % of % chunks READY', ready, cardinality(places);
    end if;
    return json_build_object('claim_ids', coalesce(claim_ids, '{}'), 'datasetids', coalesce(datasetids, '{}'),
                             'manifest_ids', coalesce(manifest_ids, '{}'), 'versions', coalesce(versions, '{}'), 'refused', coalesce(refused, '[]'));
end
$$;
