-- The five questions, asked of the ledger: one function for the gate and for the claim.
-- What only a file system knows (is every file there, with its size?) is asked by the verb on top of this.

-- Which input chunks does a chunk of a Job need, besides those of mapping `equal`? Those are found in the plan of whoever
-- asks; the others lie behind a function, which a Job that has none never calls. In one order: of many reasons three are said.
create function dataflow.other_inputs_of(p_jobid text, p_dataid text)
    returns table (datasetid text, dataid text)
    language plpgsql stable rows 10
as $$
#variable_conflict use_column
begin
    return query
    select e.datasetid, e.input_dataid
      from dataflow.chunk_input e
      join dataflow.job j on j.jobid = e.jobid and j.datasetid = e.datasetid and j.itemtype = 'IN' and j.mapping = 'listed'
     where e.jobid = p_jobid and e.dataid = p_dataid and e.input_dataid <> ''
    union all
    select distinct j.datasetid, s.dataid
      from dataflow.job j
      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
     where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping = 'all'
     order by 1, 2;
end
$$;

-- An input DataSet whose chunks must be listed for this chunk, or be there at all, and are not. Null: none.
create function dataflow.unlisted_input(p_jobid text, p_dataid text) returns text
    language plpgsql stable
as $$
begin
    return (select min(j.datasetid)
              from dataflow.job j
             where j.jobid = p_jobid and j.itemtype = 'IN' and j.mapping <> 'equal'
               and not exists (select from dataflow.chunk_input e
                                where e.jobid = p_jobid and e.dataid = p_dataid and e.datasetid = j.datasetid)
               and not (j.mapping = 'all' and exists (select from dataflow.datastatus s
                                                       where s.datasetid = j.datasetid and s.locktype = 'OUT')));
end
$$;

-- The chunk of a strictly ordered Job whose turn it is, and RUNNING if it is: the first that is not finished. Null: any.
create function dataflow.whose_turn(p_jobid text) returns text[]
    language plpgsql stable
as $$
begin
    return (select array[e.dataid, case when e.is_running then 'RUNNING' end]
              from (select s.dataid, coalesce(s.status, '') = 'RUNNING' as is_running
                      from dataflow.job j
                      join dataflow.datastatus s on s.datasetid = j.datasetid and s.locktype = 'OUT'
                                                and coalesce(s.status, '') not in ('READY', 'SKIPPED')
                     where j.jobid = p_jobid and j.itemtype = 'OUT'
                    union all
                    select r.dataid, false from dataflow.runnable r where r.jobid = p_jobid) e
             order by e.is_running desc, dataflow.natural_key(e.dataid), e.dataid
             limit 1);
end
$$;

-- Must this chunk wait for the one whose turn it is?
create function dataflow.must_wait(p_turn text[], p_dataid text) returns boolean
    language sql immutable parallel safe
    return p_turn[1] <> p_dataid
           and (p_turn[2] = 'RUNNING'
                or (dataflow.natural_key(p_turn[1]), p_turn[1] collate "C") < (dataflow.natural_key(p_dataid), p_dataid collate "C"));

-- `today` is READY for the current date of its time zone. An earlier day is run for a Job that catches up, and for a
-- chunk that was resubmitted.
create function dataflow.is_its_day(p_jobid text, p_dataid text, p_day text) returns boolean
    language plpgsql stable
as $$
declare
    today text := (select to_char(now() at time zone d.timezone, 'YYYY-MM-DD') from dataflow.dataset d where d.datasetid = 'today');
begin
    return p_day = today
        or p_day < today
           and (exists (select from dataflow.job_policy p where p.jobid = p_jobid and p.catch_up)
                or exists (select from dataflow.job j
                            cross join lateral (select from dataflow.datastatus s
                                                 where s.datasetid = j.datasetid and s.jobid = j.jobid and s.dataid = p_dataid
                                                   and s.locktype = 'OUT' and s.status = 'RESUBMIT' offset 0) t
                            where j.jobid = p_jobid and j.itemtype = 'OUT'));
end
$$;

-- A no in words: what is wrong with which chunk, and the next step. Only a no is put into words, because a
-- claim of a hundred good chunks must not pay for sentences.
create function dataflow.reason(problem text, p_jobid text, p_datasetid text, p_dataid text) returns text
    language plpgsql stable
as $$
declare
    chunk text := p_datasetid || '/' || p_dataid;
    held  text;
    d     record;
    m     dataflow.data_manifest;
begin
    select format('%s (job %s, since %s%s%s)', coalesce(s.status, 'NULL'), s.jobid, to_char(s.modified, 'YYYY-MM-DD HH24:MI:SS'),
                  ', claim ' || s.claim_id, ', ' || s.reason)
      into held
      from dataflow.datastatus s
     where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
     -- The row that is the obstacle: for an input one that is not READY, for an output one that is not free.
     order by case when problem = 'TAKEN' then coalesce(s.status, '') in ('PENDING', 'RESUBMIT')
                   else coalesce(s.status, '') = 'READY' end
     limit 1;
    -- Not the whole row: a reader does not see the password in it.
    select t.timezone, t.schema_hash, t.location into d from dataflow.dataset t where t.datasetid = p_datasetid;
    select n.* into m
      from dataflow.datastatus s
      join dataflow.data_manifest n on n.manifest_id = s.manifest_id
     where s.datasetid = p_datasetid and s.dataid = p_dataid and s.locktype = 'OUT'
     order by n.manifest_id desc
     limit 1;
    return case problem
        when 'ABSENT' then format('%s is not there; run its producer, or announce it', chunk)
        when 'NOT_READY' then format('%s is %s; wait for its producer, or resubmit it if it failed', chunk, held)
        when 'NOT_TODAY' then format('%s is not the current day in %s; wait for the day, or resubmit a day that is over', chunk, d.timezone)
        when 'UNREGISTERED' then format('DataSet %s is not registered; register it', p_datasetid)
        when 'NO_SUCH_PARTITION' then format('%s has no chunk %s in its partitions; use a dataid it has, or correct the partitions', p_datasetid, p_dataid)
        when 'NOT_ITS_MANIFEST' then format('%s points to a manifest that is not a version of it; resubmit it', chunk)
        when 'OLD_MANIFEST' then format('%s points to version %s, which is not its current one; resubmit it', chunk, m.version)
        when 'OTHER_SCHEMA' then format('%s has schema %s, declared is %s; resubmit it, or declare the new schema',
                                        chunk, coalesce(m.schema_hash, 'none'), d.schema_hash)
        when 'REPEATED' then format('%s has the same content as %s/%s; resubmit the wrong one, or allow repeats', chunk, p_datasetid,
                                    (select min(n.dataid) from dataflow.data_manifest n
                                       join dataflow.datastatus c on c.datasetid = n.datasetid and c.dataid = n.dataid and c.manifest_id = n.manifest_id
                                      where n.datasetid = m.datasetid and n.content_digest = m.content_digest and n.dataid <> m.dataid))
        when 'OUT_OF_DATE' then (
            select format('%s is out of date: made from %s/%s version %s, current is version %s; resubmit it', chunk, o.datasetid, o.dataid,
                          coalesce(o.used::text, 'of someone else'), coalesce(o.current::text, 'of someone else'))
              from dataflow.newer_inputs(m.inputs) o limit 1)
        when 'OUTSIDE' then format('%s is at %s, outside of its root %s; resubmit it in this environment', chunk, m.location, d.location)
        when 'NOTHING_THERE' then format('nothing is published for %s; wait for its producer', chunk)
        when 'FAILED_CHECK' then format('%s version %s failed a check; resubmit it', chunk, m.version)
        when 'NO_MANIFEST' then format('%s was made READY without a manifest, which %s refuses; resubmit it', chunk, p_datasetid)
        when 'LOCKED' then format('%s is %s; wait until it is released', chunk, held)
        when 'READING' then format('job %s reads %s already; wait for it, or resubmit its output', p_jobid, chunk)
        when 'TAKEN' then format('%s is %s; %s', chunk, held,
                                 case when held like 'RUNNING%' then 'wait for it, or resubmit it'
                                      when held like 'HOLD%' then 'unhold it' else 'resubmit it to run it again' end)
        when 'READ_IN_PLACE' then format('%s is being read in place by a consumer; wait for it', chunk)
    end;
end
$$;

-- Which of these inputs (as a manifest records them) are not the current ones any more? A chunk that is being made
-- anew is the old one until that is published; one that was made READY without a manifest is another; one that is
-- SKIPPED is what it was, and nothing at all for who passed over it.
create function dataflow.newer_inputs(p_inputs jsonb)
    returns table (datasetid text, dataid text, used integer, current integer)
    language sql stable
begin atomic
    select i.datasetid, i.dataid, i.version, (select max(n.version) from dataflow.data_manifest n where n.manifest_id = c.manifest_id)
      from jsonb_to_recordset(p_inputs) as i(datasetid text, dataid text, manifest_id bigint, version integer)
     cross join lateral (select bool_or(s.manifest_id is not distinct from i.manifest_id or s.status = 'SKIPPED' and i.manifest_id is null) as is_current,
                                max(s.manifest_id) as manifest_id
                           from dataflow.datastatus s
                          where s.datasetid = i.datasetid and s.dataid = i.dataid and s.locktype = 'OUT'
                            and (s.manifest_id is not null or s.status in ('READY', 'SKIPPED')) offset 0) c
     where not c.is_current;
end;

-- The first three of many reasons, and how many more there are.
create function dataflow.first_three(reasons text[]) returns text
    language sql immutable strict parallel safe
    return case when cardinality(reasons) <= 3 then array_to_string(reasons, '; ')
                else array_to_string(reasons[1:3], '; ') || format('; and %s more', cardinality(reasons) - 3) end;

-- All five answers for some chunks of a Job; a null answer is a yes. What is the same for all of them is looked up once.
-- A publication of first versions knows most answers and does not ask: who adds a question here adds what speaks against a yes to `offer`.
-- An `offset 0` keeps the planner from copying a subquery to every place that mentions its columns, and from turning a
-- look-up around.
create function dataflow.ask(p_jobid text, p_dataids text[])
    returns table (dataid text, ready text, right_data text, placed text, valid text, safe text, inputs jsonb, file_count bigint,
                   is_runnable boolean, resubmit boolean, is_plain boolean)
    language sql stable
begin atomic
    with job as materialized (
        select exists (select from dataflow.job t where t.jobid = p_jobid and t.mapping <> 'equal') as lists,
               case when exists (select from dataflow.job_policy t where t.jobid = p_jobid and t.ordered) then dataflow.whose_turn(p_jobid) end as turn
    ), item as materialized (
        -- Each of its inputs and outputs, with what its DataSet says.
        select j.itemtype, j.datasetid, j.mapping, d.datasetid is not null as is_registered, d.location, d.partitions, d.schema_hash, d.foreign_ready,
               d.skipped_input, d.repeats
          from dataflow.job j
          left join dataflow.dataset d on d.datasetid = j.datasetid
         where j.jobid = p_jobid
    )
    select chunk.dataid,
           case when i.ready is not null or w.unlisted is not null or w.earlier is not null then
               concat_ws('; ', dataflow.first_three(i.ready),
                         'no input chunks of ' || w.unlisted || ' are known for ' || p_jobid || '/' || chunk.dataid || '; plan the chunk',
                         'job ' || p_jobid || ' is strictly ordered, and it is the turn of its chunk ' || w.earlier || '; finish or skip that one first') end,
           case when i.right_data is not null or o.right_data is not null or o.output_count = 0 then
               concat_ws('; ', dataflow.first_three(i.right_data), dataflow.first_three(o.right_data),
                         case when o.output_count = 0 then format('job %s has no OUT DataSet; register one', p_jobid) end) end,
           dataflow.first_three(i.placed),
           dataflow.first_three(i.valid),
           case when o.safe is not null or i.safe is not null then
               concat_ws('; ', dataflow.first_three(o.safe), dataflow.first_three(i.safe)) end,
           coalesce(i.inputs, '[]'),
           coalesce(i.file_count, 0),
           -- Its inputs are READY, its outputs free, and it was asked for: by an input with the same dataid, or by a row
           -- of its own. Its turn is another matter.
           i.ready is null and w.unlisted is null and o.output_count > 0 and not o.is_taken and (i.equal_count > 0 or o.row_count > 0),
           coalesce(o.resubmit, false),
           o.row_count = 0 and coalesce(i.is_pinned, true)
      from unnest(p_dataids) as chunk(dataid)
     cross join job
     cross join lateral (
        select case when job.lists then dataflow.unlisted_input(p_jobid, chunk.dataid) end as unlisted,
               case when job.turn is not null and dataflow.must_wait(job.turn, chunk.dataid) then job.turn[1] end as earlier
        offset 0
     ) w
     cross join lateral (
        -- Each input chunk: its OUT rows, its DataSet and its version; what is wrong with it, as a word.
        select sum(m.file_count) as file_count,
               count(*) filter (where x.mapping = 'equal') as equal_count,
               bool_and(coalesce(m.location <> 'elsewhere', false)) as is_pinned,
               jsonb_agg(case when m.location = 'elsewhere'
                              -- A version without a place of its own: the next one will be where it is.
                              then jsonb_build_object('datasetid', x.datasetid, 'dataid', x.dataid,
                                                      'manifest_id', m.manifest_id, 'version', m.version, 'in_place', true)
                              else jsonb_build_object('datasetid', x.datasetid, 'dataid', x.dataid,
                                                      'manifest_id', m.manifest_id, 'version', m.version) end) as inputs,
               array_agg(dataflow.reason(a.ready, p_jobid, x.datasetid, x.dataid)) filter (where a.ready is not null) as ready,
               array_agg(dataflow.reason(a.right_data, p_jobid, x.datasetid, x.dataid)) filter (where a.right_data is not null) as right_data,
               array_agg(dataflow.reason(a.placed, p_jobid, x.datasetid, x.dataid)) filter (where a.placed is not null) as placed,
               array_agg(dataflow.reason(a.valid, p_jobid, x.datasetid, x.dataid)) filter (where a.valid is not null) as valid,
               array_agg(dataflow.reason(a.safe, p_jobid, x.datasetid, x.dataid)) filter (where a.safe is not null) as safe
          from (select t.*, chunk.dataid from item t where t.itemtype = 'IN' and t.mapping = 'equal'
                union all
                select t.*, o.dataid
                  from dataflow.other_inputs_of(p_jobid, chunk.dataid) o join item t on t.datasetid = o.datasetid and t.itemtype = 'IN'
                 where job.lists) x
         cross join lateral (
               select count(*) as row_count,
                      count(*) filter (where t.status = 'READY') as ready_count,
                      count(*) filter (where t.status = 'SKIPPED' and x.skipped_input = 'passes') as passing_count,
                      bool_or(coalesce(t.status, '') not in ('PENDING', 'READY', 'FAILED', 'RESUBMIT', 'SKIPPED')) as is_locked,
                      max(t.manifest_id) filter (where t.status is distinct from 'SKIPPED') as manifest_id
                 from dataflow.datastatus t
                where t.datasetid = x.datasetid and t.dataid = x.dataid and t.locktype = 'OUT') s
          left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
         cross join lateral (
               select case when s.row_count = 0 then 'ABSENT'
                           when s.ready_count + s.passing_count < s.row_count then 'NOT_READY'
                           when x.datasetid = 'today' and not dataflow.is_its_day(p_jobid, chunk.dataid, x.dataid) then 'NOT_TODAY'
                      end as ready,
                      case when not x.is_registered then 'UNREGISTERED'
                           when x.partitions is not null and not dataflow.has_dataid(x.partitions, x.dataid) then 'NO_SUCH_PARTITION'
                           when s.manifest_id is null then null
                           when m.dataid is distinct from x.dataid or m.datasetid is distinct from x.datasetid then 'NOT_ITS_MANIFEST'
                           when exists (select from dataflow.data_manifest n
                                         where n.datasetid = m.datasetid and n.dataid = m.dataid and n.version > m.version) then 'OLD_MANIFEST'
                           when x.schema_hash is not null and m.schema_hash is distinct from x.schema_hash then 'OTHER_SCHEMA'
                           when m.content_digest is not null and not x.repeats and exists (
                                   select from dataflow.data_manifest n
                                    cross join lateral (select from dataflow.datastatus c
                                                         where c.datasetid = n.datasetid and c.dataid = n.dataid
                                                           and c.locktype = 'OUT' and c.manifest_id = n.manifest_id offset 0) c
                                    where n.datasetid = m.datasetid and n.content_digest = m.content_digest and n.dataid <> m.dataid) then 'REPEATED'
                           when m.inputs <> '[]' and exists (select from dataflow.newer_inputs(m.inputs)) then 'OUT_OF_DATE'
                      end as right_data,
                      case when s.passing_count > 0 then null
                           when m.manifest_id is null then case when s.ready_count = 0 then 'NOTHING_THERE' end
                           when not starts_with(m.location, x.location || '/') then 'OUTSIDE'
                      end as placed,
                      case when s.passing_count > 0 then null
                           when m.manifest_id is null then case when s.ready_count = 0 then 'NOTHING_THERE'
                                                                when x.foreign_ready = 'refused' then 'NO_MANIFEST' end
                           when m.checks <> '[]' and m.checks @> '[{"passed": false}]' then 'FAILED_CHECK'
                      end as valid,
                      case when s.is_locked then 'LOCKED'
                           when exists (select from dataflow.datastatus l
                                         where l.datasetid = x.datasetid and l.jobid = p_jobid and l.dataid = x.dataid and l.locktype = 'IN'
                                           and (x.mapping = 'equal' or l.claim_id is null)) then 'READING'
                      end as safe
               offset 0
         ) a
     ) i
     cross join lateral (
        -- Each output chunk with each of its OUT rows: registered, expected, free, and not read in place by a consumer.
        select count(*) as output_count,
               count(s.dataid) as row_count,
               coalesce(bool_or(a.safe = 'TAKEN'), false) as is_taken,
               bool_or(s.status = 'RESUBMIT') as resubmit,
               array_agg(dataflow.reason(a.right_data, p_jobid, t.datasetid, chunk.dataid)) filter (where a.right_data is not null) as right_data,
               array_agg(dataflow.reason(a.safe, p_jobid, t.datasetid, chunk.dataid)) filter (where a.safe is not null) as safe
          from item t
          left join lateral (select * from dataflow.datastatus s
                              where s.datasetid = t.datasetid and s.dataid = chunk.dataid and s.locktype = 'OUT' offset 0) s on true
         cross join lateral (
               select case when not t.is_registered then 'UNREGISTERED'
                           when t.partitions is not null and not dataflow.has_dataid(t.partitions, chunk.dataid) then 'NO_SUCH_PARTITION'
                      end as right_data,
                      case when s.dataid is not null and coalesce(s.status, '') not in ('PENDING', 'RESUBMIT') then 'TAKEN'
                           when exists (select from dataflow.datastatus l
                                         where l.datasetid = t.datasetid and l.dataid = chunk.dataid and l.locktype = 'IN' and l.manifest_id is null) then 'READ_IN_PLACE'
                      end as safe
               offset 0
         ) a
         where t.itemtype = 'OUT'
     ) o;
end;
