"""What the tests of `odf` share: the command in process, and a month of chunks after a small outage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partialmethod
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.job_run import begin_run, end_run
from opendataflow_dagster.protocol.release import fail
from tests.databases import database_name, temporary_database
from tests.factories import Flow

DAYS = tuple(f"2024-01-{day:02}" for day in range(1, 31))


@dataclass(frozen=True, kw_only=True)
class Odf:
    """`odf` on one database, called as from a shell."""

    #: Contains a password.
    url: str = field(repr=False)

    def __call__(self, *words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(odf, words, prog_name="odf", input=stdin, env={"ODF_DATABASE_URL": self.url})

    def text(self, *words: str, exit_code: int = 0) -> str:
        result = self(*words)
        assert result.exit_code == exit_code, result.output
        return result.stdout

    def json(self, *words: str, exit_code: int = 0) -> Any:
        return json.loads(self.text(*words, "--json", exit_code=exit_code))

    def error(self, *words: str, exit_code: int = 64) -> str:
        """The message on stderr; stdout must be empty."""
        result = self(*words)
        assert result.exit_code == exit_code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr


@contextmanager
def impatient() -> Iterator[None]:
    """Ledgers give up on an unreachable server at once instead of after ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "__init__", partialmethod(Ledger.__init__, patience=timedelta(seconds=0.2)))
        yield


def after_an_outage(flow: Flow) -> None:
    """flights: 20 READY, 1 FAILED, 9 PENDING. delays: 8 READY, 4 failed by a bad mount and 1 by its data, 1 RUNNING."""
    load, average = flow.register("load: -> flights", "average: flights -> delays")
    flow.plan(load, DAYS)
    flow.plan(average, DAYS)
    first = begin_run(flow.ledger, "load", runner="cron")
    for day in DAYS[:20]:
        flow.produce("load", day)
    end_run(flow.ledger, first)
    fail(flow.ledger, claim(flow.ledger, "load", DAYS[20]), "timeout after 30 s")
    second = begin_run(flow.ledger, "average", external_id="dagster-1")
    for day in DAYS[:8]:
        flow.produce("average", day)
    for place, day in enumerate(DAYS[8:12]):
        taken = claim(flow.ledger, "average", day, second)
        fail(flow.ledger, taken, f"OSError: /mnt/lake/delays/{day}/part-{place} is not there (errno 5)")
    fail(flow.ledger, claim(flow.ledger, "average", DAYS[12], second), "delay is a number: 3 of 199 are not")
    claim(flow.ledger, "average", DAYS[13], second)


def month_template(server: str, template: str, root: Path) -> Iterator[str]:
    """The name of a template database with that month; each test clones it."""
    for url in temporary_database(server, template):
        for flow in _flow(url, root):
            after_an_outage(flow)
        yield database_name(url)


def month_clone(server: str, name: str, root: Path) -> Iterator[Flow]:
    for url in temporary_database(server, name):
        yield from _flow(url, root)


def _flow(url: str, root: Path) -> Iterator[Flow]:
    with Ledger(url, actor="test") as ledger, psycopg.connect(url, autocommit=True) as psql:
        yield Flow(ledger=ledger, url=url, psql=psql, root=root)
