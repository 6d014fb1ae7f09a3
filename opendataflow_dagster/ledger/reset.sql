-- Drops every view, trigger, function and type of the schema, so that the files in routines/ create them again and nothing
-- of an older release stays. Functions that constraints call belong to the tables.
do $$
declare
    item text;
begin
    foreach item in array array(
        select format('drop view %s', c.oid::regclass) from pg_class c where c.relnamespace = 'dataflow'::regnamespace and c.relkind = 'v'
        union all
        select format('drop trigger %I on %s', t.tgname, c.oid::regclass)
          from pg_trigger t join pg_class c on c.oid = t.tgrelid
         where c.relnamespace = 'dataflow'::regnamespace and not t.tgisinternal)
    loop
        execute item;
    end loop;
    foreach item in array array(
        select format('drop function if exists %s cascade', p.oid::regprocedure) from pg_proc p
         where p.pronamespace = 'dataflow'::regnamespace
           and not exists (select from pg_depend d
                            where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
                              and d.classid in ('pg_constraint'::regclass, 'pg_attrdef'::regclass))
        union all
        select format('drop type if exists %s cascade', c.reltype::regtype) from pg_class c
         where c.relnamespace = 'dataflow'::regnamespace and c.relkind = 'c')
    loop
        execute item;
    end loop;
end
$$;
