"""Where the work of a test pipeline waits, so that a test can strike at that very moment.

It waits while there is a file MOMENT-DAY in the folder ODF_TEST_HOLD: processes that kill each other share no more
than files.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, udf

VARIABLE = "ODF_TEST_HOLD"


@dataclass(frozen=True)
class Hold:
    """The test's side."""

    folder: Path

    def at(self, moment: str, *dataids: str) -> None:
        self.folder.mkdir(exist_ok=True)
        for one in dataids:
            _reached(self.folder / f"{moment}-{one}").unlink(missing_ok=True)
            (self.folder / f"{moment}-{one}").touch()

    def reached(self, moment: str, dataid: str) -> int | None:
        """The process that waits."""
        mark = _reached(self.folder / f"{moment}-{dataid}")
        return int(mark.read_text()) if mark.exists() else None

    def let_go(self, moment: str, *dataids: str) -> None:
        for one in dataids:
            (self.folder / f"{moment}-{one}").unlink()

    def let_go_of_all(self) -> None:
        for one in self.folder.glob("*"):
            if not one.suffix:  # the marks are those of the other side
                one.unlink()


def wait_at(moment: str, dataid: str) -> None:
    held = _held(moment, dataid)
    while held.exists():
        mark = held.with_name(f"{held.name}.new")
        mark.write_text(str(os.getpid()))
        mark.replace(_reached(held))
        time.sleep(0.05)


def wait_in_write(rows: DataFrame, dataid: str, last: int) -> DataFrame:
    """The row with this id waits in Spark, when others are written already."""
    if not _held("write", dataid).exists():
        return rows

    def waited(number: int, dataid: str) -> bool:
        if number == last:
            wait_at("write", dataid)
        return True

    return rows.where(udf(waited, "boolean")(col("id"), lit(dataid)))


def _held(moment: str, dataid: str) -> Path:
    return Path(os.environ[VARIABLE], f"{moment}-{dataid}")


def _reached(held: Path) -> Path:
    return held.with_name(f"{held.name}.reached")
