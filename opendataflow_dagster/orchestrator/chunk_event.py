"""What is told to Dagster of one chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from ..model.ids import ManifestId
from ..model.manifest import CheckResult
from .data_versions import MadeFrom

Metadata = Mapping[str, dg.MetadataValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkEvent:
    asset_key: dg.AssetKey
    dataid: str
    #: None: it was checked, and not published.
    metadata: Metadata | None
    made: MadeFrom
    checks: tuple[CheckResult, ...] = ()
    #: The version that the event reports; None: READY without a version.
    manifest_id: ManifestId | None = None
