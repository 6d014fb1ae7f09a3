"""Request, claim and publish read no more of a large ledger than of a small one, whatever the planner's statistics.

Postgres counts reads of each table and index, also inside functions and triggers, which EXPLAIN does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import psycopg
import pytest

from opendataflow_dagster.ledger.database import Ledger, in_database
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.job import Job
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim_many, claim_next
from opendataflow_dagster.protocol.publish import StagedClaim, publish_many
from opendataflow_dagster.protocol.request import request
from tests.factories import Flow

#: The planner's statistics: none; current; or from when there were ten chunks.
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

#: How many chunks were claimed just before. Their entries lie dead at the head of the queue until they are vacuumed,
#: and the next claim passes over them, fifty and more on a page.
_FEW, _MANY = 100, 1_500
_PASSED_OVER = _MANY // 50

#: Measured: 98 to 118.
_BLOCKS_PER_PUBLICATION = 125

_FLUSH = b"select pg_stat_force_next_flush()"
_COUNTS = """
select c.relname, c.relkind = 'r', pg_stat_get_numscans(c.oid), pg_stat_get_blocks_fetched(c.oid)
  from pg_class c
 where c.relnamespace = 'dataflow'::regnamespace and c.relkind in ('r', 'i')
"""


@dataclass(frozen=True, kw_only=True)
class Reads:
    from_end_to_end: set[str]
    through: set[str]
    blocks: int


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The reads of a claim of one chunk, a claim of a hundred, and their publish; and of a hundred chunks by name."""

    single: Reads
    hundred: Reads
    publication: Reads
    request: Reads
    named: Reads


@dataclass(frozen=True, kw_only=True)
class Growth:
    small: Seen
    large: Seen


@pytest.fixture(
    scope="module",
    params=[*(pytest.param(name, marks=pytest.mark.slow) for name in ("missing", "fresh")), "outgrown"],
)
def growth(request: pytest.FixtureRequest, server: str, template: str) -> Iterator[Growth]:
    statistics: Statistics = request.param
    with _database(server, template, f"odf_plan_{statistics}") as url:
        yield _grow(url, statistics)


def test_a_claim_reads_the_large_tables_through_indexes_whatever_the_planner_knows(growth: Growth) -> None:
    for reads in (growth.large.single, growth.large.hundred):
        assert not reads.from_end_to_end & _LARGE_TABLES
        assert "runnable_in_order" in reads.through


def test_chunks_are_requested_and_claimed_by_name_through_indexes_whatever_the_planner_knows(growth: Growth) -> None:
    for reads in (growth.large.request, growth.large.named):
        assert not reads.from_end_to_end & _LARGE_TABLES
        assert "datastatus_pkey" in reads.through
    assert "runnable_pkey" in growth.large.named.through


def test_a_publication_reads_the_large_tables_through_indexes_whatever_the_planner_knows(growth: Growth) -> None:
    assert not growth.large.publication.from_end_to_end & _LARGE_TABLES
    assert "datastatus_pkey" in growth.large.publication.through


def test_a_publication_reads_a_fixed_number_of_blocks_for_each_chunk(growth: Growth) -> None:
    """With the questions of its consumer, which are asked once."""
    for seen in (growth.small, growth.large):
        assert seen.publication.blocks <= _BLOCKS_PER_PUBLICATION * 101


def test_a_claim_reads_as_much_of_a_large_ledger_as_of_a_small_one(growth: Growth) -> None:
    assert growth.large.single.blocks <= 1.5 * growth.small.single.blocks + _PASSED_OVER
    assert growth.large.hundred.blocks <= 1.5 * growth.small.hundred.blocks


def test_a_request_and_a_claim_by_name_read_as_much_of_a_large_ledger_as_of_a_small_one(growth: Growth) -> None:
    assert growth.large.request.blocks <= 1.5 * growth.small.request.blocks
    assert growth.large.named.blocks <= 1.5 * growth.small.named.blocks


def test_a_publication_reads_as_much_of_a_large_ledger_as_of_a_small_one(growth: Growth) -> None:
    assert growth.large.publication.blocks <= 1.5 * growth.small.publication.blocks


def _grow(url: str, statistics: Statistics) -> Growth:
    with psycopg.connect(url, autocommit=True) as psql, Ledger(url, connections=1) as ledger:
        flow = Flow(ledger=ledger, url=url, psql=psql, root=_ROOT)
        clean, _ = flow.register("clean: raw -> tidy", "report: tidy -> summary")
        for table in _LARGE_TABLES:  # the server must not gather statistics during the test
            psql.execute(f"alter table dataflow.{table} set (autovacuum_enabled = off)".encode())
        _load(psql, 1, 10)
        early = _Session(ledger=ledger, psql=psql, clean=clean)
        early.warm_up()
        _load(psql, 11, 1_000)
        small = _see(early, url, statistics, running=_FEW)
        _load(psql, 1_001, 50_000)
        return Growth(small=small, large=_see(early, url, statistics, running=_MANY))


def _see(early: _Session, url: str, statistics: Statistics, running: int) -> Seen:
    if statistics == "outgrown":
        return early.see(running)
    if statistics == "fresh":
        early.psql.execute("analyze")
    with Ledger(url, connections=1) as ledger:
        late = _Session(ledger=ledger, psql=early.psql, clean=early.clean)
        late.warm_up()
        return late.see(running)


@dataclass(frozen=True, kw_only=True)
class _Session:
    """A ledger with one connection, which plans each statement once."""

    ledger: Ledger
    psql: psycopg.Connection
    clean: Job

    def warm_up(self) -> None:
        _publish(self.ledger, claim_next(self.ledger, "clean"))
        dataids = self._last(1)
        self._request(dataids)
        self._claim(dataids)

    def see(self, running: int) -> Seen:
        """With this many other chunks running."""
        for _ in range(0, running, 100):
            claim_next(self.ledger, "clean", 100)
        first, second = self._see(), self._see()
        return Seen(
            single=_of_both(first.single, second.single),
            hundred=_of_both(first.hundred, second.hundred),
            publication=_of_both(first.publication, second.publication),
            request=_of_both(first.request, second.request),
            named=_of_both(first.named, second.named),
        )

    def _see(self) -> Seen:
        taken: list[Claim] = []
        dataids = self._last(100)
        return Seen(
            single=self._reads(lambda: taken.extend(claim_next(self.ledger, "clean"))),
            hundred=self._reads(lambda: taken.extend(claim_next(self.ledger, "clean", 100))),
            publication=self._reads(lambda: _publish(self.ledger, taken)),
            request=self._reads(lambda: self._request(dataids)),
            named=self._reads(lambda: self._claim(dataids)),
        )

    def _last(self, count: int) -> list[str]:
        """The end of the queue, which is furthest from where a scan in order starts."""
        last = "select dataid from dataflow.runnable where jobid = 'clean' order by dataid desc limit %s"
        return [dataid for (dataid,) in self.psql.execute(last, (count,))]

    def _request(self, dataids: list[str]) -> None:
        request(self.ledger, self.clean, dataids, by="ada", requested=datetime.now(UTC))

    def _claim(self, dataids: list[str]) -> None:
        assert len(claim_many(self.ledger, "clean", dataids).claims) == len(dataids)

    def _reads(self, act: Callable[[], None]) -> Reads:
        before = self._counts()
        act()
        after = self._counts()
        scanned = {key for key, (scans, _) in after.items() if scans > before[key][0]}
        return Reads(
            from_end_to_end={name for name, is_table in scanned if is_table},
            through={name for name, is_table in scanned if not is_table},
            blocks=sum(blocks - before[key][1] for key, (_, blocks) in after.items()),
        )

    def _counts(self) -> dict[tuple[str, bool], tuple[int, int]]:
        """The scans and block reads of each table and index."""
        with self.ledger.transaction() as transaction:
            transaction.run_text(_FLUSH)
        self.psql.execute(_FLUSH)
        return {(name, is_table): (scans, blocks) for name, is_table, scans, blocks in self.psql.execute(_COUNTS)}


def _of_both(first: Reads, second: Reads) -> Reads:
    """A statement reads the same each time; the rest is background work of the server."""
    return Reads(
        from_end_to_end=first.from_end_to_end & second.from_end_to_end,
        through=first.through & second.through,
        blocks=min(first.blocks, second.blocks),
    )


def _load(psql: psycopg.Connection, first: int, last: int) -> None:
    psql.execute(_LOAD.encode(), {"root": str(_ROOT), "first": first, "last": last})


def _publish(ledger: Ledger, taken: list[Claim]) -> None:
    staged = [StagedClaim(claim=claim, manifests=dict.fromkeys(claim.outputs, _manifest(claim))) for claim in taken]
    assert [version.version for version in publish_many(ledger, staged).versions] == [1] * len(taken)


def _manifest(claim: Claim) -> NewManifest:
    location = f"{_ROOT}/tidy/{claim.dataid}/{claim.claim_id}"
    return NewManifest(location=location, row_count=1, content_digest=f"tidy of claim {claim.claim_id}")


@contextmanager
def _database(server: str, template: str, name: str) -> Iterator[str]:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'create database "{name}" template "{template}"'.encode())
        try:
            yield in_database(server, name)
        finally:
            admin.execute(f'drop database "{name}" with (force)'.encode())
