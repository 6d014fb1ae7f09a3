"""The baseline: the rows of a request, a claim and a publication, in plain SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import psycopg

from opendataflow_dagster.model.manifest import File

_PARTS = re.split(r"^-- name: (\w+)$", Path(__file__).with_suffix(".sql").read_text(), flags=re.MULTILINE)
_SQL = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))
_CLAIM_NAMED, _CLAIM_NEXT = (_SQL["claim"].format(chosen=_SQL[chosen]).encode() for chosen in ("named", "next"))


def add(connection: psycopg.Connection) -> None:
    connection.execute(_SQL["add"].encode())


def connect(url: str) -> psycopg.Connection:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(_SQL["settings"].encode())
    return connection


def make(connection: psycopg.Connection, locations: dict[str, str], file: File) -> int:
    """Request, claim and publish these chunks, each step with its durable commit."""
    dataids = list(locations)
    connection.execute(_SQL["request"].encode(), {"dataids": dataids}, prepare=True)
    claims = connection.execute(_CLAIM_NAMED, {"dataids": dataids}, prepare=True).fetchall()
    files = json.dumps([{"path": file.path, "size": file.size, "digest": None}])
    parameters: dict[str, Sequence[object]] = {
        "dataids": [dataid for dataid, _, _ in claims],
        "claim_ids": [claim_id for _, claim_id, _ in claims],
        "inputs": [inputs for _, _, inputs in claims],
        "locations": [locations[dataid] for dataid, _, _ in claims],
        "files": [files for _ in claims],
    }
    return len(connection.execute(_SQL["publish"].encode(), parameters, prepare=True).fetchall())


def claim_next(connection: psycopg.Connection, count: int) -> int:
    return len(connection.execute(_CLAIM_NEXT, {"count": count}, prepare=True).fetchall())
