"""A manifest accepts only folders, files inside them, and real counts."""

from __future__ import annotations

import pytest

from opendataflow_dagster.model.errors import (
    InvalidManifest,
)
from opendataflow_dagster.model.manifest import File, NewManifest


@pytest.mark.parametrize(
    "location", ["", "/", " ", "/w/raw/..", "/w/../raw", "../raw", "/w/./raw", "s3://b/../c", "/w/a\x00b"]
)
def test_a_manifest_at_a_place_that_is_none_is_refused(location: str) -> None:
    with pytest.raises(InvalidManifest, match=r"is not a location; pass a folder"):
        NewManifest(location=location)


@pytest.mark.parametrize("path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a/./x", "a\x00b"])
def test_a_file_outside_of_its_manifest_is_refused(path: str) -> None:
    with pytest.raises(InvalidManifest, match=r"cannot be a file of a manifest; pass a path inside"):
        File(path=path, size=1)


def test_a_negative_size_or_count_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="part-0 has size -1"):
        File(path="part-0", size=-1)
    with pytest.raises(InvalidManifest, match="/w/raw has -1 rows"):
        NewManifest(location="/w/raw", row_count=-1)
