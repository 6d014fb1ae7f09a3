-- The same content, published as two chunks at the same moment: the second must see the first.
create function dataflow.content_lock(p_datasetid text, p_content_digest text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(p_datasetid || ' ' || p_content_digest, 0);

-- The publication: only the holder of a live claim gets its rows; then the manifests come in, and the rows
-- become READY. What was not held does not come back. A manifest that does not fit its DataSet comes back with
-- the problem, and then nothing of its claim was done.
create function dataflow.publish(p_datasetids text[], p_jobids text[], p_dataids text[], p_claim_ids bigint[], p_manifests jsonb[])
    returns table (claim_id bigint, datasetid text, problem text, root text, declared text, manifest_id bigint, version integer)
    language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    held bigint[];
begin
    -- Locked in one statement and used in the next, which sees what others did while we waited: a renewed lease, say.
    -- The outputs of a claim are published together, or not at all.
    with fenced as materialized (
        select g.claim_id
          from (select * from unnest(p_datasetids, p_jobids, p_dataids, p_claim_ids) as u(datasetid, jobid, dataid, claim_id)
                 order by u.datasetid, u.jobid, u.dataid) g
         cross join lateral (select t.claim_id from dataflow.datastatus t
                              where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                                and t.status = 'RUNNING' and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                                for update) s
    ), given as materialized (
        select u.claim_id, count(*) as count from unnest(p_claim_ids) as u(claim_id) group by u.claim_id
    )
    select array_agg(h.claim_id) into held
      from (select f.claim_id from fenced f join given g on g.claim_id = f.claim_id group by f.claim_id, g.count having count(*) = g.count) h;

    perform pg_advisory_xact_lock(d.key)
       from (select distinct dataflow.content_lock(u.datasetid, u.manifest ->> 'content_digest') as key
               from unnest(p_datasetids, p_manifests) as u(datasetid, manifest)
              where u.manifest ->> 'content_digest' is not null order by 1) d;

    return query
    with given as materialized (
        select g.datasetid, g.jobid, g.dataid, g.claim_id, g.manifest, d.location as root, d.schema_hash as declared,
               case when not starts_with(g.manifest ->> 'location', d.location || '/') then 'OUTSIDE'
                    when d.schema_hash is not null and g.manifest ->> 'schema_hash' is distinct from d.schema_hash then 'OTHER_SCHEMA'
                    when g.manifest ->> 'location' <> 'elsewhere'
                         and exists (select from dataflow.data_manifest m where m.datasetid = g.datasetid and m.dataid = g.dataid
                                                                            and m.location = g.manifest ->> 'location' offset 0) then 'SAME_PLACE'
               end as problem
          from unnest(p_datasetids, p_jobids, p_dataids, p_claim_ids, p_manifests) as g(datasetid, jobid, dataid, claim_id, manifest)
          join unnest(held) as h(claim_id) on h.claim_id = g.claim_id
          left join dataflow.dataset d on d.datasetid = g.datasetid
    ), made as (
        insert into dataflow.data_manifest (datasetid, dataid, version, jobid, claim_id, run_id, location, files, bytes, row_count, schema_hash,
                                            content_digest, checks, inputs)
        select g.datasetid, g.dataid,
               1 + coalesce((select m.version from dataflow.data_manifest m
                              where m.datasetid = g.datasetid and m.dataid = g.dataid order by m.version desc limit 1), 0),
               g.jobid, g.claim_id, s.run_id, g.manifest ->> 'location', g.manifest -> 'files', (g.manifest ->> 'bytes')::bigint,
               (g.manifest ->> 'row_count')::bigint, g.manifest ->> 'schema_hash', g.manifest ->> 'content_digest', g.manifest -> 'checks',
               coalesce((select v.inputs from dataflow.verdict v
                          where v.jobid = g.jobid and v.dataid = g.dataid and v.claim_id = g.claim_id limit 1), '[]')
          from given g
         cross join lateral (select t.run_id from dataflow.datastatus t
                              where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid offset 0) s
         where not exists (select from given b where b.claim_id = g.claim_id and b.problem is not null)
        returning manifest_id, datasetid, dataid, claim_id, version
    )
    select g.claim_id, g.datasetid, g.problem, g.root, g.declared, m.manifest_id, m.version
      from given g
      left join made m on m.claim_id = g.claim_id and m.datasetid = g.datasetid;

    -- The rows are ours, so their places are known; a join could be turned around.
    update dataflow.datastatus s
       set status = 'READY',
           manifest_id = (select m.manifest_id from dataflow.data_manifest m
                           where m.datasetid = s.datasetid and m.dataid = s.dataid order by m.version desc limit 1)
     where s.ctid = any (array(
           select t.ctid
             from unnest(p_datasetids, p_jobids, p_dataids, p_claim_ids) as g(datasetid, jobid, dataid, claim_id)
            cross join lateral (select o.ctid from dataflow.datastatus o
                                 where o.datasetid = g.datasetid and o.jobid = g.jobid and o.dataid = g.dataid and o.claim_id = g.claim_id offset 0) t
            cross join lateral (select from dataflow.data_manifest m
                                 where m.datasetid = g.datasetid and m.dataid = g.dataid and m.claim_id = g.claim_id offset 0) m
            where g.claim_id = any (held)));
end
$$;
