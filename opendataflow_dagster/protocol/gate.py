"""gate: ask the five questions and record the answers; claim nothing.

The ledger answers what it knows; the warehouse is asked whether every file of an input is in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NoReturn

from ..ledger import claims, lookup, registry
from ..ledger.database import Ledger, Transaction
from ..ledger.names import unknown_job
from ..ledger.retry import gives_way
from ..model.ids import DataId, DatasetId, JobId, ManifestId, data_id, job_id
from ..model.manifest import Manifest
from ..model.problems import Problem, Question
from ..model.verdict import Verdict
from ..warehouse.placement import misplaced


@gives_way
def gate(ledger: Ledger, jobid: str, dataids: Iterable[str]) -> list[Verdict]:
    """All five answers for each chunk, in the order given."""
    job, chunks = job_id(jobid), [data_id(dataid) for dataid in dataids]
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        asked = {verdict.dataid: verdict for verdict in claims.answers(transaction, job, chunks)}
        manifests = pinned_manifests(transaction, asked.values())
    roots = lookup.roots(ledger)
    verdicts = [asked[dataid].with_problems(look_at_files(pins(asked[dataid], manifests), roots)) for dataid in chunks]
    with ledger.transaction() as transaction:
        claims.record(transaction, job, verdicts)
    return verdicts


def require_job(transaction: Transaction, jobid: JobId) -> None:
    if not registry.is_job(transaction, jobid):
        raise unknown_job(transaction, jobid)


def refuse_unknown_job(ledger: Ledger, jobid: JobId) -> NoReturn:
    with ledger.statement() as statement:
        raise unknown_job(statement, jobid)


def pinned_manifests(transaction: Transaction, verdicts: Iterable[Verdict]) -> dict[ManifestId, Manifest]:
    pinned = {pin.manifest_id for verdict in verdicts for pin in verdict.inputs if pin.manifest_id is not None}
    return {manifest.manifest_id: manifest for manifest in claims.manifests(transaction, pinned)}


def pins(verdict: Verdict, manifests: dict[ManifestId, Manifest]) -> list[Manifest]:
    return [manifests[pin.manifest_id] for pin in verdict.inputs if pin.manifest_id is not None]


def look_at_files(manifests: Iterable[Manifest], roots: Callable[[DatasetId], str | None]) -> tuple[Problem, ...]:
    """A no to PLACED for each version with a file that is missing, has another size, or is outside of its root."""
    wrong = (misplaced(manifest.location, manifest.files, partial(roots, manifest.datasetid)) for manifest in manifests)
    return tuple(
        Problem(question=Question.PLACED, name="MISPLACED", facts={"text": text}) for text in wrong if text is not None
    )


@gives_way
def runnable(ledger: Ledger, jobid: str, count: int) -> Sequence[DataId]:
    """The next chunks that can run. Advice: the claim decides."""
    with ledger.statement() as statement:
        return claims.runnable(statement, job_id(jobid), count)
