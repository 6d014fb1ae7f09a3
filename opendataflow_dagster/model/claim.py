"""A claim: one run's exclusive right to produce a chunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, RunId
from .manifest import Manifest
from .verdict import InputVersion, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    #: The fencing token: every later change of the chunk by this run carries it.
    claim_id: ClaimId
    jobid: JobId
    dataid: DataId
    outputs: tuple[DatasetId, ...]
    attempt: int
    lease: timedelta
    lease_until: datetime
    run_id: RunId | None
    #: What the five answers were given on.
    inputs: tuple[InputVersion, ...] = field(repr=False)
    #: The pinned versions of the inputs that have one; read through these, never through a bare path.
    manifests: tuple[Manifest, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> Verdict:
        """Five yes, on the evidence of its inputs."""
        return Verdict(jobid=self.jobid, dataid=self.dataid, inputs=self.inputs, claim_id=self.claim_id)

    @property
    def chunks(self) -> tuple[ChunkKey, ...]:
        return tuple(ChunkKey(datasetid=output, dataid=self.dataid) for output in self.outputs)
