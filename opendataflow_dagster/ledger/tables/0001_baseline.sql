-- The tables of release 0.1.0. This file is never edited: a change of a table is a new numbered file beside it.
--
-- `job`, `dataset` and `datastatus` begin with the columns of upstream OpenDataFlow, in upstream's order, because its
-- clients insert by position. Columns that this system adds come after them and have defaults.

-- A name may hold anything printable. 200 bytes keep every index entry within a page.
create function dataflow.is_name(name text) returns boolean
    language sql immutable parallel safe
    return btrim(name) <> '' and octet_length(name) <= 200
           and name !~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]';

-- The registry. Ids are compared byte by byte: the same order on every server, regardless of its locale.

create table dataflow.dataset (
    datasetid      text collate "C" primary key constraint dataset_id_is_a_name check (dataflow.is_name(datasetid)),
    hostname       text,
    database       text,
    schemaname     text,
    tablename      text,
    username       text,
    encryptedpass  text,
    modified       timestamptz not null default now(),
    -- The root folder of this DataSet in this environment; null: the location is not managed here.
    location       text,
    -- Which dataids exist, as model/partitions.py writes it; null: any.
    partitions     jsonb,
    schema_hash    text,
    -- May a chunk be consumed that a foreign client made READY without a manifest?
    foreign_ready  text not null default 'trusted' check (foreign_ready in ('trusted', 'refused')),
    -- Does a SKIPPED chunk let its consumers run without it, or do they wait?
    skipped_input  text not null default 'waits' check (skipped_input in ('waits', 'passes')),
    -- May two chunks have the same content?
    repeats        boolean not null default false,
    timezone       text not null default 'UTC',
    owner          text,
    domain         text,
    description    text
);

create table dataflow.job (
    jobid      text collate "C" not null constraint job_id_is_a_name check (dataflow.is_name(jobid)),
    itemtype   text collate "C" not null,
    datasetid  text collate "C" constraint job_dataset_id_is_a_name check (dataflow.is_name(datasetid)),
    itemvalue  text,
    modified   timestamptz not null default now(),
    -- Which chunks of an IN DataSet a chunk needs: the one with the equal dataid, those listed in chunk_input, or all.
    mapping    text not null default 'equal' check (mapping in ('equal', 'listed', 'all')),
    constraint job_item_is_a_dataset_or_a_variable check (itemtype not in ('IN', 'OUT') or datasetid is not null),
    constraint job_uses_a_dataset_once unique (datasetid, jobid)
);
create unique index one_producer_per_dataset on dataflow.job (datasetid) where itemtype = 'OUT';
create unique index job_sets_a_variable_once on dataflow.job (jobid, itemtype) where datasetid is null;
create index job_by_id on dataflow.job (jobid, itemtype);

create table dataflow.job_policy (
    jobid         text collate "C" primary key constraint policy_job_id_is_a_name check (dataflow.is_name(jobid)),
    lease         interval not null default '10 minutes' check (lease > '0' and lease <= '366 days'),
    -- How many attempts run without a person asking for them.
    max_attempts  integer not null default 3 check (max_attempts >= 1),
    retry_delay   interval not null default '0' check (retry_delay >= '0' and retry_delay <= '366 days'),
    -- A regular expression over the failure's reason; null: only crashes are retried.
    retry_on      text constraint retry_on_is_a_regular_expression check (('' ~ retry_on) is not null or retry_on is null),
    -- Chunks run strictly in order, and a failed chunk holds back the later ones.
    ordered       boolean not null default false,
    -- A chunk whose input has a newer version is resubmitted automatically.
    cascade       boolean not null default false,
    -- A missed day of `today` runs later.
    catch_up      boolean not null default false,
    modified      timestamptz not null default now()
);

create table dataflow.job_control (
    jobid       text collate "C" primary key constraint controlled_job_id_is_a_name check (dataflow.is_name(jobid)),
    -- The concurrency limit; null: none.
    concurrency integer check (concurrency >= 0),
    paused      timestamptz,
    reason      text,
    modified    timestamptz not null default now()
);

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
create index job_event_by_job on dataflow.job_event (jobid, event_id);

create table dataflow.registry_event (
    event_id         bigint generated always as identity primary key,
    -- The transaction's time: all changes of one registration share it.
    at               timestamptz not null default now(),
    -- dataset; job (an item of a Job); or job_policy.
    relation         text collate "C" not null,
    -- The DataSet or Job.
    name             text collate "C" not null,
    -- The columns that differ. Null before: created; null after: deleted. Passwords are in neither.
    before           jsonb,
    after            jsonb,
    password_changed boolean not null default false,
    reason           text,
    login            text not null,
    actor            text
);
create index registry_event_by_name on dataflow.registry_event (name, event_id);

-- The chunks.

create sequence dataflow.claim_id;

create table dataflow.job_run (
    run_id      bigint generated always as identity primary key,
    jobid       text collate "C" not null,
    -- The orchestrator, and its own id of the run.
    runner      text not null default session_user,
    external_id text,
    started     timestamptz not null default now(),
    -- The last heartbeat of its process, where it sends any.
    heard       timestamptz not null default now(),
    ended       timestamptz,
    outcome     text check (outcome in ('ENDED', 'FAILED')),
    constraint a_run_has_an_outcome_when_it_ended check ((ended is null) = (outcome is null))
);
create index job_run_by_job on dataflow.job_run (jobid, run_id);
create unique index one_open_run_of_an_orchestrator on dataflow.job_run (jobid, external_id) where ended is null;
create index job_run_by_external_id on dataflow.job_run (external_id) where external_id is not null;

-- The invariants of a datastatus row, in one function: Postgres parses each constraint again for every statement.
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
    -- Not restricted: a foreign client may write any word, and an unknown one locks the chunk for everybody.
    status       text collate "C",
    modified     timestamptz not null default now(),
    claim_id     bigint,
    lease_until  timestamptz,
    -- All claims so far, and the automatic ones since a person last asked for the chunk.
    attempt      integer not null default 0,
    retries      integer not null default 0,
    run_id       bigint,
    -- OUT: the current version. IN: the version that the claim pinned.
    manifest_id  bigint,
    reason       text,
    -- HOLD: the status that `unhold` restores.
    held_status  text,
    primary key (datasetid, jobid, dataid),
    constraint a_row_is_whole check (dataflow.is_whole(locktype, status, claim_id, lease_until, held_status))
) with (fillfactor = 80);

create index out_rows on dataflow.datastatus (datasetid, dataid) where locktype = 'OUT';
create unique index one_live_claim_per_chunk on dataflow.datastatus (datasetid, dataid)
    where locktype = 'OUT' and claim_id is not null;
create index in_rows_without_a_pin on dataflow.datastatus (datasetid, dataid)
    where locktype = 'IN' and manifest_id is null;
create index out_rows_that_need_attention on dataflow.datastatus (jobid, status, dataid)
    where locktype = 'OUT' and status in ('FAILED', 'RESUBMIT', 'HOLD', 'SKIPPED');
create index ready_without_a_version on dataflow.datastatus (modified, datasetid, dataid)
    where locktype = 'OUT' and status = 'READY' and manifest_id is null;

-- The state machine. model/status.py has the same table; a test compares them.
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
    -- '': the chunk needs no chunk of that DataSet.
    input_dataid text collate "C" not null,
    primary key (jobid, dataid, datasetid, input_dataid)
);
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
create index data_manifest_by_content on dataflow.data_manifest (datasetid, content_digest) where content_digest is not null;

create table dataflow.version_sweep (
    manifest_id bigint primary key references dataflow.data_manifest,
    -- The decision comes first, so that another process can finish the removal after a crash.
    decided     timestamptz not null default now(),
    removed     timestamptz,
    by          text,
    reason      text default nullif(current_setting('dataflow.reason', true), '')
);
create index version_sweep_to_do on dataflow.version_sweep (manifest_id) where removed is null;

create table dataflow.verdict (
    verdict_id bigint generated always as identity,
    jobid      text collate "C" not null,
    dataid     text collate "C" not null,
    asked      timestamptz not null default now(),
    -- Null: a gate asked; nothing was claimed.
    claim_id   bigint,
    -- The five answers. Null is a yes; otherwise the reason of the no.
    ready      text,
    right_data text,
    placed     text,
    valid      text,
    safe       text,
    code       text,
    -- The input chunks that were asked about, as in data_manifest.inputs.
    inputs     jsonb not null default '[]',
    -- A person claimed the chunk in spite of the answers.
    forced     boolean not null default false,
    primary key (jobid, dataid, verdict_id),
    constraint a_claim_has_five_yes check (claim_id is null or forced
        or coalesce(ready, right_data, placed, valid, safe, code) is null)
);

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
    -- The login of the session, and the person or program on whose behalf it acts.
    login       text not null,
    actor       text,
    primary key (datasetid, dataid, event_id)
);
-- Events arrive in order of time, so a summary for each range of pages is enough and costs next to nothing.
create index chunk_event_in_time on dataflow.chunk_event using brin (at) with (pages_per_range = 32, autosummarize = on);

create table dataflow.runnable (
    jobid      text collate "C" not null,
    dataid     text collate "C" not null,
    resubmit   boolean not null default false,
    sort_key   text collate "C" not null,
    since      timestamptz not null default now(),
    -- Null: five yes. Otherwise the code of the first no, whose facts are in the newest verdict.
    blocked    text collate "C",
    -- The evidence: the input versions, as in data_manifest.inputs, and how many files they have.
    inputs     jsonb not null default '[]',
    file_count bigint not null default 0,
    is_plain   boolean not null default false,
    primary key (jobid, dataid)
)
-- A row is inserted small and then gets its answers: free space on its page keeps the update off both indexes.
-- Claimed rows lie dead at the head of the queue, where every claim starts, so vacuum must come early.
with (fillfactor = 30, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);
create index runnable_in_order on dataflow.runnable (jobid, resubmit desc, sort_key, dataid) where blocked is null;
create index runnable_but_blocked on dataflow.runnable (jobid) where blocked is not null;

create table dataflow.job_terms (
    jobid      text collate "C" primary key,
    lease      interval not null,
    outputs    text[] not null,
    is_plain   boolean not null,
    is_ordered boolean not null,
    is_steered boolean not null
);

create table dataflow.reported (
    -- The orchestrator's instance: one with an empty store has another name.
    orchestrator text collate "C" not null,
    manifest_id  bigint not null,
    primary key (orchestrator, manifest_id)
);
