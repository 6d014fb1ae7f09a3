-- How operators steer a Job while it runs. The registry mirrors the code; this is theirs, and no registration changes it.
create table dataflow.job_control (
    jobid       text collate "C" primary key constraint controlled_job_id_is_a_name check (dataflow.is_name(jobid)),
    -- At most so many chunks of the Job run at a time; null: any number.
    concurrency integer check (concurrency >= 0),
    paused      timestamptz,
    reason      text,
    modified    timestamptz not null default now()
);
comment on table dataflow.job_control is 'Live limits of a Job: how many chunks at a time, and whether it is paused.';
create trigger keep_modified before insert or update on dataflow.job_control for each row execute function dataflow.keep_modified();

create trigger wait_for_registry before insert or delete on dataflow.job_control
    for each statement execute function dataflow.wait_for_registry();

create table dataflow.job_event (
    event_id    bigint generated always as identity primary key,
    at          timestamptz not null default clock_timestamp(),
    jobid       text collate "C" not null,
    concurrency integer,
    paused      timestamptz,
    reason      text,
    login       text not null,
    actor       text
);
comment on table dataflow.job_event is 'Every change of job_control, whoever made it. Append only.';
create index job_event_by_job on dataflow.job_event (jobid, event_id);

create function dataflow.after_control_change() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'DELETE' then
        insert into dataflow.job_event (jobid, login, actor) values (old.jobid, session_user, current_setting('dataflow.actor', true));
    elsif tg_op = 'INSERT' or (new.concurrency, new.paused) is distinct from (old.concurrency, old.paused) then
        insert into dataflow.job_event (jobid, concurrency, paused, reason, login, actor)
        values (new.jobid, new.concurrency, new.paused, new.reason, session_user, current_setting('dataflow.actor', true));
        -- There may be work to do again.
        perform pg_notify('dataflow_runnable', new.jobid);
    end if;
    return null;
end
$$;
create trigger control_changed after insert or update or delete on dataflow.job_control
    for each row execute function dataflow.after_control_change();

-- How many more chunks of the Job may run; null: any number. Whoever claims under a limit waits here for the others
-- who do, because none of them sees the chunks that another is just taking.
create function dataflow.room(p_jobid text, out concurrency integer, out paused timestamptz, out reason text, out running bigint, out free bigint)
    language plpgsql
as $$
#variable_conflict use_column
begin
    select c.concurrency, c.paused, c.reason into concurrency, paused, reason from dataflow.job_control c where c.jobid = p_jobid;
    if concurrency is not null then
        perform pg_advisory_xact_lock(hashtext('dataflow room'), hashtext(p_jobid));
    end if;
    -- The outputs of a chunk are claimed together.
    select coalesce(max(o.running), 0) into running
      from (select count(s.claim_id) as running
              from dataflow.job j
              join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT' and s.claim_id is not null and s.jobid = p_jobid
             where j.jobid = p_jobid and j.itemtype = 'OUT' group by j.datasetid) o;
    free := case when paused is not null then 0 when concurrency is not null then greatest(concurrency - running, 0) end;
end
$$;
