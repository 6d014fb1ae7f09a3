"""What a run pays for its chunks in the ledger, beside the same rows in plain SQL.

    python bench/claims.py            10 thousand, 100 thousand and 1 million chunks; about five minutes
    python bench/claims.py --quick    up to 100 thousand; about a minute

The path is the one that every run takes: request, claim by name, publish, with files in the manifests and a consumer
that becomes runnable. The baseline writes the same rows (statuses, history, verdicts, the queue, manifests) and commits
as often, but asks and checks nothing. The last line is one JSON object; everything before it is for people.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import plain
import psycopg
from measure import CLEAN, FILE, FOLDERS, Crew, Kind, Round, Work, median_milliseconds, median_rate, median_ratio

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger, in_database
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.register import register

BATCH = 100
PROCESSES = 4
TARGETS = {"path_single_over_bare": 3.0, "path_batched_over_bare": 4.0, "growth_1m_over_10k": 1.3}
REPORT = Job(jobid=JobId("report"), inputs=(Input(datasetid=DatasetId("tidy")),), outputs=(DatasetId("summary"),))

# In portions, as an ingestion would: each goes through the triggers, which write the history and the runnable set.
_PORTION = 100_000
_ADD_MANIFESTS = """
insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, files, bytes, row_count,
                                    content_digest, checks)
select 'raw', to_char(i, 'FM0000000'), 1, 'ingest', %(root)s || '/raw/' || i %% %(folders)s,
       jsonb_build_array(jsonb_build_object('path', %(path)s::text, 'size', %(size)s::int, 'digest', null)),
       %(size)s, 1000, md5(i::text), '[{"name": "rows", "passed": true, "detail": "1000"}]'
  from generate_series(%(first)s::int, %(last)s) as i
"""
_ADD_CHUNKS = """
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)
select m.datasetid, m.jobid, m.dataid, 'OUT', 'READY', m.manifest_id
  from dataflow.data_manifest m
 where m.datasetid = 'raw'
   and m.dataid between to_char(%(first)s::int, 'FM0000000') and to_char(%(last)s::int, 'FM0000000')
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    sizes: tuple[int, ...]
    rounds: int
    #: Calls in a round, of all processes together.
    singles: int
    batches: int
    looks: int


FULL = Scale(sizes=(10_000, 100_000, 1_000_000), rounds=11, singles=320, batches=32, looks=200)
QUICK = Scale(sizes=(10_000, 100_000), rounds=5, singles=160, batches=16, looks=50)
SMOKE = Scale(sizes=(3_000, 4_000), rounds=1, singles=8, batches=4, looks=3)


class Ground:
    """A database with so many chunks to make, and as many bare ones. When they run low, it is made again."""

    _names = itertools.count(1)

    def __init__(self, server: str, root: str, size: int) -> None:
        self.size = size
        self.url = ""
        self._server = server
        self._root = root
        self._name = ""
        self._named: dict[str, int] = {}
        self._left: dict[str, int] = {}

    def make(self) -> None:
        with psycopg.connect(self._server, autocommit=True) as admin:
            if self._name:
                admin.execute(f"drop database {self._name} with (force)".encode())
            self._name = f"bench_{self.size}_{next(self._names)}"
            admin.execute(f"create database {self._name}".encode())
        self.url = in_database(self._server, self._name)
        with Ledger(self.url) as ledger:
            schema.install(ledger)
            names = ("raw", "tidy", "summary")
            datasets = [Dataset(datasetid=DatasetId(name), location=f"{self._root}/{name}") for name in names]
            register(ledger, datasets, [CLEAN, REPORT])
        with psycopg.connect(self.url, autocommit=True) as connection:
            for first in range(1, self.size + 1, _PORTION):
                portion = {"first": first, "last": min(first + _PORTION - 1, self.size)}
                files = {"root": self._root, "folders": FOLDERS, "path": FILE.path, "size": FILE.size}
                connection.execute(_ADD_MANIFESTS.encode(), {**portion, **files})
                connection.execute(_ADD_CHUNKS.encode(), portion)
            plain.add(connection)
            # What the server would do by itself, but in the middle of a round.
            connection.execute("vacuum (analyze)")
            connection.execute("checkpoint")
        self._named = dict.fromkeys(("path", "bare"), self.size + 1)
        self._left = dict.fromkeys(("path", "bare"), self.size)

    def works(self, kind: Kind, crew: Crew, batch: int, calls: int) -> list[Work]:
        """A work for each process, over chunks of its own; one call more of each, which warms it up."""
        chunks = (calls + 1) * batch
        side = "bare" if kind in ("bare", "bare_next") else "path"
        if self._left[side] < 2 * crew.size * chunks:
            self.make()
        works = []
        for _ in range(crew.size):
            # What is claimed by name comes from the end, what is claimed next from the beginning.
            if kind in ("path", "bare"):
                self._named[side] -= chunks
            self._left[side] -= chunks
            works.append(
                Work(kind=kind, url=self.url, root=self._root, batch=batch, calls=calls, first=self._named[side])
            )
        return works


def main() -> None:
    options = argparse.ArgumentParser(description="Measure the path of chunks on an embedded Postgres of its own.")
    options.add_argument("--quick", action="store_true", help="up to 100 thousand chunks; about a minute")
    options.add_argument(
        "--smoke", action="store_true", help="some thousand chunks, only to see that it works; seconds"
    )
    chosen = options.parse_args()
    scale = SMOKE if chosen.smoke else QUICK if chosen.quick else FULL
    began = time.monotonic()
    with _server() as (url, root):
        figures = measure(url, root, scale)
    if not chosen.smoke:
        print("\nTargets")
        for name, target in TARGETS.items():
            met = figures[name] <= target
            print(f"  {'met   ' if met else 'MISSED'}  {name} = {figures[name]:,} (at most {target:,})")
    print(f"\n{time.monotonic() - began:.0f} seconds in all")
    note = "" if scale is FULL else f"growth is {scale.sizes[-1]:,} over {scale.sizes[0]:,} chunks"
    print(json.dumps({**figures, **({"note": note} if note else {})}))


def measure(server: str, root: str, scale: Scale) -> dict[str, float]:
    crew = Crew(PROCESSES)
    grounds = [Ground(server, root, size) for size in scale.sizes]
    for ground in grounds:
        begin = time.monotonic()
        ground.make()
        print(f"{ground.size:>9,} chunks loaded through the triggers in {time.monotonic() - begin:.1f} s")
    small, large = grounds[0], grounds[-1]

    _line("\nNothing to do (ms)", "claim_next")
    with Ledger(large.url) as ledger:
        idle = median_milliseconds(lambda: claim_next(ledger, "report"), scale.looks)
    _line(f"{large.size:>9,} chunks, none of them for this job", f"{idle:.2f}")

    figures: dict[str, float] = {}
    comparisons: tuple[tuple[str, Kind, Kind], ...] = (
        ("Request, claim, publish", "path", "bare"),
        ("claim_next", "next", "bare_next"),
    )
    for title, ours, bare in comparisons:
        _line(f"\n{title} (chunks/s, {PROCESSES} processes)", "ours", "bare", "time")
        for ground in grounds:
            for batch, how in ((1, "single"), (BATCH, "batched")):
                own, other = _alternate(crew, scale, batch, ((ground, ours), (ground, bare)))
                ratio = median_ratio(own, other)
                what = f"{ground.size:>9,} chunks, {'one at a time' if batch == 1 else f'in batches of {batch}'}"
                _line(what, f"{median_rate(own):,.0f}", f"{median_rate(other):,.0f}", f"{ratio:.2f}")
                figures[f"{ours}_{how}_over_bare"] = round(ratio, 2)
                figures[f"{ours}_{how}_per_s"] = round(median_rate(own))

    _line("\nGrowth: time for a chunk (us)", f"{large.size:,}", f"{small.size:,}", "ratio")
    growth = []
    for batch in (1, BATCH):
        at_large, at_small = _alternate(crew, scale, batch, ((large, "path"), (small, "path")))
        growth.append(median_ratio(at_large, at_small))
        times = (f"{1e6 / median_rate(rounds):,.0f}" for rounds in (at_large, at_small))
        _line(f"in batches of {batch}", *times, f"{growth[-1]:.2f}")
    return {**figures, "growth_1m_over_10k": round(max(growth), 2), "nothing_to_do_ms": round(idle, 2)}


def _alternate(
    crew: Crew, scale: Scale, batch: int, sides: Sequence[tuple[Ground, Kind]]
) -> tuple[list[Round], list[Round]]:
    """Rounds of both sides in turn."""
    calls = (scale.singles if batch == 1 else scale.batches) // crew.size
    rounds: tuple[list[Round], list[Round]] = ([], [])
    for _ in range(scale.rounds):
        for (ground, kind), measured in zip(sides, rounds, strict=True):
            measured.append(crew.do(ground.works(kind, crew, batch, calls)))
    return rounds


def _line(what: str, *figures: str) -> None:
    print(f"{what:<62}" + "".join(f"{figure:>13}" for figure in figures), flush=True)


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """A server, and a root with the files of the chunks."""
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as home:
        for number in range(FOLDERS):
            for name in ("raw", "tidy"):
                folder = Path(home, "warehouse", name, str(number))
                folder.mkdir(parents=True)
                (folder / FILE.path).write_bytes(b"x" * FILE.size)
        embedded = EmbeddedPostgres(Path(home, "odf"))
        try:
            yield embedded.start(), str(Path(home, "warehouse"))
        finally:
            embedded.stop()


if __name__ == "__main__":
    main()
