"""The audit after the hostile run: the raw tables, in SQL of its own, the files, and what the processes saw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from tests.chaos.pipeline import JOBS, LIMIT, LIMITED, content_of, testimony
from tests.invariants import assert_invariants

#: A claim reads the limit of its Job before it records what it takes; no transaction of the run takes longer.
_SLACK: Final = "interval '15 seconds'"

#: Every time that a claim of one output lasted, in event ids: from the change to RUNNING to the next other status.
_CLAIMED: Final = """
    select e.datasetid, e.jobid, e.dataid, e.claim_id, e.at, e.event_id as begins,
           (select min(n.event_id) from dataflow.chunk_event n
             where n.datasetid = e.datasetid and n.dataid = e.dataid and n.jobid = e.jobid and n.event_id > e.event_id
               and (n.new_status, n.claim_id) is distinct from ('RUNNING', e.claim_id)) as ends
      from (select c.*, lag(c.claim_id) over (partition by c.datasetid, c.jobid, c.dataid order by c.event_id) as before
              from dataflow.chunk_event c where c.locktype = 'OUT') e
     where e.new_status = 'RUNNING' and e.claim_id is not null
       and (e.old_status is distinct from 'RUNNING' or e.before is distinct from e.claim_id)"""

#: How many chunks of a Job ran at each moment, by its first output, and the limits in force then.
_RUNNING: Final = f"""
    with claimed as ({_CLAIMED}),
    step as (
        select c.jobid, c.datasetid, c.claim_id, c.at, c.begins as event_id, 1 as change from claimed c
        union all
        select c.jobid, c.datasetid, c.claim_id, null, c.ends, -1 from claimed c where c.ends is not null
    ), running as (
        select s.*, sum(s.change) over (partition by s.jobid, s.datasetid order by s.event_id) as running from step s
    ), control as (
        select j.jobid, j.at, j.concurrency, lead(j.at) over (partition by j.jobid order by j.event_id) as until
          from dataflow.job_event j
    )"""

RULES: Final = {
    "a claim publishes each output at most once": """
        select m.datasetid, m.claim_id, count(*) from dataflow.data_manifest m
         where m.claim_id is not null group by m.datasetid, m.claim_id having count(*) > 1""",
    "a publication has one stored verdict with five yes, unless it was forced": """
        select m.datasetid, m.dataid, m.claim_id, v.verdicts, v.nos
          from dataflow.data_manifest m
         cross join lateral (select count(*) as verdicts,
                                    count(*) filter (where not v.forced
                                                       and (v.problems <> '[]' or v.code is not null)) as nos
                               from dataflow.verdict v
                              where v.jobid = m.jobid and v.dataid = m.dataid and v.claim_id = m.claim_id) v
         where m.claim_id is not null and (v.verdicts <> 1 or v.nos > 0)""",
    "a publication ends the claim that it belongs to": """
        select m.datasetid, m.dataid, m.claim_id, m.manifest_id, e.endings
          from dataflow.data_manifest m
         cross join lateral (select count(*) as endings from dataflow.chunk_event e
                              where e.datasetid = m.datasetid and e.dataid = m.dataid and e.jobid = m.jobid
                                and e.claim_id = m.claim_id and e.manifest_id = m.manifest_id
                                and e.old_status = 'RUNNING' and e.new_status = 'READY') e
         where m.claim_id is not null and e.endings <> 1""",
    "two claims of a chunk never overlap": f"""
        with claimed as ({_CLAIMED})
        select a.datasetid, a.dataid, a.claim_id, b.claim_id as other
          from claimed a
          join claimed b on b.datasetid = a.datasetid and b.dataid = a.dataid and b.begins > a.begins
                        and (a.ends is null or b.begins < a.ends)""",
    "a READY chunk has its newest version, that of the claim that last published it": """
        select s.datasetid, s.dataid, s.manifest_id, n.manifest_id as newest, m.claim_id, p.claim_id as publisher
          from dataflow.datastatus s
          left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
          left join lateral (select t.manifest_id from dataflow.data_manifest t
                              where t.datasetid = s.datasetid and t.dataid = s.dataid
                              order by t.version desc limit 1) n on true
          left join lateral (select e.claim_id from dataflow.chunk_event e
                              where e.datasetid = s.datasetid and e.dataid = s.dataid
                                and e.old_status = 'RUNNING' and e.new_status = 'READY'
                                and e.claim_id in (select c.claim_id from dataflow.data_manifest c
                                                    where c.datasetid = e.datasetid and c.dataid = e.dataid)
                              order by e.event_id desc limit 1) p on true
         where s.locktype = 'OUT' and s.status = 'READY' and s.manifest_id is not null
           and (s.manifest_id is distinct from n.manifest_id or m.claim_id is distinct from p.claim_id)""",
    "a claim pins versions that were published before it": """
        select m.datasetid, m.dataid, m.claim_id, i.manifest_id
          from dataflow.data_manifest m
         cross join lateral jsonb_to_recordset(m.inputs)
                    as i(datasetid text, dataid text, manifest_id bigint, version integer)
          left join dataflow.data_manifest x on x.manifest_id = i.manifest_id
         where i.manifest_id is not null
           and ((x.datasetid, x.dataid, x.version) is distinct from (i.datasetid, i.dataid, i.version)
                or x.published > m.published)""",
    "the history has no gap": """
        select e.*
          from (select c.*, lag(c.new_status) over (partition by c.datasetid, c.jobid, c.dataid
                                                    order by c.event_id) as before
                  from dataflow.chunk_event c) e
         where e.old_status is distinct from e.before""",
    "a row is what its history says": """
        select s.datasetid, s.jobid, s.dataid, s.status, e.new_status
          from dataflow.datastatus s
          full join (select distinct on (c.datasetid, c.jobid, c.dataid) c.* from dataflow.chunk_event c
                      order by c.datasetid, c.jobid, c.dataid, c.event_id desc) e
               on e.datasetid = s.datasetid and e.jobid = s.jobid and e.dataid = s.dataid
         where s.status is distinct from e.new_status""",
    "nothing runs any more": """
        select s.datasetid, s.jobid, s.dataid, s.locktype, s.status, s.claim_id from dataflow.datastatus s
         where s.status = 'RUNNING' or s.claim_id is not null or s.locktype = 'IN'""",
    "a concurrency limit was never exceeded": f"""
        {_RUNNING}
        select r.jobid, r.claim_id, r.at, r.running, l.concurrency
          from running r
         cross join lateral (select max(coalesce(c.concurrency, 1000000)) as concurrency from control c
                              where c.jobid = r.jobid and c.at <= r.at
                                and coalesce(c.until, 'infinity') >= r.at - {_SLACK}) l
         where r.change = 1 and r.running > l.concurrency""",
    "a constant limit was never exceeded": f"""
        {_RUNNING}
        select r.jobid, r.claim_id, r.running from running r where r.jobid = '{LIMITED}' and r.running > {LIMIT}""",
    "a paused Job starts nothing, unless it is forced": f"""
        with claimed as ({_CLAIMED})
        select c.jobid, c.claim_id, c.at, p.at as paused
          from claimed c
          join (select j.jobid, j.at, j.paused, lead(j.at) over (partition by j.jobid order by j.event_id) as until
                  from dataflow.job_event j) p
               on p.jobid = c.jobid and p.paused is not null
                  and c.at > p.at + {_SLACK} and c.at < coalesce(p.until, 'infinity')
         where not exists (select from dataflow.verdict v
                            where v.jobid = c.jobid and v.dataid = c.dataid
                              and v.claim_id = c.claim_id and v.forced)""",
    "a chunk that is gone was deleted by a person": """
        select e.datasetid, e.dataid, e.login
          from (select distinct on (c.datasetid, c.dataid) c.* from dataflow.chunk_event c
                 where c.locktype = 'OUT' order by c.datasetid, c.dataid, c.event_id desc) e
         where e.login <> 'typist'
           and not exists (select from dataflow.datastatus s
                            where s.datasetid = e.datasetid and s.dataid = e.dataid and s.locktype = 'OUT')""",
}


def audit(connection: psycopg.Connection[Any], witness: Path) -> list[str]:
    """What is wrong, in words; nothing, if all guarantees held."""
    wrong: list[str] = []
    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute("analyze")
        for rule, query in RULES.items():
            rows = cursor.execute(query.encode()).fetchall()
            wrong += [f"{rule}: {len(rows)} violations, e.g. {row}" for row in rows[:1]]
    wrong += [*_contradictions(connection, witness), *_damaged_files(connection)]
    try:
        assert_invariants(connection)  # among others: a rebuild of the runnable set changes nothing
    except AssertionError as error:
        wrong.append(str(error))
    return wrong


def _contradictions(connection: psycopg.Connection[Any], witness: Path) -> Iterator[str]:
    """Between what the processes were told and what the tables say."""
    published = {
        (claim_id, manifest_id)
        for claim_id, manifest_id in connection.execute(
            "select claim_id, manifest_id from dataflow.data_manifest where claim_id is not null"
        )
    }
    publishers = {claim_id for claim_id, _ in published}
    known = {
        tuple(row)
        for row in connection.execute(
            "select distinct datasetid, dataid from dataflow.chunk_event where locktype = 'OUT'"
        )
    }
    claimed: set[int] = set()
    for seen in testimony(witness):
        match seen["kind"]:
            case "unexpected":
                yield f"an unexpected error: {seen['error']}"
            case "claim" if seen["claim_id"] in claimed:
                yield f"claim {seen['claim_id']} was granted twice"
            case "claim":
                claimed.add(seen["claim_id"])
            case "published" if (seen["claim_id"], seen["manifest_id"]) not in published:
                yield f"claim {seen['claim_id']} was told that it published {seen['manifest_id']}, which is not there"
            case "lost" if seen["claim_id"] in publishers:
                yield f"claim {seen['claim_id']} was told that it was lost, and it published"
            case "planned":
                missing = [output for output in JOBS[seen["jobid"]].outputs if (output, seen["dataid"]) not in known]
                if missing:
                    yield f"chunk {missing[0]}/{seen['dataid']} was planned, and nothing is known of it"


def _damaged_files(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Every current version has its file, as its claim wrote it."""
    for datasetid, dataid, claim_id, location in connection.execute(
        "select m.datasetid, m.dataid, m.claim_id, m.location from dataflow.datastatus s"
        " join dataflow.data_manifest m on m.manifest_id = s.manifest_id where s.locktype = 'OUT'"
    ):
        file = Path(location) / "part-0"
        if not file.exists() or file.read_text() != content_of(datasetid, dataid, claim_id):
            yield f"{file}, the current version of {datasetid}/{dataid}, is damaged"
