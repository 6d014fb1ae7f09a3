"""How fast chunks are claimed and published, beside the barest claim that Postgres can do.

    python bench/claims.py            10 thousand, 100 thousand and 1 million chunks; about five minutes
    python bench/claims.py --quick    up to 100 thousand; under a minute

The last line is one JSON object; everything before it is for people.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from measure import Crew, Round, Work, median_milliseconds, median_rate, median_ratio

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger, in_database
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.gate import runnable
from opendataflow_dagster.protocol.register import register

BATCH = 100
#: Figures in the JSON that depend on the number of claimers are those of so many.
CLAIMERS_IN_JSON = 4

TARGETS = {
    "single_per_s": (">=", 1_000.0),
    "batched_per_s": (">=", 20_000.0),
    "single_over_bare": ("<=", 2.0),
    "batched_over_bare": ("<=", 4.0),
    "growth_1m_over_10k": ("<=", 1.3),
    "publish_per_s": (">=", 20_000.0),
}

# In portions, as an ingestion would: each goes through the triggers, which write the history and the runnable set.
_PORTION = 100_000
_ADD_MANIFESTS = """
insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, row_count, content_digest, checks)
select 'raw', c.dataid, 1, 'ingest', '/warehouse/raw/' || c.dataid, 1000, md5(c.dataid),
       '[{"name": "rows", "passed": true, "detail": "1000"}]'
  from (select to_char(i, 'FM0000000') as dataid from generate_series(%(first)s::int, %(last)s) as i) c
"""
_ADD_CHUNKS = """
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)
select m.datasetid, m.jobid, m.dataid, 'OUT', 'READY', m.manifest_id
  from dataflow.data_manifest m
 where m.datasetid = 'raw'
   and m.dataid between to_char(%(first)s::int, 'FM0000000') and to_char(%(last)s::int, 'FM0000000')
"""
_ADD_BARE = """
create schema bare;
create sequence bare.claim_id;
create table bare.chunk (
    datasetid text collate "C" not null, jobid text collate "C" not null, dataid text collate "C" not null,
    status text not null, claim_id bigint, lease_until timestamptz, attempt integer not null default 0,
    primary key (datasetid, jobid, dataid))
with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);  -- as our runnable set
create index chunk_ready on bare.chunk (jobid, dataid) where status = 'READY';
"""
_FILL_BARE = """
insert into bare.chunk (datasetid, jobid, dataid, status)
select 'tidy', 'clean', to_char(i, 'FM0000000'), 'READY' from generate_series(1, %(size)s::int) as i
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    sizes: tuple[int, ...]
    claimers: tuple[int, ...]
    publishers: tuple[int, ...]
    rounds: int
    #: Calls in a round, of all claimers together.
    singles: int
    batches: int
    publications: int
    looks: int

    def calls(self, batch: int, crew: Crew) -> int:
        """Of each process in a round."""
        return (self.singles if batch == 1 else self.batches) // crew.size


FULL = Scale(
    sizes=(10_000, 100_000, 1_000_000),
    claimers=(1, 4, 16),
    publishers=(1, 4),
    rounds=15,
    singles=320,
    batches=32,
    publications=96,
    looks=200,
)
QUICK = Scale(
    sizes=(10_000, 100_000),
    claimers=(1, 4),
    publishers=(1, 4),
    rounds=5,
    singles=100,
    batches=12,
    publications=32,
    looks=50,
)
SMOKE = Scale(
    sizes=(1_000, 2_000),
    claimers=(1, 4),
    publishers=(1,),
    rounds=1,
    singles=8,
    batches=4,
    publications=4,
    looks=3,
)


class Ground:
    """A database with so many runnable chunks of `clean`, and as many bare ones. When they run low, it is made anew."""

    _names = itertools.count(1)

    def __init__(self, server: str, size: int) -> None:
        self.size = size
        self._server = server
        self._name = ""
        self._left = 0
        self.url = ""

    def make(self) -> None:
        with psycopg.connect(self._server, autocommit=True) as admin:
            if self._name:
                admin.execute(f"drop database {self._name} with (force)".encode())
            self._name = f"bench_{self.size}_{next(self._names)}"
            admin.execute(f"create database {self._name}".encode())
        self.url = in_database(self._server, self._name)
        with Ledger(self.url) as ledger:
            schema.install(ledger)
            datasets = [_dataset(name) for name in ("raw", "tidy", "summary")]
            register(ledger, datasets, [_job("clean", "raw", "tidy"), _job("report", "tidy", "summary")])
        with psycopg.connect(self.url, autocommit=True) as connection:
            for first in range(1, self.size + 1, _PORTION):
                portion = {"first": first, "last": min(first + _PORTION - 1, self.size)}
                connection.execute(_ADD_MANIFESTS.encode(), portion)
                connection.execute(_ADD_CHUNKS.encode(), portion)
            connection.execute(_ADD_BARE.encode())
            connection.execute(_FILL_BARE, {"size": self.size})
        self.tidy_up()
        self._left = self.size

    def tidy_up(self) -> None:
        """What the server would do by itself, but in the middle of a round."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("vacuum (analyze)")
            connection.execute("checkpoint")

    def spend(self, crew: Crew, batch: int, calls: int) -> None:
        """The chunks of a round; one call more of each process, which warms it up."""
        chunks = crew.size * (calls + 1) * batch
        if self._left < chunks:
            self.make()
        self._left -= chunks


def _dataset(name: str) -> Dataset:
    return Dataset(datasetid=DatasetId(name), location=f"/warehouse/{name}")


def _job(name: str, source: str, target: str) -> Job:
    return Job(jobid=JobId(name), inputs=(Input(datasetid=DatasetId(source)),), outputs=(DatasetId(target),))


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    claimers: int
    ours: float
    bare: float
    #: Time for a chunk, ours over bare.
    ratio: float


def main() -> None:
    options = argparse.ArgumentParser(description="Measure claim and publish on an embedded Postgres of their own.")
    options.add_argument("--quick", action="store_true", help="up to 100 thousand chunks; under a minute")
    options.add_argument("--smoke", action="store_true", help="a thousand chunks, only to see that it works; seconds")
    chosen = options.parse_args()
    scale = SMOKE if chosen.smoke else QUICK if chosen.quick else FULL
    began = time.monotonic()
    with _server() as url:
        figures = measure(url, scale)
    if not chosen.smoke:
        report_targets(figures)
    print(f"\n{time.monotonic() - began:.0f} seconds in all")
    note = "" if scale is FULL else f"growth is {scale.sizes[-1]:,} over {scale.sizes[0]:,} chunks"
    print(json.dumps({**figures, **({"note": note} if note else {})}))


def measure(server: str, scale: Scale) -> dict[str, float]:
    crews = {size: Crew(size) for size in sorted({*scale.claimers, *scale.publishers})}
    grounds = [Ground(server, size) for size in scale.sizes]
    for ground in grounds:
        begin = time.monotonic()
        ground.make()
        print(f"{ground.size:>9,} chunks loaded through the triggers in {time.monotonic() - begin:.1f} s")
    small, large = grounds[0], grounds[-1]

    _line("\nNothing to do (ms)", "claim_next", "runnable")
    look(large, "report", scale, "nothing was ever runnable")

    _line("\nGrowth: time for a chunk", f"{large.size:,}", f"{small.size:,}", "ratio")
    growth = [grow(crews[1], small, large, batch, scale) for batch in (1, BATCH)]

    _line("\nClaims (chunks/s)", "ours", "bare", "time")
    for ground in grounds:
        single, batched = (
            [compare(crews[one], ground, batch, scale) for one in scale.claimers] for batch in (1, BATCH)
        )
    worst = f"one at a time {max(one.ratio for one in single):.2f}, in batches {max(one.ratio for one in batched):.2f}"
    print(f"Worst ratio at {large.size:,} chunks: {worst}. The JSON has the ratios of {CLAIMERS_IN_JSON} claimers.")

    _line(f"\nPublish in batches of {BATCH}, no files (chunks/s)", "with consumer", "at the end")
    large.tidy_up()
    published = [publish(crews[publishers], large, scale) for publishers in scale.publishers]

    _line("\nNothing to do (ms)", "claim_next", "runnable")
    take_all(large)
    look(large, "clean", scale, "every chunk is taken")
    return {
        "single_per_s": round(max(one.ours for one in single)),
        "batched_per_s": round(max(one.ours for one in batched)),
        "single_over_bare": _in_json(single),
        "batched_over_bare": _in_json(batched),
        "growth_1m_over_10k": round(max(growth), 2),
        "publish_per_s": round(max(with_consumer for with_consumer, _ in published)),
        "publish_at_the_end_per_s": round(max(at_the_end for _, at_the_end in published)),
    }


def compare(crew: Crew, ground: Ground, batch: int, scale: Scale) -> Comparison:
    ours: list[Round] = []
    bare: list[Round] = []
    calls = scale.calls(batch, crew)
    for _ in range(scale.rounds):
        ground.spend(crew, batch, calls)
        ours.append(crew.do(Work(kind="claim", url=ground.url, batch=batch, calls=calls)))
        bare.append(crew.do(Work(kind="bare", url=ground.url, batch=batch, calls=calls)))
    ratio = median_ratio(ours, bare)
    found = Comparison(claimers=crew.size, ours=median_rate(ours), bare=median_rate(bare), ratio=ratio)
    how = "one at a time" if batch == 1 else f"in batches of {batch}"
    what = f"{ground.size:>9,} chunks, {how}, {crew.size} claimers"
    _line(what, f"{found.ours:,.0f}", f"{found.bare:,.0f}", f"{found.ratio:.2f}")
    return found


def grow(crew: Crew, small: Ground, large: Ground, batch: int, scale: Scale) -> float:
    at_large: list[Round] = []
    at_small: list[Round] = []
    calls = scale.calls(batch, crew)
    for _ in range(scale.rounds):
        for ground, rounds in ((large, at_large), (small, at_small)):
            ground.spend(crew, batch, calls)
            rounds.append(crew.do(Work(kind="claim", url=ground.url, batch=batch, calls=calls)))
            # What was claimed lies dead at the head of a queue until it is vacuumed; the bare one shall be worn alike.
            crew.do(Work(kind="bare", url=ground.url, batch=batch, calls=calls))
    ratio = median_ratio(at_large, at_small)
    times = (f"{1e6 / median_rate(rounds):,.0f} us" for rounds in (at_large, at_small))
    _line(f"claims of {batch}, {crew.size} claimer", *times, f"{ratio:.2f}")
    return ratio


def publish(crew: Crew, ground: Ground, scale: Scale) -> tuple[float, float]:
    """First versions: with a consumer, which whoever publishes a chunk makes runnable, with its answers; and at the end
    of the line, where nobody consumes. The chunks of the first go on to the second."""
    with_consumer: list[Round] = []
    at_the_end: list[Round] = []
    calls = scale.publications // crew.size
    for _ in range(scale.rounds):
        ground.spend(crew, BATCH, calls)
        for jobid, rounds in (("clean", with_consumer), ("report", at_the_end)):
            rounds.append(crew.do(Work(kind="publish", url=ground.url, batch=BATCH, calls=calls, jobid=jobid)))
    rates = median_rate(with_consumer), median_rate(at_the_end)
    _line(f"{ground.size:>9,} chunks, {crew.size} publishers", *(f"{rate:,.0f}" for rate in rates))
    return rates


def look(ground: Ground, jobid: str, scale: Scale, why: str) -> None:
    with Ledger(ground.url) as ledger:
        assert claim_next(ledger, jobid) == []
        claiming = median_milliseconds(lambda: claim_next(ledger, jobid), scale.looks)
        asking = median_milliseconds(lambda: runnable(ledger, jobid, BATCH), scale.looks)
    _line(f"{ground.size:>9,} chunks, {why}", f"{claiming:.2f}", f"{asking:.2f}")


def take_all(ground: Ground) -> None:
    """Leave nothing runnable, as when every chunk is claimed, without waiting for that."""
    with psycopg.connect(ground.url, autocommit=True) as connection:
        connection.execute("delete from dataflow.runnable where jobid = 'clean'")
        connection.execute("vacuum (analyze) dataflow.runnable")


def report_targets(figures: dict[str, float]) -> None:
    print("\nTargets")
    for name, (sign, target) in TARGETS.items():
        met = figures[name] >= target if sign == ">=" else figures[name] <= target
        print(f"  {'met   ' if met else 'MISSED'}  {name} = {figures[name]:,} ({sign} {target:,})")


def _in_json(compared: list[Comparison]) -> float:
    (ratio,) = (one.ratio for one in compared if one.claimers == CLAIMERS_IN_JSON)
    return round(ratio, 2)


def _line(what: str, *figures: str) -> None:
    print(f"{what:<62}" + "".join(f"{one:>13}" for one in figures), flush=True)


@contextmanager
def _server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as home:
        embedded = EmbeddedPostgres(Path(home))
        try:
            yield embedded.start()
        finally:
            embedded.stop()


if __name__ == "__main__":
    main()
