-- name: publish
-- Fence, insert the manifests and make the chunks READY. Only held claims come back.
-- One JSON text each way: the driver is several times slower with rows of many columns.
select dataflow.publish(%(outputs)s::json)::text

-- name: published_by
-- What these claims published, for a caller whose answer was lost.
select m.*
  from dataflow.data_manifest m
  join unnest(%(datasetids)s::text[], %(dataids)s::text[], %(claim_ids)s::bigint[]) as g(datasetid, dataid, claim_id)
    on m.datasetid = g.datasetid and m.dataid = g.dataid and m.claim_id = g.claim_id

-- name: manifests
-- Manifests by id.
select m.* from dataflow.data_manifest m where m.manifest_id = any (%(manifest_ids)s)

-- name: current_manifest
-- The current version of a chunk.
select m.* from dataflow.datastatus s join dataflow.data_manifest m on m.manifest_id = s.manifest_id
 where s.datasetid = %(datasetid)s and s.dataid = %(dataid)s and s.locktype = 'OUT'
 order by m.version desc limit 1
