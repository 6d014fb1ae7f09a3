"""Where the work of a test pipeline waits, so that a test can kill it at that moment.

It waits while the folder ODF_TEST_HOLD has a file MOMENT-DAY or MOMENT-any: processes that kill each other can only
share files.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, udf

VARIABLE = "ODF_TEST_HOLD"
ANY = "any"


@dataclass(frozen=True)
class Hold:
    """The test's side. `ANY` as the dataid holds every chunk that comes to the moment."""

    folder: Path

    def at(self, moment: str, dataid: str) -> None:
        self.folder.mkdir(exist_ok=True)
        for mark in self.folder.glob(f"{moment}-{'*' if dataid == ANY else dataid}.reached"):
            mark.unlink()
        (self.folder / f"{moment}-{dataid}").touch()

    def reached(self, moment: str, dataid: str) -> int | None:
        """The process that waits."""
        mark = _mark(self.folder, moment, dataid)
        return int(mark.read_text()) if mark.exists() else None

    def count_waiting(self, moment: str) -> int:
        return len(list(self.folder.glob(f"{moment}-*.reached")))

    def let_go(self, moment: str, dataid: str) -> None:
        (self.folder / f"{moment}-{dataid}").unlink()

    def let_go_of_all(self) -> None:
        for path in self.folder.glob("*"):
            if not path.suffix:  # the other side writes the marks
                path.unlink()


def wait_at(moment: str, dataid: str) -> None:
    folder = Path(os.environ[VARIABLE])
    while _is_held(moment, dataid):
        mark = _mark(folder, moment, dataid)
        new = mark.with_suffix(".new")
        new.write_text(str(os.getpid()))
        new.replace(mark)
        time.sleep(0.05)


def wait_in_write(rows: DataFrame, dataid: str, last: int) -> DataFrame:
    """The row with this id waits in Spark, after other rows have been written."""
    if not _is_held("write", dataid):
        return rows

    def waited(number: int, dataid: str) -> bool:
        if number == last:
            wait_at("write", dataid)
        return True

    return rows.where(udf(waited, "boolean")(col("id"), lit(dataid)))


def _is_held(moment: str, dataid: str) -> bool:
    folder = Path(os.environ[VARIABLE])
    return any((folder / f"{moment}-{name}").exists() for name in (dataid, ANY))


def _mark(folder: Path, moment: str, dataid: str) -> Path:
    return folder / f"{moment}-{dataid}.reached"
