-- name: root_of
-- The root of a DataSet.
select d.location from dataflow.dataset d where d.datasetid = %(datasetid)s

-- name: versions_to_drop
-- The versions that retention does not keep, for a dry run.
select m.* from dataflow.versions_to_drop(%(datasetid)s, %(versions)s::int, %(time)s::interval, %(grace)s::interval) m
 order by m.manifest_id

-- name: drop_versions
-- Marks these versions for removal of their files.
select dataflow.drop_versions(%(datasetid)s, %(versions)s::int, %(time)s::interval, %(grace)s::interval, %(by)s) as decided

-- name: other_roots
-- The roots of other DataSets that are below the root of this one, relative to it.
select r.below from dataflow.overlapping_roots() r where r.other_datasetid = %(datasetid)s and r.below <> ''

-- name: versions_being_dropped
-- Versions marked for removal, by this sweep or by one that died.
select m.* from dataflow.version_sweep w join dataflow.data_manifest m on m.manifest_id = w.manifest_id
 where w.removed is null and m.datasetid = %(datasetid)s
 order by m.manifest_id

-- name: swept_versions
-- Of these versions, those whose files a sweep removed or is removing.
select w.manifest_id, w.decided from dataflow.version_sweep w where w.manifest_id = any (%(manifest_ids)s::bigint[])

-- name: folders_in_use
-- Of these folders, those that a version of any DataSet needs, even if someone has marked it by hand, or that have a version which
-- is not marked yet.
select distinct on (n.folder) n.folder, n.datasetid, n.dataid, n.version
  from dataflow.versions_near(%(folders)s::text[]) n
 where n.is_needed or not (n.is_marked or n.manifest_id in (select unnest(%(dropping)s::bigint[])))
 order by n.folder, n.is_needed desc, n.manifest_id

-- name: versions_dropped
-- Records that the files are removed.
select dataflow.versions_dropped(%(manifest_ids)s::bigint[])

-- name: claim_fates
-- The fate of the claims whose folders exist: LIVE, LANDED, SWEPT, NOT_LANDED (ended without a version), or UNKNOWN (this ledger
-- made no such claim for that chunk). A single statement gives a consistent snapshot.
select g.claim_id, g.dataid,
       case when live.found then 'LIVE'
            when landed.swept then 'SWEPT'
            when landed.swept is not null then 'LANDED'
            when gone.ended is not null then 'NOT_LANDED'
            else 'UNKNOWN' end as fate,
       coalesce(gone.ended < now() - %(failed)s::interval, false) as is_old
  from unnest(%(dataids)s::text[], %(claim_ids)s::bigint[], %(locations)s::text[]) as g(dataid, claim_id, location)
 cross join lateral (select exists (select from dataflow.datastatus s
                                     where s.datasetid = %(datasetid)s and s.dataid = g.dataid and s.claim_id = g.claim_id) as found) live
 cross join lateral (select bool_and(w.removed is not null) as swept
                       from dataflow.data_manifest m left join dataflow.version_sweep w on w.manifest_id = m.manifest_id
                      where m.datasetid = %(datasetid)s and m.dataid = g.dataid
                        and (m.claim_id = g.claim_id or m.location = g.location)) landed
 cross join lateral (select max(e.at) as ended
                       from dataflow.chunk_event e
                      where e.datasetid = %(datasetid)s and e.dataid = g.dataid and e.locktype = 'OUT' and e.claim_id = g.claim_id) gone
