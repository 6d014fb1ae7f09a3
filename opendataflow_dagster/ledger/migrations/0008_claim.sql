-- The claim. A chunk's row of the runnable set holds the answers to the five questions and what they were given on.
-- Nothing about a chunk changes without its row, so whoever locks the row has current answers; that the evidence still
-- stands is looked at once more all the same.
--
-- A few small statements over arrays: a claim of one chunk pays for every node of every plan, a claim of a hundred for
-- every row.

-- The next chunks of a Job (p_names null: at most p_count, RESUBMIT first, in natural order, passing over what others are
-- claiming), or these, whose rows the caller has locked. All that were picked are taken, or nothing happens: the answers
-- of some do not stand any more (DF003), or there are files to look at before the transaction ends, and the caller is in
-- none (DF004). Null: there is nothing to do. As JSON, which a client reads quicker than a row of arrays; `attempts` is
-- null where all are first ones.
create function dataflow.take(p_jobid text, p_names text[], p_count integer, p_run_id bigint, p_with_files boolean) returns json
    language plpgsql
as $$
#variable_conflict use_column
declare
    job         record;
    lease_until timestamptz;
    most        bigint;
    places      tid[];
    dataids     text[];
    pins        jsonb[];
    claim_ids   bigint[];
    have_files  boolean;
    pin_count   bigint;
    is_plain    boolean;
    added       bigint;
    attempts    integer[];
    setting     text;
begin
    -- Others lock datastatus first and the runnable row after it. We give way before Postgres calls that a deadlock
    -- and chooses its victim: a statement that somebody typed is never given up for our claim.
    setting := set_config('lock_timeout', '200ms', true);
    select t.* into job from dataflow.job_terms t where t.jobid = p_jobid;
    if job.is_ordered then
        perform dataflow.wait_for_turns(array[p_jobid]);
        p_count := least(p_count, 1);
    end if;
    if job.is_steered then
        most := (dataflow.room(p_jobid)).free;
    end if;
    if p_names is null then
        select array_agg(r.ctid), array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), bool_or(r.file_count > 0),
               sum(jsonb_array_length(r.inputs)), bool_and(r.is_plain)
          into places, dataids, pins, claim_ids, have_files, pin_count, is_plain
          from (select t.ctid, t.dataid, t.inputs, t.file_count, t.is_plain
                  from dataflow.runnable t
                 where t.jobid = p_jobid and t.blocked is null
                 order by t.resubmit desc, t.sort_key, t.dataid
                 limit least(p_count, most)
                   for update skip locked) r;
    else
        select array_agg(r.ctid), array_agg(r.dataid), array_agg(r.inputs), array_agg(nextval('dataflow.claim_id')), bool_or(r.file_count > 0),
               sum(jsonb_array_length(r.inputs)), bool_and(r.is_plain)
          into places, dataids, pins, claim_ids, have_files, pin_count, is_plain
          from dataflow.runnable r
         where r.jobid = p_jobid and r.dataid = any (p_names) and r.blocked is null;
    end if;
    if dataids is null then
        return null;
    elsif have_files and not p_with_files then
        raise exception 'the inputs of job % have files', p_jobid using errcode = 'DF004';
    elsif job.is_ordered and (cardinality(dataids) > 1 or dataflow.must_wait(dataflow.whose_turn(p_jobid), dataids[1])) then
        perform dataflow.refuse_stale(dataids);
    end if;
    delete from dataflow.runnable r where r.ctid = any (places);

    lease_until := now() + job.lease;
    if is_plain and job.is_plain then
        -- It does for its own chunks what the triggers would find out from the new rows.
        setting := set_config('dataflow.taking', 'on', true);
        insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
        select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, lease_until, 1, p_run_id, null::bigint
          from unnest(dataids, claim_ids) as g(dataid, claim_id) cross join unnest(job.outputs) as o(datasetid)
        union all
        select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', g.claim_id, null, 0, p_run_id, i.manifest_id
          from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs)
         cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint)
         -- The evidence still stands.
         cross join lateral (select from dataflow.datastatus s
                              where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT'
                                and s.status = 'READY' and s.manifest_id = i.manifest_id offset 0) s
         -- The one fact that changes by itself.
         where i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, g.dataid, i.dataid);
        get diagnostics added = row_count;
        setting := set_config('dataflow.taking', '', true);
        if added <> cardinality(dataids) * cardinality(job.outputs) + pin_count then
            perform dataflow.refuse_stale(dataids);
        end if;
    else
        attempts := dataflow.take_with_care(p_jobid, dataids, claim_ids, pins, job.outputs, lease_until, p_run_id);
    end if;

    insert into dataflow.verdict (jobid, dataid, claim_id, inputs)
    select p_jobid, g.dataid, g.claim_id, g.inputs from unnest(dataids, claim_ids, pins) as g(dataid, claim_id, inputs);
    return json_build_object('dataids', dataids, 'claim_ids', claim_ids, 'attempts', attempts, 'inputs', pins, 'outputs', job.outputs,
                             'lease', extract(epoch from job.lease), 'lease_until', lease_until, 'have_files', have_files);
end
$$;

-- Somebody changed a row behind the back of the triggers, or took a chunk that nobody had planned a moment before us, or
-- the day is over. The claim is undone, and these chunks are asked again.
create function dataflow.refuse_stale(p_dataids text[]) returns void
    language plpgsql
as $$
begin
    raise exception 'the answers about these chunks do not stand any more' using errcode = 'DF003', detail = to_json(p_dataids)::text;
end
$$;

-- What another Job has left of these outputs, PENDING or RESUBMIT (a foreign client, an announcement, a Job that had
-- another name), becomes this Job's: nobody else would ever make it READY, and consumers wait for every row.
create function dataflow.take_over(p_jobid text, p_outputs text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    other record;
begin
    for other in
        select s.datasetid, s.jobid, s.dataid, s.manifest_id from dataflow.datastatus s
         where s.datasetid = any (p_outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.jobid <> p_jobid
           and s.status in ('PENDING', 'RESUBMIT')
         order by s.datasetid, s.dataid, s.jobid
           for update
    loop
        -- The version that readers get until there is a new one comes along.
        update dataflow.datastatus s set manifest_id = greatest(s.manifest_id, other.manifest_id)
         where s.datasetid = other.datasetid and s.jobid = p_jobid and s.dataid = other.dataid and s.locktype = 'OUT';
        if found then
            delete from dataflow.datastatus s
             where s.datasetid = other.datasetid and s.jobid = other.jobid and s.dataid = other.dataid;
        else
            update dataflow.datastatus s set jobid = p_jobid
             where s.datasetid = other.datasetid and s.jobid = other.jobid and s.dataid = other.dataid;
        end if;
    end loop;
end
$$;

-- A claim that has more to do than to add rows: outputs were planned or resubmitted, inputs are read in place, or by
-- another running chunk of the Job, too. All outputs of all these chunks are taken, or nothing. Returns the attempt that
-- each chunk is at.
create function dataflow.take_with_care(p_jobid text, p_dataids text[], p_claim_ids bigint[], p_pins jsonb[], p_outputs text[],
                                        p_lease_until timestamptz, p_run_id bigint)
    returns integer[]
    language plpgsql
as $$
declare
    in_datasets  text[];
    in_dataids   text[];
    in_manifests bigint[];
    in_claims    bigint[];
    stale        text[];
    attempts     integer[];
    taken        bigint;
begin
    perform dataflow.take_over(p_jobid, p_outputs, p_dataids);

    -- The inputs, as far as they still are what the answers were given on. One that is read in place is locked for its
    -- producer: its row has no version.
    select array_agg(i.datasetid), array_agg(i.dataid), array_agg(case when i.in_place is null then i.manifest_id end), array_agg(g.claim_id)
      into in_datasets, in_dataids, in_manifests, in_claims
      from unnest(p_dataids, p_claim_ids, p_pins) as g(dataid, claim_id, inputs)
     cross join lateral jsonb_to_recordset(g.inputs) as i(datasetid text, dataid text, manifest_id bigint, in_place boolean)
     cross join lateral (select bool_and(coalesce(s.status, '') in ('READY', 'SKIPPED')) as is_ready,
                                bool_or(s.status = 'SKIPPED' or s.manifest_id is not distinct from i.manifest_id) as is_current
                           from dataflow.datastatus s
                          where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT' offset 0) s
     where s.is_ready and s.is_current
       and (i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, g.dataid, i.dataid));
    stale := array(select g.dataid from unnest(p_dataids, p_claim_ids, p_pins) as g(dataid, claim_id, inputs)
                    where jsonb_array_length(g.inputs) <> (select count(*) from unnest(in_claims) as i(claim_id) where i.claim_id = g.claim_id));
    if cardinality(stale) > 0 then
        perform dataflow.refuse_stale(stale);
    end if;

    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
    select o.datasetid, p_jobid, g.dataid, 'OUT', 'RUNNING', g.claim_id, p_lease_until, 1, p_run_id, null::bigint
      from unnest(p_dataids, p_claim_ids) as g(dataid, claim_id) cross join unnest(p_outputs) as o(datasetid)
    union all
    select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', i.claim_id, null, 0, p_run_id, i.manifest_id
      from unnest(in_datasets, in_dataids, in_manifests, in_claims) as i(datasetid, dataid, manifest_id, claim_id)
        on conflict do nothing;
    update dataflow.datastatus s
       set status = 'RUNNING', claim_id = p_claim_ids[array_position(p_dataids, s.dataid)], lease_until = p_lease_until, run_id = p_run_id,
           attempt = s.attempt + 1, reason = null
     where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = any (p_dataids)
       and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT');
    -- Whoever ends the other chunk waits for us here, and then leaves the row; or we wait for him, and it is gone.
    update dataflow.datastatus s
       set claim_id = i.claim_id, manifest_id = i.manifest_id, run_id = p_run_id
      from (select distinct on (u.datasetid, u.dataid) *
              from unnest(in_datasets, in_dataids, in_manifests, in_claims) as u(datasetid, dataid, manifest_id, claim_id)
             order by u.datasetid, u.dataid) i
     where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN' and s.claim_id <> all (p_claim_ids);
    select array_agg(o.attempt order by g.place), sum(o.count)
      into attempts, taken
      from unnest(p_dataids, p_claim_ids) with ordinality as g(dataid, claim_id, place)
     cross join lateral (select max(s.attempt) as attempt, count(*) as count from dataflow.datastatus s
                          where s.datasetid = any (p_outputs) and s.jobid = p_jobid and s.dataid = g.dataid and s.claim_id = g.claim_id offset 0) o;
    if taken <> cardinality(p_dataids) * cardinality(p_outputs)
       or exists (select from unnest(in_datasets, in_dataids) as i(datasetid, dataid)
                   where not exists (select from dataflow.datastatus s
                                      where s.datasetid = i.datasetid and s.jobid = p_jobid and s.dataid = i.dataid and s.locktype = 'IN'
                                        and s.claim_id = any (p_claim_ids))) then
        perform dataflow.refuse_stale(p_dataids);
    end if;
    return attempts;
end
$$;
