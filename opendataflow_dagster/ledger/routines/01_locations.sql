-- Where files are. One folder can be written in several ways: /w/raw, file:///w/raw/ and /w//raw; s3a://b/raw and s3://b/raw.

create function dataflow.folder(location text) returns text
    language sql immutable strict parallel safe
    return rtrim(regexp_replace(regexp_replace(regexp_replace(location, '^file:/+', '/'), '^s3[an]:', 's3:'), '(?<!:)//+', '/', 'g'), '/');

create function dataflow.spellings(location text) returns text[]
    language sql immutable strict parallel safe
    return (select case when f.folder like '/%' then array[f.folder, 'file:' || f.folder, 'file://' || f.folder]
                        when f.folder like 's3:%' then array[f.folder, 's3a' || substr(f.folder, 3), 's3n' || substr(f.folder, 3)]
                        else array[f.folder] end
              from (select dataflow.folder(location) as folder) f);

-- The folder itself, and each that contains it.
create function dataflow.folders_above(folder text) returns text[]
    language sql immutable strict parallel safe
    return array(select array_to_string((string_to_array(folder, '/'))[1:n], '/')
                   from generate_series(1, cardinality(string_to_array(folder, '/'))) n);

-- DataSets whose root is inside or the same as that of another: `below` is the path from the other root, empty if they are the same.
create function dataflow.overlapping_roots()
    returns table (datasetid text, other_datasetid text, below text, problem text)
    language sql stable
begin atomic
    with root as materialized (
        select d.datasetid, d.location, dataflow.folder(d.location) as folder from dataflow.dataset d where d.location <> ''
    )
    select lower.datasetid, upper.datasetid, substr(lower.folder, length(upper.folder) + 2),
           format(case when lower.folder = upper.folder then 'its root %1$s is also the root of DataSet %2$s'
                       else 'its root %1$s is inside the root %3$s of DataSet %2$s' end, lower.location, upper.datasetid, upper.location)
      from root lower
     cross join lateral unnest(dataflow.folders_above(lower.folder)) a(folder)
      join root upper on upper.folder = a.folder and upper.datasetid <> lower.datasetid
     where lower.folder <> upper.folder or lower.datasetid > upper.datasetid
     order by 1, 2;
end;
