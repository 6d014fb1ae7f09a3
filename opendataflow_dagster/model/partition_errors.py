"""What is wrong with declared partitions, and in which line of the author's files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Final

from .errors import InvalidDefinition, InvalidInput
from .paths import in_project
from .text import brief

_PACKAGE: Final = __name__.partition(".")[0]
#: Other ways to write a time, from which the right one is guessed.
_LIKELY: Final = ("%Y-%m-%d", "%Y-%m-%d-%H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m", "%Y%m%d", "%Y/%m/%d")


@contextmanager
def at_the_call(call: str) -> Iterator[None]:
    """An error names the file and the line of the author's call."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidDefinition(f"{_authors_line()}: {call}: {error}") from None


def _authors_line() -> str:
    """`assets/flights.py:12`: the newest line that is not of this package, relative to the project."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in (_PACKAGE, "contextlib"):
        frame = frame.f_back
    return f"{in_project(frame.f_code.co_filename)}:{frame.f_lineno}"


def wrong_bound(kind: str, bound: object, text_of: Callable[[datetime], str], example: datetime) -> str:
    """Why this is no dataid of such partitions, and how to write it."""
    article = "an" if kind == "hourly" else "a"
    if not isinstance(bound, str):
        return f"{brief(bound)} is not text; write it as a string such as {text_of(example)!r}"
    if (time := _guessed(bound)) is None:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}(-\d{2}:\d{2})?", bound):
            return f"{brief(bound)} is not in the calendar; use a time that exists"
        return f"{brief(bound)} is not {article} {kind} dataid; use the form {text_of(example)}"
    if kind == "monthly" and time.day != 1:
        month = text_of(time.replace(day=1, hour=0, minute=0))
        return f"{brief(bound)} is not the first day of a month; a month is written as that day, this one as {month!r}"
    if kind == "hourly" and time.minute:
        return f"{brief(bound)} is not a full hour; write {text_of(time.replace(minute=0))!r}"
    written = text_of(time if kind == "hourly" else time.replace(hour=0, minute=0))
    return f"{brief(bound)} is not {article} {kind} dataid; write {written!r}"


def _guessed(bound: str) -> datetime | None:
    for form in _LIKELY:
        with suppress(ValueError):
            return datetime.strptime(bound, form)  # noqa: DTZ007 - a dataid is in the time zone of its DataSet
    return None
