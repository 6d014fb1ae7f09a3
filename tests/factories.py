"""Builders for tests of the protocol: real verbs on a real ledger, and a psql session for typed SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger.chunks import Chunk
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, JobId
from opendataflow_dagster.model.job import EQUAL, ChunkMapping, Input, Job, Policy
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register


def key(text: str) -> ChunkKey:
    """`dataset/dataid`."""
    datasetid, _, dataid = text.partition("/")
    return ChunkKey(datasetid=DatasetId(datasetid), dataid=DataId(dataid))


def job(text: str, policy: Policy | None = None, **mappings: ChunkMapping) -> Job:
    """`clean: raw, codes -> tidy`. Inputs map to the equal chunk unless a mapping is given."""
    name, _, rest = text.partition(":")
    sources, _, targets = rest.partition("->")
    inputs = [source.strip() for source in sources.split(",") if source.strip()]
    return Job(
        jobid=JobId(name.strip()),
        inputs=tuple(Input(datasetid=DatasetId(source), mapping=mappings.get(source, EQUAL)) for source in inputs),
        outputs=tuple(DatasetId(target.strip()) for target in targets.split(",") if target.strip()),
        policy=policy or Policy(),
    )


@dataclass(frozen=True, kw_only=True)
class Flow:
    ledger: Ledger
    #: Contains a password.
    url: str = field(repr=False)
    #: Runs what a person or a foreign client types.
    psql: psycopg.Connection
    root: Path

    def register(self, *jobs: str | Job, **datasets: Dataset) -> list[Job]:
        """Register Jobs and their DataSets, which live in the test's folder unless given."""
        made = [declared if isinstance(declared, Job) else job(declared) for declared in jobs]
        names = {name for each in made for name in (*each.outputs, *(needed.datasetid for needed in each.inputs))}
        register(self.ledger, [datasets.get(name) or self.dataset(name) for name in sorted(names)], made)
        return made

    def dataset(self, name: str) -> Dataset:
        return Dataset(datasetid=DatasetId(name), location=str(self.root / name))

    def plan(self, job: Job, dataids: Iterable[str]) -> None:
        plan(self.ledger, job, dataids)

    def manifest(self, claim: Claim, datasetid: str | None = None, content: str | None = None) -> NewManifest:
        """Write a real file into a folder that belongs to the claim alone."""
        output = datasetid or claim.outputs[0]
        folder = self.root / output / f"claim-{claim.claim_id}"
        folder.mkdir(parents=True)
        data = (content or f"{output}/{claim.dataid} by claim {claim.claim_id}").encode()
        (folder / "part-0").write_bytes(data)
        return NewManifest(
            location=str(folder),
            files=(File(path="part-0", size=len(data)),),
            row_count=1,
            content_digest=content or f"claim {claim.claim_id}",
        )

    def publish(self, claim: Claim, content: str | None = None) -> None:
        publish(self.ledger, claim, {output: self.manifest(claim, output, content) for output in claim.outputs})

    def produce(self, jobid: str, dataid: str, content: str | None = None) -> Claim:
        """Claim and publish."""
        taken = claim(self.ledger, jobid, dataid)
        self.publish(taken, content)
        return taken

    def type(self, statement: str, *values: object) -> int:
        """Run a statement as if typed by hand."""
        return self.psql.execute(statement.encode(), values).rowcount

    def announce(self, text: str, status: str = "READY", jobid: str = "someone") -> None:
        """Insert a row as a foreign client does: by position, without a manifest."""
        chunk = key(text)
        self.type(
            "insert into dataflow.datastatus values (%s, %s, %s, 'OUT', %s, now())",
            chunk.datasetid,
            jobid,
            chunk.dataid,
            status,
        )

    def chunk(self, text: str) -> Chunk:
        with self.ledger.statement() as statement:
            (chunk,) = chunks.find(statement, [key(text)])
            return chunk

    def status(self, text: str) -> str | None:
        with self.ledger.statement() as statement:
            rows = chunks.find(statement, [key(text)])
        return rows[0].status if rows else "ABSENT"

    def in_rows(self) -> list[tuple[str, str, str]]:
        rows = self.psql.execute(
            "select datasetid, jobid, dataid from dataflow.datastatus where locktype = 'IN' order by 1, 2, 3"
        )
        return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    def runnable(self) -> list[tuple[str, str]]:
        rows = self.psql.execute(
            "select jobid, dataid from dataflow.runnable order by jobid, resubmit desc, sort_key, dataid"
        )
        return [(str(row[0]), str(row[1])) for row in rows]
