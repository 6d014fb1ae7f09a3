-- Sets the tables of an upstream installation aside, so that ours can be created; end.sql inserts the rows into them. All in
-- the transaction of the installation: after an error, upstream's tables are as they were.
do $$
declare
    relation text;
    known    text[];
    columns  text;
    obstacle text;
begin
    if exists (select from dataflow.migration) or coalesce(to_regclass('dataflow.job'), to_regclass('dataflow.dataset'),
                                                           to_regclass('dataflow.datastatus')) is null then
        return;
    end if;
    create temporary table upstream_dataset (datasetid text, hostname text, database text, schemaname text, tablename text, username text,
                                             encryptedpass text, modified timestamptz) on commit drop;
    create temporary table upstream_job (jobid text, itemtype text, datasetid text, itemvalue text, modified timestamptz) on commit drop;
    create temporary table upstream_datastatus (datasetid text, jobid text, dataid text, locktype text, status text,
                                                modified timestamptz) on commit drop;
    create temporary table upstream_grant (relation text, grantee oid, privilege text) on commit drop;

    foreach relation in array array['dataset', 'job', 'datastatus'] loop
        continue when to_regclass('dataflow.' || relation) is null;
        execute format('lock table dataflow.%I in access exclusive mode', relation);

        select array_agg(a.attname::text), string_agg(quote_ident(a.attname), ', ') into known, columns
          from pg_attribute a where a.attrelid = to_regclass('pg_temp.upstream_' || relation) and a.attnum > 0;
        select string_agg(found.what, ', ') into obstacle from (
            select 'its column ' || a.attname as what from pg_attribute a
             where a.attrelid = to_regclass('dataflow.' || relation) and a.attnum > 0 and not a.attisdropped and a.attname <> all (known)
            union
            select 'the view ' || r.ev_class::regclass from pg_depend d join pg_rewrite r on r.oid = d.objid
             where d.refobjid = to_regclass('dataflow.' || relation) and d.classid = 'pg_rewrite'::regclass
            union
            select 'the foreign key of ' || c.conrelid::regclass from pg_constraint c where c.confrelid = to_regclass('dataflow.' || relation)
            union
            select 'its trigger ' || t.tgname from pg_trigger t where t.tgrelid = to_regclass('dataflow.' || relation) and not t.tgisinternal
        ) found;
        if obstacle is not null then
            raise exception 'upstream''s table dataflow.% has more than upstream gave it: %', relation, obstacle
                using errcode = 'DF002', hint = 'move that elsewhere and install again; nothing was changed';
        end if;

        select string_agg(quote_ident(a.attname), ', ') into columns
          from pg_attribute a where a.attrelid = to_regclass('dataflow.' || relation) and a.attnum > 0 and not a.attisdropped;
        execute format('insert into pg_temp.%I (%s) select %s from dataflow.%I', 'upstream_' || relation, columns, columns, relation);
        insert into pg_temp.upstream_grant
        select relation, g.grantee, g.privilege_type
          from pg_class c cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g
         where c.oid = to_regclass('dataflow.' || relation);
        execute format('drop table dataflow.%I', relation);
    end loop;
end
$$;
