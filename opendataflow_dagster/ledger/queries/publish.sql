-- name: publish
-- Fence, insert the manifests, make READY: in one statement. A claim comes back only if it was held, whole and right.
with given as materialized (
    select * from unnest(%(datasetids)s::text[], %(jobids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[], %(manifests)s::jsonb[])
                  as g(datasetid, jobid, dataid, claim_id, manifest)
), fenced as materialized (
    -- Only the holder of the live claim gets its rows.
    select s.place, s.datasetid, s.jobid, s.dataid, s.claim_id, s.run_id, g.manifest,
           case when not starts_with(g.manifest ->> 'location', d.location || '/') then 'OUTSIDE'
                when d.schema_hash is not null and g.manifest ->> 'schema_hash' is distinct from d.schema_hash then 'OTHER_SCHEMA'
           end as problem,
           d.location as root, d.schema_hash as declared
      from (select * from given order by datasetid, jobid, dataid) g
     cross join lateral (select t.ctid as place, t.* from dataflow.datastatus t
                          where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                            and t.status = 'RUNNING' and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                            for update) s
      left join dataflow.dataset d on d.datasetid = g.datasetid
), good as materialized (
    -- The outputs of a claim are published together.
    select f.claim_id
      from fenced f
     group by f.claim_id, f.jobid, f.dataid
    having count(f.problem) = 0
       and count(*) = (select count(*) from dataflow.job j where j.jobid = f.jobid and j.itemtype = 'OUT')
), made as (
    insert into dataflow.data_manifest (datasetid, dataid, version, jobid, claim_id, run_id, location, files, bytes, row_count, schema_hash,
                                        content_digest, checks, inputs)
    select f.datasetid, f.dataid,
           1 + coalesce((select m.version from dataflow.data_manifest m
                          where m.datasetid = f.datasetid and m.dataid = f.dataid order by m.version desc limit 1), 0),
           f.jobid, f.claim_id, f.run_id, f.manifest ->> 'location', f.manifest -> 'files', (f.manifest ->> 'bytes')::bigint,
           (f.manifest ->> 'row_count')::bigint, f.manifest ->> 'schema_hash', f.manifest ->> 'content_digest', f.manifest -> 'checks',
           coalesce((select v.inputs from dataflow.verdict v
                      where v.jobid = f.jobid and v.dataid = f.dataid and v.claim_id = f.claim_id limit 1), '[]')
      from fenced f join good g on g.claim_id = f.claim_id
    returning manifest_id, datasetid, jobid, dataid, claim_id, version
), ready as (
    update dataflow.datastatus s set status = 'READY', manifest_id = m.manifest_id
      from made m
      join fenced f on f.claim_id = m.claim_id and f.datasetid = m.datasetid
     where s.ctid = f.place
)
select f.claim_id, f.datasetid, f.problem, f.root, f.declared, m.manifest_id, m.version
  from fenced f
  left join made m on m.claim_id = f.claim_id and m.datasetid = f.datasetid

-- name: published_by
-- What these claims have published: an answer that was lost on its way is asked for again.
select m.claim_id, m.datasetid, m.manifest_id, m.version
  from dataflow.data_manifest m
  join unnest(%(datasetids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[]) as g(datasetid, dataid, claim_id)
    on m.datasetid = g.datasetid and m.dataid = g.dataid and m.claim_id = g.claim_id

-- name: manifests
-- Manifests by id.
select m.* from dataflow.data_manifest m where m.manifest_id = any (%(manifest_ids)s)

-- name: current_manifest
-- The version that readers of a chunk get.
select m.* from dataflow.datastatus s join dataflow.data_manifest m on m.manifest_id = s.manifest_id
 where s.datasetid = %(datasetid)s and s.dataid = %(dataid)s and s.locktype = 'OUT'
 order by m.version desc limit 1
