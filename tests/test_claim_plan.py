"""What a claim and a publication read does not grow with the ledger.

Postgres counts what is read of each table and index, also beneath functions and triggers, where EXPLAIN cannot look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from opendataflow_dagster.ledger import claims
from opendataflow_dagster.ledger.database import Connection, Ledger, Transaction, in_database
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.manifest import NewManifest
from tests.factories import Flow

#: What the planner knows: nothing; all; or it planned for a ledger with ten chunks, and nobody told it of the others.
Statistics: TypeAlias = Literal["missing", "fresh", "outgrown"]

_ROOT = Path("/warehouse")
_LARGE_TABLES = {"datastatus", "data_manifest", "runnable", "verdict", "chunk_event"}

_LOAD = """
with made as (
    insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, content_digest)
    select 'raw', c.dataid, 1, 'ingest', %(root)s || '/raw/' || c.dataid, md5(c.dataid)
      from (select to_char(i, 'FM0000000') as dataid from generate_series(%(first)s::int, %(last)s) as i) c
    returning datasetid, jobid, dataid, manifest_id
)
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)
select m.datasetid, m.jobid, m.dataid, 'OUT', 'READY', m.manifest_id from made m
"""

_COUNTS = """
select c.relname as name, c.relkind = 'r' as is_table,
       pg_stat_get_xact_numscans(c.oid) as scans, pg_stat_get_xact_blocks_fetched(c.oid) as blocks
  from pg_class c
 where c.relnamespace = 'dataflow'::regnamespace and c.relkind in ('r', 'i')
"""


@dataclass(frozen=True, kw_only=True)
class Reads:
    from_end_to_end: set[str]
    through: set[str]
    blocks: int


@dataclass(frozen=True, kw_only=True)
class Session:
    """One connection as the ledger's are: it plans each statement once."""

    connection: Connection

    def claim(self, count: int) -> tuple[list[Claim], Reads]:
        with self.connection.transaction():
            before = self._counts()
            taken, refused = claims.take_next(Transaction(self.connection), JobId("clean"), count, None)
            reads = self._since(before)
        assert (len(taken), refused) == (count, [])
        return [one.claim for one in taken], reads

    def publish(self, taken: list[Claim]) -> Reads:
        made = [(one, {DatasetId("tidy"): _manifest(one)}) for one in taken]
        with self.connection.transaction():
            before = self._counts()
            published = claims.publish(Transaction(self.connection), made)
            reads = self._since(before)
        assert [one.version for one in published] == [1] * len(taken)
        return reads

    def claim_and_publish(self, count: int) -> None:
        """Nothing is measured: it plans."""
        taken, _ = self.claim(count)
        self.publish(taken)

    def see(self, running: int) -> Seen:
        """With so many chunks running beside."""
        for _ in range(0, running, 100):
            self.claim(100)
        first, one = self.claim(1)
        others, hundred = self.claim(100)
        return Seen(one=one, hundred=hundred, publication=self.publish([*first, *others]))

    def _counts(self) -> dict[tuple[str, bool], tuple[int, int]]:
        found = self.connection.execute(_COUNTS)
        return {(row["name"], row["is_table"]): (row["scans"], row["blocks"]) for row in found}

    def _since(self, before: dict[tuple[str, bool], tuple[int, int]]) -> Reads:
        after = self._counts()
        scanned = {key for key, (scans, _) in after.items() if scans > before[key][0]}
        return Reads(
            from_end_to_end={name for name, is_table in scanned if is_table},
            through={name for name, is_table in scanned if not is_table},
            blocks=sum(blocks - before[key][1] for key, (_, blocks) in after.items()),
        )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Of a claim of one, a claim of a hundred, and their publication."""

    one: Reads
    hundred: Reads
    publication: Reads


@dataclass(frozen=True, kw_only=True)
class Growth:
    small: Seen
    large: Seen


@pytest.fixture(scope="module", params=["missing", "fresh", "outgrown"])
def growth(request: pytest.FixtureRequest, server: str, template: str) -> Iterator[Growth]:
    statistics: Statistics = request.param
    with _database(server, template, f"odf_plan_{statistics}") as url:
        yield _grow(url, statistics)


def test_a_claim_reads_the_large_tables_through_indexes_whatever_the_planner_knows(growth: Growth) -> None:
    for reads in (growth.large.one, growth.large.hundred):
        assert not reads.from_end_to_end & _LARGE_TABLES
        assert "runnable_in_order" in reads.through


def test_a_publication_reads_the_large_tables_through_indexes_whatever_the_planner_knows(growth: Growth) -> None:
    assert not growth.large.publication.from_end_to_end & _LARGE_TABLES
    assert "datastatus_pkey" in growth.large.publication.through


def test_a_claim_reads_as_much_of_a_large_ledger_as_of_a_small_one(growth: Growth) -> None:
    assert growth.large.one.blocks <= 1.5 * growth.small.one.blocks
    assert growth.large.hundred.blocks <= 1.5 * growth.small.hundred.blocks


def test_a_publication_reads_as_much_of_a_large_ledger_as_of_a_small_one(growth: Growth) -> None:
    assert growth.large.publication.blocks <= 1.5 * growth.small.publication.blocks


def _grow(url: str, statistics: Statistics) -> Growth:
    with Ledger(url) as ledger, psycopg.connect(url, autocommit=True) as psql:
        Flow(ledger=ledger, url=url, psql=psql, root=_ROOT).register("clean: raw -> tidy", "report: tidy -> summary")
        for table in _LARGE_TABLES:  # the server must not gather statistics behind our back
            psql.execute(f"alter table dataflow.{table} set (autovacuum_enabled = off)".encode())
        _load(psql, 1, 10)
        with _session(url) as early:
            early.claim_and_publish(1)
            _load(psql, 11, 1_000)
            small = _see(url, psql, early, statistics, running=100)
            _load(psql, 1_001, 50_000)
            return Growth(small=small, large=_see(url, psql, early, statistics, running=1_500))


def _see(url: str, psql: psycopg.Connection, early: Session, statistics: Statistics, running: int) -> Seen:
    if statistics == "outgrown":
        return early.see(running)
    if statistics == "fresh":
        psql.execute("analyze")
    with _session(url) as session:
        session.claim_and_publish(1)
        return session.see(running)


def _load(psql: psycopg.Connection, first: int, last: int) -> None:
    psql.execute(_LOAD.encode(), {"root": str(_ROOT), "first": first, "last": last})


@contextmanager
def _session(url: str) -> Iterator[Session]:
    with psycopg.Connection[DictRow].connect(url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("set plan_cache_mode = force_generic_plan")
        yield Session(connection=connection)


@contextmanager
def _database(server: str, template: str, name: str) -> Iterator[str]:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'create database "{name}" template "{template}"'.encode())
        try:
            yield in_database(server, name)
        finally:
            admin.execute(f'drop database "{name}" with (force)'.encode())


def _manifest(claim: Claim) -> NewManifest:
    location = f"{_ROOT}/tidy/{claim.dataid}/{claim.claim_id}"
    return NewManifest(location=location, row_count=1, content_digest=f"tidy of claim {claim.claim_id}")
