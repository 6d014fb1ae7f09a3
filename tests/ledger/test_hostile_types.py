"""Types of a caller's own, under the names of Postgres' types, never reach what runs with the rights of the owner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from tests.databases import empty, temporary_database
from tests.factories import Flow
from tests.logins import ROLES, logins_of


@pytest.fixture(scope="module")
def database(server: str, template: str) -> Iterator[str]:
    yield from temporary_database(server, template)


@pytest.fixture
def flow(database: str, tmp_path: Path) -> Iterator[Flow]:
    """page/3 is NOT_VALIDATED, so its problems are told."""
    with Ledger(database, actor="owner") as ledger, psycopg.connect(database, autocommit=True) as psql:
        empty(psql)
        flow = Flow(ledger=ledger, url=database, psql=psql, root=tmp_path)
        flow.register(
            "load: -> raw", "print: page -> book", page=Dataset(datasetid=DatasetId("page"), foreign_ready="refused")
        )
        flow.announce("page/3")
        yield flow


#: Functions remember the types of their variables as the first call in a session found them.
SHADOWED = ("text", "jsonb", "name", "timestamptz", "interval", "int8", "int4", "bool", "numeric", "json")
CALLABLE = """
    select format('select dataflow.%%I(%%s)', p.proname,
                  (select string_agg(case format_type(a.type, null)
                                     when 'text' then '''print''' when 'text[]' then 'array[''3'']::pg_catalog.text[]'
                                     else 'null' end || '::' || a.type::regtype, ', ' order by a.place)
                     from unnest(p.proargtypes) with ordinality as a(type, place)))
      from pg_proc p
     where p.pronamespace = 'dataflow'::regnamespace and p.prorettype <> 'trigger'::regtype
       and has_function_privilege(%s, p.oid, 'execute')
     order by p.prosecdef, p.oid
"""


def test_a_function_that_a_caller_executes_names_the_schema_of_its_variables_types(flow: Flow) -> None:
    sources = flow.psql.execute(
        "select p.proname::text, p.prosrc from pg_proc p join pg_language l on l.oid = p.prolang"
        " where p.pronamespace = 'dataflow'::regnamespace and l.lanname = 'plpgsql' and p.proconfig is null"
        " and has_function_privilege('dataflow_admin', p.oid, 'execute')"
    ).fetchall()
    assert {"problems_of", "answers"} <= {name for name, _ in sources}
    declared = {
        (name, kind)
        for name, source in sources
        for kind in re.findall(
            r"^    \w+ +([\w.]+)", source.partition("declare\n")[2].partition("\nbegin")[0], re.MULTILINE
        )
    }
    assert {found for found in declared if found[1] != "record" and "." not in found[1]} == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_domain_of_the_callers_runs_nothing_with_the_rights_of_the_owner(
    flow: Flow, database: str, role: str
) -> None:
    with logins_of(database, "types") as urls, psycopg.connect(urls[role], autocommit=True) as psql:
        said: list[str] = []
        calls = flow.psql.execute(CALLABLE, (f"types_{role}",)).fetchall()
        psql.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        for name in SHADOWED:
            psql.execute(
                f"create function pg_temp.told(value pg_catalog.{name}) returns boolean language plpgsql"
                f" as 'begin raise notice ''run by %'', current_user; return true; end'".encode()
            )
            psql.execute(f"create domain pg_temp.{name} as pg_catalog.{name} check (pg_temp.told(value))".encode())
        psql.execute("set search_path = pg_temp, pg_catalog")
        for search_path in ("pg_temp, pg_catalog", "pg_catalog"):
            psql.execute(f"set search_path = {search_path}".encode())
            for (call,) in calls:
                with suppress(psycopg.Error):
                    psql.execute(call)
        if role != "reader":
            psql.execute("update dataflow.datastatus set status = 'READY' where datasetid = 'page'")
    assert {text for text in said if text.startswith("run by")} <= {f"run by types_{role}"}
