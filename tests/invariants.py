"""What is true of the ledger between any two transactions, and snapshots of its whole state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.rows import tuple_row

#: Each rule, and a query for the rows that break it.
_RULES: Final = {
    "a claim is RUNNING and has a lease; without a claim there is no lease": """
        select s.datasetid, s.jobid, s.dataid, s.status, s.claim_id, s.lease_until
          from dataflow.datastatus s
         where s.locktype = 'OUT'
           and (s.claim_id is not null and s.status is distinct from 'RUNNING'
                or (s.claim_id is null) <> (s.lease_until is null))""",
    "a chunk has at most one live claim": """
        select s.datasetid, s.dataid, array_agg(s.claim_id) as claim_ids
          from dataflow.datastatus s
         where s.locktype = 'OUT' and s.claim_id is not null
         group by s.datasetid, s.dataid having count(*) > 1""",
    "a claim holds one chunk, with all the outputs it claimed or none": """
        select h.claim_id, h.jobid, h.dataids, h.outputs as holds, t.outputs as took
          from (select s.claim_id, s.jobid, array_agg(distinct s.dataid) as dataids,
                       array_agg(s.datasetid order by s.datasetid) as outputs
                  from dataflow.datastatus s
                 where s.locktype = 'OUT' and s.claim_id is not null
                 group by s.claim_id, s.jobid) h
          left join (select e.claim_id, e.jobid, array_agg(distinct e.datasetid order by e.datasetid) as outputs
                       from dataflow.chunk_event e
                      where e.locktype = 'OUT' and e.new_status = 'RUNNING' and e.claim_id is not null
                      group by e.claim_id, e.jobid) t on t.claim_id = h.claim_id and t.jobid = h.jobid
         where cardinality(h.dataids) > 1 or h.outputs is distinct from t.outputs""",
    "an IN row with a claim belongs to a live claim of its Job that reads the input": """
        select i.datasetid, i.jobid, i.dataid, i.claim_id
          from dataflow.datastatus i
          left join (select distinct o.jobid, x.datasetid, x.dataid
                       from dataflow.datastatus o
                       join dataflow.verdict v on v.jobid = o.jobid and v.dataid = o.dataid and v.claim_id = o.claim_id
                      cross join lateral jsonb_to_recordset(v.inputs) as x(datasetid text, dataid text)
                      where o.locktype = 'OUT' and o.status = 'RUNNING' and o.claim_id is not null) r
                 on r.jobid = i.jobid and r.datasetid = i.datasetid and r.dataid = i.dataid
         where i.locktype = 'IN' and i.claim_id is not null and r.jobid is null""",
    "the manifest of an OUT row is the highest version of that chunk": """
        select s.datasetid, s.jobid, s.dataid, s.manifest_id, m.version, n.versions
          from dataflow.datastatus s
          left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
          left join (select datasetid, dataid, max(version) as versions
                       from dataflow.data_manifest group by datasetid, dataid) n
                 on n.datasetid = s.datasetid and n.dataid = s.dataid
         where s.locktype = 'OUT' and s.manifest_id is not null
           and (m.datasetid, m.dataid, m.version) is distinct from (s.datasetid, s.dataid, n.versions)""",
    "an OUT row has the code of its version": """
        select s.datasetid, s.jobid, s.dataid, s.manifest_id, s.code_version, m.code_version as code_of_version
          from dataflow.datastatus s
          left join dataflow.data_manifest m on m.manifest_id = s.manifest_id
         where s.locktype = 'OUT' and s.code_version is distinct from m.code_version""",
    "every claim in the history has one verdict, with five yes answers unless it was forced": """
        select e.jobid, e.claim_id, v.verdicts, v.yes
          from (select distinct jobid, claim_id from dataflow.chunk_event where claim_id is not null) e
          left join (select jobid, claim_id, count(*) as verdicts,
                            bool_and(forced or problems = '[]' and code is null) as yes
                       from dataflow.verdict where claim_id is not null group by jobid, claim_id) v
                 on v.jobid = e.jobid and v.claim_id = e.claim_id
         where (v.verdicts, v.yes) is distinct from (1::bigint, true)""",
    "the versions of a chunk are 1, 2, ... without gaps": """
        select m.datasetid, m.dataid, array_agg(m.version order by m.version) as versions
          from dataflow.data_manifest m
         group by m.datasetid, m.dataid
        having min(m.version) <> 1 or max(m.version) <> count(*)""",
    "a claim publishes each output once": """
        select m.datasetid, m.claim_id, array_agg(m.dataid || ' version ' || m.version) as published
          from dataflow.data_manifest m where m.claim_id is not null
         group by m.datasetid, m.claim_id having count(*) > 1""",
    "a claim that has published is over": """
        select m.datasetid, m.dataid, m.version, s.status, s.claim_id
          from dataflow.data_manifest m
          join dataflow.datastatus s on s.datasetid = m.datasetid and s.dataid = m.dataid and s.claim_id = m.claim_id
         where s.locktype = 'OUT'""",
    "a row has the status of its last event": """
        select datasetid, jobid, dataid, s.locktype, s.status, e.locktype as event_locktype, e.new_status
          from dataflow.datastatus s
          full join (select distinct on (datasetid, jobid, dataid) datasetid, jobid, dataid, new_status, locktype
                       from dataflow.chunk_event order by datasetid, jobid, dataid, event_id desc) e
               using (datasetid, jobid, dataid)
         where s.status is distinct from e.new_status
            or s.locktype is not null and s.locktype is distinct from e.locktype""",
    "every event starts from the status of the previous one": """
        select e.*
          from (select event_id, datasetid, jobid, dataid, old_status, new_status,
                       lag(new_status) over (partition by datasetid, jobid, dataid order by event_id) as before
                  from dataflow.chunk_event) e
         where e.old_status is distinct from e.before""",
}

_ALL: Final = "\nunion all\n".join(
    f"(select '{rule}' as rule, to_jsonb(v) as broken_by from ({query}) v limit 5)" for rule, query in _RULES.items()
)


#: Includes the answers, except for INVALID_PATH, which only a look at the files gives.
_RUNNABLE: Final = """
    select r.jobid, r.dataid, r.resubmit, r.sort_key, nullif(r.blocked, 'INVALID_PATH'),
           (select string_agg(i::text, ', ' order by i) from jsonb_array_elements(r.inputs) i)
      from dataflow.runnable r"""
#: Any cause will do that makes the chunk stale in the same way.
_STALE: Final = "select datasetid, dataid, manifest_id, is_direct from dataflow.stale"
_TURNS: Final = "select jobid, dataid, is_running, sort_key from dataflow.turn"


#: The derived tables, made from nothing.
_REBUILD: Final = """
    with job as materialized (
        select j.jobid, dataflow.chunks_after(j.jobid, '', 1000000) as dataids
          from (select distinct jobid from dataflow.job) j
    ), gone as (
        delete from dataflow.runnable returning jobid
    ), passed as (
        delete from dataflow.turn returning jobid
    )
    select jobid, dataids from job where (select count(*) from gone) >= 0"""


def assert_invariants(connection: psycopg.Connection[Any]) -> None:
    """Changes no more than heal may. Waits for open changes of a status and blocks new ones."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        broken = cursor.execute(_ALL.encode()).fetchall()
        assert not broken, "\n".join(f"broken: {rule}: {row}" for rule, row in broken)
        cursor.execute("select dataflow.settle(null, 1000000, array['', ''])")
        with connection.transaction(force_rollback=True):
            cursor.execute("lock table dataflow.datastatus in share row exclusive mode")
            stale = set(cursor.execute(_STALE).fetchall())
            for keep_causes in (True, False):
                if not keep_causes:
                    cursor.execute("delete from dataflow.stale")
                cursor.execute(
                    "select dataflow.rebuild_stale(j.jobid, '', 1000000) "
                    "from (select distinct jobid from dataflow.job) j"
                )
                new_stale = set(cursor.execute(_STALE).fetchall())
                assert stale == new_stale, (
                    f"the stale chunks are {_some(stale - new_stale)}, but a rebuild gives {_some(new_stale - stale)}"
                )
            kept, turns = (set(cursor.execute(query).fetchall()) for query in (_RUNNABLE, _TURNS))
            for jobid, dataids in cursor.execute(_REBUILD).fetchall():
                cursor.execute("select dataflow.rebuild_turns(%s)", (jobid,))
                cursor.execute("select dataflow.evaluate_again(%s, %s)", (jobid, dataids))
            made, new_turns = (set(cursor.execute(query).fetchall()) for query in (_RUNNABLE, _TURNS))
    assert kept == made, f"the runnable set has {_some(kept - made)}, but a rebuild gives {_some(made - kept)}"
    assert turns == new_turns, (
        f"the turns are {_some(turns - new_turns)}, but a rebuild gives {_some(new_turns - turns)}"
    )


def _some(rows: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)[:5]


#: The rows of each table, without timestamps.
Snapshot: TypeAlias = dict[str, list[str]]

_TIMES: Final = frozenset(
    {"modified", "lease_until", "since", "at", "asked", "published", "started", "ended", "applied"}
)


def snapshot(connection: psycopg.Connection[Any]) -> Snapshot:
    return {
        table: sorted(
            str(row) for row in connection.execute(f"select {', '.join(columns)} from dataflow.{table}".encode())
        )
        for table, columns in _columns(connection, _TIMES)
    }


@dataclass(frozen=True)
class Kept:
    """A copy of the state in other tables. Restoring it is faster than building it again."""

    connection: psycopg.Connection[Any]
    tables: Sequence[tuple[str, str]]
    sequences: Sequence[tuple[str, int]]

    @classmethod
    def of(cls, connection: psycopg.Connection[Any]) -> Kept:
        tables = [(table, ", ".join(columns)) for table, columns in _columns(connection)]
        connection.execute("drop schema if exists kept cascade; create schema kept")
        for table, columns in tables:
            connection.execute(f"create table kept.{table} as select {columns} from dataflow.{table}".encode())
        found = connection.execute(
            "select format('%I.%I', schemaname, sequencename), last_value from pg_sequences "
            "where schemaname = 'dataflow' and last_value is not null"
        )
        return cls(connection, tables, found.fetchall())

    def put_back(self) -> None:
        """Restore the copy without firing triggers."""
        with self.connection.transaction():
            self.connection.execute("set local session_replication_role = replica")
            for table, columns in self.tables:
                self.connection.execute(f"delete from dataflow.{table}".encode())
                self.connection.execute(
                    f"insert into dataflow.{table} ({columns}) overriding system value table kept.{table}".encode()
                )
            for sequence, last_value in self.sequences:
                self.connection.execute("select setval(%s, %s)", (sequence, last_value))


def _columns(connection: psycopg.Connection[Any], but: frozenset[str] = frozenset()) -> list[tuple[str, list[str]]]:
    """The columns of each ledger table, without generated ones."""
    found = connection.execute(
        "select c.relname, array_agg(a.attname::text order by a.attnum) from pg_class c "
        "join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' "
        "where c.relnamespace = 'dataflow'::regnamespace and c.relkind = 'r' group by 1 order by 1"
    )
    return [(table, [column for column in columns if column not in but]) for table, columns in found]
