-- Which chunks a DataSet with declared partitions is expected to have by now: all, and of time partitions those that have ended.
-- model/partitions.py has the same rule (keys_until); a test compares them.

-- The first and the newest of them, and how many. No row: no partitions are declared. p_now is the time in the DataSet's time zone.
-- Without a CTE, so that a statement over all chunks can run in parallel.
create function dataflow.past(p_partitions jsonb, p_now timestamp)
    returns table (kind text, expected bigint, first text, newest text, first_time timestamp, newest_time timestamp, step interval,
                   low bigint, high bigint, size bigint)
    language sql stable parallel safe rows 1
begin atomic
    select d.kind,
           case when t.step is null then coalesce((n.high - n.low) / n.size + 1, jsonb_array_length(p_partitions -> 'keys'))
                when e.newest_time < t.first_time then 0
                when d.kind = 'monthly' then (extract(year from e.newest_time) - extract(year from t.first_time)) * 12
                                             + extract(month from e.newest_time) - extract(month from t.first_time) + 1
                else extract(epoch from e.newest_time - t.first_time) / extract(epoch from t.step) + 1 end::bigint,
           case when t.step is not null then p_partitions ->> 'first' end collate "C", to_char(e.newest_time, t.pattern) collate "C",
           t.first_time, e.newest_time, t.step, n.low, n.high, n.size
      -- What is no scheme, as an older ledger may have it, is as if it were not declared.
      from (select case when dataflow.is_scheme(p_partitions) then p_partitions ->> 'kind' end as kind) d
     -- A time as a dataid writes it.
     cross join lateral (
           select case when x.step is not null then to_timestamp(p_partitions ->> 'first', x.pattern)::timestamp end as first_time,
                  case when x.step is not null then to_timestamp(p_partitions ->> 'last', x.pattern)::timestamp end as last_time,
                  x.step, x.pattern, x.unit
             from (select case d.kind when 'hourly' then interval '1 hour' when 'daily' then interval '1 day' when 'weekly' then interval '7 days'
                                      when 'monthly' then interval '1 month' end as step,
                          case d.kind when 'hourly' then 'YYYY-MM-DD-HH24:MI' else 'YYYY-MM-DD' end as pattern,
                          case d.kind when 'hourly' then 'hour' when 'monthly' then 'month' else 'day' end as unit) x) t
     cross join lateral (
           -- Weeks begin on the weekday of the first.
           select case when d.kind = 'weekly'
                       then t.first_time + floor(extract(epoch from least(p_now - t.step, t.last_time) - t.first_time) / 604800) * t.step
                       else least(date_trunc(t.unit, p_now) - t.step, t.last_time) end as newest_time) e
     cross join lateral (
           select case d.kind when 'range' then p_partitions ->> 'first' end::bigint as low, case d.kind when 'range' then p_partitions ->> 'last' end::bigint as high,
                  case d.kind when 'range' then p_partitions ->> 'step' end::bigint as size) n
     where d.kind is not null;
end;

-- Partitions whose chunk was expected by now, the newest first: those of the last 7 days, and always the newest one. p_expected_by
-- is the time between the end of a partition and its deadline, by the clock. All times are in the DataSet's time zone.
create function dataflow.deadlines(p_partitions jsonb, p_expected_by interval, p_now timestamp) returns table (dataid text, due timestamp)
    language sql stable parallel safe rows 10
begin atomic
    select to_char(t.at, case t.kind when 'hourly' then 'YYYY-MM-DD-HH24:MI' else 'YYYY-MM-DD' end) collate "C", t.due
      from (select s.kind, s.at, s.at + s.step + p_expected_by as due, max(s.at) over () as newest
              -- A deadline is less than a day after its partition.
              from (select p.kind, p.step, generate_series(p.newest_time, greatest(p.first_time, p_now - interval '8 days' - 2 * p.step), -p.step) as at
                      from dataflow.past(p_partitions, p_now) p where p.step is not null) s
             where s.at + s.step + p_expected_by <= p_now) t
     where t.due > p_now - interval '7 days' or t.at = t.newest
     order by t.at desc;
end;

-- Their dataids, the newest first.
create function dataflow.past_partitions(p_partitions jsonb, p_now timestamp) returns table (dataid text)
    language sql stable parallel safe rows 10000
begin atomic
    select to_char(t.at, case t.kind when 'hourly' then 'YYYY-MM-DD-HH24:MI' else 'YYYY-MM-DD' end) collate "C"
      from (select p.kind, generate_series(p.newest_time, p.first_time, -p.step) as at from dataflow.past(p_partitions, p_now) p where p.step is not null) t
    union all
    select (n.low || '-' || least(n.low + n.size - 1, n.high)) collate "C"
      from (select generate_series(p.low + (p.expected - 1) * p.size, p.low, -p.size) as low, p.size, p.high
              from dataflow.past(p_partitions, p_now) p where p.size is not null) n
    union all
    select k.dataid collate "C"
      from (select e.value as dataid, e.place
              from jsonb_array_elements_text(case p_partitions ->> 'kind' when 'static' then p_partitions -> 'keys' end) with ordinality as e(value, place)
             order by e.place desc) k;
end;
