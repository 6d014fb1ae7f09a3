"""Parquet through Spark: `write` a version and measure it in the same pass, `read` versions through their manifests.

Uses nothing that Spark Connect does not offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from ..model.check import Check, refuse_unknown_columns
from ..model.checks import NotNull, not_null
from ..model.errors import IncompatibleSchema, InvalidInput, InvalidManifest, StageFailed
from ..model.literals import quoted
from ..model.manifest import File, Manifest, Written
from ..model.text import listing
from .digest import content_digest
from .failures import cause, condition, refuse_dead_session
from .files import spark_schema, written_files
from .location import spark_path
from .measure import MEASURES, measures_of, refuse_invalid_checks, values_of
from .schema import differences, plain, repeated, schema_hash, unreadable

# The ledger records what succeeded; a _SUCCESS file would only cost a write.
_NO_SUCCESS_FILE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}

_PATTERN = re.compile(r"[\\{}\[\]*?]")

#: The schemas that this process has seen, by hash: the files of a known one need no look at their footers.
_known_schemas: dict[str, StructType] = {}


def write(
    frame: DataFrame, location: str, *, chunk: str, checks: Sequence[Check] = (), schema: StructType | None = None
) -> Written:
    """Write the rows once, to a location that must not exist yet. `chunk` names them in errors."""
    try:
        found = frame.schema
    except Exception as error:  # with Connect, the author's mistakes appear only now
        _fail(error, frame, (), f"{chunk} has no schema")
    if names := repeated(found):
        raise IncompatibleSchema(
            f"{chunk} has the columns {', '.join(names)}, which Spark cannot tell apart; rename them"
        )
    if schema is not None:
        frame = _as_declared(frame, schema, chunk)
        checks = (*checks, *_declared_not_null(frame, schema, checks))
    for check in checks:
        refuse_unknown_columns(check, frame.schema.names, chunk, lambda: _is_case_sensitive(frame))
    measures, observation = measures_of(frame.schema, checks), Observation()
    try:
        observed = frame.observe(observation, expr(measures.expression))
        observed.write.options(**_NO_SUCCESS_FILE).mode("error").parquet(spark_path(location))
        # Only after a successful write: a failed one leaves partial figures, and one that never ran blocks.
        metrics = observation.get[MEASURES].asDict()
        files = written_files(location)
    except Exception as error:  # from Spark, the author's function or the file system
        _fail(error, frame, checks, f"{chunk} could not be written to {location}")
    _known_schemas[measures.schema_hash] = measures.schema
    grouping = any(check.group_by for check in checks)
    rows = _parquet(frame.sparkSession, _paths(location, files), measures.schema) if grouping else None
    return Written(
        location=location,
        files=files,
        row_count=metrics["rows"],
        schema_hash=measures.schema_hash,
        content_digest=content_digest(measures.schema_hash, metrics["rows"], metrics),
        checks=tuple(checks),
        values=values_of(metrics, checks, rows),
    )


def read(spark: SparkSession, manifests: Sequence[Manifest], schema: StructType | None = None) -> DataFrame:
    """The rows of these versions as one frame. A column that an older version lacks is null there."""
    if not manifests and schema is None:
        raise InvalidInput("nothing to read: no versions and no schema; pass the DataSet's schema")
    paths = [path for manifest in manifests for path in _paths(manifest.location, manifest.files)]
    if schema is None and len(manifests) == 1:
        # A single version has no others to agree with; Spark finds an unknown schema as it reads.
        known = _known_schema(spark, manifests[0])
        return _parquet(spark, paths, known) if known else _remembered(manifests[0], _parquet(spark, paths, None))
    wanted = _wanted(spark, manifests, schema)
    return _parquet(spark, paths, wanted) if manifests else spark.createDataFrame([], wanted)


def read_files(spark: SparkSession, location: str, files: Sequence[File]) -> DataFrame:
    """The rows of these files alone, whether they became a version or not."""
    return _parquet(spark, _paths(location, files), None)


def _as_declared(frame: DataFrame, declared: StructType, chunk: str) -> DataFrame:
    if problems := differences(frame.schema, declared):
        raise IncompatibleSchema(
            f"{chunk} does not have its declared schema: {listing(problems, 10, '; ')}; "
            f"produce the declared columns, or declare the new schema. Nothing was written"
        )
    return frame if frame.schema.names == declared.names else frame.select([quoted(name) for name in declared.names])


def _declared_not_null(frame: DataFrame, declared: StructType, checks: Sequence[Check]) -> list[Check]:
    """Check a column that is declared not null, unless Spark knows that it is or a check covers it already."""
    checked = {name for check in checks if isinstance(check, NotNull) for name in check.columns}
    nullable = {field.name for field in frame.schema.fields if field.nullable}
    names = [field.name for field in declared.fields if not field.nullable and field.name in nullable - checked]
    return [not_null(*names)] if names else []


def _is_case_sensitive(frame: DataFrame) -> bool:
    return frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"


def _wanted(spark: SparkSession, manifests: Sequence[Manifest], schema: StructType | None) -> StructType:
    """The schema to read with: the one given, or all columns that the versions have."""
    # A version from an external producer may have no hash, and then any columns.
    by_hash = {manifest.schema_hash or manifest.location: manifest for manifest in manifests}
    if schema is not None and set(by_hash) <= {schema_hash(schema)}:
        return plain(schema)
    merged = plain(schema) if schema is not None else StructType()
    for manifest in by_hash.values():
        stored = _stored_schema(spark, manifest)
        if problems := unreadable(stored, merged):
            raise IncompatibleSchema(
                f"{manifest.datasetid}/{manifest.dataid} version {manifest.version} cannot be read with the others: "
                f"{'; '.join(problems)}; resubmit the older chunks, or read them separately"
            )
        if schema is None:
            names = set(merged.names)
            merged = StructType([*merged.fields, *(field for field in stored.fields if field.name not in names)])
    return merged


def _stored_schema(spark: SparkSession, manifest: Manifest) -> StructType:
    known = _known_schema(spark, manifest)
    if known is None:
        first = _parquet(spark, _paths(manifest.location, manifest.files)[:1], None)
        known = plain(_remembered(manifest, first).schema)
    return known


def _known_schema(spark: SparkSession, manifest: Manifest) -> StructType | None:
    """What is known without a Spark job."""
    known = _known_schemas.get(manifest.schema_hash or "")
    if known is None and manifest.files and not (len(manifest.files) > 1 and _merges(spark)):
        # The file that Spark would look at.
        first = min(file.path for file in manifest.files)
        footer = spark_schema(f"{manifest.location}/{first}")
        known = plain(footer) if footer is not None else None
        _remember(manifest, known)
    return known


def _merges(spark: SparkSession) -> bool:
    """Whether Spark merges the columns of all files of a version."""
    return spark.conf.get("spark.sql.parquet.mergeSchema") == "true"


def _remembered(manifest: Manifest, frame: DataFrame) -> DataFrame:
    if manifest.schema_hash is not None:
        _remember(manifest, plain(frame.schema))
    return frame


def _remember(manifest: Manifest, schema: StructType | None) -> None:
    """Only under its true hash: an announced manifest may have a wrong one."""
    if schema is not None and manifest.schema_hash == schema_hash(schema):
        _known_schemas[manifest.schema_hash] = schema


def _paths(location: str, files: Iterable[File]) -> list[str]:
    """An external version may list no files: then it is the whole folder."""
    folder = spark_path(location)
    return [f"{folder}/{file.path}" for file in files] or [folder]


def _parquet(spark: SparkSession, paths: Sequence[str], schema: StructType | None) -> DataFrame:
    reader = spark.read if schema is None else spark.read.schema(schema)
    try:
        # Spark expands patterns in paths; ours are names, whatever characters they contain.
        return reader.parquet(*(_PATTERN.sub(r"\\\g<0>", path) for path in paths))
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            raise InvalidManifest(f"{cause(error)}; restore the files, or resubmit their chunk") from error
        raise


def _fail(error: Exception, frame: DataFrame, checks: Sequence[Check], problem: str) -> NoReturn:
    refuse_dead_session(frame.sparkSession, error, problem)
    if condition(error) == "PATH_ALREADY_EXISTS":
        raise StageFailed(f"{problem}: the folder exists already and a claim writes once; claim it again") from error
    if isinstance(error, AnalysisException | ParseException):
        refuse_invalid_checks(frame, checks, problem)
    raise StageFailed(f"{problem}: {cause(error)}") from error
