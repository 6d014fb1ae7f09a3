"""What the marks of stale chunks cost: `odf stale` among a million chunks, and a publish with and without them.

    python bench/stale.py            a chain of four DataSets, a million chunks; some minutes
    python bench/stale.py --quick    100 thousand; under a minute

"Without" replaces the functions that keep the marks by ones that do nothing, in alternating rounds on the same ledger.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psycopg

from opendataflow_dagster.insight.stale import stale
from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.publish import StagedClaim, publish_many
from opendataflow_dagster.protocol.register import plan, register

TARGETS = {"stale_1m_s": 1.0, "publish_single_ratio": 1.2, "publish_batched_ratio": 1.2}
CHAIN = ("raw", "tidy", "sums", "pages")
#: One in so many source chunks has a second version, so that one in so many of all chunks is stale.
ONE_IN = 25

# As they would lie there, without the minutes that a million changes through the triggers take.
_LAYER = """
insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, row_count, inputs)
select '{name}', to_char(i, 'FM0000000'), 1, '{jobid}', '/lake/{name}/' || i, 1000, {inputs}
  from generate_series(1, {size}) as i {source};
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)
select m.datasetid, m.jobid, m.dataid, 'OUT', 'READY', m.manifest_id
  from dataflow.data_manifest m where m.datasetid = '{name}';
"""
_INPUTS = """
jsonb_build_array(jsonb_build_object('datasetid', s.datasetid, 'dataid', s.dataid,
                                     'manifest_id', s.manifest_id, 'version', 1))
"""
_SOURCE = """join dataflow.data_manifest s on s.datasetid = '{name}' and s.dataid = to_char(i, 'FM0000000')"""
_ANNOUNCE = """
select dataflow.announce('raw', array_agg(to_char(i, 'FM0000000')), array_agg(jsonb_build_object(
    'location', '/lake/raw/' || i || '-2', 'files', '[]'::jsonb, 'checks', '[]'::jsonb, 'bytes', 1)))
  from generate_series({first}, {last}) as i where i % {one_in} = 0
"""
_STUBS = """
create or replace function dataflow.were_used(p_chunks dataflow.chunk[]) returns boolean
    language sql stable return false;
create or replace function dataflow.lock_versions(p_read text[], p_replaced text[], p_dataids text[]) returns void
    language plpgsql as $$ begin end $$;
create or replace function dataflow.mark_stale(p_own dataflow.chunk[], p_changed dataflow.chunk[],
                                               out turned dataflow.chunk[], out redirected dataflow.chunk[])
    language plpgsql as $$ begin turned := '{}'; redirected := '{}'; end $$;
"""
_KEPT = (
    "were_used(dataflow.chunk[])",
    "lock_versions(text[],text[],text[])",
    "mark_stale(dataflow.chunk[],dataflow.chunk[])",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    chunks: int
    rounds: int
    #: Chunks that a round publishes one at a time, and in batches of 100.
    published: int


def main() -> None:
    options = argparse.ArgumentParser(description="Measure stale marks on an embedded Postgres of their own.")
    options.add_argument("--quick", action="store_true", help="100 thousand chunks instead of a million")
    options.add_argument("--smoke", action="store_true", help="a thousand chunks, only to see that it works")
    chosen = options.parse_args()
    scale = Scale(
        chunks=1_000 if chosen.smoke else 100_000 if chosen.quick else 1_000_000,
        rounds=1 if chosen.smoke else 10,
        published=200,
    )
    with _ground(scale) as (url, ledger, connection):
        marks = _mark(connection, scale)
        shown = statistics.median(_seconds_of_odf(url, "stale", "--json") for _ in range(1 if chosen.smoke else 5))
        print(f"odf stale, {marks:,} of {scale.chunks:,} chunks are stale: {shown:.3f} s")
        print(f"  of which the ledger takes {_seconds_of_ledger(ledger):.3f} s; the rest is the start of a process")
        ratios = {}
        for name, batch in (("single", 1), ("batched", 100)):
            kept, without = _publish(ledger, connection, scale, name, batch)
            ratios[name] = kept / without
            print(f"publish {batch} at a time: {kept * 1e6:,.0f} us a chunk, {without * 1e6:,.0f} us without marks")
    figures = {
        "stale_1m_s": round(shown, 4),
        **{f"publish_{name}_ratio": round(ratio, 3) for name, ratio in ratios.items()},
    }
    if not chosen.smoke:
        for name, most in TARGETS.items():
            print(f"  {'met   ' if figures[name] <= most else 'MISSED'}  {name} = {figures[name]} (<= {most})")
    note = {} if scale.chunks == 1_000_000 else {"note": f"{scale.chunks:,} chunks"}
    print(json.dumps({**figures, **note}))


def _mark(connection: psycopg.Connection, scale: Scale) -> int:
    """New versions of some source chunks, announced a thousand chunks at a time."""
    size = scale.chunks // len(CHAIN)
    began = time.monotonic()
    for first in range(1, size + 1, 25_000):
        connection.execute(_ANNOUNCE.format(first=first, last=min(size, first + 24_999), one_in=ONE_IN).encode())
    row = connection.execute("select count(*) from dataflow.stale").fetchone()
    assert row == (size // ONE_IN * (len(CHAIN) - 1),), row
    print(f"{row[0]:,} chunks marked in {time.monotonic() - began:.1f} s, with the new versions of {size // ONE_IN:,}")
    connection.execute("vacuum (analyze)")
    return int(row[0])


def _seconds_of_odf(url: str, *words: str) -> float:
    command = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()", *words]
    began = time.perf_counter()
    subprocess.run(command, env={**os.environ, "ODF_DATABASE_URL": url}, check=True, capture_output=True)
    return time.perf_counter() - began


def _seconds_of_ledger(ledger: Ledger) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        stale(ledger, count=100)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _publish(
    ledger: Ledger, connection: psycopg.Connection, scale: Scale, name: str, batch: int
) -> tuple[float, float]:
    """The median seconds of a chunk: a first version, without an input and with one; a consumer waits for each."""
    kept = [
        connection.execute(f"select pg_get_functiondef('dataflow.{signature}'::regprocedure)").fetchone()
        for signature in _KEPT
    ]
    seconds: dict[str, list[float]] = {"kept": [], "without": []}
    for number in range(2 * scale.rounds):
        how = ("kept", "without")[number % 2]
        if how == "without":
            connection.execute(_STUBS.encode())
        dataids = [f"{name}-{number:02d}-{place:06d}" for place in range(scale.published)]
        plan(ledger, Job(jobid=JobId("make fresh"), outputs=(DatasetId("fresh"),)), dataids)
        for jobid in ("make fresh", "make next"):
            calls = 0
            while claims := claim_next(ledger, jobid, batch):
                staged = [
                    StagedClaim(
                        claim=claim,
                        manifests={
                            output: NewManifest(location=f"/lake/{output}/{claim.claim_id}", row_count=1)
                            for output in claim.outputs
                        },
                    )
                    for claim in claims
                ]
                began = time.perf_counter()
                publish_many(ledger, staged)
                calls += 1
                if calls > 1:  # the first plans the statements of the functions again
                    seconds[how].append((time.perf_counter() - began) / len(staged))
        for definition in kept:
            assert definition is not None
            connection.execute(str(definition[0]).encode())
    return statistics.median(seconds["kept"]), statistics.median(seconds["without"])


@contextmanager
def _ground(scale: Scale) -> Iterator[tuple[str, Ledger, psycopg.Connection]]:
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as home:
        embedded = EmbeddedPostgres(Path(home))
        try:
            url = embedded.start()
            with Ledger(url) as ledger, psycopg.connect(url, autocommit=True) as connection:
                schema.install(ledger)
                pairs = [*pairwise(CHAIN), ("fresh", "next"), ("next", "last")]
                jobs = [
                    Job(
                        jobid=JobId(f"make {output}"),
                        inputs=(Input(datasetid=DatasetId(source)),),
                        outputs=(DatasetId(output),),
                    )
                    for source, output in pairs
                ]
                jobs.append(Job(jobid=JobId("make fresh"), outputs=(DatasetId("fresh"),)))
                names = (*CHAIN, "fresh", "next", "last")
                register(ledger, [Dataset(datasetid=DatasetId(name), location=f"/lake/{name}") for name in names], jobs)
                began = time.monotonic()
                _fill(connection, scale.chunks // len(CHAIN))
                print(f"{scale.chunks:,} chunks are there after {time.monotonic() - began:.0f} s")
                yield url, ledger, connection
        finally:
            embedded.stop()


def _fill(connection: psycopg.Connection, size: int) -> None:
    tables = ("data_manifest", "datastatus")
    for table in tables:
        connection.execute(f"alter table dataflow.{table} disable trigger user".encode())
    source = None
    for name in CHAIN:
        layer = _LAYER.format(
            name=name,
            jobid="announced" if source is None else f"make {name}",
            size=size,
            inputs="'[]'" if source is None else _INPUTS,
            source="" if source is None else _SOURCE.format(name=source),
        )
        for statement in filter(str.strip, layer.split(";\n")):
            connection.execute(statement.encode())
        connection.execute("analyze dataflow.data_manifest")
        source = name
    for table in tables:
        connection.execute(f"alter table dataflow.{table} enable trigger user".encode())
    connection.execute("vacuum (analyze)")


if __name__ == "__main__":
    main()
