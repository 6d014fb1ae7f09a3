"""The ledger through PgBouncer in transaction mode: every transaction may run in another session."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from opendataflow_dagster.engine.connections import prepare_dagster_storage
from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.hold import hold, unhold
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, key
from tests.ledger.test_cli_every import HERE, Here
from tests.operator import Odf

#: Fewer than the clients of any test, so that they take turns in each session.
SESSIONS = 2
SETTINGS = """\
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
auth_type = plain
auth_file = {users}
log_connections = 0
log_disconnections = 0
"""


@dataclass(frozen=True)
class Pooler:
    port: int

    def url(self, url: str) -> str:
        """The same database through the pooler."""
        server = conninfo_to_dict(url)
        login = f"{server['user']}:{server['password']}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/{server['dbname']}"


@pytest.fixture(scope="session")
def pooler(pgbouncer: str, server: str) -> Iterator[Pooler]:
    parts = conninfo_to_dict(server)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="odf-pooler-") as folder:
        settings, users = Path(folder, "settings.ini"), Path(folder, "users")
        settings.write_text(SETTINGS.format(**parts | {"listen": port, "sessions": SESSIONS, "users": users}))
        users.write_text(f'"{parts["user"]}" "{parts["password"]}"\n')
        user = None
        if os.geteuid() == 0:  # it refuses to run as root
            user = "nobody"
            for path in (Path(folder), settings, users):
                shutil.chown(path, user)
        command = [pgbouncer, str(settings)]
        process = subprocess.Popen(command, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = list(itertools.takewhile(lambda line: "process up" not in line, process.stderr))
            assert process.poll() is None, said
            yield Pooler(port)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize(("name", "row"), HERE)
def test_every_command_works_through_a_pooler(
    month: Flow, pooler: Pooler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, row: Here
) -> None:
    monkeypatch.setenv("ODF_HOME", str(tmp_path / "home"))
    row.first(month, tmp_path)
    done = Odf(url=pooler.url(month.url))(*name.split(), *row.well.format(tmp=tmp_path).split())
    assert done.exit_code == 0, done.output
    assert row.says in done.stdout


def test_the_history_names_the_right_person_of_clients_that_share_sessions(flow: Flow, pooler: Pooler) -> None:
    jobs = flow.register("load: -> raw", "clean: raw -> tidy")
    dataids = [str(number) for number in range(40)]
    for job in jobs:
        flow.plan(job, dataids)
    names = ("ada", "bob", "cyd", "dan")
    together = Barrier(len(names))

    def work(name: str) -> dict[int, str]:
        """The claims that this person made."""
        claims: dict[int, str] = {}
        with Ledger(pooler.url(flow.url), actor=name) as ledger:
            own = Flow(ledger=ledger, url=flow.url, psql=flow.psql, root=flow.root)
            together.wait(PATIENCE_SECONDS)
            for jobid in ("load", "clean"):
                while taken := claim_next(ledger, jobid, 3):
                    for claim in taken:
                        claims[claim.claim_id] = name
                        own.publish(claim)
                        mine = [key(f"{claim.outputs[0]}/{claim.dataid}")]
                        hold(ledger, mine, by=f"{name} by hand", reason=f"{name} looks")
                        unhold(ledger, mine, by=f"{name} by hand", reason=f"{name} looked")
        return claims

    with ThreadPoolExecutor(len(names)) as pool:
        owners = {claim_id: name for made in pool.map(work, names) for claim_id, name in made.items()}
    assert len(owners) == 80
    events = flow.psql.execute(
        "select claim_id, new_status, actor, reason from dataflow.chunk_event where claim_id is not null"
    ).fetchall()
    assert {row[1] for row in events} >= {"RUNNING", "READY"}
    assert [row for row in events if row[2] != owners[row[0]]] == []
    held = flow.psql.execute(
        "select actor, reason from dataflow.chunk_event where old_status = 'HOLD' or new_status = 'HOLD'"
    ).fetchall()
    assert len(held) == 160
    assert [row for row in held if row[1].split()[0] != row[0].split()[0] or "by hand" not in row[0]] == []


def test_nothing_that_we_set_stays_in_a_shared_session(flow: Flow, pooler: Pooler) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    url = pooler.url(flow.url)
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as foreign:
        # PgBouncer itself gives each transaction the application_name of its client.
        shown = "select name, setting from pg_settings where source = 'session' and name <> 'application_name'"
        before = foreign.execute(shown).fetchall()
        with Ledger(url, actor="ada", reason="because") as ledger:
            resubmit(ledger, [key("raw/1")], by="bob", reason="twice")
        for _ in range(4 * SESSIONS):
            assert foreign.execute(shown).fetchall() == before
            assert foreign.execute("select current_setting('dataflow.actor', true)").fetchone() in ((None,), ("",))


def test_a_dry_run_through_a_pooler_changes_nothing(month: Flow, pooler: Pooler) -> None:
    run = Odf(url=pooler.url(month.url))
    assert "delays/2024-01-09" in run.text("resubmit", "delays", "2024-01-09", "--dry-run")
    assert month.status("delays/2024-01-09") == "FAILED"


def test_the_schema_is_installed_through_a_pooler(empty_url: str, pooler: Pooler) -> None:
    with Ledger(pooler.url(empty_url)) as ledger:
        assert schema.install(ledger)
        assert schema.verify(ledger).ok


def test_dagsters_own_storage_is_refused_through_a_pooler_with_the_next_step(flow: Flow, pooler: Pooler) -> None:
    with Ledger(pooler.url(flow.url)) as ledger, pytest.raises(InvalidInput, match="name the server itself"):
        prepare_dagster_storage(ledger)
