-- Rows that belong together: a claim and its IN rows, and the outputs of a Job.

-- The IN row of an input that a chunk reads.
create type dataflow.in_row as (
    jobid           text collate "C",
    dataid          text collate "C",
    input_datasetid text collate "C",
    input_dataid    text collate "C",
    is_equal        boolean,
    place           tid
);

-- Remove the IN rows of chunks that ended, failed or were resubmitted: those of the Job's inputs and, where the mapping is
-- not `equal`, those that the claim pinned. An input that another running chunk of the Job still reads stays locked. Heal
-- removes what is left.
create function dataflow.release_in_rows(p_changes dataflow.change[]) returns void
    language plpgsql
as $$
declare
    read dataflow.in_row[];
begin
    read := array(
        select row (x.*, i.place)::dataflow.in_row
          from (select c.jobid, c.dataid, j.datasetid as input_datasetid, c.dataid as input_dataid, true as is_equal
                  from unnest(p_changes) c
                 cross join lateral (select t.datasetid from dataflow.job t
                                      where t.jobid = c.jobid and t.itemtype = 'IN' and t.mapping = 'equal' offset 0) j
                 where coalesce(c.status, '') not in ('RUNNING', 'CLAIMED', 'PENDING') and (c.old_status is distinct from 'NEW' or c.status = 'RESUBMIT')
                union all
                select c.jobid, c.dataid, o.datasetid collate "C", o.dataid collate "C", false
                  from unnest(p_changes) c
                 cross join lateral (select * from dataflow.other_inputs_of(c.jobid, c.dataid)
                                     union all
                                     select * from dataflow.claimed_inputs(c.jobid, c.dataid, c.claim_id)) o
                 where coalesce(c.status, '') not in ('RUNNING', 'CLAIMED', 'PENDING') and (c.old_status is distinct from 'NEW' or c.status = 'RESUBMIT')
                   and exists (select from dataflow.job j where j.jobid = c.jobid and j.mapping <> 'equal')
                 order by 1, 3, 4) x
         cross join lateral (select s.ctid as place from dataflow.datastatus s
                              where s.datasetid = x.input_datasetid and s.jobid = x.jobid and s.dataid = x.input_dataid and s.locktype = 'IN'
                                for update) i);
    if read <> '{}' then
        delete from dataflow.datastatus
         where ctid = any (array(select r.place from unnest(read) r
                                  where r.is_equal or not dataflow.is_shared(r.jobid, r.dataid, r.input_datasetid, r.input_dataid)));
    end if;
end
$$;

-- Is there an IN row of this chunk without a claim? Beside an output that is RESUBMIT, a crash left it: a client that works
-- has made the output RUNNING in the same transaction.
create function dataflow.has_left_over(p_jobid text, p_dataid text) returns boolean
    language plpgsql stable
as $$
begin
    return exists (select from dataflow.job j
                    cross join lateral (select from dataflow.datastatus i
                                         where i.datasetid = j.datasetid and i.jobid = j.jobid and i.dataid = p_dataid
                                           and i.locktype = 'IN' and i.claim_id is null offset 0) i
                    where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping = 'equal');
end
$$;

-- Removes those rows, where a RESUBMIT did not find them: the rows of an upstream installation that becomes ours, or an IN row
-- that was typed later. Returns how many.
create function dataflow.remove_left_over() returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    removed bigint;
begin
    delete from dataflow.datastatus
     where ctid = any (array(
        select i.ctid
          from dataflow.datastatus i
          join dataflow.job j on j.jobid = i.jobid and j.datasetid = i.datasetid and j.itemtype = 'IN' and j.mapping = 'equal'
         where i.locktype = 'IN' and i.manifest_id is null and i.claim_id is null
           and (select bool_or(o.status = 'RESUBMIT')
                       and bool_and(coalesce(o.status, '') in ('PENDING', 'READY', 'FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED'))
                  from dataflow.job p
                  join dataflow.datastatus o on o.datasetid = p.datasetid and o.jobid = p.jobid and o.dataid = i.dataid and o.locktype = 'OUT'
                 where p.jobid = i.jobid and p.itemtype = 'OUT')
           for update of i skip locked));
    get diagnostics removed = row_count;
    return removed;
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

-- The outputs of a Job are claimed and made together: RESUBMIT of one is RESUBMIT of all, and a claim that lost one of its
-- outputs has lost the others.
create function dataflow.align_outputs(p_changes dataflow.change[]) returns void
    language plpgsql
as $$
declare
    other record;
begin
    for other in
        select j.datasetid, c.jobid, c.dataid, c.status, c.claim_id
          from unnest(p_changes) c
          join dataflow.job j on j.jobid = c.jobid and j.itemtype = 'OUT' and j.datasetid <> c.datasetid
         where coalesce(c.status, '') not in ('RUNNING', 'CLAIMED')
         order by j.datasetid, c.jobid, c.dataid
    loop
        update dataflow.datastatus t set status = 'RESUBMIT'
         where t.datasetid = other.datasetid and t.jobid = other.jobid and t.dataid = other.dataid and t.locktype = 'OUT'
           and (other.status = 'RESUBMIT' and t.status in ('RUNNING', 'READY', 'FAILED', 'PENDING') or t.claim_id = other.claim_id);
    end loop;
end
$$;

-- PENDING and RESUBMIT rows of these outputs that another Job left (a foreign client, an announcement, a renamed Job)
-- become this Job's: nobody else would ever make them READY, and consumers wait for every row.
create function dataflow.adopt_rows(p_jobid text, p_outputs text[], p_dataids text[]) returns void
    language plpgsql
as $$
declare
    other record;
begin
    for other in
        select s.datasetid, s.jobid, s.dataid, s.manifest_id, s.code_version from dataflow.datastatus s
         where s.datasetid = any (p_outputs) and s.dataid = any (p_dataids) and s.locktype = 'OUT' and s.jobid <> p_jobid
           and s.status in ('PENDING', 'RESUBMIT')
         order by s.datasetid, s.dataid, s.jobid
           for update
    loop
        -- The version that readers get until there is a new one comes along.
        update dataflow.datastatus s
           set manifest_id = greatest(s.manifest_id, other.manifest_id),
               code_version = case when other.manifest_id > coalesce(s.manifest_id, 0) then other.code_version else s.code_version end
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
