-- Hands what the superuser owns in this database to odf_owner.
do $$
declare
    item text;
begin
    for item in
        select format('schema %I', n.nspname) from pg_namespace n where n.nspowner = 10 and n.oid >= 16384 and n.nspname !~ '^pg_'
        union all
        select format('%s %s', case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
                                              when 'f' then 'foreign table' when 'c' then 'type' else 'table' end, c.oid::regclass)
          from pg_class c
         where c.relowner = 10 and c.oid >= 16384 and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c') and c.relpersistence <> 't'
           -- The sequence of a column goes with its table.
           and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))
        union all
        select format('routine %s', p.oid::regprocedure) from pg_proc p where p.proowner = 10 and p.oid >= 16384
        union all
        select format('type %s', t.oid::regtype) from pg_type t
         where t.typowner = 10 and t.oid >= 16384 and t.typrelid = 0 and t.typcategory <> 'A' and t.typtype in ('b', 'd', 'e', 'r')
    loop
        execute format('alter %s owner to odf_owner', item);
    end loop;
end
$$;
