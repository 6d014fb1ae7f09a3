"""The pipeline of the hostile run: one Job for each kind of mapping and policy, and what its processes need to know."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.job import ALL, Job, ListedChunks, Policy
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.publish import StagedClaim
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.throttle import throttle
from opendataflow_dagster.warehouse.location import folder_of
from tests.factories import job

#: Short, so that lost claims come back during the run.
LEASE: Final = timedelta(seconds=5)
POLICY: Final = Policy(lease=LEASE, max_attempts=5)
#: Has this concurrency limit from beginning to end; the limit of `varied` changes all the time.
LIMITED: Final = "limited"
LIMIT: Final = 2
#: The number of chunks of each DataSet that are claimed, resubmitted and held all the time.
HOT: Final = 10
#: Announced by a foreign client alone.
EXTERNAL: Final = "codes"


def _yesterday_too(dataid: str) -> list[str]:
    return [dataid, str(max(int(dataid) - 1, 1))]


JOBS: Final[dict[str, Job]] = {
    declared.jobid: declared
    for declared in (
        job("load: -> raw", POLICY),
        job("clean: raw -> tidy", Policy(lease=LEASE, max_attempts=5, retry_on="disk", cascade=True)),
        job("split: tidy -> left, right", POLICY),
        job("join: raw, codes -> joined", POLICY),
        job("window: raw -> days", POLICY, raw=ListedChunks(_yesterday_too)),
        job("post: codes -> books", Policy(lease=LEASE, max_attempts=5, ordered=True)),
        job("report: books -> paper", POLICY, books=ALL),
        job("limited: tidy -> few", POLICY),
        job("varied: raw -> several", POLICY),
    )
}
DATASETS: Final = sorted({EXTERNAL, *(output for declared in JOBS.values() for output in declared.outputs)})


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What every process of the run gets."""

    #: Of the server, and of a proxy in front of it that resets connections. All contain passwords.
    url: str = field(repr=False)
    cut_url: str = field(repr=False)
    #: Of a login with the rights of an operator.
    typist_url: str = field(repr=False)
    root: Path
    seed: int
    #: The number of chunks of each DataSet.
    size: int
    #: On the monotonic clock, which all processes share. A killed process could keep an event's lock forever.
    until: float

    def is_over(self) -> bool:
        return time.monotonic() >= self.until

    @property
    def witness(self) -> Path:
        return self.root / "witness"

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    def some(self, random: Random, count: int, jobid: str = "") -> list[str]:
        """Half of everything concerns the same few chunks, so that all processes meet."""
        dataids = self.dataids(jobid)
        if random.random() < 0.5:
            dataids = dataids[:HOT]
        return sorted(random.sample(dataids, min(count, len(dataids))), key=int)

    def dataids(self, jobid: str = "") -> list[str]:
        """`report` reads all books, so it has few chunks."""
        return [str(number) for number in range(1, (3 if jobid == "report" else self.size) + 1)]

    def dataset(self, name: str) -> Dataset:
        location = None if name == EXTERNAL else str(self.root / name)
        return Dataset(datasetid=DatasetId(name), location=location)

    def register(self, ledger: Ledger) -> None:
        register(ledger, [self.dataset(name) for name in DATASETS], list(JOBS.values()))
        throttle(ledger, LIMITED, LIMIT, by="chaos")

    def staged(self, claim: Claim) -> StagedClaim:
        """Write a real file into the folder of the claim."""
        manifests = {}
        for output in claim.outputs:
            location = folder_of(str(self.root / output), output, claim.dataid, claim.claim_id)
            content = content_of(output, claim.dataid, claim.claim_id)
            Path(location).mkdir(parents=True, exist_ok=True)
            Path(location, "part-0").write_text(content)
            file = File(path="part-0", size=len(content))
            manifests[output] = NewManifest(
                location=location, files=(file,), row_count=1, content_digest=f"{output} {claim.claim_id}"
            )
        return StagedClaim(claim=claim, manifests=manifests)


def content_of(datasetid: str, dataid: str, claim_id: int) -> str:
    return f"{datasetid}/{dataid} by claim {claim_id}\n"


class Witness:
    """What a process saw with its own eyes, in a file that survives its kill. The audit compares it with the tables."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self._file = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def saw(self, kind: str, **facts: Any) -> None:
        os.write(self._file, json.dumps({"kind": kind, **facts}).encode() + b"\n")


def testimony(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):  # a process that was killed may have left half a line
                yield json.loads(line)


def counts(folder: Path) -> Counter[str]:
    return Counter(str(seen["kind"]) for seen in testimony(folder))
