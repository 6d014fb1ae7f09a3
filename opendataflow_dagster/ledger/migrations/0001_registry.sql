-- The registry: which DataSets and Jobs there are.
--
-- `job` and `dataset` begin with the columns of upstream OpenDataFlow, in its order, because its clients
-- insert by position. What this system adds comes after them and has defaults, so that rows which a foreign
-- client wrote are whole.

create schema if not exists dataflow;

-- Ids are compared byte by byte: the same order on every server, whatever its locale.
-- A name may hold anything printable. 200 bytes keep every index entry within a page.
create function dataflow.is_name(name text) returns boolean
    language sql immutable parallel safe
    return btrim(name) <> '' and octet_length(name) <= 200
           and name !~ '[\u0001-\u001F\u007F-\u009F\u2028\u2029]';

create table dataflow.dataset (
    datasetid      text collate "C" primary key constraint dataset_id_is_a_name check (dataflow.is_name(datasetid)),
    hostname       text,
    database       text,
    schemaname     text,
    tablename      text,
    username       text,
    encryptedpass  text,
    modified       timestamptz not null default now(),
    -- The root folder of this DataSet in this environment; null: someone else knows where it is.
    location       text,
    -- Which dataids there are, as model/partitions.py writes it; null: any.
    partitions     jsonb,
    schema_hash    text,
    -- May a chunk be consumed that someone made READY without a manifest?
    foreign_ready  text not null default 'trusted' check (foreign_ready in ('trusted', 'refused')),
    -- Does a SKIPPED chunk let its consumers run (without it), or do they wait?
    skipped_input  text not null default 'waits' check (skipped_input in ('waits', 'passes')),
    -- May two chunks have the same content?
    repeats        boolean not null default false,
    timezone       text not null default 'UTC',
    owner          text,
    domain         text,
    description    text
);
comment on table dataflow.dataset is 'A DataSet: a named, partitioned set of data. A row put here by plain SQL is external and trusted.';

create table dataflow.job (
    jobid      text collate "C" not null constraint job_id_is_a_name check (dataflow.is_name(jobid)),
    itemtype   text collate "C" not null,
    datasetid  text collate "C" constraint job_dataset_id_is_a_name check (dataflow.is_name(datasetid)),
    itemvalue  text,
    modified   timestamptz not null default now(),
    -- Which chunks of an IN DataSet a chunk needs: the one with the equal dataid, those that are listed for
    -- it in chunk_input, or all there are.
    mapping    text not null default 'equal' check (mapping in ('equal', 'listed', 'all')),
    constraint job_item_is_a_dataset_or_a_variable check (itemtype not in ('IN', 'OUT') or datasetid is not null),
    constraint job_uses_a_dataset_once unique (datasetid, jobid)
);
comment on table dataflow.job is 'One row for each IN and OUT DataSet of a Job, and one for each of its environment variables (itemtype is the name).';
create unique index one_producer_per_dataset on dataflow.job (datasetid) where itemtype = 'OUT';
create unique index job_sets_a_variable_once on dataflow.job (jobid, itemtype) where datasetid is null;
create index job_by_id on dataflow.job (jobid, itemtype);

create table dataflow.job_policy (
    jobid         text collate "C" primary key constraint policy_job_id_is_a_name check (dataflow.is_name(jobid)),
    lease         interval not null default '10 minutes' check (lease > '0' and lease <= '366 days'),
    -- How often a chunk is tried by itself before a person must look.
    max_attempts  integer not null default 3 check (max_attempts >= 1),
    retry_delay   interval not null default '0' check (retry_delay >= '0' and retry_delay <= '366 days'),
    -- A regular expression over the failure's reason; null: a failure waits for a person, only a crash is retried.
    retry_on      text constraint retry_on_is_a_regular_expression check (('' ~ retry_on) is not null or retry_on is null),
    -- Chunks run strictly one after the other, and a failed one holds back the later ones.
    ordered       boolean not null default false,
    -- A chunk whose input was published anew is resubmitted by itself.
    cascade       boolean not null default false,
    -- A day of `today` that was missed is run later.
    catch_up      boolean not null default false,
    modified      timestamptz not null default now()
);
comment on table dataflow.job_policy is 'How a Job is run. A Job without a row here has the defaults.';

-- dataids order naturally: 9 before 10, dates by date. Every run of digits is padded to 20; the dataid itself
-- breaks ties. Cut at 300 characters to stay within an index entry. model/ids.py has the same rule.
-- Not strict, so that Postgres writes it out where it is called.
create function dataflow.natural_key(dataid text) returns text
    language sql immutable parallel safe
    return case
        -- Plain numbers, dates and hours, which most dataids are, without the two replacements, which take ten times as long.
        when dataid ~ '^[0-9]{1,20}$' then lpad(dataid, 20, '0')
        when dataid ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' then
            '0000000000000000' || left(dataid, 4) || '-000000000000000000' || substr(dataid, 6, 2) || '-000000000000000000' || right(dataid, 2)
        when dataid ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}$' then
            '0000000000000000' || left(dataid, 4) || '-000000000000000000' || substr(dataid, 6, 2) || '-000000000000000000' || substr(dataid, 9, 2)
            || '-000000000000000000' || substr(dataid, 12, 2) || ':000000000000000000' || right(dataid, 2)
        else left(regexp_replace(regexp_replace(dataid, '[0-9]+', '00000000000000000000\&', 'g'),
                                 '[0-9]*([0-9]{20})', '\1', 'g'), 300)
    end collate "C";

create function dataflow.is_day(day text) returns boolean
    language sql immutable strict parallel safe
    return case when day ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' and day >= '0001'
                then right(day, 2)::int <= extract(day from (left(day, 8) || '01')::date + interval '1 month - 1 day')
                else false end;

-- Has this partition scheme that dataid? model/partitions.py has the same rule; a test holds them equal.
create function dataflow.has_dataid(partitions jsonb, dataid text) returns boolean
    language sql immutable parallel safe
    return case
        when partitions is null then true
        when partitions ->> 'kind' = 'static' then (partitions -> 'keys') ? dataid
        when partitions ->> 'kind' = 'range' then
            case when dataid ~ '^(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})$'
                 then split_part(dataid, '-', 1)::bigint >= (partitions ->> 'first')::bigint
                      and (split_part(dataid, '-', 1)::bigint - (partitions ->> 'first')::bigint) % (partitions ->> 'step')::bigint = 0
                      and split_part(dataid, '-', 1)::bigint <= (partitions ->> 'last')::bigint
                      and split_part(dataid, '-', 2)::bigint
                          = least(split_part(dataid, '-', 1)::bigint + (partitions ->> 'step')::bigint - 1, (partitions ->> 'last')::bigint)
                 else false end
        when dataid collate "C" < (partitions ->> 'first') then false
        when dataid collate "C" > (partitions ->> 'last') then false
        when partitions ->> 'kind' = 'hourly' then
            dataid ~ '-([01][0-9]|2[0-3]):00$' and dataflow.is_day(left(dataid, -6))
        when not dataflow.is_day(dataid) then false
        when partitions ->> 'kind' = 'weekly' then (dataid::date - (partitions ->> 'first')::date) % 7 = 0
        when partitions ->> 'kind' = 'monthly' then right(dataid, 2) = '01'
        else partitions ->> 'kind' = 'daily'
    end;
