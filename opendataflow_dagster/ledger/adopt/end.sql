-- Inserts upstream's rows into our tables, with their times. Rows that cannot be stored are named, and nothing changes.
do $$
declare
    wrong   text;
    keeper  record;
    granted record;
begin
    if to_regclass('pg_temp.upstream_datastatus') is null then
        return;
    end if;

    select array_to_string((array_agg(w.what))[1:3], '; ') || case when count(*) > 3 then format('; and %s more', count(*) - 3) else '' end into wrong from (
        select format('the DataSet name %L cannot be used', d.datasetid) as what
          from pg_temp.upstream_dataset d where dataflow.is_name(d.datasetid) is not true
        union all
        select format('DataSet %s has %s rows that differ', d.datasetid, count(*))
          from (select distinct datasetid, hostname, database, schemaname, tablename, username, encryptedpass from pg_temp.upstream_dataset) d
         group by d.datasetid having count(*) > 1
        union all
        select format('the item %L of job %L has no name or no DataSet', j.itemtype, j.jobid)
          from pg_temp.upstream_job j
         where dataflow.is_name(j.jobid) is not true or coalesce(j.itemtype, '') = ''
            or j.itemtype in ('IN', 'OUT') and dataflow.is_name(j.datasetid) is not true
        union all
        select format('DataSet %s has two producers, %s', j.datasetid, string_agg(distinct j.jobid, ' and '))
          from pg_temp.upstream_job j where j.itemtype = 'OUT' group by j.datasetid having count(distinct j.jobid) > 1
        union all
        select format('the status of %L/%L by %L has an id or a locktype (%L) that cannot be used', s.datasetid, left(s.dataid, 60), s.jobid, s.locktype)
          from pg_temp.upstream_datastatus s
         where dataflow.is_name(s.datasetid) is not true or dataflow.is_name(s.jobid) is not true or s.locktype in ('IN', 'OUT') is not true
            or btrim(s.dataid) = '' or octet_length(s.dataid) > 500 or s.dataid ~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]'
    ) w;
    if wrong is not null then
        raise exception 'upstream''s rows cannot be adopted: %', wrong
            using errcode = 'DF002', hint = 'correct them in upstream''s tables and install again; nothing was changed';
    end if;

    -- What keeps a new row (BEFORE, for each row) would overwrite its time.
    create temporary table upstream_keeper on commit drop as
    select t.tgrelid::regclass as relation, t.tgname as name from pg_trigger t
     where t.tgrelid in ('dataflow.dataset'::regclass, 'dataflow.job'::regclass, 'dataflow.datastatus'::regclass)
       and not t.tgisinternal and t.tgtype & 3 = 3;
    for keeper in select * from pg_temp.upstream_keeper loop
        execute format('alter table %s disable trigger %I', keeper.relation, keeper.name);
    end loop;

    insert into dataflow.dataset (datasetid, hostname, database, schemaname, tablename, username, encryptedpass, modified)
    select distinct on (d.datasetid) d.datasetid, d.hostname, d.database, d.schemaname, d.tablename, d.username, d.encryptedpass,
           coalesce(d.modified, now())
      from pg_temp.upstream_dataset d order by d.datasetid, d.modified desc nulls last;

    -- Upstream's `today` has the day of the server. Without a row of its own, it gets one from the first Job that reads it.
    update dataflow.dataset set timezone = dataflow.server_timezone() where datasetid = 'today';

    insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, modified)
    select s.datasetid, s.jobid, s.dataid, s.locktype, s.status, coalesce(s.modified, now()) from pg_temp.upstream_datastatus s;

    -- Last: its triggers look for cycles, and make the runnable set.
    insert into dataflow.job (jobid, itemtype, datasetid, itemvalue, modified)
    select distinct on (j.jobid, j.itemtype, nullif(j.datasetid, ''))
           j.jobid, j.itemtype, nullif(j.datasetid, ''), j.itemvalue, coalesce(j.modified, now())
      from pg_temp.upstream_job j order by j.jobid, j.itemtype, nullif(j.datasetid, ''), j.modified desc nulls last;

    -- Upstream's RESUBMIT leaves the IN rows of a crash; ours does not.
    perform dataflow.remove_left_over();

    for keeper in select * from pg_temp.upstream_keeper loop
        execute format('alter table %s enable trigger %I', keeper.relation, keeper.name);
    end loop;

    -- Its clients keep their rights to upstream's columns, also those of a login that owned the tables and is not the one that
    -- installs. A trigger of theirs would run with the rights of whoever changes a row.
    for granted in select g.relation, g.privilege, coalesce(quote_ident(r.rolname), 'public') as grantee,
                          case when g.privilege in ('INSERT', 'UPDATE') then
                              (select format('(%s)', string_agg(quote_ident(a.attname), ', ')) from pg_attribute a
                                where a.attrelid = to_regclass('pg_temp.upstream_' || g.relation) and a.attnum > 0) end as columns
                     from pg_temp.upstream_grant g left join pg_roles r on r.oid = g.grantee
                    where r.rolname is distinct from current_user and g.privilege in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    loop
        execute format('grant %s %s on dataflow.%I to %s', granted.privilege, granted.columns, granted.relation, granted.grantee);
    end loop;
end
$$;
