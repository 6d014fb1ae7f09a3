"""Names of chunks, DataSets and Jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opendataflow_dagster.model.errors import (
    InvalidName,
)
from opendataflow_dagster.model.ids import DataId, data_id, dataset_id, job_id
from opendataflow_dagster.model.paths import path_part
from opendataflow_dagster.warehouse.location import decoded, encoded


@pytest.mark.parametrize("make", [data_id, dataset_id, job_id])
def test_a_name_that_is_not_text_is_refused(make: Callable[[Any], str]) -> None:
    for thing in (1, None, b"raw", ["raw"]):
        with pytest.raises(InvalidName, match="must be text, not "):
            make(thing)


def test_different_names_are_different_parts_of_a_path() -> None:
    long = "a" * 300
    names = ["a/b", "a%2Fb", "a b", "~", "%7E", ".", "%2E", long, f"{long}b", path_part(long)]
    assert len({path_part(one) for one in names}) == len(names)


@pytest.mark.parametrize(
    "dataid",
    [
        "2024-01-01-00:00",
        "..",
        ".",
        "../../etc",
        "/etc",
        "_x",
        ".x",
        "a=b",
        "a*b?[c]{d}",
        "a%2Fb",
        "ä/ö €",
        "a\\b",
        "+a",
        "~",
        "x" * 500,
        "ü" * 250,
    ],
)
def test_a_dataid_never_leaves_its_folder(tmp_path: Path, dataid: str) -> None:
    folder = encoded(DataId(dataid))
    assert tmp_path in (tmp_path / folder).resolve().parents
    assert all(
        len(piece) <= 255 and piece[0] not in "._" and not set(piece) & set("*?[]{}\\:=") for piece in folder.split("/")
    )
    assert decoded(folder) == dataid


def test_different_dataids_have_different_folders() -> None:
    long = "x" * 200
    names = ["a", "A", "a b", "a%20b", long, long + "1", long + "+1", long + "/1", long + "1/1"]
    assert len({encoded(DataId(name)) for name in names}) == len(names)
    with pytest.raises(InvalidName):
        encoded(DataId("a\nb"))
