"""Spark's errors in one line, without the stack traces of two languages."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ..model.errors import SparkUnavailable
from .session import is_alive

_MAX = 500


def condition(error: BaseException) -> str | None:
    """Spark's name for the error, such as PATH_NOT_FOUND."""
    return error.getCondition() if isinstance(error, PySparkException) else None


def cause(error: BaseException) -> str:
    text = str(error).strip()
    if "Traceback (most recent call last)" in text:
        # An error in the author's Python: the last line of its traceback.
        lines = [line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception|Warning|Interrupt)?: ", line)]
        text = lines[-1] if lines else text.splitlines()[-1]
    else:
        text = re.split(r"\n(?:\s*at |\s*==|JVM stacktrace|Driver stacktrace|'?\w+ )", text, maxsplit=1)[0]
    text = re.sub(r"^An error occurred while calling \S+\s*:\s*", "", " ".join(text.split()))
    if not (isinstance(error, PySparkException) and text):
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= _MAX else f"{text[:_MAX]}..."


def refuse_dead_session(spark: SparkSession, error: BaseException, what: str) -> None:
    if not is_alive(spark):
        raise SparkUnavailable(f"{what}: lost the Spark session ({cause(error)}); retry with a new one") from error
