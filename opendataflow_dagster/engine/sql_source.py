"""A DataSet from SQL: its tables are tracked DataSets, and nothing else.

The text is parsed when definitions load, so that a path or a table that nobody tracks is refused then. Spark runs it as
it was written, with `:dataid` as a parameter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from ..model.errors import InvalidDefinition
from ..model.ids import dataset_id
from ..warehouse.session import beside
from .declaration import Declaration, declare_with
from .options import Options, refuse_wrong_options

if TYPE_CHECKING:
    from .chunk import ChunkContext, Inputs


def sql_dataset(source: str | Path, name: str | None = None, **options: Unpack[Options]) -> Declaration:
    """Declare the DataSet that this query makes, chunk by chunk. `source` is a .sql file, or the query itself.

    Every table it names is an input; `inputs` may say that it is a DataSet of another name. `:dataid` is the chunk.
    """
    path = Path(source) if isinstance(source, Path) or source.strip().endswith(".sql") else None
    if path is not None and not path.is_file():
        raise InvalidDefinition(f"there is no file {path} with the SQL of a DataSet; give a path that exists")
    named = dataset_id(name or (path.stem if path else ""))
    refuse_wrong_options(named, options)
    text = path.read_text() if path else str(source)
    tables = _tables(named, text)

    def compute(inputs: Inputs, context: ChunkContext) -> object:
        # A session of its own: several chunks at a time have tables of the same names.
        session = beside(context.spark)
        for table in tables:
            inputs.frame(table, session).createOrReplaceTempView(table)
        return session.sql(text, args={"dataid": context.dataid})

    return declare_with(named, "sql", tables, compute, options)


def _tables(name: str, text: str) -> tuple[str, ...]:
    try:
        statements = sqlglot.parse(text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidDefinition(f"DataSet {name}: its SQL cannot be read ({error}); correct it") from error
    query = statements[0] if len(statements) == 1 else None
    if not isinstance(query, exp.Query):
        raise InvalidDefinition(f"DataSet {name}: its SQL is not one query; write one SELECT, the framework stores it")
    found: dict[str, None] = {}
    for scope in traverse_scope(query):
        for table in scope.tables:
            # A name that a WITH defines, or a subquery, is no table.
            if isinstance(scope.sources.get(table.alias_or_name), exp.Table):
                found[_tracked(name, table)] = None
    return tuple(found)


def _tracked(name: str, table: exp.Table) -> str:
    if not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
        said = table.sql(dialect="spark")
        raise InvalidDefinition(
            f"DataSet {name}: its SQL reads {said}, which is a path, a function or a table of another catalog; "
            f"read tracked DataSets by their names alone"
        )
    return table.name
