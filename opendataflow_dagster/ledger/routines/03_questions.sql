-- The five questions. `ask` gathers the facts about every chunk that a Job reads or makes; each question is one function
-- over these facts that returns null for yes and otherwise the name of the problem. Sentences are written in Python
-- (model/problems.py), and files are looked at in Python too (protocol/gate.py).
--
-- A function that a caller may execute itself names the types of its variables with their schema: PL/pgSQL keeps the types that
-- it found at the first call in a session, and one of the caller's own would reach a later call with the rights of the owner.

-- Facts about one chunk that a Job reads (IN) or makes (OUT).
create type dataflow.fact as (
    itemtype          text,
    is_registered     boolean,
    is_partition      boolean,
    -- Its OUT rows: there is one; all are READY or pass; one is READY; one passes, being SKIPPED where the DataSet lets
    -- consumers pass.
    has_row           boolean,
    is_ready          boolean,
    has_ready         boolean,
    passes            boolean,
    -- A row has a status that keeps others out: RUNNING, HOLD or an unknown word. For an output: any but PENDING and RESUBMIT.
    is_locked         boolean,
    is_its_day        boolean,
    -- The version that the rows point to.
    has_version       boolean,
    is_its_version    boolean,
    is_newest         boolean,
    has_schema        boolean,
    is_repeated       boolean,
    is_stale          boolean,
    is_below_root     boolean,
    has_passed        boolean,
    needs_manifest    boolean,
    -- An IN row that keeps this Job out: of its own for an input, of a consumer that reads in place for an output.
    is_read           boolean
);

create function dataflow.question_ready(f dataflow.fact) returns text
    language sql immutable parallel safe
    return case when (f).itemtype = 'OUT' then null
                when not (f).has_row then 'ABSENT'
                when not (f).is_ready then 'NOT_READY'
                when not (f).is_its_day then 'NOT_TODAY' end;

create function dataflow.question_right(f dataflow.fact) returns text
    language sql immutable parallel safe
    return case when not (f).is_registered then 'UNREGISTERED'
                when not (f).is_partition then 'NO_SUCH_PARTITION'
                when (f).itemtype = 'OUT' or not (f).has_version then null
                when not (f).is_its_version then 'NOT_ITS_MANIFEST'
                when not (f).is_newest then 'OLD_MANIFEST'
                when not (f).has_schema then 'OTHER_SCHEMA'
                when (f).is_repeated then 'REPEATED'
                when (f).is_stale then 'STALE' end;

create function dataflow.question_placed(f dataflow.fact) returns text
    language sql immutable parallel safe
    return case when (f).itemtype = 'OUT' or (f).passes then null
                when not (f).has_version then case when not (f).has_ready then 'NOTHING_THERE' end
                when not (f).is_below_root then 'OUTSIDE' end;

create function dataflow.question_valid(f dataflow.fact) returns text
    language sql immutable parallel safe
    return case when (f).itemtype = 'OUT' or (f).passes then null
                when not (f).has_version then case when not (f).has_ready then 'NOTHING_THERE'
                                                   when (f).needs_manifest then 'NO_MANIFEST' end
                when not (f).has_passed then 'FAILED_CHECK' end;

create function dataflow.question_safe(f dataflow.fact) returns text
    language sql immutable parallel safe
    return case when (f).itemtype = 'OUT' then case when (f).is_locked then 'TAKEN' when (f).is_read then 'READ_IN_PLACE' end
                when (f).is_locked then 'LOCKED'
                when (f).is_read then 'READING' end;

-- The problems of one chunk that a Job reads or makes, each with the facts that its sentence needs. Only a no pays for this.
create function dataflow.problems_of(p_ready text, p_right text, p_placed text, p_valid text, p_safe text,
                                     p_jobid text, p_datasetid text, p_dataid text) returns jsonb
    language plpgsql stable
as $$
declare
    result   pg_catalog.jsonb := '[]';
    problem  record;
    facts    pg_catalog.jsonb;
    obstacle record;
    declared record;
    m        dataflow.data_manifest;
begin
    -- Not the whole row: a reader may not see the password in it.
    select d.timezone, d.schema_hash, d.location into declared from dataflow.dataset d where d.datasetid = p_datasetid;
    select n.* into m
      from dataflow.datastatus s
      join dataflow.data_manifest n on n.manifest_id = s.manifest_id
     where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
     order by n.manifest_id desc
     limit 1;
    for problem in
        select * from (values ('READY', p_ready), ('RIGHT', p_right), ('PLACED', p_placed), ('VALID', p_valid), ('SAFE', p_safe)) as v(question, name)
         where v.name is not null
    loop
        facts := jsonb_build_object('question', problem.question, 'problem', problem.name, 'datasetid', p_datasetid, 'dataid', p_dataid);
        case problem.name
            when 'NOT_READY', 'LOCKED', 'TAKEN' then
                select s.status, s.jobid, to_char(s.modified at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as since, s.claim_id, s.reason into obstacle
                  from dataflow.datastatus s
                 where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
                 -- The row in the way: for an input one that is not READY, for an output one that is not free.
                 order by case when problem.name = 'TAKEN' then coalesce(s.status, '') in ('PENDING', 'RESUBMIT')
                               else coalesce(s.status, '') = 'READY' end
                 limit 1;
                facts := facts || jsonb_strip_nulls(to_jsonb(obstacle));
            when 'READING' then
                facts := facts || jsonb_build_object('jobid', p_jobid);
            when 'NOT_TODAY' then
                facts := facts || jsonb_build_object('timezone', declared.timezone);
            when 'OLD_MANIFEST' then
                facts := facts || jsonb_build_object('version', m.version);
            when 'FAILED_CHECK' then
                facts := facts || jsonb_build_object('version', m.version,
                                                     'checks', (select jsonb_agg(c.value ->> 'name') from jsonb_array_elements(m.checks) c
                                                                 where c.value -> 'passed' = 'false'
                                                                   and c.value ->> 'severity' is distinct from 'warn'));
            when 'OTHER_SCHEMA' then
                facts := facts || jsonb_build_object('schema_hash', m.schema_hash, 'declared', declared.schema_hash);
            when 'OUTSIDE' then
                facts := facts || jsonb_build_object('location', m.location, 'root', declared.location);
            when 'REPEATED' then
                facts := facts || jsonb_build_object('other', (
                    select min(n.dataid) from dataflow.data_manifest n
                      join dataflow.datastatus c on c.datasetid = n.datasetid and c.dataid = n.dataid and c.manifest_id = n.manifest_id
                     where n.datasetid = m.datasetid and n.content_digest = m.content_digest and n.dataid <> m.dataid));
            when 'STALE' then
                facts := facts || (select jsonb_strip_nulls(jsonb_build_object('input', t.input_datasetid || '/' || t.input_dataid, 'used', u.version,
                                                                               'current', n.version))
                                     from dataflow.stale t
                                     left join dataflow.data_manifest u on u.manifest_id = t.used_id
                                    cross join lateral (select max(v.version) as version
                                                          from dataflow.datastatus s
                                                          join dataflow.data_manifest v on v.manifest_id = s.manifest_id
                                                         where s.datasetid = t.input_datasetid and s.dataid = t.input_dataid and s.locktype = 'OUT') n
                                    where t.datasetid = p_datasetid and t.dataid = p_dataid);
            else
                null;
        end case;
        result := result || facts;
    end loop;
    return result;
end
$$;

-- What is wrong with a chunk as a whole; null: nothing.
create function dataflow.problems_of_chunk(p_jobid text, p_dataid text, p_makes boolean, p_turn text[], out problems jsonb[], out is_unlisted boolean)
    language plpgsql stable
as $$
declare
    unlisted pg_catalog.text := dataflow.unlisted_input(p_jobid, p_dataid);
begin
    is_unlisted := unlisted is not null;
    if is_unlisted then
        problems := problems || jsonb_build_array(jsonb_build_object('question', 'READY', 'problem', 'UNLISTED', 'jobid', p_jobid, 'dataid', p_dataid,
                                                                     'datasetid', unlisted));
    end if;
    if dataflow.must_wait(p_turn, p_dataid) then
        problems := problems || jsonb_build_array(jsonb_build_object('question', 'READY', 'problem', 'NOT_ITS_TURN', 'jobid', p_jobid, 'turn', p_turn[1]));
    end if;
    if not p_makes then
        problems := problems || jsonb_build_array(jsonb_build_object('question', 'RIGHT', 'problem', 'NO_OUTPUT', 'jobid', p_jobid));
    end if;
end
$$;

-- Some of many problems, in the order of the questions: three of each, and how many more there are.
create function dataflow.first_problems(p_problems jsonb[]) returns jsonb
    language sql immutable parallel safe
    return coalesce((
        select jsonb_agg(case when p.place <= 3 then p.problem
                              else jsonb_build_object('question', p.question, 'problem', 'MORE', 'count', p.total - 3) end
                         order by array_position(array['READY', 'RIGHT', 'PLACED', 'VALID', 'SAFE'], p.question), p.place)
          from (select e.value as problem, e.value ->> 'question' as question,
                       row_number() over (partition by e.value ->> 'question' order by a.place, e.place) as place,
                       count(*) over (partition by e.value ->> 'question') as total
                  from unnest(p_problems) with ordinality as a(problems, place)
                 cross join lateral jsonb_array_elements(a.problems) with ordinality as e(value, place)) p
         where p.place <= 4), '[]');

-- The code of the first no; null when all five are yes.
create function dataflow.code_of(p_problems jsonb) returns text
    language sql immutable parallel safe
    return case p_problems -> 0 ->> 'question'
                when 'READY' then 'DATA_NOT_READY' when 'RIGHT' then 'WRONG_DATA' when 'PLACED' then 'INVALID_PATH'
                when 'VALID' then 'NOT_VALIDATED' when 'SAFE' then 'LOCKED' end;

-- All five answers for some chunks of a Job. `inputs` is the evidence. A chunk is runnable when its inputs are READY, its
-- outputs are free, and it was asked for, by an input with the equal dataid or by a row of its own; its turn in an ordered
-- Job is another matter.
--
-- An `offset 0` keeps the planner from copying a subquery to every place that mentions its columns, and from reversing
-- the direction of a look-up.
create function dataflow.ask(p_jobid text, p_dataids text[])
    returns table (dataid text, problems jsonb, inputs jsonb, is_runnable boolean, resubmit boolean)
    language sql stable
begin atomic
    with item as materialized (
        -- Each DataSet that the Job reads or makes, looked up once for all chunks.
        select j.itemtype, j.datasetid, j.mapping, d.datasetid is not null as is_registered, d.location, d.partitions, d.schema_hash, d.foreign_ready,
               d.skipped_input, d.repeats
          from dataflow.job j
          left join dataflow.dataset d on d.datasetid = j.datasetid
         where j.jobid = p_jobid and j.itemtype in ('IN', 'OUT')
    ), job as materialized (
        select coalesce(bool_or(t.mapping <> 'equal'), false) as lists,
               coalesce(bool_or(t.itemtype = 'OUT'), false) as makes,
               coalesce(bool_or(t.itemtype = 'IN' and t.mapping = 'equal'), false) as follows,
               case when exists (select from dataflow.job_policy t where t.jobid = p_jobid and t.ordered) then dataflow.whose_turn(p_jobid) end as turn
          from item t
    )
    select chunk.dataid,
           case when a.problems is null and w.problems is null then '[]'::jsonb else dataflow.first_problems(w.problems || a.problems) end,
           coalesce(a.inputs, '[]'),
           coalesce(a.can_run, true) and job.makes and (job.follows or a.is_planned) and not coalesce(w.is_unlisted, false),
           coalesce(a.resubmit, false)
      from unnest(p_dataids) as chunk(dataid)
     cross join job
      -- What is wrong with the chunk as a whole.
      left join lateral (select * from dataflow.problems_of_chunk(p_jobid, chunk.dataid, job.makes, job.turn)
                          where job.lists or job.turn is not null or not job.makes offset 0) w on true
     cross join lateral (
        select bool_or(s.statuses is not null) filter (where x.itemtype = 'OUT') as is_planned,
               bool_and(q.ready is null and q.safe is distinct from 'TAKEN') as can_run,
               bool_or('RESUBMIT' = any (s.statuses)) filter (where x.itemtype = 'OUT') as resubmit,
               -- A version without a folder of its own is read in place: the next one overwrites it.
               jsonb_agg(jsonb_build_object('datasetid', x.datasetid, 'dataid', x.dataid, 'manifest_id', m.manifest_id, 'version', m.version)
                         || case when m.location = 'elsewhere' then '{"in_place": true}' else '{}' end::jsonb)
                   filter (where x.itemtype = 'IN') as inputs,
               array_agg(dataflow.problems_of(q.ready, q.right_data, q.placed, q.valid, q.safe, p_jobid, x.datasetid, x.dataid) order by x.itemtype desc)
                   filter (where coalesce(q.ready, q.right_data, q.placed, q.valid, q.safe) is not null) as problems
          from (select t.*, chunk.dataid from item t where t.mapping = 'equal'
                union all
                select t.*, o.dataid
                  from dataflow.other_inputs_of(p_jobid, chunk.dataid) o join item t on t.datasetid = o.datasetid and t.itemtype = 'IN'
                 where job.lists) x
         cross join lateral (
               select array_agg(coalesce(t.status, '')) as statuses,
                      max(t.manifest_id) filter (where t.status is distinct from 'SKIPPED') as manifest_id
                 from dataflow.datastatus t
                where t.datasetid = x.datasetid and t.dataid = x.dataid and t.locktype = 'OUT') s
          left join dataflow.data_manifest m on m.manifest_id = s.manifest_id and x.itemtype = 'IN'
         cross join lateral (
               select row (x.itemtype, x.is_registered,
                           x.partitions is null or dataflow.has_dataid(x.partitions, x.dataid),
                           s.statuses is not null,
                           s.statuses <@ case x.skipped_input when 'passes' then array['READY', 'SKIPPED'] else array['READY'] end,
                           coalesce('READY' = any (s.statuses), false),
                           coalesce(x.skipped_input = 'passes' and 'SKIPPED' = any (s.statuses), false),
                           not coalesce(s.statuses <@ case x.itemtype when 'OUT' then array['PENDING', 'RESUBMIT']
                                                                      else array['PENDING', 'READY', 'FAILED', 'RESUBMIT', 'SKIPPED'] end, true),
                           x.datasetid <> 'today' or x.itemtype = 'OUT' or dataflow.is_its_day(p_jobid, chunk.dataid, x.dataid),
                           s.manifest_id is not null,
                           m.dataid is not distinct from x.dataid and m.datasetid is not distinct from x.datasetid,
                           x.itemtype = 'OUT' or not exists (select from dataflow.data_manifest n
                                                              where n.datasetid = m.datasetid and n.dataid = m.dataid and n.version > m.version),
                           x.schema_hash is null or m.schema_hash is not distinct from x.schema_hash,
                           m.content_digest is not null and not x.repeats and exists (
                               select from dataflow.data_manifest n
                                cross join lateral (select from dataflow.datastatus c
                                                     where c.datasetid = n.datasetid and c.dataid = n.dataid
                                                       and c.locktype = 'OUT' and c.manifest_id = n.manifest_id offset 0) c
                                where n.datasetid = m.datasetid and n.content_digest = m.content_digest and n.dataid <> m.dataid),
                           -- Only if one of its own inputs has another version.
                           exists (select from dataflow.stale t
                                    where t.datasetid = x.datasetid and t.dataid = x.dataid and t.manifest_id = m.manifest_id and t.is_direct),
                           x.location is null or starts_with(m.location, x.location || '/'),
                           -- A failed check with the severity `warn` is recorded only.
                           not m.checks @? '$[*] ? (@.passed == false && !(@.severity == "warn"))',
                           x.foreign_ready = 'refused',
                           case x.itemtype
                                when 'OUT' then exists (select from dataflow.datastatus l
                                                         where l.datasetid = x.datasetid and l.dataid = x.dataid and l.locktype = 'IN' and l.manifest_id is null)
                                else exists (select from dataflow.datastatus l
                                              where l.datasetid = x.datasetid and l.jobid = p_jobid and l.dataid = x.dataid and l.locktype = 'IN'
                                                and (x.mapping = 'equal' or l.claim_id is null)) end
                      )::dataflow.fact as f
               offset 0
         ) fact
         cross join lateral (
               select dataflow.question_ready(fact.f) as ready, dataflow.question_right(fact.f) as right_data,
                      dataflow.question_placed(fact.f) as placed, dataflow.question_valid(fact.f) as valid, dataflow.question_safe(fact.f) as safe
               offset 0
         ) q
     ) a;
end;
