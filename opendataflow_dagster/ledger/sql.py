"""Loads the named statements of queries/*.sql.

A statement begins with `-- name: its_name`; the comment lines after it say what it is for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements() -> dict[str, LiteralString]:
    found: dict[str, LiteralString] = {}
    for file in sorted(files(__package__).joinpath("queries").iterdir(), key=lambda file: file.name):
        parts = _NAME.split(file.read_text())
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise AssertionError(f"two statements are named {name}; rename the one in {file.name}")
            # The text comes from our own package and takes its values as bound parameters only.
            found[name] = cast(LiteralString, text.strip())
    return found


def sql(name: str) -> LiteralString:
    return statements()[name]
