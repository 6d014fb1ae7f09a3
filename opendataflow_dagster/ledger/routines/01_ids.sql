-- Rules of dataids. model/ids.py and model/partitions.py hold the same ones; a test compares them.

-- dataids order naturally: 9 before 10, dates by date. Every run of digits is padded to 20; the dataid itself
-- breaks ties. Cut at 300 characters to stay within an index entry. Not strict, so that Postgres can inline it.
create function dataflow.natural_key(dataid text) returns text
    language sql immutable parallel safe
    return case
        -- Plain numbers, dates and hours, which most dataids are: the general rule takes ten times as long.
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

-- Does the partition scheme contain the dataid?
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

-- Is this a bound of time partitions of this kind?
create function dataflow.is_bound(kind text, bound text) returns boolean
    language sql immutable parallel safe
    return coalesce(case kind when 'hourly' then bound ~ '-([01][0-9]|2[0-3]):00$' and dataflow.is_day(left(bound, -6))
                              when 'monthly' then dataflow.is_day(bound) and right(bound, 2) = '01'
                              else dataflow.is_day(bound) end, false);

-- Is this a partition scheme? Anything else would be an error wherever chunks are counted or looked for.
create function dataflow.is_scheme(partitions jsonb) returns boolean
    language sql immutable parallel safe
    return coalesce(case
        when partitions ->> 'kind' = 'static' then
            jsonb_typeof(partitions -> 'keys') = 'array' and partitions -> 'keys' <> '[]'
            and not partitions @? '$.keys[*].type() ? (@ != "string")'
        when partitions ->> 'kind' = 'range' then
            array[jsonb_typeof(partitions -> 'first'), jsonb_typeof(partitions -> 'last'), jsonb_typeof(partitions -> 'step')]
            = array['number', 'number', 'number']
            and case when partitions ->> 'first' ~ '^(0|[1-9][0-9]{0,17})$' and partitions ->> 'last' ~ '^(0|[1-9][0-9]{0,17})$'
                          and partitions ->> 'step' ~ '^[1-9][0-9]{0,17}$'
                     then (partitions ->> 'first')::bigint <= (partitions ->> 'last')::bigint end
        when partitions ->> 'kind' in ('hourly', 'daily', 'weekly', 'monthly') then
            dataflow.is_bound(partitions ->> 'kind', partitions ->> 'first')
            and (partitions ->> 'last' is null
                 or dataflow.is_bound(partitions ->> 'kind', partitions ->> 'last')
                    and partitions ->> 'first' <= partitions ->> 'last' collate "C")
        end, false);
