"""The files sensor: looks at the files of published versions, some at each tick, and tells the ledger which are gone.

Gone is what the store says is not there. A store that cannot be asked, or a root that is not mounted, says nothing
about any chunk: nothing changes, and the tick fails until somebody has repaired it.
"""

from __future__ import annotations

import dagster as dg

from ..engine.dataset_graph import Catalogue
from ..ledger import reports
from ..model.manifest import Manifest
from ..warehouse.placement import gone
from ..warehouse.roots import missing
from .resources import LedgerResource

_AT_ONCE = 100
_SHOWN = 3


def files_sensor(found: Catalogue, *, interval_seconds: int = 15) -> dg.SensorDefinition:
    @dg.sensor(
        name="files",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Makes chunks FAILED whose files are gone.",
    )
    def look_at_files(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        store = ledger.ledger
        with store.statement() as statement:
            versions = reports.versions_after(statement, int(context.cursor or 0), _AT_ONCE)
        lost: list[tuple[Manifest, str]] = []
        unknown: list[str] = []
        for one, is_current in versions:
            # What others make may lie where this machine sees nothing.
            if not is_current or (entry := found.entries.get(one.datasetid)) is None:
                continue
            try:
                if not (wrong := gone(one.location, one.files)):
                    continue
            except Exception as error:  # every store has errors of its own
                unknown.append(f"{one.location} cannot be looked into ({type(error).__name__}: {error})")
                continue
            if (root := entry.dataset.location) and (why := missing(root)):
                unknown.append(f"the root {root} of {one.datasetid}: {why}")
            else:
                lost.append((one, f"INVALID_PATH: {wrong}; resubmit it, or its consumers wait"))
        if lost:
            with store.transaction(actor="heal: files are gone") as transaction:
                reports.files_are_gone(transaction, lost)
        if unknown:
            said = list(dict.fromkeys(unknown))
            more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
            raise dg.Failure(
                f"nobody knows whether {len(unknown)} versions are there: {'; '.join(said[:_SHOWN])}{more}; "
                f"mount it, or let the daemon's user read it. Nothing was changed for them"
            )
        # At the end of all it begins anew.
        place = versions[-1][0].manifest_id if versions else 0
        return dg.SensorResult(skip_reason=f"files gone: {len(lost)}", cursor=str(place))

    return look_at_files
