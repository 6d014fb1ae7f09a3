-- Lost wake-ups.

-- Put chunks into the set whose wake-up was lost: changed in a session without triggers, restored from a backup, or missed by a
-- bug. Each call looks at the next p_count rows, and starts over after the last one, so its cost does not grow with the ledger.
-- Returns how many chunks it found. Of several calls at the same time, one looks.
create function dataflow.patrol(p_count integer) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    place dataflow.patrol;
    added bigint;
begin
    if not pg_try_advisory_xact_lock(hashtext('dataflow'), hashtext('patrol')) then
        return 0;
    end if;
    select p.* into place from dataflow.patrol p;
    with portion as materialized (
        select s.datasetid, s.jobid, s.dataid, s.locktype, s.status
          from dataflow.datastatus s
         where (s.datasetid, s.jobid, s.dataid) > (coalesce(place.datasetid, ''), coalesce(place.jobid, ''), coalesce(place.dataid, ''))
         order by s.datasetid, s.jobid, s.dataid
         limit p_count
    ), moved as (
        insert into dataflow.patrol as p (datasetid, jobid, dataid)
        select coalesce(l.datasetid, ''), coalesce(l.jobid, ''), coalesce(l.dataid, '')
          from (values (true)) as v(is_only)
          left join lateral (select t.* from portion t where (select count(*) from portion) = p_count
                              order by t.datasetid desc, t.jobid desc, t.dataid desc limit 1) l on true
            on conflict (is_only) do update set datasetid = excluded.datasetid, jobid = excluded.jobid, dataid = excluded.dataid
    ), chunk as (
        -- What a READY input lets run, and what an output asks for.
        select distinct j.jobid, p.dataid
          from portion p
         cross join lateral (select t.jobid, t.itemtype from dataflow.job t
                              where t.datasetid = p.datasetid and t.itemtype in ('IN', 'OUT') and t.mapping = 'equal' offset 0) j
         where p.locktype = 'OUT'
           and p.status = any (case j.itemtype when 'IN' then array['READY', 'SKIPPED'] else array['PENDING', 'RESUBMIT'] end)
    ), missing as materialized (
        -- Few are left for the questions: most chunks are in the set, or made, or wait for an input.
        select c.jobid, c.dataid
          from chunk c
         where not exists (select from dataflow.runnable r where r.jobid = c.jobid and r.dataid = c.dataid)
           and not exists (
               select from dataflow.job j
                cross join lateral (select bool_and(coalesce(s.status, '') = any (case j.itemtype when 'IN' then array['READY', 'SKIPPED']
                                                                                  else array['PENDING', 'RESUBMIT'] end)) as may_run
                                      from dataflow.datastatus s
                                     where s.datasetid = j.datasetid and s.dataid = c.dataid and s.locktype = 'OUT' offset 0) s
                where j.jobid = c.jobid and j.itemtype in ('IN', 'OUT') and j.mapping = 'equal'
                  and not coalesce(s.may_run, j.itemtype = 'OUT'))
    )
    select coalesce(sum(e.added), 0)
      into added
      from (select t.jobid, array_agg(t.dataid) as dataids from missing t group by t.jobid) m
     cross join lateral dataflow.evaluate_again(m.jobid, m.dataids) e;
    return added;
end
$$;
