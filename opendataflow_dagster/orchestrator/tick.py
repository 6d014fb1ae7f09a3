"""What a sensor's tick returns: its reason, where Dagster's list of ticks shows it.

The list shows no skip reason, only the beginning of the cursor. So the cursor begins with the reason, and the sensor's
own state follows in its last line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import dagster as dg

from ..model.text import printable

_LONGEST: Final = 300


def tick(
    said: str, *, in_full: str | None = None, state: str = "", run_requests: Sequence[dg.RunRequest] = ()
) -> dg.SensorResult:
    """`said` is shown in the list, which has room for about 45 characters. The dialog of a tick without runs shows it
    in full."""
    cursor = f"{printable(said)[:_LONGEST]}\n{state}"
    if run_requests:
        return dg.SensorResult(run_requests=run_requests, cursor=cursor)
    return dg.SensorResult(skip_reason=in_full or said, cursor=cursor)


def state_of(cursor: str | None) -> str:
    """What the tick before has left."""
    return (cursor or "").rpartition("\n")[2]
