-- What a Job is allowed, and which chunks it reads.

-- The defaults of a Job without a policy row are those of the table's columns.
create function dataflow.lease_of(p_jobid text) returns interval
    language sql stable
    return coalesce((select p.lease from dataflow.job_policy p where p.jobid = p_jobid), '10 minutes');

create function dataflow.max_attempts_of(p_jobid text) returns integer
    language sql stable
    return coalesce((select p.max_attempts from dataflow.job_policy p where p.jobid = p_jobid), 3);

-- The crash rule: a claim that ended without a result is retried until the retry budget is exhausted.
create function dataflow.status_after_crash(p_jobid text, p_retries integer) returns text
    language sql stable
    return case when p_retries + 1 < dataflow.max_attempts_of(p_jobid) then 'RESUBMIT' else 'FAILED' end;

-- How many more chunks of the Job may run; null: no limit. Claims under a limit wait here for each other, because none
-- of them sees the chunks that another is claiming.
create function dataflow.room(p_jobid text, out concurrency integer, out paused timestamptz, out reason text, out running bigint, out free bigint)
    language plpgsql
as $$
#variable_conflict use_column
begin
    select c.concurrency, c.paused, c.reason into concurrency, paused, reason from dataflow.job_control c where c.jobid = p_jobid;
    if concurrency is not null then
        perform pg_advisory_xact_lock(hashtext('dataflow room'), hashtext(p_jobid));
    end if;
    -- The outputs of a chunk are claimed together, so the fullest output counts.
    select coalesce(max(o.running), 0) into running
      from (select count(s.claim_id) as running
              from dataflow.job j
              join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT' and s.claim_id is not null and s.jobid = p_jobid
             where j.jobid = p_jobid and j.itemtype = 'OUT' group by j.datasetid) o;
    free := case when paused is not null then 0 when concurrency is not null then greatest(concurrency - running, 0) end;
end
$$;

-- The input chunks of a chunk whose mapping is not `equal`. A function of its own, which a Job without them never calls.
create function dataflow.other_inputs_of(p_jobid text, p_dataid text)
    returns table (datasetid text, dataid text)
    language plpgsql stable rows 10
as $$
#variable_conflict use_column
begin
    return query
    select e.datasetid, e.input_dataid
      from dataflow.chunk_input e
      join dataflow.job j on j.jobid = e.jobid and j.datasetid = e.datasetid and j.itemtype = 'IN' and j.mapping = 'listed'
     where e.jobid = p_jobid and e.dataid = p_dataid and e.input_dataid <> ''
    union all
    select distinct j.datasetid, s.dataid
      from dataflow.job j
      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
     where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping = 'all'
     order by 1, 2;
end
$$;

-- An input DataSet none of whose chunks is listed for this chunk (or, with mapping `all`, exists). Null: none.
create function dataflow.unlisted_input(p_jobid text, p_dataid text) returns text
    language plpgsql stable
as $$
begin
    return (select min(j.datasetid)
              from dataflow.job j
             where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping <> 'equal'
               and not exists (select from dataflow.chunk_input e
                                where e.jobid = p_jobid and e.dataid = p_dataid and e.datasetid = j.datasetid)
               and not (j.mapping = 'all' and exists (select from dataflow.datastatus s
                                                       where s.datasetid = j.datasetid and s.locktype = 'OUT')));
end
$$;

-- Every chunk of a Job that reads one of these chunks.
create function dataflow.consumers_of(p_datasetids text[], p_dataids text[])
    returns table (jobid text, dataid text)
    language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select j.jobid, c.dataid
      from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
      join dataflow.job j on j.datasetid = c.datasetid and j.itemtype = 'IN' and j.mapping = 'equal';
    if exists (select from dataflow.job j where j.mapping <> 'equal' and j.datasetid = any (p_datasetids)) then
        return query
        select e.jobid, e.dataid
          from unnest(p_datasetids, p_dataids) as c(datasetid, dataid)
         cross join lateral (select i.jobid, i.dataid from dataflow.chunk_input i
                              where i.datasetid = c.datasetid and i.input_dataid = c.dataid offset 0) e
        union
        select j.jobid, s.dataid
          from dataflow.job j
          join dataflow.job o on o.jobid = j.jobid and o.itemtype = 'OUT'
          join dataflow.datastatus s on s.datasetid = o.datasetid and s.locktype = 'OUT'
         where j.datasetid = any (p_datasetids) and j.itemtype = 'IN' and j.mapping = 'all';
    end if;
end
$$;

-- The inputs that a claim pinned.
create function dataflow.claimed_inputs(p_jobid text, p_dataid text, p_claim_id bigint)
    returns table (datasetid text, dataid text)
    language plpgsql stable rows 10
as $$
#variable_conflict use_column
begin
    return query
    select i.datasetid, i.dataid
      from dataflow.verdict v
     cross join lateral jsonb_to_recordset(v.inputs) as i(datasetid text, dataid text)
     where v.jobid = p_jobid and v.dataid = p_dataid and v.claim_id = p_claim_id;
end
$$;

-- The first unfinished chunk of a strictly ordered Job, and RUNNING if it runs: only this one may be claimed. Null: any.
create function dataflow.whose_turn(p_jobid text) returns text[]
    language plpgsql stable
as $$
begin
    return (select array[t.dataid, case when t.is_running then 'RUNNING' end]
              from dataflow.turn t where t.jobid = p_jobid
             order by t.is_running desc, t.sort_key, t.dataid
             limit 1);
end
$$;

-- Must this chunk wait for the one whose turn it is?
create function dataflow.must_wait(p_turn text[], p_dataid text) returns boolean
    language sql immutable parallel safe
    return p_turn[1] <> p_dataid
           and (p_turn[2] = 'RUNNING'
                or (dataflow.natural_key(p_turn[1]), p_turn[1] collate "C") < (dataflow.natural_key(p_dataid), p_dataid collate "C"));

-- `today` is READY for the current date of its time zone. An earlier day runs for a Job that catches up, and for a
-- chunk that was resubmitted. A day that was opened for a resubmitted chunk alone is nothing to catch up on.
create function dataflow.is_its_day(p_jobid text, p_dataid text, p_day text) returns boolean
    language plpgsql stable
as $$
declare
    today pg_catalog.text := (select to_char(now() at time zone d.timezone, 'YYYY-MM-DD') from dataflow.dataset d where d.datasetid = 'today');
begin
    return p_day = today
        or p_day < today
           and (exists (select from dataflow.job_policy p where p.jobid = p_jobid and p.catch_up)
                and exists (select from dataflow.datastatus s
                             where s.datasetid = 'today' and s.dataid = p_day and s.locktype = 'OUT' and s.jobid <> 'resubmitted')
                or exists (select from dataflow.job j
                            cross join lateral (select from dataflow.datastatus s
                                                 where s.datasetid = j.datasetid and s.jobid = j.jobid and s.dataid = p_dataid
                                                   and s.locktype = 'OUT' and s.status = 'RESUBMIT' offset 0) t
                            where j.jobid = p_jobid and j.itemtype = 'OUT'));
end
$$;
