-- What belongs together: a claim and its IN rows, and the outputs of a Job.

-- What a Job that ended, failed or was resubmitted leaves behind: the IN rows of its chunks. They are those of the
-- inputs that it has, and, where its inputs are not just those of the same name, of those that it had when it was claimed; heal
-- removes what is left. An input that another running chunk of the Job reads, too, stays locked.
create function dataflow.drop_in_rows(p_jobids text[], p_dataids text[], p_claim_ids bigint[]) returns void
    language plpgsql
as $$
declare
    jobids           text[];
    dataids          text[];
    input_datasetids text[];
    input_dataids    text[];
    are_equal        boolean[];
    places           tid[];
begin
    select array_agg(x.jobid), array_agg(x.dataid), array_agg(x.input_datasetid), array_agg(x.input_dataid), array_agg(x.is_equal),
           array_agg(i.place)
      into jobids, dataids, input_datasetids, input_dataids, are_equal, places
      from (select c.jobid collate "C" as jobid, c.dataid, j.datasetid as input_datasetid, c.dataid collate "C" as input_dataid, true as is_equal
              from unnest(p_jobids, p_dataids) as c(jobid, dataid)
             cross join lateral (select t.datasetid from dataflow.job t
                                  where t.jobid = c.jobid and t.itemtype = 'IN' and t.mapping = 'equal' offset 0) j
            union all
            select c.jobid collate "C", c.dataid, o.datasetid collate "C", o.dataid collate "C", false
              from unnest(p_jobids, p_dataids, p_claim_ids) as c(jobid, dataid, claim_id)
             cross join lateral (select * from dataflow.other_inputs_of(c.jobid, c.dataid)
                                 union all
                                 select * from dataflow.claimed_inputs(c.jobid, c.dataid, c.claim_id)) o
             where exists (select from dataflow.job j where j.jobid = c.jobid and j.mapping <> 'equal')
             order by 1, 3, 4) x
     cross join lateral (select s.ctid as place from dataflow.datastatus s
                          where s.datasetid = x.input_datasetid and s.jobid = x.jobid and s.dataid = x.input_dataid and s.locktype = 'IN'
                            for update) i;
    if places is null then
        return;
    end if;
    delete from dataflow.datastatus
     where ctid = any (array(
           select c.place
             from unnest(jobids, dataids, input_datasetids, input_dataids, are_equal, places)
                  as c(jobid, dataid, input_datasetid, input_dataid, is_equal, place)
            where c.is_equal or not dataflow.is_shared(c.jobid, c.dataid, c.input_datasetid, c.input_dataid)));
end
$$;

-- The inputs that a claim has pinned.
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

-- Does another running chunk of the Job read this input chunk?
create function dataflow.is_shared(p_jobid text, p_dataid text, p_input_datasetid text, p_input_dataid text) returns boolean
    language plpgsql stable
as $$
begin
    return exists (select from dataflow.job o
                    cross join lateral (select t.dataid, t.claim_id from dataflow.datastatus t
                                         where t.datasetid = o.datasetid and t.jobid = o.jobid and t.locktype = 'OUT'
                                           and t.claim_id is not null and t.dataid <> p_dataid offset 0) s
                    cross join lateral dataflow.claimed_inputs(p_jobid, s.dataid, s.claim_id) x
                    where o.jobid = p_jobid and o.itemtype = 'OUT' and x.datasetid = p_input_datasetid and x.dataid = p_input_dataid);
end
$$;

-- The outputs of a Job are claimed and made together: RESUBMIT of one is RESUBMIT of all, and a claim that lost one
-- of its outputs has lost the others.
create function dataflow.keep_together(p_datasetids text[], p_jobids text[], p_dataids text[], p_statuses text[], p_claim_ids bigint[])
    returns void
    language plpgsql
as $$
declare
    other record;
begin
    if not exists (select from dataflow.job j where j.jobid = any (p_jobids) and j.itemtype = 'OUT' group by j.jobid having count(*) > 1) then
        return;
    end if;
    for other in
        select j.datasetid, c.jobid, c.dataid, c.status, c.claim_id
          from unnest(p_datasetids, p_jobids, p_dataids, p_statuses, p_claim_ids) as c(datasetid, jobid, dataid, status, claim_id)
          join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT' and j.datasetid <> c.datasetid
         where c.status is distinct from 'RUNNING'
         order by j.datasetid, c.jobid, c.dataid
    loop
        update dataflow.datastatus t set status = 'RESUBMIT'
         where t.datasetid = other.datasetid and t.jobid = other.jobid and t.dataid = other.dataid and t.locktype = 'OUT'
           and (other.status = 'RESUBMIT' and t.status in ('RUNNING', 'READY', 'FAILED', 'PENDING') or t.claim_id = other.claim_id);
    end loop;
end
$$;
