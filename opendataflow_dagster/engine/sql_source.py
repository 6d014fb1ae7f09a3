"""A DataSet from a SQL query over other DataSets.

The query is parsed when definitions load, so that a path or an untracked table is refused then. Spark runs the text as
written, with `:dataid` as a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Unpack

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from ..model.errors import InvalidDefinition
from ..model.ids import dataset_id
from .chunk import ChunkContext, Inputs
from .declaration import Declaration, declare
from .fingerprint import of_query
from .options import Options, refuse_wrong_options
from .spark_source import SparkSource
from .sql_columns import columns_of_query


@dataclass(frozen=True, kw_only=True)
class SqlSource(SparkSource):
    kinds: ClassVar[frozenset[str]] = frozenset({"spark", "sql"})

    text: str
    tables: tuple[str, ...]

    def fingerprint(self) -> str:
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return of_query(self.text)

    def columns(self, inputs: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        return columns_of_query(self.text, inputs)

    def compute(self, inputs: Inputs, context: ChunkContext) -> object:
        from ..warehouse.session import beside

        # A session of its own, because chunks made at the same time use the same table names.
        session = beside(context.spark)
        for table in self.tables:
            inputs.frame(table, session).createOrReplaceTempView(table)
        return session.sql(self.text, args={"dataid": context.dataid})


def sql_dataset(source: str | Path, name: str | None = None, **options: Unpack[Options]) -> Declaration:
    """Declare the DataSet that this query makes, chunk by chunk. `source` is a .sql file, or the query itself.

    Every table in the query is an input DataSet; `inputs` maps table names to other DataSets. `:dataid` is the chunk.
    """
    path = Path(source) if isinstance(source, Path) or source.strip().endswith(".sql") else None
    if path is not None and not path.is_file():
        raise InvalidDefinition(f"there is no SQL file {path}; give a path that exists")
    datasetid = dataset_id(name or (path.stem if path else ""))
    refuse_wrong_options(datasetid, options)
    text = path.read_text() if path else str(source)
    tables = _tables(datasetid, text)
    return declare(datasetid, SqlSource(text=text, tables=tables), tables, options)


def _tables(name: str, text: str) -> tuple[str, ...]:
    try:
        statements = sqlglot.parse(text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidDefinition(f"DataSet {name}: its SQL cannot be parsed ({error}); correct it") from error
    query = statements[0] if len(statements) == 1 else None
    if not isinstance(query, exp.Query):
        raise InvalidDefinition(
            f"DataSet {name}: its SQL is not a single query; write one SELECT, and the framework stores the result"
        )
    tables: dict[str, None] = {}
    for scope in traverse_scope(query):
        for table in scope.tables:
            # Names defined by WITH and subqueries are not tables.
            if isinstance(scope.sources.get(table.alias_or_name), exp.Table):
                tables[_dataset_name(name, table)] = None
    return tuple(tables)


def _dataset_name(name: str, table: exp.Table) -> str:
    if not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
        raise InvalidDefinition(
            f"DataSet {name}: its SQL reads {table.sql(dialect='spark')}, which is a path, a function or a table of "
            f"another catalog; read DataSets by name only"
        )
    return table.name
