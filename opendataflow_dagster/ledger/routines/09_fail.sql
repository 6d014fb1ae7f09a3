-- fail.

-- The work failed: FAILED, unless the retry policy resubmits it. Only a live claim can fail its chunk and leave its traceback, which
-- nobody else may write; a claim that was lost leaves nothing. Returns the claims that failed.
create function dataflow.fail(p_datasetids text[], p_jobids text[], p_dataids text[], p_claim_ids bigint[], p_reasons text[], p_tracebacks text[])
    returns setof bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
begin
    return query
    with released as (
        update dataflow.datastatus s set status = 'FAILED', reason = g.reason
          from unnest(p_datasetids, p_jobids, p_dataids, p_claim_ids, p_reasons, p_tracebacks)
               as g(datasetid, jobid, dataid, claim_id, reason, traceback)
         where s.datasetid = g.datasetid and s.jobid = g.jobid and s.dataid = g.dataid and s.locktype = 'OUT'
           and s.status = 'RUNNING' and s.claim_id = g.claim_id and s.lease_until > clock_timestamp()
        returning g.claim_id, g.traceback
    ), kept as (
        insert into dataflow.failure (claim_id, traceback)
        select distinct r.claim_id, r.traceback from released r where r.traceback is not null
            on conflict (claim_id) do nothing
    )
    select r.claim_id from released r;
end
$$;
