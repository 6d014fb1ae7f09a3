"""Failures with the same cause are recognized whatever their chunk."""

from __future__ import annotations

from opendataflow_dagster.insight.causes import normalised


def test_a_short_dataid_is_not_replaced_inside_words() -> None:
    assert normalised("part a of table data: a", {"{dataid}": "a"}) == "part {dataid} of table data: {dataid}"
    assert normalised("exit code 1: chunk 1", {"{dataid}": "1"}) == "exit code 1: chunk {dataid}"
