"""A DataSet that another system makes. Its chunks are announced: by `odf announce`, or by READY typed in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from ..model.errors import InvalidDefinition
from ..model.ids import DatasetId, dataset_id, job_id
from ..model.manifest import NewManifest
from ..model.partitions import Partitions
from .declaration import Declaration, ReadForeign
from .options import refuse_wrong_options
from .producer import HeldClaim
from .source import SourceContext


@dataclass(frozen=True)
class ExternalSource:
    kinds: ClassVar[frozenset[str]] = frozenset({"external"})
    is_produced: ClassVar[bool] = False

    def fingerprint(self) -> None:
        """Other code makes it."""

    def validate(self, declaration: Declaration) -> None:
        """external_dataset takes no option that could be wrong."""

    def make(
        self, declaration: Declaration, context: SourceContext, held: HeldClaim
    ) -> Mapping[DatasetId, NewManifest]:
        raise InvalidDefinition(f"DataSet {declaration.datasetid} is external; announce its chunks instead")


def external_dataset(
    name: str,
    *,
    partitions: Partitions | None = None,
    location: str | None = None,
    read: ReadForeign | None = None,
    trusted: bool = True,
    owner: str | None = None,
    domain: str | None = None,
    description: str | None = None,
    timezone: str = "UTC",
    expected_by: str | None = None,
    fresh_within: timedelta | None = None,
) -> Declaration:
    """Declare a DataSet that another system makes.

    `read` reads a chunk that was announced without a manifest. Chunks with a manifest are read through it.
    """
    options = {"partitions": partitions, "owner": owner, "domain": domain, "description": description}
    deadlines = {"expected_by": expected_by, "fresh_within": fresh_within}
    refuse_wrong_options(name, {**options, **deadlines, "timezone": timezone})
    if read is not None and not callable(read):
        raise InvalidDefinition(f"DataSet {name}: read is {read!r}; give a function of a Spark session and a dataid")
    return Declaration(
        datasetid=dataset_id(name),
        jobid=job_id(name),
        source=ExternalSource(),
        read=read,
        partitions=partitions,
        root=location,
        foreign_ready="trusted" if trusted else "refused",
        owner=owner,
        domain=domain,
        description=description,
        timezone=timezone,
        expected_by=expected_by,
        fresh_within=fresh_within,
    )
