-- The history of the registry: whoever changes a DataSet, a Job or its policy - a verb, code that is loaded, a person in psql -
-- the change is recorded with who and why.

create table dataflow.registry_event (
    event_id         bigint generated always as identity primary key,
    -- Of the transaction: what one act has changed has one time.
    at               timestamptz not null default now(),
    -- dataset; job, an item of a Job; job_policy, how the Job is run.
    relation         text collate "C" not null,
    -- Of the DataSet or Job.
    name             text collate "C" not null,
    -- The columns that differ. Null before: it is new; null after: it is gone. A password is in neither.
    before           jsonb,
    after            jsonb,
    password_changed boolean not null default false,
    reason           text,
    login            text not null,
    actor            text
);
comment on table dataflow.registry_event is 'Every change of dataset, job and job_policy, whoever made it. Append only.';
create index registry_event_by_name on dataflow.registry_event (name, event_id);

create function dataflow.record_definition() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    id       text  := tg_argv[0];
    was      jsonb := to_jsonb(old);
    is_now   jsonb := to_jsonb(new);
    password boolean := was -> 'encryptedpass' is distinct from is_now -> 'encryptedpass'
                        and coalesce(was ->> 'encryptedpass', is_now ->> 'encryptedpass') is not null;
    named    text  := coalesce(is_now, was) ->> id;
begin
    was := was - array['encryptedpass', 'modified'];
    is_now := is_now - array['encryptedpass', 'modified'];
    if tg_op = 'UPDATE' then
        if was = is_now and not password then
            return null;
        end if;
        select coalesce(jsonb_object_agg(w.key, w.value), '{}'), coalesce(jsonb_object_agg(w.key, is_now -> w.key), '{}')
          into was, is_now
          from jsonb_each(was) w where w.value is distinct from is_now -> w.key;
    end if;
    insert into dataflow.registry_event (relation, name, before, after, password_changed, reason, login, actor)
    values (tg_table_name, named, was, is_now, password, nullif(current_setting('dataflow.reason', true), ''),
            session_user, current_setting('dataflow.actor', true));
    return null;
end
$$;
create trigger record_definition after insert or update or delete on dataflow.dataset
    for each row execute function dataflow.record_definition('datasetid');
create trigger record_definition after insert or update or delete on dataflow.job
    for each row execute function dataflow.record_definition('jobid');
create trigger record_definition after insert or update or delete on dataflow.job_policy
    for each row execute function dataflow.record_definition('jobid');
