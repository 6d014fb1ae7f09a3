"""A table for outside readers: `select ... from flights` reads the current versions. It can be made anew at any time.

It is an external table with a partition for each chunk, whose location is the folder of the version. So it needs
nothing but SQL, is a table to every tool that shares the catalog (a Hive metastore, say), grows to as many chunks as a
catalog holds, prunes by dataid, and a new version is one changed location. A view over the files would be a text of
thousands of paths that Spark reads from end to end for each query. The folder of a claim holds the files of its
manifest alone, so reading the folder is reading the version. With Spark's default catalog the table lives as long as
the session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from ..model.errors import InvalidDefinition, InvalidInput
from ..model.ids import ChunkKey, DatasetId, dataset_id
from ..model.literals import quoted, text
from ..model.manifest import Manifest
from .failures import condition
from .location import spark_path
from .parquet import read
from .schema import plain

_OWNER = "opendataflow.datasetid"
# One statement names so many partitions.
_AT_ONCE = 500


def table_name(datasetid: DatasetId) -> str:
    """The DataSet's own name where a catalog can hold it (letters, digits and _); otherwise one made from it, with a
    mark that keeps different DataSets apart."""
    name = dataset_id(datasetid)
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,100}", name):
        return name.lower()
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{re.sub('[^a-z0-9]+', '_', name.lower())[:80].strip('_') or 'dataset'}_{mark}"


def refresh(
    spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest], schema: StructType | None = None
) -> str:
    """Make the table anew from these versions, all that are current; its name."""
    _refuse_strangers(datasetid, manifests)
    columns = plain(schema) if schema is not None else read(spark, manifests).schema if manifests else None
    if columns is None:
        raise InvalidInput(f"DataSet {datasetid} has no versions and no schema to make a table of; make a chunk first")
    name, by_dataid = table_name(datasetid), _partition_column(columns)
    _refuse_other_owner(spark, name, datasetid)
    # The old table is there until the new one is whole.
    made = f"{name}__new"
    spark.sql(f"drop table if exists {quoted(made)}")
    fields = [*columns.fields, StructField(by_dataid, StringType())]
    spark.sql(
        f"create table {quoted(made)} ({', '.join(f'{quoted(one.name)} {_type(one.dataType)}' for one in fields)}) "
        f"using parquet partitioned by ({by_dataid}) location {text(_own_folder(spark, name))} "
        f"tblproperties ({text(_OWNER)} = {text(datasetid)})"
    )
    _add(spark, made, by_dataid, manifests)
    spark.sql(f"drop table if exists {quoted(name)}")
    spark.sql(f"alter table {quoted(made)} rename to {quoted(name)}")
    return name


def fits(spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest]) -> bool:
    """Is there a table with all columns of these versions, so that `point` is enough?"""
    name = table_name(datasetid)
    if _owner(spark, name) != datasetid:
        return False
    has = {one.name: one.dataType for one in plain(spark.table(quoted(name)).schema).fields}
    return all(has.get(one.name) == one.dataType for one in read(spark, manifests).schema.fields)


def point(spark: SparkSession, datasetid: DatasetId, manifests: Sequence[Manifest]) -> str:
    """Let the table, which is there, read these versions of their chunks; the other chunks stay as they are. A version
    with other columns needs a `refresh`."""
    _refuse_strangers(datasetid, manifests)
    name = table_name(datasetid)
    if _owner(spark, name) != datasetid:
        raise InvalidInput(f"there is no table {name} of DataSet {datasetid} in this catalog; refresh it first")
    by_dataid = spark.table(quoted(name)).columns[-1]
    added = []
    for one in manifests:
        try:
            spark.sql(f"alter table {quoted(name)} {_partition(by_dataid, one)} set {_location(one)}")
        except AnalysisException as error:
            if condition(error) != "PARTITIONS_NOT_FOUND":
                raise
            added.append(one)
    _add(spark, name, by_dataid, added)
    return name


def _add(spark: SparkSession, name: str, by_dataid: str, manifests: Sequence[Manifest]) -> None:
    for begin in range(0, len(manifests), _AT_ONCE):
        portion = manifests[begin : begin + _AT_ONCE]
        partitions = " ".join(f"{_partition(by_dataid, one)} {_location(one)}" for one in portion)
        spark.sql(f"alter table {quoted(name)} add {partitions}")


def _partition(by_dataid: str, manifest: Manifest) -> str:
    return f"partition ({by_dataid} = {text(manifest.dataid)})"


def _location(manifest: Manifest) -> str:
    return f"location {text(spark_path(manifest.location))}"


def _partition_column(columns: StructType) -> str:
    """A partition column never has the name of a data column."""
    taken = {name.lower() for name in columns.names}
    return next(name for name in ("dataid", "chunk_dataid", "odf_chunk_dataid") if name not in taken)


def _own_folder(spark: SparkSession, name: str) -> str:
    """An external table must have a folder; nothing is ever in it. Dropping an external table removes no files."""
    return f"{spark.conf.get('spark.sql.warehouse.dir')}/opendataflow/{name}"


def _type(of: DataType) -> str:
    match of:
        case StructType():
            return f"struct<{', '.join(f'{quoted(one.name)}: {_type(one.dataType)}' for one in of.fields)}>"
        case ArrayType():
            return f"array<{_type(of.elementType)}>"
        case MapType():
            return f"map<{_type(of.keyType)}, {_type(of.valueType)}>"
        case _:
            return of.simpleString()


def _owner(spark: SparkSession, name: str) -> str | None:
    """Whose table this is; empty: not one of ours; None: there is none."""
    if not spark.catalog.tableExists(quoted(name)):
        return None
    found = {row["key"]: row["value"] for row in spark.sql(f"show tblproperties {quoted(name)}").collect()}
    return str(found.get(_OWNER, ""))


def _refuse_other_owner(spark: SparkSession, name: str, datasetid: DatasetId) -> None:
    if (owner := _owner(spark, name)) not in (None, datasetid):
        whose = f"DataSet {owner}" if owner else "someone else"
        raise InvalidDefinition(f"the table {name} belongs to {whose}; rename DataSet {datasetid}, or drop the table")


def _refuse_strangers(datasetid: DatasetId, manifests: Iterable[Manifest]) -> None:
    seen: set[str] = set()
    for one in manifests:
        if one.datasetid != datasetid or one.dataid in seen:
            raise InvalidInput(
                f"{ChunkKey(datasetid=one.datasetid, dataid=one.dataid)} is not one chunk of {datasetid} with one "
                f"version; give each chunk's current version once"
            )
        seen.add(one.dataid)
