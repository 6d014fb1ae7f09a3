-- publish.

-- Two chunks with the same content, published at the same moment: the second must see the first.
create function dataflow.content_lock(p_datasetid text, p_content_digest text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(p_datasetid || ' ' || p_content_digest, 0);

-- A new version of one output of a claim, as its producer describes it; with the row that the claim holds.
create type dataflow.staged as (
    datasetid      text collate "C",
    jobid          text collate "C",
    dataid         text collate "C",
    claim_id       bigint,
    location       text,
    files          jsonb,
    bytes          bigint,
    row_count      bigint,
    schema_hash    text,
    content_digest text,
    checks         jsonb,
    code_version   text,
    run_id         bigint,
    place          tid
);

-- Can every program read this description of a version, and does it stay in its folder? Ours are; a foreign program might hand in any.
create function dataflow.is_readable(p_location text, p_files jsonb, p_checks jsonb) returns boolean
    language sql immutable parallel safe
    return p_location !~ '(^|/)[.]{1,2}(/|$)' and jsonb_typeof(p_files) = 'array' and jsonb_typeof(p_checks) = 'array'
           and not p_files @? '$[*].type() ? (@ != "object")' and not p_checks @? '$[*].type() ? (@ != "object")'
           and not p_files @? '$[*] ? (!(@.path.type() == "string") || @.path like_regex "^$|^/|(^|/)[.]{1,2}(/|$)"
                                       || !(@.size.type() == "number") || @.size < 0 || @.size > 9223372036854775807
                                       || exists(@.digest) && @.digest.type() != "string" && @.digest.type() != "null")'
           and not p_checks @? '$[*] ? (!(@.name.type() == "string") || !(@.passed.type() == "boolean")
                                        || exists(@.detail) && @.detail.type() != "string")';

-- The publication. Only a live claim gets its rows; then the manifests are inserted, and the rows become READY; the triggers
-- do the rest. p_outputs has a manifest for each output of each claim, with its datasetid, jobid, dataid and claim_id.
-- Returns the new versions, and `refused`: the manifests that do not fit their DataSets, of whose claims nothing
-- was published. A claim that is not held is in neither.
create function dataflow.publish(p_outputs json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
    staged dataflow.staged[];
    answer json;
begin
    -- Locked in one statement and used in the next, which sees what others did in the meantime. From here on the rows are
    -- ours and stay in their places. The outputs of a claim are published together or not at all.
    staged := array(
    select row (g.datasetid, g.jobid, g.dataid, g.claim_id, g.location, g.files, g.bytes, g.row_count, g.schema_hash, g.content_digest,
                          g.checks, g.code_version, s.run_id, s.place)::dataflow.staged
      from (select * from json_populate_recordset(null::dataflow.staged, p_outputs) order by datasetid, jobid, dataid) g
      left join lateral (select t.run_id, t.ctid as place from dataflow.datastatus t
                          where t.datasetid = g.datasetid and t.jobid = g.jobid and t.dataid = g.dataid and t.locktype = 'OUT'
                            and t.status = 'RUNNING' and t.claim_id = g.claim_id and t.lease_until > clock_timestamp()
                            for update) s on true);

    -- Another publication of the same content waits for us, or we for it.
    perform pg_advisory_xact_lock(d.key)
       from (select distinct dataflow.content_lock(g.datasetid, g.content_digest) as key
               from unnest(staged) g where g.content_digest is not null order by 1) d;

    with given as materialized (
        select g.*, d.location as root, d.schema_hash as declared, 1 + coalesce(v.newest, 0) as version,
               case when g.place is null then 'LOST'
                    when dataflow.is_readable(g.location, g.files, g.checks) is not true then 'UNREADABLE'
                    when not starts_with(g.location, d.location || '/') then 'OUTSIDE'
                    when d.schema_hash is not null and g.schema_hash is distinct from d.schema_hash then 'OTHER_SCHEMA'
                    when g.location = any (v.locations) and g.location <> 'elsewhere' then 'SAME_PLACE' end as problem
          from unnest(staged) g
          left join dataflow.dataset d on d.datasetid = g.datasetid
         cross join lateral (select max(m.version) as newest, array_agg(m.location) as locations from dataflow.data_manifest m
                              where m.datasetid = g.datasetid and m.dataid = g.dataid) v
    ), fitting as materialized (
        select g.*, nextval('dataflow.data_manifest_manifest_id_seq') as manifest_id
          from given g
         where g.claim_id <> all (array(select b.claim_id from given b where b.problem is not null))
    ), made as (
        insert into dataflow.data_manifest (manifest_id, datasetid, dataid, version, jobid, claim_id, run_id, location, files, bytes, row_count,
                                            schema_hash, content_digest, checks, code_version, inputs) overriding system value
        select f.manifest_id, f.datasetid, f.dataid, f.version, f.jobid, f.claim_id, f.run_id, f.location, f.files, f.bytes, f.row_count,
               f.schema_hash, f.content_digest, f.checks, f.code_version,
               coalesce((select v.inputs from dataflow.verdict v
                          where v.jobid = f.jobid and v.dataid = f.dataid and v.claim_id = f.claim_id limit 1), '[]')
          from fitting f
    ), ready as (
        update dataflow.datastatus s set status = 'READY', manifest_id = f.manifest_id, code_version = f.code_version from fitting f where s.ctid = f.place
    )
    select json_build_object(
               'published', coalesce((select json_agg(json_build_object('claim_id', f.claim_id, 'datasetid', f.datasetid, 'manifest_id', f.manifest_id,
                                                                        'version', f.version)) from fitting f), '[]'),
               'refused', coalesce((select json_agg(json_build_object('claim_id', g.claim_id, 'datasetid', g.datasetid, 'problem', g.problem,
                                                                      'root', g.root, 'declared', g.declared))
                                      from given g
                                     where g.problem is not null
                                       and g.claim_id <> all (array(select l.claim_id from given l where l.problem = 'LOST'))), '[]'))
      into answer;
    return answer;
end
$$;
