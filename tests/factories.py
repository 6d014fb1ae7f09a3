"""What the tests of the protocol build with: real verbs on a real ledger, and a psql session for what people type."""

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
    """`clean: raw, codes -> tidy`, with a mapping for an input where it is not the equal chunk."""
    name, _, rest = text.partition(":")
    sources, _, targets = rest.partition("->")
    inputs = [one.strip() for one in sources.split(",") if one.strip()]
    return Job(
        jobid=JobId(name.strip()),
        inputs=tuple(Input(datasetid=DatasetId(one), mapping=mappings.get(one, EQUAL)) for one in inputs),
        outputs=tuple(DatasetId(one.strip()) for one in targets.split(",") if one.strip()),
        policy=policy or Policy(),
    )


@dataclass(frozen=True, kw_only=True)
class Flow:
    ledger: Ledger
    #: It has a password in it.
    url: str = field(repr=False)
    #: What a person or a foreign client types.
    psql: psycopg.Connection
    root: Path

    def register(self, *jobs: str | Job, **datasets: Dataset) -> list[Job]:
        """Jobs, and their DataSets: managed below the test's folder unless given."""
        made = [one if isinstance(one, Job) else job(one) for one in jobs]
        names = {one.datasetid for each in made for one in each.inputs} | {one for each in made for one in each.outputs}
        register(self.ledger, [datasets.get(name) or self.dataset(name) for name in sorted(names)], made)
        return made

    def dataset(self, name: str) -> Dataset:
        return Dataset(datasetid=DatasetId(name), location=str(self.root / name))

    def plan(self, job: Job, dataids: Iterable[str]) -> None:
        plan(self.ledger, job, dataids)

    def manifest(self, claim: Claim, datasetid: str | None = None, content: str | None = None) -> NewManifest:
        """Really writes a file, in a folder that belongs to the claim alone."""
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
        publish(self.ledger, claim, {one: self.manifest(claim, one, content) for one in claim.outputs})

    def produce(self, jobid: str, dataid: str, content: str | None = None) -> Claim:
        """Claim and publish."""
        taken = claim(self.ledger, jobid, dataid)
        self.publish(taken, content)
        return taken

    def type(self, statement: str, *values: object) -> int:
        """A statement typed by hand."""
        return self.psql.execute(statement.encode(), values).rowcount

    def announce(self, text: str, status: str = "READY", jobid: str = "someone") -> None:
        """As a foreign client does it: by position, without a manifest."""
        one = key(text)
        self.type(
            "insert into dataflow.datastatus values (%s, %s, %s, 'OUT', %s, now())",
            one.datasetid,
            jobid,
            one.dataid,
            status,
        )

    def chunk(self, text: str) -> Chunk:
        with self.ledger.statement() as statement:
            (found,) = chunks.find(statement, [key(text)])
            return found

    def status(self, text: str) -> str | None:
        with self.ledger.statement() as statement:
            found = chunks.find(statement, [key(text)])
        return found[0].status if found else "ABSENT"

    def in_rows(self) -> list[tuple[str, str, str]]:
        found = self.psql.execute(
            "select datasetid, jobid, dataid from dataflow.datastatus where locktype = 'IN' order by 1, 2, 3"
        )
        return [(str(row[0]), str(row[1]), str(row[2])) for row in found]

    def runnable(self) -> list[tuple[str, str]]:
        found = self.psql.execute(
            "select jobid, dataid from dataflow.runnable order by jobid, resubmit desc, sort_key, dataid"
        )
        return [(str(row[0]), str(row[1])) for row in found]
