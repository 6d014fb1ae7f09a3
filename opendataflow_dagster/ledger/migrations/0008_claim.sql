-- The claim. A chunk's row of the runnable set holds the answers to the five questions and what they were given on.
-- Nothing about a chunk changes without its row, so whoever locks the row has current answers; that the evidence still
-- stands is looked at once more all the same.
--
-- A few small statements over arrays: a claim of one chunk pays for every node of every plan, a claim of a hundred for
-- every row.

-- The next chunks of a Job (p_names null: at most p_count, RESUBMIT first, in natural order, passing over what others are
-- claiming), or these, whose rows the caller has locked. `picked` says how many were there, the arrays those that were
-- taken. Without p_with_files nothing is taken if there are files to look at before the transaction ends.
create function dataflow.take(p_jobid text, p_names text[], p_count integer, p_run_id bigint, p_with_files boolean,
                              out picked integer, out file_count bigint, out lease interval, out lease_until timestamptz, out outputs text[],
                              out dataids text[], out claim_ids bigint[], out attempts integer[], out inputs jsonb)
    language plpgsql
as $$
#variable_conflict use_column
declare
    pins         jsonb[];
    pin_count    bigint;
    is_plain     boolean;
    is_steered   boolean;
    most         bigint;
    in_datasets  text[];
    in_dataids   text[];
    in_manifests bigint[];
    in_claims    bigint[];
    added        bigint;
    setting      text;
begin
    -- Others lock datastatus first and the runnable row after it. We give way before Postgres calls that a deadlock
    -- and chooses its victim: a statement that somebody typed is never given up for our claim.
    setting := set_config('lock_timeout', '200ms', true);
    select coalesce(p.lease, '10 minutes'), array(select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT'),
           -- Nobody but this Job gains or loses a runnable chunk by the claim.
           not coalesce(p.ordered, false)
           and not exists (select from dataflow.job j where j.jobid = p_jobid and j.mapping <> 'equal')
           and not exists (select from dataflow.job o join dataflow.job i on i.datasetid = o.datasetid and i.itemtype = 'IN' and i.mapping <> 'equal'
                            where o.jobid = p_jobid and o.itemtype = 'OUT'),
           exists (select from dataflow.job_control c where c.jobid = p_jobid)
      into lease, outputs, is_plain, is_steered
      from (values (p_jobid)) as j(jobid)
      left join dataflow.job_policy p on p.jobid = j.jobid;
    if is_steered then
        most := (dataflow.room(p_jobid)).free;
    end if;
    if p_names is null then
        select array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), sum(r.file_count), sum(jsonb_array_length(r.inputs))
          into dataids, pins, claim_ids, file_count, pin_count
          from (select t.dataid, t.inputs, t.file_count
                  from dataflow.runnable t
                 where t.jobid = p_jobid and t.blocked is null
                 order by t.resubmit desc, t.sort_key, t.dataid
                 limit least(p_count, most)
                   for update skip locked) r;
    else
        select array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), sum(r.file_count), sum(jsonb_array_length(r.inputs))
          into dataids, pins, claim_ids, file_count, pin_count
          from dataflow.runnable r
         where r.jobid = p_jobid and r.dataid = any (p_names) and r.blocked is null;
    end if;
    picked := cardinality(dataids);
    if picked is null then
        return;
    elsif file_count > 0 and not p_with_files then
        dataids := null;
        return;
    end if;

    lease_until := now() + lease;

    -- The inputs, as far as they still are what the answers were given on.
    select array_agg(i.datasetid), array_agg(i.dataid), array_agg(i.manifest_id), array_agg(g.claim_id),
           is_plain and coalesce(bool_and(i.manifest_id is not null), true)
      into in_datasets, in_dataids, in_manifests, in_claims, is_plain
      from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs)
     cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint)
     cross join lateral (select bool_and(coalesce(s.status, '') in ('READY', 'SKIPPED')) as is_ready,
                                bool_or(s.status = 'SKIPPED' or s.manifest_id is not distinct from i.manifest_id) as is_current
                           from dataflow.datastatus s
                          where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT' offset 0) s
     where s.is_ready and s.is_current
       -- The one fact that changes by itself.
       and (i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, g.dataid, i.dataid));
    if coalesce(cardinality(in_claims), 0) <> pin_count then
        select array_agg(g.dataid), array_agg(g.claim_id), array_agg(g.inputs)
          into dataids, claim_ids, pins
          from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs)
         where jsonb_array_length(g.inputs) = (select count(*) from unnest(in_claims) as i(claim_id) where i.claim_id = g.claim_id);
        if dataids is null then
            return;
        end if;
        select array_agg(i.datasetid), array_agg(i.dataid), array_agg(i.manifest_id), array_agg(i.claim_id)
          into in_datasets, in_dataids, in_manifests, in_claims
          from unnest(in_datasets, in_dataids, in_manifests, in_claims) as i(datasetid, dataid, manifest_id, claim_id)
         where i.claim_id = any (claim_ids);
    end if;

    -- The claim does for its own chunks what the triggers would find out from the changed rows.
    if is_plain then
        setting := set_config('dataflow.taking', 'on', true);
    end if;
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
    select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, lease_until, 1, p_run_id, null::bigint
      from unnest(dataids, claim_ids) as g(dataid, claim_id) cross join unnest(outputs) as o(datasetid)
    union all
    select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', i.claim_id, null, 0, p_run_id, i.manifest_id
      from unnest(in_datasets, in_dataids, in_manifests, in_claims) as i(datasetid, dataid, manifest_id, claim_id)
        on conflict do nothing;
    get diagnostics added = row_count;
    setting := set_config('dataflow.taking', '', true);

    insert into dataflow.verdict (jobid, dataid, claim_id, inputs)
    select p_jobid, g.dataid, g.claim_id, g.inputs from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs);
    delete from dataflow.runnable r where r.jobid = p_jobid and r.dataid = any (dataids);

    if added = cardinality(dataids) * cardinality(outputs) + coalesce(cardinality(in_claims), 0) then
        attempts := array_fill(1, array[cardinality(dataids)]);
    else
        attempts := dataflow.take_existing(p_jobid, dataids, claim_ids, outputs, in_datasets, in_dataids, in_manifests, in_claims, lease_until, p_run_id);
    end if;
    inputs := to_jsonb(pins);
end
$$;

-- Some rows were there before: outputs that were planned or resubmitted, and inputs that another running chunk of the
-- Job reads, too. All outputs of all these chunks are taken, or nothing. Returns the attempt that each chunk is at.
create function dataflow.take_existing(p_jobid text, p_dataids text[], p_claim_ids bigint[], p_outputs text[], p_in_datasets text[],
                                       p_in_dataids text[], p_in_manifests bigint[], p_in_claims bigint[], p_lease_until timestamptz, p_run_id bigint)
    returns integer[]
    language plpgsql
as $$
declare
    attempts integer[];
    taken    bigint;
begin
    update dataflow.datastatus s
       set status = 'RUNNING', claim_id = p_claim_ids[array_position(p_dataids, s.dataid)], lease_until = p_lease_until, run_id = p_run_id,
           attempt = s.attempt + 1, reason = null
     where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = any (p_dataids)
       and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT');
    -- Whoever ends the other chunk waits for us here, and then leaves the row; or we wait for him, and it is gone.
    update dataflow.datastatus s
       set claim_id = i.claim_id, manifest_id = i.manifest_id, run_id = p_run_id
      from (select distinct on (u.datasetid, u.dataid) *
              from unnest(p_in_datasets, p_in_dataids, p_in_manifests, p_in_claims) as u(datasetid, dataid, manifest_id, claim_id)
             order by u.datasetid, u.dataid) i
     where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN' and s.claim_id <> all (p_claim_ids);
    select array_agg(o.attempt order by g.place), sum(o.count)
      into attempts, taken
      from unnest(p_dataids, p_claim_ids) with ordinality as g(dataid, claim_id, place)
     cross join lateral (select max(s.attempt) as attempt, count(*) as count from dataflow.datastatus s
                          where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = g.dataid and s.claim_id = g.claim_id offset 0) o;
    if taken <> cardinality(p_dataids) * cardinality(p_outputs)
       or exists (select from unnest(p_in_datasets, p_in_dataids) as i(datasetid, dataid)
                   where not exists (select from dataflow.datastatus s
                                      where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN'
                                        and s.claim_id = any (p_claim_ids))) then
        -- Somebody changed a row behind the back of the triggers, or took a chunk that nobody had planned a moment
        -- before us. The claim is undone, and its chunks are asked again.
        raise exception 'the answers about these chunks do not stand any more' using errcode = 'DF003', detail = to_json(p_dataids)::text;
    end if;
    return attempts;
end
$$;
