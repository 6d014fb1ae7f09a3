-- name: stale_chunks
-- READY chunks that are stale, of all DataSets or some, with the cause and how many stale chunks further down have it too. Those that
-- are being made again are left out. Direct causes come first: the others follow from them.
with shown as materialized (
    -- In order first, so that the status of those shown is looked up, and of no others.
    select t.*
      from (select * from dataflow.stale n
             where (%(datasetids)s::text[] is null or n.datasetid = any (%(datasetids)s))
               and (%(dataids)s::text[] is null or n.dataid = any (%(dataids)s))
             order by n.is_direct desc, n.datasetid, n.dataid offset 0) t
     cross join lateral (select from dataflow.datastatus s
                          where s.datasetid = t.datasetid and s.dataid = t.dataid and s.locktype = 'OUT' and s.status = 'READY' limit 1) s
     limit %(count)s
)
select t.datasetid, t.dataid, own.version, t.input_datasetid, t.input_dataid, t.is_direct, used.version as used, n.version as current, t.since, t.by,
       root.datasetid as root_datasetid, root.dataid as root_dataid, d.below
  from shown t
  left join dataflow.data_manifest own on own.manifest_id = t.manifest_id
  left join dataflow.data_manifest used on used.manifest_id = t.used_id
  left join lateral (select max(m.version) as version
                       from dataflow.datastatus s join dataflow.data_manifest m on m.manifest_id = s.manifest_id
                      where s.datasetid = t.input_datasetid and s.dataid = t.input_dataid and s.locktype = 'OUT') n on true
  -- The first input up the chain that is not stale itself, or whose version was replaced.
  left join lateral (
        with recursive up as (
            select t.input_datasetid as datasetid, t.input_dataid as dataid, t.is_direct, 1 as depth
            union all
            select c.input_datasetid, c.input_dataid, c.is_direct, u.depth + 1
              from up u join dataflow.stale c on c.datasetid = u.datasetid and c.dataid = u.dataid
             where not u.is_direct
        )
        select u.datasetid, u.dataid from up u order by u.depth desc limit 1) root on true
  left join lateral (
        with recursive down as (
            select c.datasetid, c.dataid from dataflow.stale c
             where c.input_datasetid = t.datasetid and c.input_dataid = t.dataid and not c.is_direct
            union
            select c.datasetid, c.dataid
              from down w join dataflow.stale c on c.input_datasetid = w.datasetid and c.input_dataid = w.dataid and not c.is_direct
        )
        select count(*) as below from down) d on true
 order by t.is_direct desc, t.datasetid, dataflow.natural_key(t.dataid), t.dataid

-- name: stale_counts
-- How many READY chunks of each DataSet are stale, how many of them directly, since when at the latest, and what happens by itself.
select t.datasetid, count(*) as stale, count(*) filter (where t.is_direct) as direct, min(t.since) as since,
       coalesce(bool_or(d.on_new_input = 'rebuild' or p.cascade), false) as is_rebuilt
  from dataflow.stale t
  left join dataflow.dataset d on d.datasetid = t.datasetid
  left join dataflow.job j on j.datasetid = t.datasetid and j.itemtype = 'OUT'
  left join dataflow.job_policy p on p.jobid = j.jobid
 where (%(datasetids)s::text[] is null or t.datasetid = any (%(datasetids)s))
   and exists (select from dataflow.datastatus s
                where s.datasetid = t.datasetid and s.dataid = t.dataid and s.locktype = 'OUT' and s.status = 'READY')
 group by t.datasetid
 order by t.datasetid

-- name: stale_dataids
-- The stale READY chunks of some DataSets.
select t.datasetid, t.dataid
  from dataflow.stale t
 where t.datasetid = any (%(datasetids)s)
   and exists (select from dataflow.datastatus s
                where s.datasetid = t.datasetid and s.dataid = t.dataid and s.locktype = 'OUT' and s.status = 'READY')

-- name: chunks_to_refresh
-- The stale READY chunks of these DataSets (null: of all), and those further up that they are made from, producers first. Not free:
-- a stale chunk further up is not READY and does not run either.
with recursive wanted as (
    select t.datasetid, t.dataid, t.manifest_id
      from dataflow.stale t where %(datasetids)s::text[] is null or t.datasetid = any (%(datasetids)s)
    union
    -- Every stale input, not only the recorded cause: what is made from one of them is stale again.
    select u.datasetid, u.dataid, u.manifest_id
      from wanted w
      join dataflow.data_manifest m on m.manifest_id = w.manifest_id
     cross join lateral dataflow.stale_inputs(w.datasetid, w.dataid, m.inputs) i
      join dataflow.stale u on u.datasetid = i.datasetid and u.dataid = i.dataid
), status as materialized (
    select w.*, s.is_ready, s.is_stuck
      from wanted w
     cross join lateral (select coalesce(bool_or(o.status = 'READY'), false) as is_ready,
                                coalesce(bool_or(coalesce(o.status, '') not in ('READY', 'PENDING', 'RESUBMIT', 'RUNNING')), false) as is_stuck
                           from dataflow.datastatus o
                          where o.datasetid = w.datasetid and o.dataid = w.dataid and o.locktype = 'OUT' offset 0) s
), stuck as (
    select s.datasetid, s.dataid from status s where s.is_stuck
    union
    select t.datasetid, t.dataid
      from stuck s
      join dataflow.stale t on t.input_datasetid = s.datasetid and t.input_dataid = s.dataid and not t.is_direct
), step as (
    select o.datasetid, 0 as step from dataflow.job o where o.itemtype = 'OUT'
    union
    select o.datasetid, d.step + 1
      from step d
      join dataflow.job i on i.datasetid = d.datasetid and i.itemtype = 'IN'
      join dataflow.job o on o.jobid = i.jobid and o.itemtype = 'OUT'
), place as materialized (
    -- How many DataSets are above, at the most.
    select p.datasetid, max(p.step) as step from step p group by 1
)
select s.datasetid, s.dataid, not exists (select from stuck x where x.datasetid = s.datasetid and x.dataid = s.dataid) as is_free
  from status s
  left join place p on p.datasetid = s.datasetid
 where s.is_ready
 order by coalesce(p.step, 0), s.datasetid, dataflow.natural_key(s.dataid), s.dataid
