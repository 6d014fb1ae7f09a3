"""What a script costs beside its own work, and how fast an operator has an answer.

    python bench/scripts.py            1 million chunks behind `odf status`; some minutes
    python bench/scripts.py --quick    100 thousand; under a minute

Every figure is of a whole `odf` process, as cron or a person starts it. The last line is one JSON object.
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
from dataclasses import dataclass
from pathlib import Path

import psycopg

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Job
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import fail_many

#: What was asked for: a sign and a bound.
TARGETS = {
    "one_run_s": ("<=", 0.5),
    "all_per_min": (">=", 1_000.0),
    "why_s": ("<=", 0.5),
    "why_700_s": ("<=", 2.0),
    "status_1m_s": ("<=", 1.0),
}
ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]
_PORTION = 100_000
_ADD_CHUNKS = """
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)
select 'lake', 'ingest', to_char(i, 'FM0000000'), 'OUT', 'READY' from generate_series(%(first)s::int, %(last)s) as i
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    chunks: int
    scripts: int
    times: int


FULL = Scale(chunks=1_000_000, scripts=1_000, times=7)
QUICK = Scale(chunks=100_000, scripts=300, times=5)
SMOKE = Scale(chunks=1_000, scripts=10, times=1)


class Bench:
    def __init__(self, url: str, folder: Path, scale: Scale) -> None:
        self.url, self.scale = url, scale
        self.script = folder / "nothing.sh"
        self.script.write_text("#!/bin/sh\n")
        self.script.chmod(0o755)
        # An installed program does not compile itself anew at each start.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = {**kept, "ODF_DATABASE_URL": url, "ODF_HOME": str(folder)}

    def prepare(self) -> None:
        jobs = [Job(jobid=JobId(name), outputs=(DatasetId(f"{name}_out"),)) for name in ("nothing", *self._failing())]
        with Ledger(self.url) as ledger:
            schema.install(ledger)
            datasets = [*(job.outputs[0] for job in jobs), DatasetId("lake")]
            register(ledger, [Dataset(datasetid=datasetid) for datasetid in datasets], jobs)
            plan(ledger, jobs[0], [str(number) for number in range(self.scale.scripts + 2 * self.scale.times + 2)])
            for job in jobs[1:]:
                plan(ledger, job, [str(day) for day in range(100)])
                claims = claim_next(ledger, job.jobid, 100)
                said = "exit code 1: /mnt/data is not mounted (log: /srv/.odf/scripts/{0}/{1}/1-{2}.log)"
                fail_many(ledger, claims, [said.format(claim.jobid, claim.dataid, claim.claim_id) for claim in claims])
        with psycopg.connect(self.url, autocommit=True) as connection:
            for first in range(1, self.scale.chunks + 1, _PORTION):
                last = min(first + _PORTION - 1, self.scale.chunks)
                connection.execute(_ADD_CHUNKS, {"first": first, "last": last})
            connection.execute("vacuum (analyze)")

    def figures(self) -> dict[str, float]:
        run = ["run", str(self.script)]
        self._seconds(run, 0)  # the first compiles and warms
        nothing = self._median(run, 0)
        self._say("odf run of a script that does nothing", f"{nothing:.2f} s")
        before = self._left()
        took = self._seconds(["run", "--all", str(self.script)], 0)
        per_minute = before / took * 60
        self._say(f"odf run --all, {before:,} chunks", f"{per_minute:,.0f} a minute")
        why = self._median(["why", "outage1", "50"], 1)
        self._say("odf why of a chunk", f"{why:.2f} s")
        failed = self._median(["why", "--failed"], 1)
        self._say("odf why --failed of 700", f"{failed:.2f} s")
        status = self._median(["status"], 0)
        self._say(f"odf status of {self.scale.chunks:,} chunks", f"{status:.2f} s")
        return {
            "one_run_s": round(nothing, 3),
            "all_per_min": round(per_minute),
            "why_s": round(why, 3),
            "why_700_s": round(failed, 3),
            "status_1m_s": round(status, 3),
        }

    def _failing(self) -> list[str]:
        return [f"outage{number}" for number in range(1, 8)]

    def _left(self) -> int:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("select count(*) from dataflow.runnable where jobid = 'nothing'").fetchone()
        assert found is not None
        return int(found[0])

    def _median(self, words: list[str], code: int) -> float:
        return statistics.median(self._seconds(words, code) for _ in range(self.scale.times))

    def _seconds(self, words: list[str], code: int) -> float:
        begin = time.perf_counter()
        done = subprocess.run([*ODF, *words], env=self._environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begin
        if done.returncode != code:
            raise RuntimeError(f"odf {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
        return seconds

    def _say(self, what: str, figure: str) -> None:
        print(f"{what:<50}{figure:>20}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description="Measure odf on an embedded Postgres of its own.")
    options.add_argument("--quick", action="store_true", help="100 thousand chunks; under a minute")
    options.add_argument("--smoke", action="store_true", help="a thousand, only to see that it works; seconds")
    chosen = options.parse_args()
    scale = SMOKE if chosen.smoke else QUICK if chosen.quick else FULL
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as home:
        embedded = EmbeddedPostgres(Path(home))
        try:
            bench = Bench(embedded.start(), Path(home), scale)
            bench.prepare()
            figures = bench.figures()
        finally:
            embedded.stop()
    if scale is FULL:
        print("\nTargets")
        for name, (sign, target) in TARGETS.items():
            met = figures[name] >= target if sign == ">=" else figures[name] <= target
            print(f"  {'met   ' if met else 'MISSED'}  {name} = {figures[name]:,} ({sign} {target:,})")
    note = {} if scale is FULL else {"note": f"status_1m_s is of {scale.chunks:,} chunks"}
    print(json.dumps({**figures, **note}))


if __name__ == "__main__":
    main()
