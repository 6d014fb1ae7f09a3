"""stage and read: Parquet through Spark.

stage writes once, into the folder of the claim, and measures during that write. read finds files through manifests
alone. Nothing here needs more of Spark than Spark Connect offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from ..model.checks import Check, NotNull, Unique, not_null, refuse_repeated
from ..model.errors import IncompatibleSchema, InvalidDefinition, InvalidInput, InvalidManifest, StageFailed
from ..model.ids import ClaimId, DataId
from ..model.manifest import CheckResult, File, Manifest, NewManifest
from .failures import cause, condition, refuse_dead_session
from .files import spark_schema, written_files
from .literals import column
from .location import folder_of, spark_path
from .measure import MEASURES, Measured, check_expression, measured
from .schema import differences, plain, repeated, schema_hash, unreadable

__all__ = ["read", "schema_hash", "stage"]

# The ledger says what succeeded; a mark beside the files would only cost a write.
_NO_SUCCESS_FILE = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}

_PATTERN = re.compile(r"[\\{}\[\]*?]")

#: Schemas that this process has seen, by their hash: a file of a known one need not be asked for it.
_known_schemas: dict[str, StructType] = {}


def stage(
    frame: DataFrame,
    *,
    root: str,
    dataid: DataId,
    claim_id: ClaimId,
    checks: Sequence[Check] = (),
    previous_rows: int | None = None,
    schema: StructType | None = None,
) -> NewManifest:
    """The version as it was written, with the results of its checks. A failed check does not raise; publish does."""
    if not isinstance(root, str) or not hasattr(frame, "observe"):
        raise InvalidInput(f"chunk {dataid} cannot be staged from {type(frame).__name__}; give a Spark DataFrame")
    chunk = f"chunk {dataid} (claim {claim_id})"
    location = folder_of(root, dataid, claim_id)
    refuse_repeated(checks, chunk)
    frame, plan = _planned(frame, schema, checks, chunk)
    observation = Observation()
    try:
        observed = frame.observe(observation, expr(plan.expression))
        observed.write.options(**_NO_SUCCESS_FILE).mode("error").parquet(spark_path(location))
        # Only after a write that succeeded: a failed one leaves half a figure, and one that never ran is waited for.
        metrics = observation.get[MEASURES].asDict()
        files = written_files(location)
    except Exception as error:  # Spark's, the author's function inside of it, or the file system's
        _fail(error, frame, plan.checks, f"{chunk} could not be written to {location}")
    _known_schemas[plan.schema_hash] = plan.schema
    return NewManifest(
        location=location,
        files=files,
        row_count=metrics["rows"],
        schema_hash=plan.schema_hash,
        content_digest=plan.content_digest(metrics),
        checks=_results(frame, plan, metrics, previous_rows, location, files),
    )


def read(spark: SparkSession, manifests: Sequence[Manifest], schema: StructType | None = None) -> DataFrame:
    """The rows of these versions as one frame. A column that an older version lacks is null there."""
    if not manifests and schema is None:
        raise InvalidInput("no versions and no schema: there is nothing to read; give the DataSet's schema")
    paths = [path for one in manifests for path in _paths(one.location, one.files)]
    if schema is None and len(manifests) == 1:
        # No other version to agree with: what is not known, Spark finds as it reads.
        found = _known_schema(spark, manifests[0])
        return _parquet(spark, paths, found) if found else _remembered(manifests[0], _parquet(spark, paths, None))
    wanted = _wanted(spark, manifests, schema)
    return _parquet(spark, paths, wanted) if manifests else spark.createDataFrame([], wanted)


def _planned(
    frame: DataFrame, schema: StructType | None, checks: Sequence[Check], chunk: str
) -> tuple[DataFrame, Measured]:
    """The frame as it is to be written, and what is to be measured of it."""
    try:
        found = frame.schema
    except Exception as error:  # with Connect, an author's mistake shows only now
        _fail(error, frame, (), f"{chunk} has no schema")
    if twice := repeated(found):
        raise IncompatibleSchema(f"{chunk} has the columns {', '.join(twice)}, which are one to Spark; rename them")
    if schema is not None:
        frame = _as_declared(frame, schema, chunk)
        checks = (*checks, *_declared_not_null(frame, schema, checks))
    return frame, measured(frame.schema, checks)


def _as_declared(frame: DataFrame, declared: StructType, chunk: str) -> DataFrame:
    if wrong := differences(frame.schema, declared):
        more = f"; and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        raise IncompatibleSchema(
            f"{chunk} does not have its declared schema: {'; '.join(wrong[:10])}{more}; "
            f"make it as declared, or declare the new schema. Nothing was written"
        )
    return frame if frame.schema.names == declared.names else frame.select([column(name) for name in declared.names])


def _declared_not_null(frame: DataFrame, declared: StructType, checks: Sequence[Check]) -> list[Check]:
    """A column that is declared as never null is checked, unless Spark knows that it is not or a check says it."""
    said = {name for one in checks if isinstance(one, NotNull) for name in one.columns}
    nullable = {one.name for one in frame.schema.fields if one.nullable}
    names = [one.name for one in declared.fields if not one.nullable and one.name in nullable - said]
    return [not_null(*names)] if names else []


def _results(
    frame: DataFrame,
    plan: Measured,
    metrics: dict[str, int],
    previous_rows: int | None,
    location: str,
    files: tuple[File, ...],
) -> tuple[CheckResult, ...]:
    found = plan.results(metrics, previous_rows)
    for check in plan.checks:
        if isinstance(check, Unique):
            paths = _paths(location, files)
            found[check] = _unique(_parquet(frame.sparkSession, paths, plan.schema), check, metrics["rows"])
    return tuple(found[check] for check in plan.checks)


def _unique(written: DataFrame, check: Unique, rows: int) -> CheckResult:
    """A pass of its own over what was written: no Observation can know which rows there are on other machines."""
    names = [column(name) for name in check.columns]
    keys = written.select(names).where(" and ".join(f"{name} is not null" for name in names)).groupBy(names)
    said = "concat_ws(', ', " + ", ".join(f"substring(cast({name} as string), 1, 60)" for name in names) + ")"
    repeated_keys = keys.count().where("count > 1").selectExpr("count", f"{said} as example")
    (found,) = repeated_keys.selectExpr("count(1) as keys", "sum(count) as rows", "min(example) as example").collect()
    if not found["keys"]:
        return CheckResult(name=check.name, passed=True, detail=f"no two of {rows:,} rows are equal")
    detail = f"{found['rows']:,} of {rows:,} rows share {found['keys']:,} values, for example {found['example']!r}"
    return CheckResult(name=check.name, passed=False, detail=detail)


def _wanted(spark: SparkSession, manifests: Sequence[Manifest], schema: StructType | None) -> StructType:
    """The schema to read with: the one given, or all columns that the versions have."""
    # A version that somebody else made may have no hash: then it may have any columns.
    by_hash = {one.schema_hash or one.location: one for one in manifests}
    if schema is not None and set(by_hash) <= {schema_hash(schema)}:
        return plain(schema)
    merged = plain(schema) if schema is not None else StructType()
    for one in by_hash.values():
        stored = _stored_schema(spark, one)
        if wrong := unreadable(stored, merged):
            raise IncompatibleSchema(
                f"{one.datasetid}/{one.dataid} version {one.version} cannot be read with the others: "
                f"{'; '.join(wrong)}; resubmit the older chunks, or read them apart"
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
    """What can be known without a job of Spark."""
    known = _known_schemas.get(manifest.schema_hash or "")
    if known is None and manifest.files and not (len(manifest.files) > 1 and _merges(spark)):
        # The one that Spark would ask.
        first = min(file.path for file in manifest.files)
        found = spark_schema(f"{manifest.location}/{first}")
        known = plain(found) if found is not None else None
        _remember(manifest, known)
    return known


def _merges(spark: SparkSession) -> bool:
    """Does Spark ask all files of a version, and give the columns of all?"""
    return spark.conf.get("spark.sql.parquet.mergeSchema") == "true"


def _remembered(manifest: Manifest, frame: DataFrame) -> DataFrame:
    if manifest.schema_hash is not None:
        _remember(manifest, plain(frame.schema))
    return frame


def _remember(manifest: Manifest, found: StructType | None) -> None:
    """Only what is true: somebody else may have announced another hash."""
    said = manifest.schema_hash
    if found is not None and said is not None and said == schema_hash(found):
        _known_schemas[said] = found


def _paths(location: str, files: Iterable[File]) -> list[str]:
    """A version of someone else may list no files: then it is all that lies there."""
    at = spark_path(location)
    return [f"{at}/{file.path}" for file in files] or [at]


def _parquet(spark: SparkSession, paths: Sequence[str], schema: StructType | None) -> DataFrame:
    reader = spark.read if schema is None else spark.read.schema(schema)
    try:
        # Spark takes what it reads for patterns; ours are names, whatever characters they hold.
        return reader.parquet(*(_PATTERN.sub(r"\\\g<0>", path) for path in paths))
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            raise InvalidManifest(f"{cause(error)}; put the files back, or resubmit their chunk") from error
        raise


def _fail(error: Exception, frame: DataFrame, checks: Sequence[Check], what: str) -> NoReturn:
    refuse_dead_session(frame.sparkSession, error, what)
    if condition(error) == "PATH_ALREADY_EXISTS":
        raise StageFailed(f"{what}: it is there already; a claim writes once, so claim it anew") from error
    if isinstance(error, AnalysisException | ParseException):
        for check in checks:
            if (alone := check_expression(check)) and (said := _misunderstood(frame, alone)):
                raise InvalidDefinition(f"{what}: check {check.name} cannot be asked: {said}; correct it") from error
    raise StageFailed(f"{what}: {cause(error)}") from error


def _misunderstood(frame: DataFrame, expression: str) -> str | None:
    try:
        _ = frame.selectExpr(expression).schema
    except (AnalysisException, ParseException) as error:
        return cause(error)
    return None
