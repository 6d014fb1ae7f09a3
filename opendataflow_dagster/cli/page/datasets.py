"""The DataSets: figures and a heat-map each, and the key to the statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendataflow_dagster.insight.heat_map import badness

from ..output import counted, span
from .heat_maps import heat_map
from .parts import LETTERS, Html, Stories, mark, name, section, table, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.heat_map import HeatMap
    from opendataflow_dagster.insight.status import DatasetStatus

_LISTED = 1_000
_HINT = (
    "The higher a cell, the more it needs attention. A cell of several chunks shows the worst of them. "
    '<span class="scripted">Point at a cell, or move with the arrow keys; click it or press Enter for its story.</span>'
)


def datasets(shown: Sequence[DatasetStatus], maps: Sequence[HeatMap], stories: Stories) -> Html:
    places = {each.datasetid: place for place, each in enumerate(maps)}
    drawn = [
        _dataset(dataset, places[dataset.datasetid], maps[places[dataset.datasetid]], stories)
        for dataset in shown
        if dataset.datasetid in places
    ]
    others = [dataset for dataset in shown if dataset.datasetid not in places]
    marks = "".join(f"<li>{mark(status)}</li>" for status in reversed(LETTERS))
    legend = f'<ul class="legend" aria-label="Statuses">{marks}</ul><p class="hint">{_HINT}</p>'
    return section("datasets", "DataSets", legend, *drawn, _others(others))


def _dataset(dataset: DatasetStatus, place: int, each: HeatMap, stories: Stories) -> Html:
    done = "" if dataset.progress is None else f"{int(dataset.progress * 100)} % of {dataset.expected:,} expected"
    eta = f", ready in about {span(dataset.eta)}" if dataset.eta is not None else ""
    other = f'<p class="done">{dataset.other_code:,} made by other code</p>' if dataset.other_code else ""
    job = f"job {text(dataset.jobid)}" if dataset.jobid else "external"
    return (
        f'<article class="ds"><header><h3>{text(dataset.datasetid)}</h3><small>{job}</small>'
        f'<p class="done">{done}{eta}</p><p class="figures">{_figures(dataset)}</p>{other}</header>'
        f"{heat_map(place, each, stories)}</article>"
    )


def _figures(dataset: DatasetStatus) -> Html:
    fresh = dataset.counts.get("READY", 0) - dataset.stale
    numbers = {**dataset.counts, "READY": fresh, "stale": dataset.stale, "missing": dataset.missing}
    return " ".join(mark(status, numbers[status]) for status in sorted(numbers, key=badness) if numbers[status])


def _others(others: Sequence[DatasetStatus]) -> Html:
    if not others:
        return ""
    rows = [[name(dataset.datasetid), _figures(dataset) or "no chunk"] for dataset in others[:_LISTED]]
    more = f"<p>And {len(others) - _LISTED:,} more: odf status</p>" if len(others) > _LISTED else ""
    title = f"{counted(len(others), 'more DataSet')} without a heat-map"
    return f"<details><summary>{title}</summary>{table(['DataSet', 'chunks'], rows)}{more}</details>"
