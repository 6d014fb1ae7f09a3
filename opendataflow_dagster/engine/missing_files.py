"""Looks for published versions whose files are gone, and makes their chunks FAILED.

Only what the store reports as missing is gone. If a store cannot be read, or a root is not mounted, no chunk changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger import reports
from ..ledger.database import Ledger
from ..model.manifest import Manifest
from .dataset_graph import DatasetGraph

_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True)
class FilesChecked:
    #: How many versions have lost files.
    gone: int
    #: Why some versions could not be checked.
    unknown: tuple[str, ...]
    #: Where to go on; 0 after the last version, to begin again.
    position: int


def check_files(ledger: Ledger, graph: DatasetGraph, position: int) -> FilesChecked:
    """Check the next current versions of the graph's DataSets after `position`."""
    from ..warehouse.placement import gone, missing

    with ledger.statement() as statement:
        versions = reports.versions_after(statement, position, _AT_ONCE)
    lost: list[tuple[Manifest, str]] = []
    unknown: list[str] = []
    for manifest, is_current in versions:
        # Files of other projects may be invisible from this machine.
        if not is_current or (node := graph.nodes.get(manifest.datasetid)) is None:
            continue
        try:
            if not (problem := gone(manifest.location, manifest.files)):
                continue
        except Exception as error:  # every store has its own errors
            unknown.append(f"{manifest.location} cannot be read ({type(error).__name__}: {error})")
            continue
        if (root := node.dataset.location) and (why := missing(root)):
            unknown.append(f"the root {root} of {manifest.datasetid}: {why}")
        else:
            lost.append((manifest, f"INVALID_PATH: {problem}; resubmit the chunk, or its consumers keep waiting"))
    if lost:
        with ledger.transaction(actor="heal: files are gone") as transaction:
            reports.files_are_gone(transaction, lost)
    last = versions[-1][0].manifest_id if versions else 0
    return FilesChecked(gone=len(lost), unknown=tuple(unknown), position=last)
