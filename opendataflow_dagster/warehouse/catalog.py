"""A table for outside readers: `select ... from flights` reads the current versions. It can be rebuilt at any time.

It is an external table with one partition for each chunk, located at the folder of its current version. Every tool that
shares the catalog (such as a Hive metastore) can read it, queries prune by dataid, and a new version is one changed
location. A view would list thousands of paths, which Spark would parse for each query. A claim's folder contains only
the files of its manifest, so reading the folder reads the version. In Spark's default catalog the table lives as long
as the session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from ..model.errors import InvalidDefinition, InvalidInput
from ..model.ids import DatasetId, dataset_id
from ..model.literals import quoted, text
from ..model.manifest import Manifest
from .failures import condition
from .location import spark_path
from .parquet import read
from .schema import plain

_OWNER = "opendataflow.datasetid"
_PARTITIONS_PER_STATEMENT = 500


def table_name(datasetid: DatasetId) -> str:
    """The DataSet's own name, if a catalog allows it (letters, digits and _); otherwise one derived from it, with a
    digest that keeps different DataSets apart."""
    name = dataset_id(datasetid)
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,100}", name):
        return name.lower()
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{re.sub('[^a-z0-9]+', '_', name.lower())[:80].strip('_') or 'dataset'}_{digest}"


def refresh(
    spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest], schema: StructType | None = None
) -> str:
    """Rebuild the table from all current versions, and return its name."""
    _refuse_mixed(datasetid, manifests)
    columns = plain(schema) if schema is not None else read(spark, manifests).schema if manifests else None
    if columns is None:
        raise InvalidInput(f"DataSet {datasetid} has no versions and no schema, so no table; produce a chunk first")
    name, by_dataid = table_name(datasetid), _partition_column(columns)
    _refuse_other_owner(spark, name, datasetid)
    # The old table stays until the new one is complete.
    new = f"{name}__new"
    spark.sql(f"drop table if exists {quoted(new)}")
    fields = [*columns.fields, StructField(by_dataid, StringType())]
    listed = ", ".join(f"{quoted(field.name)} {_type(field.dataType)}" for field in fields)
    spark.sql(
        f"create table {quoted(new)} ({listed}) "
        f"using parquet partitioned by ({by_dataid}) location {text(_own_folder(spark, name))} "
        f"tblproperties ({text(_OWNER)} = {text(datasetid)})"
    )
    _add(spark, new, by_dataid, manifests)
    spark.sql(f"drop table if exists {quoted(name)}")
    spark.sql(f"alter table {quoted(new)} rename to {quoted(name)}")
    return name


def fits(spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest]) -> bool:
    """Whether the table exists with all columns of these versions, so that `point` is enough."""
    name = table_name(datasetid)
    if _owner(spark, name) != datasetid:
        return False
    types = {field.name: field.dataType for field in plain(spark.table(quoted(name)).schema).fields}
    return all(types.get(field.name) == field.dataType for field in read(spark, manifests).schema.fields)


def point(spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest]) -> str:
    """Point the existing table at these versions; other chunks are unchanged. Versions with other columns need a
    `refresh`."""
    _refuse_mixed(datasetid, manifests)
    name = table_name(datasetid)
    if _owner(spark, name) != datasetid:
        raise InvalidInput(f"DataSet {datasetid} has no table {name} in this catalog; refresh it first")
    by_dataid = spark.table(quoted(name)).columns[-1]
    added = []
    for manifest in manifests:
        try:
            spark.sql(f"alter table {quoted(name)} {_partition(by_dataid, manifest)} set {_location(manifest)}")
        except AnalysisException as error:
            if condition(error) != "PARTITIONS_NOT_FOUND":
                raise
            added.append(manifest)
    _add(spark, name, by_dataid, added)
    return name


def _add(spark: SparkSession, name: str, by_dataid: str, manifests: Sequence[Manifest]) -> None:
    for start in range(0, len(manifests), _PARTITIONS_PER_STATEMENT):
        batch = manifests[start : start + _PARTITIONS_PER_STATEMENT]
        partitions = " ".join(f"{_partition(by_dataid, manifest)} {_location(manifest)}" for manifest in batch)
        spark.sql(f"alter table {quoted(name)} add {partitions}")


def _partition(by_dataid: str, manifest: Manifest) -> str:
    return f"partition ({by_dataid} = {text(manifest.dataid)})"


def _location(manifest: Manifest) -> str:
    return f"location {text(spark_path(manifest.location))}"


def _partition_column(columns: StructType) -> str:
    """A name that no data column has."""
    taken = {name.lower() for name in columns.names}
    return next(name for name in ("dataid", "chunk_dataid", "odf_chunk_dataid") if name not in taken)


def _own_folder(spark: SparkSession, name: str) -> str:
    """An external table needs a folder, which stays empty. Dropping the table removes no files."""
    return f"{spark.conf.get('spark.sql.warehouse.dir')}/opendataflow/{name}"


def _type(of: DataType) -> str:
    match of:
        case StructType():
            return f"struct<{', '.join(f'{quoted(field.name)}: {_type(field.dataType)}' for field in of.fields)}>"
        case ArrayType():
            return f"array<{_type(of.elementType)}>"
        case MapType():
            return f"map<{_type(of.keyType)}, {_type(of.valueType)}>"
        case _:
            return of.simpleString()


def _owner(spark: SparkSession, name: str) -> str | None:
    """The DataSet whose table this is; empty: none of ours; None: no such table."""
    if not spark.catalog.tableExists(quoted(name)):
        return None
    properties = {row["key"]: row["value"] for row in spark.sql(f"show tblproperties {quoted(name)}").collect()}
    return str(properties.get(_OWNER, ""))


def _refuse_other_owner(spark: SparkSession, name: str, datasetid: DatasetId) -> None:
    if (owner := _owner(spark, name)) not in (None, datasetid):
        whose = f"belongs to DataSet {owner}" if owner else "was not created by this system"
        raise InvalidDefinition(f"table {name} {whose}; rename DataSet {datasetid}, or drop the table")


def _refuse_mixed(datasetid: DatasetId, manifests: Iterable[Manifest]) -> None:
    seen: set[str] = set()
    for manifest in manifests:
        if manifest.datasetid != datasetid or manifest.dataid in seen:
            problem = "is repeated" if manifest.datasetid == datasetid else f"is not a chunk of {datasetid}"
            raise InvalidInput(
                f"{manifest.datasetid}/{manifest.dataid} {problem}; pass the current version of each chunk once"
            )
        seen.add(manifest.dataid)
