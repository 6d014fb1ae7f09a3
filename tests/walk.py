"""Which functions of the package call which, while a block runs: in all of its threads."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1] / "opendataflow_dagster"

_PREFIX: Final = f"{PACKAGE}/"
_PRODUCER: Final = "engine.producer.Producer.run"
#: Their work goes on beside the path of a chunk.
_BESIDE: Final = frozenset({"odf-heartbeat", "odf-leases", "odf-events"})


@dataclass
class Walk:
    #: Who called whom, each pair once, in the order of the first calls. Code outside of the package that stands between
    #: two of its functions does not count. None: Dagster called.
    calls: list[tuple[str | None, str]] = field(default_factory=list)

    @property
    def functions(self) -> list[str]:
        return list(dict.fromkeys(called for _, called in self.calls))

    @property
    def crossings(self) -> int:
        """How many of the calls lead into another room."""
        return sum((caller or "").split(".")[0] != called.split(".")[0] for caller, called in self.calls)

    def until(self, last: str) -> Walk:
        """Up to the first call of this function."""
        end = next(place for place, (_, called) in enumerate(self.calls) if called == last)
        return Walk(calls=self.calls[: end + 1])


@contextmanager
def traced() -> Iterator[Walk]:
    walk, seen = Walk(), set[tuple[str | None, str]]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (called := _name_of(frame)) is None or threading.current_thread().name in _BESIDE:
            return
        if (call := (_caller_of(frame), called)) not in seen:
            seen.add(call)
            walk.calls.append(call)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _caller_of(frame: FrameType) -> str | None:
    back = frame.f_back
    while back is not None:
        if (name := _name_of(back)) is not None:
            return name
        back = back.f_back
    # The producer hands its work on to threads; Dagster calls the rest.
    return _PRODUCER if threading.current_thread().name.startswith("odf-") else None


def _name_of(frame: FrameType) -> str | None:
    """None for what is not a function of the package: other code, expressions, class bodies and properties."""
    code = frame.f_code
    if not code.co_filename.startswith(_PREFIX) or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    name = code.co_qualname.replace(".<locals>", "")
    if "<" in name or name.rpartition(".")[2].startswith("__"):
        return None
    module = Path(code.co_filename).relative_to(PACKAGE).with_suffix("")
    return f"{'.'.join(module.parts)}.{name}"
