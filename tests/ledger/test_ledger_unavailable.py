"""The database goes away: a clear retryable error, nothing half-written, and the next verb reconnects."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.ledger import database, schema
from opendataflow_dagster.ledger.database import Ledger, Transaction
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidInput, LedgerUnavailable, NoGo, OpenDataFlowError, SchemaMismatch
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import ListedChunks, Policy
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.gate import gate, runnable
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.job_run import begin_run
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, fail
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import PATIENCE_SECONDS, scaled
from tests.factories import Flow, job, key


@pytest.fixture
def url(emptied_url: str) -> str:
    return emptied_url


# A verb gives up on an unreachable server after this time.
PATIENCE = timedelta(seconds=2)


def of(url: str, **changes: str | int) -> str:
    return make_conninfo("", **{**conninfo_to_dict(url), **changes})


def assert_clear(error: BaseException, url: str, *words: str) -> None:
    """Retryable, names the server and the next step, and contains no password anywhere in the chain."""
    assert isinstance(error, LedgerUnavailable)
    assert error.retryable
    parts = conninfo_to_dict(url)
    for word in (f"{parts['host']}:{parts['port']}/{parts['dbname']}", "try again", *words):
        assert word in str(error)
    assert str(parts["password"]) not in "".join(traceback.format_exception(error))


def everything(psql: psycopg.Connection) -> list[tuple[object, ...]]:
    """Every row of every table."""
    names = psql.execute("select tablename from pg_tables where schemaname = 'dataflow' order by 1").fetchall()
    looks = [f"select '{name}', to_jsonb(t)::text from dataflow.{name} t" for (name,) in names]
    return psql.execute(f"{' union all '.join(looks)} order by 1, 2".encode()).fetchall()


def warm_up(ledger: Ledger, connections: int = 2) -> None:
    """Give the pool this many idle connections."""
    with ExitStack() as stack:
        for _ in range(connections):
            stack.enter_context(ledger.statement())


def end_all_connections(psql: psycopg.Connection) -> None:
    """End the ledger's connections and wait until they are gone."""
    ended = psql.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'opendataflow'"
    ).fetchall()
    assert ended, "there was a connection to end"


@contextmanager
def before_statement(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], *, at: int = 1, name: str = ""
) -> Iterator[list[str]]:
    """Act once, just before statement number `at` (of this name); yields the name."""
    due, seen, fired = at, itertools.count(1), list[str]()

    def look(statement: str) -> None:
        if not fired and name in ("", statement) and next(seen) == due:
            fired.append(statement)
            act()

    original = Transaction._execute

    def execute(self: Transaction, cursor: Any, statement: str, parameters: dict[str, object]) -> Any:
        look(statement)
        return original(self, cursor, statement, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_execute", execute)
        yield fired


# ---- connections that end during a verb

LOAD = job("load: -> raw")
LISTED = job("days: raw -> dates", raw=ListedChunks(lambda dataid: [dataid]))


@dataclass(frozen=True)
class Verb:
    """`prepare` sets up what `act`, the verb, needs for a dataid."""

    act: Callable[[Flow, str, Any], object]
    prepare: Callable[[Flow, str], Any] = lambda *_: None


def planned(flow: Flow, dataid: str) -> None:
    plan(flow.ledger, LOAD, [dataid])


def claimed(flow: Flow, dataid: str) -> Claim:
    planned(flow, dataid)
    return claim(flow.ledger, "load", dataid)


def produced(flow: Flow, dataid: str) -> None:
    flow.publish(claimed(flow, dataid))


def made(flow: Flow, dataid: str) -> tuple[Claim, NewManifest]:
    taken = claimed(flow, dataid)
    return taken, flow.manifest(taken)


VERBS = {
    "register": Verb(lambda flow, dataid, _: flow.register(f"job{dataid}: -> set{dataid}")),
    "plan": Verb(lambda flow, dataid, _: plan(flow.ledger, LOAD, [dataid])),
    "plan with listed inputs": Verb(lambda flow, dataid, _: plan(flow.ledger, LISTED, [dataid])),
    "gate": Verb(lambda flow, dataid, _: gate(flow.ledger, "clean", [dataid]), produced),
    "runnable": Verb(lambda flow, dataid, _: runnable(flow.ledger, "load", 1)),
    "claim": Verb(lambda flow, dataid, _: claim(flow.ledger, "clean", dataid), produced),
    "claim_next": Verb(lambda flow, _, __: claim_next(flow.ledger, "clean"), produced),
    "renew": Verb(lambda flow, _, taken: renew(flow.ledger, [taken]), claimed),
    "publish": Verb(lambda flow, _, work: publish(flow.ledger, *work), made),
    "fail": Verb(lambda flow, _, taken: fail(flow.ledger, taken, "disk full"), claimed),
    "abandon": Verb(lambda flow, _, taken: abandon(flow.ledger, [taken], "given up"), claimed),
    "resubmit": Verb(lambda flow, dataid, _: resubmit(flow.ledger, [key(f"raw/{dataid}")], by="ada"), produced),
    "hold": Verb(lambda flow, dataid, _: hold(flow.ledger, [key(f"raw/{dataid}")], by="ada"), planned),
    "begin_run": Verb(lambda flow, _, __: begin_run(flow.ledger, "load")),
    "heal": Verb(lambda flow, _, __: heal(flow.ledger, rebuild=True)),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_loses_its_connection_changes_nothing_and_can_be_repeated(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    flow.register(LOAD, "clean: raw -> tidy", LISTED)
    verb = VERBS[name]
    for at in itertools.count(1, step=scaled(1, fast=3)):
        prepared = verb.prepare(flow, str(at))
        warm_up(flow.ledger)
        before = everything(flow.psql)
        with before_statement(monkeypatch, lambda: end_all_connections(flow.psql), at=at) as fired:
            try:
                verb.act(flow, str(at), prepared)
            except OpenDataFlowError as error:
                assert_clear(error, flow.url)
                assert fired
            else:
                # Chunks of a registration that is committed are settled by the next claim.
                assert fired in ([], ["settle"]), f"{fired} was run on a connection that had ended"
        if not fired:
            break
        if fired == ["settle"]:
            continue
        assert everything(flow.psql) == before, f"half-written by {fired}"
        verb.act(flow, str(at), prepared)
    assert at > 1, "the verb has a statement"


def test_idle_connections_that_ended_cost_at_most_one_retryable_error(flow: Flow) -> None:
    flow.register(LOAD)
    warm_up(flow.ledger)
    end_all_connections(flow.psql)
    outcomes: list[BaseException | None] = []
    for dataid in ("1", "2", "3"):
        try:
            planned(flow, dataid)
        except LedgerUnavailable as error:
            assert_clear(error, flow.url)
            outcomes.append(error)
        else:
            outcomes.append(None)
    assert outcomes[1:] == [None, None]


def test_an_error_in_user_code_passes_through_a_verb_unchanged(flow: Flow) -> None:
    """Not every error in a transaction comes from the database."""

    def broken(_: DataId) -> list[str]:
        raise KeyError("mine")

    flow.register(LOAD)
    broken_job = job("broken: raw -> other", raw=ListedChunks(broken))
    flow.register(broken_job)
    before = everything(flow.psql)
    with pytest.raises(KeyError, match="mine"):
        plan(flow.ledger, broken_job, ["1"])
    assert everything(flow.psql) == before


# ---- lost answers


class Cable:
    """A proxy between ledger and server that can drop an answer after the server has done its work."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._server = (str(parts["host"]), int(str(parts["port"])))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._mark: bytes | None = None
        self.url = of(
            url, host="127.0.0.1", port=self._listener.getsockname()[1], sslmode="disable", gssencmode="disable"
        )
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_the_answer_with(self, mark: bytes) -> None:
        self._mark = mark

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._questions, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _questions(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        held = b""
        with suppress(OSError):
            while data := server.recv(65536):
                held += data
                if self._mark is not None and held[-6:-1] != READY_FOR_QUERY:
                    continue  # more of this answer is to come
                if self._mark is not None and self._mark in held:
                    self._mark = None
                    break
                client.sendall(held)
                held = b""
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


# The message that ends an answer, without its last byte: the state of the transaction.
READY_FOR_QUERY = b"Z\x00\x00\x00\x05"


@pytest.fixture
def cable(flow: Flow) -> Iterator[Cable]:
    cable = Cable(flow.url)
    yield cable
    cable.close()


@pytest.fixture
def remote(flow: Flow, cable: Cable) -> Iterator[Flow]:
    """The same flow through the proxy."""
    with Ledger(cable.url, actor="remote") as ledger:
        yield Flow(ledger=ledger, url=cable.url, psql=flow.psql, root=flow.root)


@pytest.mark.parametrize("meanwhile", ["nothing", "a consumer ran", "it was resubmitted", "it was published anew"])
def test_repeating_a_publish_whose_answer_was_lost_returns_the_same_version(
    flow: Flow, remote: Flow, cable: Cable, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    flow.register(LOAD, "clean: raw -> tidy")
    taken, manifest = made(remote, "1")
    with before_statement(monkeypatch, lambda: cable.lose_the_answer_with(b"SELECT "), name="publish") as fired:
        with pytest.raises(LedgerUnavailable) as lost:
            publish(remote.ledger, taken, manifest)
        assert fired
    assert_clear(lost.value, cable.url)
    assert flow.status("raw/1") == "READY", "only the answer was lost"
    if meanwhile == "a consumer ran":
        flow.produce("clean", "1")
    elif meanwhile != "nothing":
        resubmit(flow.ledger, [key("raw/1")], by="ada")
        if meanwhile == "it was published anew":
            flow.produce("load", "1")
    before = everything(flow.psql)
    assert publish(remote.ledger, taken, manifest).version == 1
    assert everything(flow.psql) == before


def test_a_publish_of_two_outputs_whose_answer_was_lost_is_complete(
    flow: Flow, remote: Flow, cable: Cable, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = job("load: -> raw, bad")
    flow.register(both)
    plan(flow.ledger, both, ["1"])
    taken = claim(remote.ledger, "load", "1")
    manifests = {output: flow.manifest(taken, output) for output in taken.outputs}
    with before_statement(monkeypatch, lambda: cable.lose_the_answer_with(b"SELECT "), name="publish") as fired:
        with pytest.raises(LedgerUnavailable):
            publish(remote.ledger, taken, manifests)
        assert fired
    assert publish(remote.ledger, taken, manifests).version == 1
    assert {flow.chunk(f"{output}/1").version for output in ("raw", "bad")} == {1}


def test_a_claim_whose_answer_was_lost_ends_with_its_lease(
    flow: Flow, remote: Flow, cable: Cable, monkeypatch: pytest.MonkeyPatch
) -> None:
    (load,) = flow.register(job("load: -> raw", Policy(lease=timedelta(microseconds=1))))
    plan(flow.ledger, load, ["1"])
    with before_statement(monkeypatch, lambda: cable.lose_the_answer_with(b"SELECT "), name="claim") as fired:
        with pytest.raises(LedgerUnavailable) as lost:
            claim(remote.ledger, "load", "1")
        assert fired
    assert_clear(lost.value, cable.url)
    assert flow.status("raw/1") == "RUNNING", "nobody knows that he holds it"
    assert heal(remote.ledger).resubmitted == (key("raw/1"),)
    assert claim(remote.ledger, "load", "1").attempt == 2


@pytest.mark.parametrize(
    ("verb", "statement"),
    [
        (lambda flow: plan(flow.ledger, LOAD, ["1", "2"]), "plan"),
        (lambda flow: resubmit(flow.ledger, [key("raw/1")], by="ada"), "resubmit"),
        (lambda flow: hold(flow.ledger, [key("raw/1")], by="ada"), "set_status"),
        (lambda flow: flow.register(LOAD, "more: -> other"), "put_policy"),
    ],
    ids=["plan", "resubmit", "hold", "register"],
)
def test_repeating_a_verb_after_a_lost_commit_answer_changes_nothing(
    flow: Flow,
    remote: Flow,
    cable: Cable,
    monkeypatch: pytest.MonkeyPatch,
    verb: Callable[[Flow], object],
    statement: str,
) -> None:
    flow.register(LOAD)
    produced(flow, "1")
    before = everything(flow.psql)
    with before_statement(monkeypatch, lambda: cable.lose_the_answer_with(b"COMMIT\x00"), name=statement) as fired:
        with pytest.raises(LedgerUnavailable):
            verb(remote)
        assert fired
    landed = everything(flow.psql)
    assert landed != before
    verb(remote)
    assert everything(flow.psql) == landed


# ---- a server that stops, and one that is killed


@dataclass(frozen=True)
class OwnServer:
    """A server that a test may stop and kill, and the folder for its data."""

    embedded: EmbeddedPostgres
    url: str
    root: Path

    def kill(self) -> None:
        """As the kernel does when memory is short: without a clean shutdown."""
        pid = self.embedded.status().pid
        assert pid is not None
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for process in (pid, *children):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("server"))
    try:
        url = embedded.start()
        with Ledger(url) as ledger:
            schema.install(ledger)
        yield OwnServer(embedded, url, tmp_path_factory.mktemp("data"))
    finally:
        embedded.stop()


_dataids = itertools.count(1)


@pytest.fixture
def own_flow(own_server: OwnServer) -> Iterator[Flow]:
    """The psql session ends with the server."""
    assert own_server.embedded.start() == own_server.url, "a server keeps its address over a restart"
    with Ledger(own_server.url, actor="test", patience=PATIENCE) as ledger, psycopg.connect(own_server.url) as psql:
        flow = Flow(ledger=ledger, url=own_server.url, psql=psql, root=own_server.root)
        flow.register(LOAD, "clean: raw -> tidy")
        yield flow


def test_the_error_names_a_stopped_server_and_the_ledger_works_after_its_restart(
    own_server: OwnServer, own_flow: Flow
) -> None:
    dataid = str(next(_dataids))
    planned(own_flow, dataid)
    warm_up(own_flow.ledger)
    own_server.embedded.stop()
    for _ in range(2):
        with pytest.raises(LedgerUnavailable) as gone:
            claim(own_flow.ledger, "load", dataid)
        assert_clear(gone.value, own_server.url, "odf db start")
    own_server.embedded.start()
    own_flow.publish(claim(own_flow.ledger, "load", dataid))
    assert own_flow.status(f"raw/{dataid}") == "READY"


def test_a_server_killed_during_a_claim_leaves_nothing_of_it(own_server: OwnServer, own_flow: Flow) -> None:
    dataid = str(next(_dataids))
    produced(own_flow, dataid)
    own_flow.psql.autocommit = True
    # The claim pauses at its last write, when its rows in datastatus are written but not committed.
    own_flow.type(
        "create function public.pause() returns trigger language plpgsql as "
        "'begin perform pg_sleep(3600); return null; end'"
    )
    own_flow.type("create trigger pause after insert on dataflow.verdict execute function public.pause()")
    pausing = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
    with ThreadPoolExecutor(1) as thread:
        claiming = thread.submit(claim, own_flow.ledger, "clean", dataid)
        while own_flow.psql.execute(pausing).fetchone() == (0,):
            assert not claiming.done(), claiming.exception()
        own_server.kill()
        with pytest.raises(LedgerUnavailable) as gone:
            claiming.result(PATIENCE_SECONDS)
    assert_clear(gone.value, own_server.url)
    own_server.embedded.start()
    assert own_flow.status(f"tidy/{dataid}") == "ABSENT"
    with psycopg.connect(own_server.url) as psql:
        assert psql.execute("select from dataflow.datastatus where locktype = 'IN'").fetchall() == []
        psql.execute("drop function public.pause() cascade")
    own_flow.publish(claim(own_flow.ledger, "clean", dataid))


def test_a_published_version_survives_a_kill_of_the_server(own_server: OwnServer, own_flow: Flow) -> None:
    dataid = str(next(_dataids))
    taken, manifest = made(own_flow, dataid)
    first = publish(own_flow.ledger, taken, manifest)
    own_server.kill()
    own_server.embedded.start()
    with suppress(LedgerUnavailable):  # an idle connection had died with the server
        heal(own_flow.ledger)
    again = publish(own_flow.ledger, taken, manifest)
    assert (again.manifest_id, again.version) == (first.manifest_id, 1)
    assert own_flow.chunk(f"raw/{dataid}").version == 1
    with pytest.raises(NoGo):
        claim(own_flow.ledger, "load", dataid)


def until_it_ends(psql: psycopg.Connection) -> None:
    with suppress(psycopg.OperationalError):
        while True:
            psql.execute("select")


def test_a_killed_backend_is_an_error_until_the_server_has_recovered(
    own_server: OwnServer, own_flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataid = str(next(_dataids))
    produced(own_flow, dataid)
    own_flow.psql.autocommit = True

    def kill_a_backend() -> None:
        ours = "select pid from pg_stat_activity where application_name = 'opendataflow'"
        os.kill(own_flow.psql.execute(ours).fetchall()[0][0], signal.SIGKILL)
        until_it_ends(own_flow.psql)  # the server ends all others, too

    with before_statement(monkeypatch, kill_a_backend, name="claim") as fired:
        with pytest.raises(LedgerUnavailable) as gone:
            claim(own_flow.ledger, "clean", dataid)
        assert fired
    assert_clear(gone.value, own_server.url)
    own_server.embedded.start()  # returns when it lets us in again
    own_flow.publish(claim(own_flow.ledger, "clean", dataid))


# ---- a server that cannot be reached at all


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"password": "not-the-password"}, "password authentication failed"),
        ({"user": "nobody"}, "password authentication failed"),
        ({"port": 1}, "refused"),
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
    ],
    ids=["wrong password", "unknown user", "closed port", "unknown database"],
)
def test_a_server_that_cannot_be_reached_is_a_clear_error_with_its_cause(
    server: str, changes: dict[str, str | int], word: str
) -> None:
    url = of(server, **changes)
    with Ledger(url, patience=timedelta(seconds=1)) as ledger, pytest.raises(LedgerUnavailable) as gone:
        heal(ledger)
    assert_clear(gone.value, url, word)
    assert str(conninfo_to_dict(server)["password"]) not in str(gone.value)


@pytest.mark.parametrize(("said", "seconds"), [({}, 30), ({"tcp_user_timeout": 7_000}, 7)])
def test_a_silent_connection_is_given_up_after_30_seconds_or_as_the_url_says(
    url: str, said: dict[str, int], seconds: int
) -> None:
    """A network that drops packets cannot be simulated here, but the socket options can be checked."""
    with (
        Ledger(of(url, **said)) as ledger,
        ledger.statement() as statement,
        socket.socket(fileno=os.dup(statement._connection.fileno())) as link,
    ):
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == seconds * 1000
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            link.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + interval * count == 30


def test_a_statement_timeout_is_not_reported_as_an_unreachable_server(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database._SETTINGS, "statement_timeout", "100ms")
    with flow.psql.transaction():
        flow.type("lock table dataflow.dataset in access exclusive mode")
        with Ledger(flow.url) as ledger, pytest.raises(LedgerUnavailable) as canceled:
            register(ledger, [Dataset(datasetid=DatasetId("raw"))])
    assert "could not finish a statement (canceling statement due to statement timeout)" in str(canceled.value)
    assert "reached" not in str(canceled.value)


def test_a_server_limit_is_not_reported_as_an_unreachable_server(flow: Flow) -> None:
    flow.register("load: -> raw")
    held = claim(flow.ledger, "load", "1")
    manifest = flow.manifest(held)
    beyond_an_index = "".join(hashlib.sha256(str(i).encode()).hexdigest() for i in range(600))
    with pytest.raises(InvalidInput, match="exceeds a limit of Postgres") as refused:
        publish(flow.ledger, held, replace(manifest, content_digest=beyond_an_index))
    assert not refused.value.retryable
    assert publish(flow.ledger, held, manifest).version == 1


def test_an_exhausted_pool_is_not_reported_as_an_unreachable_server(url: str) -> None:
    with Ledger(url, connections=1, patience=timedelta(milliseconds=100)) as ledger:
        with ledger.statement(), pytest.raises(OpenDataFlowError, match=r"busy|in use") as busy:
            heal(ledger)
        assert busy.value.retryable
        heal(ledger)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://odf:s3cr%zz@127.0.0.1:5432/db",
        "postgresql://odf:s3cr et@127.0.0.1:5432/db",
        "postgresql://odf:s3cret/@127.0.0.1:5432/db",
        "host=127.0.0.1 password='s3cret",
        "s3cret",
    ],
    ids=["bad percent", "space", "slash", "open quote", "no url"],
)
def test_an_unreadable_url_is_not_repeated_in_the_error(url: str) -> None:
    with pytest.raises(OpenDataFlowError) as refused:
        Ledger(url)
    assert "s3cr" not in "".join(traceback.format_exception(refused.value))


# ---- a database without the schema

NEEDS_THE_SCHEMA: dict[str, Callable[[Ledger], object]] = {
    "register": lambda ledger: register(ledger, [], []),
    "plan": lambda ledger: plan(ledger, LOAD, ["1"]),
    "gate": lambda ledger: gate(ledger, "load", ["1"]),
    "runnable": lambda ledger: runnable(ledger, "load", 1),
    "claim": lambda ledger: claim(ledger, "load", "1"),
    "claim_next": lambda ledger: claim_next(ledger, "load"),
    "resubmit": lambda ledger: resubmit(ledger, [key("raw/1")], by="ada"),
    "hold": lambda ledger: hold(ledger, [key("raw/1")], by="ada"),
    "skip": lambda ledger: skip(ledger, [key("raw/1")], by="ada"),
    "unhold": lambda ledger: unhold(ledger, [key("raw/1")], by="ada"),
    "heal": heal,
    "begin_run": lambda ledger: begin_run(ledger, "load"),
}


def test_without_the_schema_every_verb_says_how_to_install_it(empty_url: str) -> None:
    with Ledger(empty_url) as ledger:
        for name, verb in NEEDS_THE_SCHEMA.items():
            with pytest.raises(SchemaMismatch, match="run: odf schema install") as missing:
                verb(ledger)
            assert not missing.value.retryable, name
        schema.install(ledger)
        register(ledger, [], [])
