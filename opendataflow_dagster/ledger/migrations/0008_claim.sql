-- The claim. The caller has locked the chunks' rows of the runnable set, which hold the answers to the five
-- questions and what they were given on. Nothing about a chunk changes without its row, so the lock makes the
-- answers current; that the evidence still stands is looked at once more all the same.
create function dataflow.take(p_jobid text, p_dataids text[], p_run_id bigint)
    returns table (dataid text, claim_id bigint, attempt integer, lease interval, lease_until timestamptz, output text, inputs jsonb,
                   file_count bigint)
    -- Others lock datastatus first and the runnable row after it. We give way before Postgres calls that a deadlock
    -- and chooses its victim: a statement that somebody typed is never given up for our claim.
    language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set lock_timeout = '200ms'
as $$
#variable_conflict use_column
begin
    return query
    with job as materialized (
        select coalesce((select p.lease from dataflow.job_policy p where p.jobid = p_jobid), interval '10 minutes') as lease,
               array(select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT') as outputs
    ), good as materialized (
        select r.dataid, r.inputs, r.file_count, nextval('dataflow.claim_id') as claim_id
          from unnest(p_dataids) as p(dataid)
         cross join lateral (select * from dataflow.runnable t where t.jobid = p_jobid and t.dataid = p.dataid offset 0) r
         where r.blocked is null
           and not exists (
               select from jsonb_to_recordset(r.inputs) as i(datasetid text, dataid text, manifest_id bigint)
                cross join lateral (select bool_and(coalesce(s.status, '') in ('READY', 'SKIPPED')) as is_ready,
                                           bool_or(s.status = 'SKIPPED' or s.manifest_id is not distinct from i.manifest_id) as is_current
                                      from dataflow.datastatus s
                                     where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT' offset 0) s
                where s.is_ready is not true or s.is_current is not true
                   -- The one fact that changes by itself.
                   or i.datasetid = 'today' and i.dataid <> (select to_char(now() at time zone d.timezone, 'YYYY-MM-DD')
                                                              from dataflow.dataset d where d.datasetid = 'today'))
    ), taken as (
        insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
        select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, now() + job.lease, 1, p_run_id, null::bigint
          from good g cross join job cross join unnest(job.outputs) as o(datasetid)
        union all
        -- Two chunks of a Job may share an input; they share its IN row, too.
        select distinct on (i.datasetid, i.dataid) i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', g.claim_id, null, 0, p_run_id, i.manifest_id
          from good g
         cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint)
            on conflict (datasetid, jobid, dataid) do update
           set status = 'RUNNING', claim_id = excluded.claim_id, lease_until = excluded.lease_until, run_id = excluded.run_id,
               attempt = s.attempt + excluded.attempt, reason = null,
               manifest_id = case s.locktype when 'IN' then excluded.manifest_id else s.manifest_id end
         where s.locktype = excluded.locktype and (s.locktype = 'IN' and s.claim_id is not null or s.status in ('PENDING', 'RESUBMIT'))
        returning s.datasetid, s.locktype, s.claim_id, s.attempt, s.lease_until
    ), answered as (
        insert into dataflow.verdict (jobid, dataid, claim_id, inputs)
        select p_jobid, g.dataid, g.claim_id, g.inputs from good g
    ), whole as materialized (
        -- All outputs of all these chunks, or nothing.
        select (select count(*) from taken where locktype = 'OUT') = (select count(*) from good) * cardinality(job.outputs) as ok from job
    )
    select g.dataid, g.claim_id, t.attempt, job.lease, t.lease_until,
           case when whole.ok then t.datasetid else dataflow.refuse_to_take(p_dataids) end,
           g.inputs, g.file_count
      from good g cross join job cross join whole
      left join taken t on t.claim_id = g.claim_id and t.locktype = 'OUT';
end
$$;

-- Somebody changed an output behind the back of the triggers, or took a chunk that nobody had planned a moment
-- before us. The claim is undone, and its chunks are asked again.
create function dataflow.refuse_to_take(p_dataids text[]) returns text language plpgsql as $$
begin
    raise exception 'the answers about these chunks do not stand any more' using errcode = 'DF003', detail = to_json(p_dataids)::text;
end
$$;
