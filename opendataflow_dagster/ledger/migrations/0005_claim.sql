-- The claim: ask the five questions of chunks whose runnable rows the caller has locked, take those that get
-- five yes, and store the answers of all.
create function dataflow.take(p_jobid text, p_dataids text[], p_run_id bigint)
    returns table (dataid text, claim_id bigint, attempt integer, lease interval, lease_until timestamptz, outputs text[], output_count bigint,
                   ready text, right_data text, placed text, valid text, safe text, inputs jsonb, file_count bigint)
    language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    p_lease interval := coalesce((select p.lease from dataflow.job_policy p where p.jobid = p_jobid), interval '10 minutes');
begin
    return query
    with asked as materialized (
        select a.*, case when dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe) is null
                         then nextval('dataflow.claim_id') end as claim_id
          from dataflow.ask(p_jobid, p_dataids) a
    ), taken as (
        -- The OUT rows and the IN rows of a claim. An input that another chunk of the Job reads too has its row already.
        insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
        select j.datasetid, p_jobid, a.dataid, 'OUT', 'RUNNING', a.claim_id, now() + p_lease, 1, p_run_id, null::bigint
          from asked a
          join dataflow.job j on j.jobid = p_jobid and j.itemtype = 'OUT'
         where a.claim_id is not null
        union all
        select distinct on (i.datasetid, i.dataid) i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', a.claim_id, null, 0, p_run_id, i.manifest_id
          from asked a
         cross join lateral jsonb_to_recordset(a.inputs) as i(datasetid text, dataid text, manifest_id bigint)
         where a.claim_id is not null
            on conflict (datasetid, jobid, dataid) do update
           set status = 'RUNNING', claim_id = excluded.claim_id, lease_until = excluded.lease_until, run_id = excluded.run_id,
               attempt = s.attempt + excluded.attempt, reason = null,
               manifest_id = case s.locktype when 'IN' then excluded.manifest_id else s.manifest_id end
         where s.locktype = excluded.locktype and (s.locktype = 'IN' or s.status in ('PENDING', 'RESUBMIT'))
        returning s.datasetid, s.locktype, s.claim_id, s.attempt, s.lease_until
    ), held as (
        select t.claim_id, array_agg(t.datasetid::text order by t.datasetid) as outputs, max(t.attempt) as attempt, max(t.lease_until) as lease_until
          from taken t where t.locktype = 'OUT' group by t.claim_id
    ), refused as (
        -- Not asked again until something changes.
        update dataflow.runnable r set blocked = dataflow.code_of(a.ready, a.right_data, a.placed, a.valid, a.safe)
          from asked a
         where a.claim_id is null and r.jobid = p_jobid and r.dataid = a.dataid
    ), answered as (
        insert into dataflow.verdict (jobid, dataid, claim_id, ready, right_data, placed, valid, safe, inputs)
        select p_jobid, a.dataid, a.claim_id, a.ready, a.right_data, a.placed, a.valid, a.safe, a.inputs
          from asked a
         where a.claim_id is not null
            or dataflow.is_news(p_jobid, a.dataid, a.ready, a.right_data, a.placed, a.valid, a.safe)
    )
    select a.dataid, a.claim_id, h.attempt, p_lease, h.lease_until, h.outputs,
           (select count(*) from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT'),
           a.ready, a.right_data, a.placed, a.valid, a.safe, a.inputs, a.file_count
      from asked a
      left join held h on h.claim_id = a.claim_id;
end
$$;

-- Is this another answer than the last one that was stored? A no that stays the same is stored once.
create function dataflow.is_news(p_jobid text, p_dataid text, p_ready text, p_right_data text, p_placed text, p_valid text, p_safe text)
    returns boolean
    language sql stable
begin atomic
    select not exists (
        select from (select * from dataflow.verdict v
                      where v.jobid = p_jobid and v.dataid = p_dataid order by v.verdict_id desc limit 1) l
         where l.claim_id is null
           and row (l.ready, l.right_data, l.placed, l.valid, l.safe)
               is not distinct from row (p_ready, p_right_data, p_placed, p_valid, p_safe));
end;
