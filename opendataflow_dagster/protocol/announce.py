"""announce: chunks of an external DataSet are there. The same as READY rows typed in SQL, with a name and a version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ledger import chunks
from ..ledger.database import Ledger
from ..model.errors import InvalidInput, UnknownName
from ..model.ids import ChunkKey, DataId, data_id, dataset_id
from ..model.manifest import NewManifest
from .publish import refuse_misplaced


def announce(
    ledger: Ledger,
    datasetid: str,
    dataids: Iterable[str],
    *,
    by: str,
    reason: str = "",
    manifests: Mapping[DataId, NewManifest] | None = None,
) -> list[ChunkKey]:
    """READY, with a new version for those that have a manifest. Returns the chunks that this changed."""
    dataset, wanted = dataset_id(datasetid), list(dict.fromkeys(data_id(one) for one in dataids))
    versions = dict(manifests or {})
    if strangers := sorted(set(versions) - set(wanted)):
        raise InvalidInput(
            f"{dataset}: there are manifests for {', '.join(strangers[:3])}, which is not announced; name it as well"
        )
    for dataid, manifest in versions.items():
        refuse_misplaced(ChunkKey(datasetid=dataset, dataid=dataid), manifest)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        known, producer = chunks.producer_of(transaction, dataset)
        if not known:
            raise UnknownName(f"DataSet {dataset} is not registered; register it before you announce its chunks")
        if producer is not None:
            raise InvalidInput(
                f"DataSet {dataset} is made by job {producer}, so its chunks are not announced; let the job run"
            )
        return chunks.announce(transaction, dataset, wanted, versions)
