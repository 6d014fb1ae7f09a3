-- odf_owner becomes `odf`, with its password. The superuser, who was `odf`, gets another name and cannot log in any more: not over
-- the network, only in single-user mode while the server is stopped. Nobody can rename the user of the session, so another
-- superuser does it.
do $$
declare
    item     text;
    verifier text := (select a.rolpassword from pg_authid a where a.oid = 10);
begin
    for item in select d.datname from pg_database d where d.datdba = 10 and d.oid >= 16384 loop
        execute format('alter database %I owner to odf_owner', item);
    end loop;
    create role odf_renamer superuser;
    set local session authorization odf_renamer;
    alter role odf rename to odf_superuser;
    alter role odf_owner rename to odf;
    alter role odf_superuser nologin password null;
    execute format('alter role odf login createdb createrole password %L', verifier);
    -- It administers the logins that it creates, those that the superuser has created, and its own server.
    alter role odf set createrole_self_grant to 'set, inherit';
    for item in select r.rolname from pg_roles r where r.oid >= 16384 and not r.rolsuper and r.rolname <> 'odf' loop
        execute format('grant %I to odf with admin true, set true, inherit true', item);
    end loop;
    grant pg_checkpoint, pg_signal_backend to odf;
    set local session authorization default;
    drop role odf_renamer;
end
$$;
