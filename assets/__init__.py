"""The reference pipelines: plain functions over DataFrames, and SQL and scripts, each declared as a DataSet.

No DataSets are declared yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import AssetsDefinition

#: One Dagster asset for each DataSet.
all_assets: tuple[AssetsDefinition, ...] = ()
