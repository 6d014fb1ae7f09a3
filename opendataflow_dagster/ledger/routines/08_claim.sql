-- request and claim.

-- PENDING rows for the outputs of a Job, with the run that was asked for them. A chunk that has a row keeps it. The p_listed
-- arrays name the input chunks of each chunk, where a mapping lists them; '' is for none. Returns the number of new rows.
create function dataflow.plan(p_jobid text, p_dataids text[], p_run_id bigint,
                              p_listed_dataids text[], p_listed_datasetids text[], p_listed_input_dataids text[]) returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    planned bigint;
begin
    if cardinality(p_listed_dataids) > 0 then
        with listed as (
            select * from unnest(p_listed_dataids, p_listed_datasetids, p_listed_input_dataids) as l(dataid, datasetid, input_dataid)
        ), gone as (
            delete from dataflow.chunk_input e
             where e.jobid = p_jobid and e.dataid = any (p_dataids)
               and not exists (select from listed l where l.dataid = e.dataid and l.datasetid = e.datasetid and l.input_dataid = e.input_dataid)
        )
        insert into dataflow.chunk_input (jobid, dataid, datasetid, input_dataid)
        select p_jobid, l.dataid, l.datasetid, l.input_dataid from listed l
            on conflict do nothing;
    end if;
    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, run_id)
    select j.datasetid, j.jobid, p.dataid, 'OUT', 'PENDING', p_run_id
      from dataflow.job j
     cross join unnest(p_dataids) as p(dataid)
     where j.jobid = p_jobid and j.itemtype = 'OUT'
       and not exists (select from dataflow.datastatus s where s.datasetid = j.datasetid and s.dataid = p.dataid and s.locktype = 'OUT'
                        offset 0)
     order by j.datasetid, p.dataid
        on conflict do nothing;
    get diagnostics planned = row_count;
    return planned;
end
$$;

-- A run (or a person) asks for chunks of a Job. Chunks without a row are planned. If a person asked (p_requested is when),
-- FAILED chunks and READY ones that are older than the request become RESUBMIT. A chunk that is being made is left alone.
-- What waits to be made is marked with the run, so that cancelling the run cancels it.
-- Returns the resubmitted dataids, and the READY chunks of the first output with their versions.
create function dataflow.request(p_jobid text, p_dataids text[], p_requested timestamptz, p_run_id bigint, p_reason text, p_actor text,
                                 p_listed_dataids text[], p_listed_datasetids text[], p_listed_input_dataids text[]) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    outputs     text[] := array(select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT' order by 1);
    setting     text := set_config('dataflow.actor', p_actor, true);
    known       bigint;
    resubmitted text[] := '{}';
    ready       json;
begin
    -- Lock what there is, in one order, before anything changes.
    select count(*) into known
      from (select from dataflow.datastatus s
             where s.datasetid = any (outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT'
             order by s.datasetid, s.jobid, s.dataid
               for update) l;
    perform dataflow.plan(p_jobid, p_dataids, p_run_id, p_listed_dataids, p_listed_datasetids, p_listed_input_dataids);
    if known > 0 then
        if p_requested is not null then
            with again as (
                update dataflow.datastatus s set status = 'RESUBMIT', reason = p_reason, run_id = coalesce(p_run_id, s.run_id)
                 where s.datasetid = any (outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT'
                   and (s.status = 'FAILED' or s.status = 'READY' and s.modified <= p_requested
                        or s.status = 'RESUBMIT' and dataflow.has_left_over(s.jobid, s.dataid))
                returning s.dataid
            )
            select coalesce(array_agg(distinct a.dataid), '{}') into resubmitted from again a;
        end if;
        if p_run_id is not null then
            update dataflow.datastatus s set run_id = p_run_id
             where s.datasetid = any (outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT')
               and s.run_id is distinct from p_run_id;
        end if;
        select json_agg(json_build_object('dataid', s.dataid, 'manifest', (select to_json(m) from dataflow.data_manifest m where m.manifest_id = s.manifest_id)))
          into ready
          from dataflow.datastatus s
         where s.datasetid = outputs[1] and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.status = 'READY';
    end if;
    return json_build_object('resubmitted', resubmitted, 'ready', coalesce(ready, '[]'));
end
$$;

-- A chunk that may be claimed: what its answers were given on, and the state of its row of the runnable set. The row changes
-- with every fact about the chunk, so the answers stand as long as the row has the same xmin.
create type dataflow.candidate as (
    dataid text collate "C",
    state  text,
    inputs jsonb
);

-- Candidates with the versions that they read. One JSON, which a client parses faster than rows; a version that several
-- chunks read is in it once.
create function dataflow.with_manifests(p_candidates dataflow.candidate[]) returns json
    language plpgsql stable
as $$
begin
    return json_build_object(
        'chunks', coalesce(array_to_json(p_candidates), '[]'),
        'manifests', coalesce((select json_agg(m) from dataflow.data_manifest m
                                where m.manifest_id = any (array(select i.manifest_id from unnest(p_candidates) c
                                                                  cross join lateral jsonb_to_recordset(c.inputs) as i(manifest_id bigint)))), '[]'));
end
$$;

-- A chunk that a claim takes.
create type dataflow.taken as (
    dataid   text collate "C",
    claim_id bigint,
    inputs   jsonb
);

-- The claim. The caller has looked at the files of the inputs of these candidates, {dataid: state, ...}; each whose row of the
-- runnable set still has five yes and that state is taken, at most p_count.
-- p_named: the chunks were asked for by name. Then locks are waited for, and the answers for those that were not taken come
-- back, too; a chunk that was no candidate has the state null, and p_count is the number of all. Otherwise chunks that others are claiming are passed over.
-- If the evidence does not stand although the row says so (a changed row behind the triggers' back, or midnight), nothing is
-- taken and DF003 names the chunks. Null: there is no such Job. JSON, which a client parses faster than rows of arrays.
create function dataflow.claim(p_jobid text, p_candidates json, p_count integer, p_run_id bigint, p_named boolean) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    job         record;
    free        bigint;
    is_paused   boolean := false;
    asked       integer := p_count;
    chunks      dataflow.taken[];
    expires     timestamptz;
    claims      json := '[]';
    is_whole    boolean;
    refused     json := '[]';
begin
    select coalesce(p.ordered, false) as ordered, coalesce(p.lease, dataflow.lease_of(p_jobid)) as lease, c.jobid is not null as is_limited,
           array_agg(j.datasetid order by j.datasetid) filter (where j.itemtype = 'OUT') as outputs
      into job
      from dataflow.job j
      left join dataflow.job_policy p on p.jobid = j.jobid
      left join dataflow.job_control c on c.jobid = j.jobid
     where j.jobid = p_jobid
     group by p.jobid, c.jobid;
    if not found then
        return null;
    end if;
    if job.ordered then
        perform dataflow.lock_turns(array[p_jobid]);
        p_count := least(p_count, 1);
    end if;
    if job.is_limited then
        select r.free, r.paused is not null into free, is_paused from dataflow.room(p_jobid) r;
        p_count := least(p_count, free);
    end if;

    -- In one order, so that two claims never wait for each other in a circle. By the primary key: without the coalesce, the
    -- planner may walk the partial index of all that is not blocked.
    if p_named then
        chunks := array(
        select row (t.dataid, nextval('dataflow.claim_id'), t.inputs)::dataflow.taken
          from (select t.dataid, t.inputs
                  from (select c.key collate "C" as dataid, c.value as state from json_each_text(p_candidates) c order by 1) c
                 cross join lateral (select r.dataid, r.inputs, r.xmin::text as state, r.blocked from dataflow.runnable r
                                      where r.jobid = p_jobid and r.dataid = c.dataid for update) t
                 where coalesce(t.blocked, '') = '' and t.state = c.state
                 limit p_count) t);
    else
        chunks := array(
        select row (t.dataid, nextval('dataflow.claim_id'), t.inputs)::dataflow.taken
          from (select t.dataid, t.inputs
                  from json_each_text(p_candidates) c
                 cross join lateral (select r.dataid, r.inputs from dataflow.runnable r
                                      where r.jobid = p_jobid and r.dataid = c.key and coalesce(r.blocked, '') = '' and r.xmin::text = c.value
                                        for update skip locked) t
                 limit p_count) t);
    end if;
    if job.ordered and chunks <> '{}' and dataflow.must_wait(dataflow.whose_turn(p_jobid), chunks[1].dataid) then
        perform dataflow.refuse_stale(chunks);
    end if;

    if chunks <> '{}' then
        perform dataflow.adopt_rows(p_jobid, job.outputs, array(select c.dataid from unnest(chunks) c));
        expires := now() + job.lease;
        -- The outputs, and the inputs that are still what the answers were given on. An input that is read in place gets a row
        -- without a version, which locks out its producer. One row serves all running chunks of the Job that read the same input.
        with chunk as materialized (
            select * from unnest(chunks)
        ), pin as materialized (
            select i.datasetid, i.dataid, case when i.in_place is null then i.manifest_id end as manifest_id, c.claim_id
              from chunk c
             cross join lateral jsonb_to_recordset(c.inputs) as i(datasetid text, dataid text, manifest_id bigint, in_place boolean)
             cross join lateral (select bool_and(coalesce(s.status, '') in ('READY', 'SKIPPED')) as is_ready,
                                        bool_or(s.status = 'SKIPPED' or s.manifest_id is not distinct from i.manifest_id) as is_current
                                   from dataflow.datastatus s
                                  where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT'
                        offset 0) s
             where s.is_ready and s.is_current
               and (i.datasetid <> 'today' or dataflow.is_its_day(p_jobid, c.dataid, i.dataid))
        ), input as materialized (
            select distinct on (i.datasetid, i.dataid) * from pin i order by i.datasetid, i.dataid, i.claim_id desc
        ), gone as (
            delete from dataflow.runnable r where r.jobid = p_jobid and r.dataid = any (array(select c.dataid from chunk c))
        ), recorded as (
            insert into dataflow.verdict (jobid, dataid, claim_id, inputs)
            select p_jobid, c.dataid, c.claim_id, c.inputs from chunk c
        ), planned as (
            update dataflow.datastatus s
               set status = 'RUNNING', claim_id = c.claim_id, lease_until = expires, run_id = p_run_id, attempt = s.attempt + 1, reason = null
              from (select c.claim_id, t.place
                      from chunk c
                     cross join lateral (select t.ctid as place from dataflow.datastatus t
                                          where t.datasetid = any (job.outputs) and t.jobid = p_jobid and t.dataid = c.dataid offset 0) t) c
             where s.ctid = c.place and s.locktype = 'OUT' and s.status in ('PENDING', 'RESUBMIT')
            returning s.datasetid, s.dataid, s.locktype, s.claim_id, s.attempt
        ), added as (
            insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, manifest_id)
            select o.datasetid, p_jobid, c.dataid, 'OUT', 'RUNNING', c.claim_id, expires, 1, p_run_id, null::bigint
              from chunk c cross join unnest(job.outputs) as o(datasetid)
             where not exists (select from planned p where p.datasetid = o.datasetid and p.dataid = c.dataid)
            union all
            select i.datasetid, p_jobid, i.dataid, 'IN', 'RUNNING', i.claim_id, null, 0, p_run_id, i.manifest_id from input i
            on conflict (datasetid, jobid, dataid) do update
               set claim_id = excluded.claim_id, run_id = excluded.run_id, manifest_id = excluded.manifest_id
             where s.locktype = 'IN' and excluded.locktype = 'IN'
            returning s.datasetid, s.dataid, s.locktype, s.claim_id, s.attempt
        ), row_taken as materialized (
            select * from planned union all select * from added
        )
        select (select json_agg(json_build_object('claim_id', c.claim_id, 'dataid', c.dataid, 'attempt', c.attempt))
                  from (select distinct on (t.claim_id) t.claim_id, t.dataid, t.attempt from row_taken t where t.locktype = 'OUT'
                         order by t.claim_id, t.attempt desc) c),
               (select count(*) from row_taken) = cardinality(chunks) * cardinality(job.outputs) + (select count(*) from input)
               and (select count(*) from pin) = (select coalesce(sum(jsonb_array_length(c.inputs)), 0) from chunk c)
               -- The registry changed after the answers were given.
               and not exists (select from dataflow.unsettled u where u.jobid = p_jobid and u.dataid = '')
               and not exists (select from dataflow.unsettled u where u.jobid = p_jobid and u.dataid = any (array(select c.dataid from chunk c)))
          into claims, is_whole;
        if is_whole is not true then
            perform dataflow.refuse_stale(chunks);
        end if;
    end if;

    if p_named and cardinality(chunks) < asked then
        refused := dataflow.refuse(p_jobid, array(select c.dataid from json_object_keys(p_candidates) as c(dataid)
                                                   where c.dataid <> all (array(select t.dataid from unnest(chunks) t))));
    end if;
    return json_build_object('claims', claims, 'outputs', job.outputs, 'lease', extract(epoch from job.lease), 'lease_until', expires,
                             'refused', refused, 'free', free - cardinality(chunks), 'paused', is_paused);
end
$$;

-- The five answers for some chunks, with the operators' limits: a paused Job, and one at its concurrency limit, is a no to SAFE.
create function dataflow.answers(p_jobid text, p_dataids text[])
    returns table (dataid text, problems jsonb, inputs jsonb)
    language plpgsql
as $$
#variable_conflict use_column
declare
    room    record;
    no_room pg_catalog.jsonb := '[]';
begin
    select r.* into room from dataflow.room(p_jobid) r;
    if room.paused is not null then
        no_room := jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('question', 'SAFE', 'problem', 'PAUSED', 'jobid', p_jobid, 'reason', room.reason,
                                                                          'since', to_char(room.paused at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))));
    elsif room.free = 0 then
        no_room := jsonb_build_array(jsonb_build_object('question', 'SAFE', 'problem', 'AT_LIMIT', 'jobid', p_jobid, 'running', room.running));
    end if;
    return query select a.dataid, a.problems || no_room, a.inputs from dataflow.ask(p_jobid, p_dataids) a;
end
$$;

-- The answers for chunks that were not taken. Those with a no are recorded; one without is not planned yet, or changed
-- a moment ago.
create function dataflow.refuse(p_jobid text, p_dataids text[]) returns json
    language plpgsql
as $$
declare
    refused json;
begin
    with asked as materialized (
        select * from dataflow.answers(p_jobid, p_dataids)
    ), recorded as (
        insert into dataflow.verdict (jobid, dataid, problems, code, inputs)
        select p_jobid, a.dataid, a.problems, dataflow.code_of(a.problems), a.inputs
          from asked a where a.problems <> '[]' and dataflow.is_news(p_jobid, a.dataid, a.problems)
    )
    select json_agg(json_build_object('dataid', a.dataid, 'problems', a.problems, 'inputs', a.inputs)) into refused from asked a;
    return coalesce(refused, '[]');
end
$$;

-- The claim is undone, and the caller has these chunks evaluated again.
create function dataflow.refuse_stale(p_chunks dataflow.taken[]) returns void
    language plpgsql
as $$
begin
    raise exception 'the answers about these chunks are out of date'
        using errcode = 'DF003', detail = (select json_agg(c.dataid) from unnest(p_chunks) c)::text;
end
$$;

-- The ledger's answers, with what a caller saw of the files of the inputs (p_misplaced; null: all in place), which the ledger
-- cannot give. A repeated answer is stored once. p_block: chunks with misplaced files are not offered to claims any more, until
-- heal asks again; no other answer is changed.
create function dataflow.record(p_jobid text, p_dataids text[], p_misplaced text[], p_block boolean) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    with looked as materialized (
        select u.dataid, jsonb_agg(jsonb_build_object('question', 'PLACED', 'problem', 'MISPLACED', 'text', u.misplaced) order by u.place)
                             filter (where u.misplaced is not null) as misplaced
          from unnest(p_dataids, p_misplaced) with ordinality as u(dataid, misplaced, place)
         group by u.dataid
    ), asked as materialized (
        select a.dataid, a.inputs, l.misplaced,
               (select coalesce(jsonb_agg(p.problem order by array_position(array['READY', 'RIGHT', 'PLACED', 'VALID', 'SAFE'], p.problem ->> 'question'),
                                                             p.place), '[]')
                  from jsonb_array_elements(a.problems || coalesce(l.misplaced, '[]')) with ordinality as p(problem, place)) as problems
          from (select * from dataflow.ask(p_jobid, array(select l.dataid from looked l)) where p_block
                union all
                select t.dataid, t.problems, t.inputs, null, null
                  from dataflow.answers(p_jobid, array(select l.dataid from looked l)) t where not p_block) a
          join looked l on l.dataid = a.dataid
    ), blocked as (
        update dataflow.runnable r set blocked = 'INVALID_PATH'
          from asked a
         where p_block and a.misplaced is not null and r.jobid = p_jobid and r.dataid = a.dataid and r.blocked is null
    )
    insert into dataflow.verdict (jobid, dataid, problems, code, inputs)
    select p_jobid, a.dataid, a.problems, dataflow.code_of(a.problems), a.inputs
      from asked a
     where dataflow.is_news(p_jobid, a.dataid, a.problems);
end
$$;

-- A claim in spite of the answers, for development. A live claim of the chunk is revoked, and the inputs are not locked. The
-- verdict and the history say that it was forced. Null: no output can be claimed.
create function dataflow.force(p_jobid text, p_dataid text, p_run_id bigint, p_reason text) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    outputs text[] := array(select j.datasetid from dataflow.job j where j.jobid = p_jobid and j.itemtype = 'OUT' order by 1);
    id      bigint := nextval('dataflow.claim_id');
    expires timestamptz := now() + dataflow.lease_of(p_jobid);
    answers record;
    taken   record;
begin
    select a.* into answers from dataflow.ask(p_jobid, array[p_dataid]) a;
    update dataflow.datastatus s set status = 'RESUBMIT', reason = p_reason
     where s.datasetid = any (outputs) and s.dataid = p_dataid and s.locktype = 'OUT'
       and s.status is distinct from 'PENDING' and s.status is distinct from 'RESUBMIT';
    perform dataflow.adopt_rows(p_jobid, outputs, array[p_dataid]);
    -- As a claim does; inserted first, to wait for a transaction that is inserting it.
    insert into dataflow.runnable (jobid, dataid, sort_key) values (p_jobid, p_dataid, '') on conflict do nothing;
    delete from dataflow.runnable r where r.jobid = p_jobid and r.dataid = p_dataid;
    with taken as (
        insert into dataflow.datastatus as s (datasetid, jobid, dataid, locktype, status, claim_id, lease_until, attempt, run_id, reason)
        select o.datasetid, p_jobid, p_dataid, 'OUT', 'RUNNING', id, expires, 1, p_run_id, p_reason from unnest(outputs) as o(datasetid)
            on conflict (datasetid, jobid, dataid) do update
           set status = 'RUNNING', claim_id = excluded.claim_id, lease_until = excluded.lease_until, run_id = excluded.run_id,
               attempt = s.attempt + 1, reason = excluded.reason
         where s.locktype = 'OUT'
        returning s.datasetid, s.attempt
    )
    select max(t.attempt) as attempt, array_agg(t.datasetid order by t.datasetid) as outputs into taken from taken t;
    if taken.outputs is null then
        return null;
    end if;
    insert into dataflow.verdict (jobid, dataid, claim_id, problems, code, inputs, forced)
    values (p_jobid, p_dataid, id, answers.problems, dataflow.code_of(answers.problems), answers.inputs, true);
    return json_build_object('claims', json_build_array(json_build_object('claim_id', id, 'dataid', p_dataid, 'attempt', taken.attempt)),
                             'inputs', answers.inputs, 'outputs', taken.outputs,
                             'lease', extract(epoch from dataflow.lease_of(p_jobid)), 'lease_until', expires, 'refused', '[]'::json, 'free', null, 'paused', false,
                             'problems', answers.problems);
end
$$;
