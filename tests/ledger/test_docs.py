"""The page of tables describes the tables of the ledger."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text()


def test_the_page_lists_every_table_and_no_column_that_does_not_exist(url: str) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select table_name, array_agg(column_name::text) from information_schema.columns"
            " join information_schema.tables using (table_schema, table_name)"
            " where table_schema = 'dataflow' and table_type = 'BASE TABLE' group by 1"
        ).fetchall()
    columns = {str(name): set(names) for name, names in rows}
    sections = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))

    assert set(sections) == set(columns)
    for name, section in sections.items():
        cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
        documented = {column for cell in cells for column in re.findall(r"`(\w+)`", cell)}
        assert documented - columns[name] == set(), f"{name} has no such column"
