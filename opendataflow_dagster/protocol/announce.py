"""announce: record chunks that exist or are wanted. External chunks become READY; chunks of a Job become PENDING."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..ledger import chunks, lookup, registry
from ..ledger.database import Ledger
from ..ledger.names import unknown_dataset
from ..ledger.retry import gives_way
from ..model.errors import InvalidInput
from ..model.ids import ChunkKey, DataId, data_id, dataset_id, job_id
from ..model.manifest import NewManifest
from ..model.text import listing
from ..warehouse.placement import without_doubled_slashes
from .publish import refuse_misplaced


@gives_way
def announce(
    ledger: Ledger,
    datasetid: str,
    dataids: Iterable[str],
    *,
    by: str,
    reason: str = "",
    manifests: Mapping[DataId, NewManifest] | None = None,
) -> list[ChunkKey]:
    """READY, with a new version for each chunk that has a manifest. Returns the chunks that changed.

    Without manifests this is the same as typing READY rows in SQL.
    """
    dataset, names = dataset_id(datasetid), list(dict.fromkeys(data_id(dataid) for dataid in dataids))
    versions = dict(manifests or {})
    if unannounced := sorted(set(versions) - set(names)):
        raise InvalidInput(
            f"{dataset}: manifests are given for {listing(unannounced)}, which is not announced; announce it as well"
        )
    root_of = partial(lookup.roots(ledger), dataset)
    for dataid, manifest in versions.items():
        if root_of() is None:
            # Below no root of its own, a sweep finds it by its text.
            manifest = versions[dataid] = replace(manifest, location=without_doubled_slashes(manifest.location))
        refuse_misplaced(ChunkKey(datasetid=dataset, dataid=dataid), manifest, root_of)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        known, producer = chunks.producer_of(transaction, dataset)
        if not known:
            raise unknown_dataset(transaction, dataset)
        if producer is not None:
            raise InvalidInput(
                f"DataSet {dataset} is produced by job {producer}, so its chunks cannot be announced; run the job"
            )
        return chunks.announce(transaction, dataset, names, versions)


@gives_way
def announce_pending(ledger: Ledger, jobid: str, dataids: Sequence[DataId], *, by: str) -> int:
    """Chunks of a Job, which runs them as soon as their inputs are READY. Returns how many are new."""
    job = job_id(jobid)
    with ledger.transaction(actor=by) as transaction:
        if listed := [item for item in lookup.job_datasets(transaction, job) if item.mapping == "listed"]:
            raise InvalidInput(
                f"job {job}: a function in its code lists the chunks of {listed[0].datasetid} that it needs; "
                f"plan its chunks from that code, or request them in Dagster"
            )
        return registry.announce_chunks(transaction, job, dataids)
