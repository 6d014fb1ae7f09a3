-- The chunks: their status and locks, their published versions, the answers that let them run, their history.

create sequence dataflow.claim_id;
comment on sequence dataflow.claim_id is 'Fencing tokens: a newer claim always has a larger one.';

create table dataflow.job_run (
    run_id      bigint generated always as identity primary key,
    jobid       text collate "C" not null,
    -- Who runs it, and what that orchestrator calls the run.
    runner      text not null default session_user,
    external_id text,
    started     timestamptz not null default now(),
    -- When its process last said that it lives, where it says so.
    heard       timestamptz not null default now(),
    ended       timestamptz,
    outcome     text check (outcome in ('ENDED', 'FAILED')),
    constraint a_run_has_an_outcome_when_it_ended check ((ended is null) = (outcome is null))
);
comment on table dataflow.job_run is 'One execution of a Job, over one chunk or many.';
create index job_run_by_job on dataflow.job_run (jobid, run_id);
create unique index one_open_run_of_an_orchestrator on dataflow.job_run (jobid, external_id) where ended is null;
create index job_run_by_external_id on dataflow.job_run (external_id) where external_id is not null;

-- What holds for every row of datastatus. One function, because Postgres reads the text of a constraint anew for every
-- statement: four that are written out are a twentieth of a claim.
create function dataflow.is_whole(p_locktype text, p_status text, p_claim_id bigint, p_lease_until timestamptz, p_held_status text) returns boolean
    language plpgsql immutable
as $$
declare
    broken text;
begin
    broken := case when p_locktype not in ('IN', 'OUT') then 'locktype_is_in_or_out'
                   when p_claim_id is not null and p_status is distinct from 'RUNNING' then 'a_claim_is_running'
                   when p_locktype = 'OUT' and (p_claim_id is null) <> (p_lease_until is null) then 'an_out_claim_has_a_lease'
                   when p_held_status is not null and p_status is distinct from 'HOLD' then 'only_a_held_chunk_remembers' end;
    if broken is not null then
        raise exception 'datastatus: a row with locktype %, status %, claim %, lease until %, held status % cannot be: %',
                        p_locktype, p_status, p_claim_id, p_lease_until, p_held_status, replace(broken, '_', ' ')
            using errcode = 'check_violation', constraint = broken;
    end if;
    return true;
end
$$;

create table dataflow.datastatus (
    datasetid    text collate "C" not null,
    jobid        text collate "C" not null,
    dataid       text collate "C" not null,
    locktype     text collate "C" not null,
    -- No check of the word: a foreign client may write any, and an unknown one is a lock for everybody.
    status       text collate "C",
    modified     timestamptz not null default now(),
    claim_id     bigint,
    lease_until  timestamptz,
    -- How often it was claimed in all, and how often by itself since a person asked for it.
    attempt      integer not null default 0,
    retries      integer not null default 0,
    run_id       bigint,
    -- OUT: the current version. IN: the version that the claim pinned.
    manifest_id  bigint,
    reason       text,
    -- HOLD: the status that `unhold` gives back.
    held_status  text,
    primary key (datasetid, jobid, dataid),
    constraint a_row_is_whole check (dataflow.is_whole(locktype, status, claim_id, lease_until, held_status))
) with (fillfactor = 80);
comment on table dataflow.datastatus is 'OUT: the producer''s row, a lock for everyone. IN: a consumer''s row, a lock for that Job alone.';

create index out_rows on dataflow.datastatus (datasetid, dataid) where locktype = 'OUT';
create unique index one_live_claim_per_chunk on dataflow.datastatus (datasetid, dataid)
    where locktype = 'OUT' and claim_id is not null;
create index in_rows_without_a_pin on dataflow.datastatus (datasetid, dataid)
    where locktype = 'IN' and manifest_id is null;
create index out_rows_that_need_attention on dataflow.datastatus (jobid, status, dataid)
    where locktype = 'OUT' and status in ('FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED');

-- The state machine, as data. model/status.py has the same table; a test holds them equal.
create table dataflow.status_transition (
    old_status text collate "C" not null,
    new_status text collate "C" not null,
    primary key (old_status, new_status)
);
insert into dataflow.status_transition (old_status, new_status) values
    ('PENDING', 'RUNNING'), ('PENDING', 'READY'), ('PENDING', 'FAILED'), ('PENDING', 'RESUBMIT'), ('PENDING', 'HOLD'), ('PENDING', 'SKIPPED'),
    ('RUNNING', 'READY'), ('RUNNING', 'FAILED'), ('RUNNING', 'RESUBMIT'), ('RUNNING', 'HOLD'), ('RUNNING', 'SKIPPED'),
    ('READY', 'RUNNING'), ('READY', 'FAILED'), ('READY', 'RESUBMIT'), ('READY', 'HOLD'), ('READY', 'SKIPPED'),
    ('FAILED', 'RUNNING'), ('FAILED', 'READY'), ('FAILED', 'RESUBMIT'), ('FAILED', 'HOLD'), ('FAILED', 'SKIPPED'),
    ('RESUBMIT', 'RUNNING'), ('RESUBMIT', 'READY'), ('RESUBMIT', 'FAILED'), ('RESUBMIT', 'HOLD'), ('RESUBMIT', 'SKIPPED'),
    ('HOLD', 'PENDING'), ('HOLD', 'READY'), ('HOLD', 'FAILED'), ('HOLD', 'RESUBMIT'), ('HOLD', 'SKIPPED'),
    ('SKIPPED', 'RESUBMIT'), ('SKIPPED', 'HOLD');

create table dataflow.chunk_input (
    jobid        text collate "C" not null,
    dataid       text collate "C" not null,
    datasetid    text collate "C" not null,
    -- '' says: this chunk needs none of that DataSet.
    input_dataid text collate "C" not null,
    primary key (jobid, dataid, datasetid, input_dataid)
);
comment on table dataflow.chunk_input is 'Which input chunks a chunk needs, where the mapping is `listed`.';
create index chunk_input_by_input on dataflow.chunk_input (datasetid, input_dataid);

create table dataflow.data_manifest (
    manifest_id    bigint generated always as identity primary key,
    datasetid      text collate "C" not null,
    dataid         text collate "C" not null,
    version        integer not null check (version >= 1),
    jobid          text collate "C" not null,
    claim_id       bigint,
    run_id         bigint,
    location       text not null,
    -- [{"path": relative to location, "size": bytes, "digest": text or null}, ...]
    files          jsonb not null default '[]',
    file_count     integer not null generated always as (jsonb_array_length(files)) stored,
    bytes          bigint not null default 0 check (bytes >= 0),
    row_count      bigint check (row_count >= 0),
    schema_hash    text,
    content_digest text,
    -- [{"name": ..., "passed": true, "detail": ...}, ...]
    checks         jsonb not null default '[]',
    -- [{"datasetid": ..., "dataid": ..., "manifest_id": ..., "version": ...}, ...]
    inputs         jsonb not null default '[]',
    published      timestamptz not null default now(),
    constraint one_manifest_per_version unique (datasetid, dataid, version)
);
comment on table dataflow.data_manifest is 'The immutable record of each published version of a chunk.';
create function dataflow.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is never changed', tg_table_name using hint = 'publish a new version';
end
$$;
create trigger refuse_change before update on dataflow.data_manifest for each statement execute function dataflow.refuse_change();
create index data_manifest_by_content on dataflow.data_manifest (datasetid, content_digest) where content_digest is not null;

-- The code of the first no; null when all five are yes.
create function dataflow.code_of(ready text, right_data text, placed text, valid text, safe text) returns text
    language sql immutable parallel safe
    return case when ready is not null then 'DATA_NOT_READY'
                when right_data is not null then 'WRONG_DATA'
                when placed is not null then 'INVALID_PATH'
                when valid is not null then 'NOT_VALIDATED'
                when safe is not null then 'LOCKED' end;

create table dataflow.verdict (
    verdict_id bigint generated always as identity,
    jobid      text collate "C" not null,
    dataid     text collate "C" not null,
    asked      timestamptz not null default now(),
    -- Null: the gate asked, nobody claimed.
    claim_id   bigint,
    -- The five answers. Null is a yes, for which the inputs are the evidence; a no is its reason in words.
    ready      text,
    right_data text,
    placed     text,
    valid      text,
    safe       text,
    code       text,
    -- The input chunks that were asked about, as in data_manifest.inputs.
    inputs     jsonb not null default '[]',
    -- A person claimed the chunk whatever the answers were.
    forced     boolean not null default false,
    primary key (jobid, dataid, verdict_id),
    constraint a_claim_has_five_yes check (claim_id is null or forced
        or coalesce(ready, right_data, placed, valid, safe, code) is null)
);
comment on table dataflow.verdict is 'The five answers, kept for ever. Append only.';

create table dataflow.chunk_event (
    event_id    bigint generated always as identity,
    at          timestamptz not null default clock_timestamp(),
    datasetid   text collate "C" not null,
    jobid       text collate "C" not null,
    dataid      text collate "C" not null,
    locktype    text collate "C" not null,
    old_status  text collate "C",
    new_status  text collate "C",
    claim_id    bigint,
    attempt     integer,
    run_id      bigint,
    manifest_id bigint,
    reason      text,
    -- The login of the session, and the person or program that it acts for.
    login       text not null,
    actor       text,
    primary key (datasetid, dataid, event_id)
);
comment on table dataflow.chunk_event is 'Every change of datastatus, whoever made it. Append only.';

create table dataflow.runnable (
    jobid      text collate "C" not null,
    dataid     text collate "C" not null,
    resubmit   boolean not null default false,
    sort_key   text collate "C" not null,
    since      timestamptz not null default now(),
    -- The five questions were asked when the chunk came in, and again whenever a fact behind the answers changed.
    -- Null: five yes. Otherwise the code of the first no, whose reason is in the newest verdict.
    blocked    text collate "C",
    -- The evidence: the input versions, as in data_manifest.inputs, and how many files they have.
    inputs     jsonb not null default '[]',
    file_count bigint not null default 0,
    -- No output has a row yet, and every input has a version with a place of its own: its claim only adds rows.
    is_plain   boolean not null default false,
    primary key (jobid, dataid)
)
-- A row is put in small, then gets its answers: room on its page spares it a second place in each index.
-- What was claimed lies dead at the head of the queue, where every claim begins: it goes soon, however long the queue is.
with (fillfactor = 30, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);
comment on table dataflow.runnable is 'Derived: the chunks whose inputs are all READY and whose output is free, with the answers to the five questions. Triggers keep it; rebuild_runnable makes it anew.';
create index runnable_in_order on dataflow.runnable (jobid, resubmit desc, sort_key, dataid) where blocked is null;
create index runnable_but_blocked on dataflow.runnable (jobid) where blocked is not null;
