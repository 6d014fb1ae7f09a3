-- What every claim and publication must know of a Job, in one row: to look it up in three tables costs a claim of one chunk a tenth of its time.

create view dataflow.terms_now as
select j.jobid, coalesce(p.lease, '10 minutes') as lease,
       array(select o.datasetid from dataflow.job o where o.jobid = j.jobid and o.itemtype = 'OUT' order by 1) as outputs,
       -- Nobody but this Job gains or loses a runnable chunk by a claim of it; by a publication, only who needs the chunk of that name.
       not coalesce(p.ordered, false)
       and not exists (select from dataflow.job i where i.jobid = j.jobid and i.mapping <> 'equal')
       and not exists (select from dataflow.job o join dataflow.job i on i.datasetid = o.datasetid and i.itemtype = 'IN' and i.mapping <> 'equal'
                        where o.jobid = j.jobid and o.itemtype = 'OUT') as is_plain,
       coalesce(p.ordered, false) as is_ordered,
       -- Operators have a say.
       exists (select from dataflow.job_control c where c.jobid = j.jobid) as is_steered
  from (select distinct i.jobid from dataflow.job i) j
  left join dataflow.job_policy p on p.jobid = j.jobid;
comment on view dataflow.terms_now is 'What job_terms must hold.';

create table dataflow.job_terms (
    jobid      text collate "C" primary key,
    lease      interval not null,
    outputs    text[] not null,
    is_plain   boolean not null,
    is_ordered boolean not null,
    is_steered boolean not null
);
comment on table dataflow.job_terms is 'Derived: what a claim and a publication must know of a Job. Triggers keep it equal to terms_now.';
insert into dataflow.job_terms select * from dataflow.terms_now;

create function dataflow.keep_terms() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    jobids text[] := array[old.jobid, new.jobid];
begin
    if tg_table_name = 'job' then
        -- Who produces what is consumed in another way now.
        jobids := jobids || array(select o.jobid from dataflow.job o where o.itemtype = 'OUT' and o.datasetid in (old.datasetid, new.datasetid));
    end if;
    delete from dataflow.job_terms t
     where t.jobid = any (jobids) and not exists (select from dataflow.job j where j.jobid = t.jobid);
    insert into dataflow.job_terms as t
    select n.* from dataflow.terms_now n where n.jobid = any (jobids) order by n.jobid
        on conflict (jobid) do update
       set lease = excluded.lease, outputs = excluded.outputs, is_plain = excluded.is_plain, is_ordered = excluded.is_ordered,
           is_steered = excluded.is_steered
     where (t.lease, t.outputs, t.is_plain, t.is_ordered, t.is_steered)
           is distinct from (excluded.lease, excluded.outputs, excluded.is_plain, excluded.is_ordered, excluded.is_steered);
    return null;
end
$$;
create trigger keep_terms after insert or update or delete on dataflow.job for each row execute function dataflow.keep_terms();
create trigger keep_terms after insert or update or delete on dataflow.job_policy for each row execute function dataflow.keep_terms();
create trigger keep_terms after insert or delete on dataflow.job_control for each row execute function dataflow.keep_terms();
