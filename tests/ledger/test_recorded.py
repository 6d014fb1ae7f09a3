"""Every command with --reason records the operator's name and reason; a new command cannot be forgotten here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.cli.reference import leaves
from opendataflow_dagster.engine.foreign_scheduler import begin_scheduled_run
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.hold import hold
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.throttle import pause
from tests.factories import Flow, key
from tests.operator import Odf


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


WHO, WHY = "ada@desk-7", "the disk of node 3 is full"

#: The history tables, each with the column that names the actor.
HISTORIES = {"chunk_event": "actor", "job_event": "actor", "registry_event": "actor", "version_sweep": "by"}

#: Renewing a lease does not change a chunk, so the history has no row for it.
NOT_RECORDED = {"job renew"}


def nothing(flow: Flow) -> str:
    return ""


def produced(flow: Flow) -> str:
    flow.produce("load", "1")
    return ""


def produced_twice(flow: Flow) -> str:
    flow.produce("load", "1")
    resubmit(flow.ledger, [key("raw/1")], by="test")
    flow.produce("load", "1")
    return ""


def stale(flow: Flow) -> str:
    flow.register("clean: raw -> tidy")
    flow.produce("load", "1")
    flow.produce("clean", "1")
    resubmit(flow.ledger, [key("raw/1")], by="test")
    flow.produce("load", "1")
    return ""


def long_ago(flow: Flow) -> str:
    produced_twice(flow)
    # Triggers forbid changing a manifest; this stands in for a clock 30 days ahead.
    flow.type("set session_replication_role = replica")
    flow.type("update dataflow.data_manifest set published = published - interval '30 days'")
    return ""


def claimed(flow: Flow) -> str:
    claim(flow.ledger, "load", "1")
    return ""


def dead(flow: Flow) -> str:
    claim(flow.ledger, "load", "1")
    flow.type("update dataflow.datastatus set lease_until = now() - interval '1 second' where status = 'RUNNING'")
    return ""


def held(flow: Flow) -> str:
    hold(flow.ledger, [key("raw/1")], by="test")
    return ""


def paused(flow: Flow) -> str:
    pause(flow.ledger, "load", by="test")
    return ""


def begun(flow: Flow) -> str:
    run = begin_scheduled_run(flow.ledger, "feed", "1")
    assert run is not None
    return str(run.run_id)


def password(flow: Flow) -> str:
    assert Odf(url=flow.url)("secret", "set", "raw", stdin="hush").exit_code == 0
    return ""


def document(flow: Flow) -> str:
    path = flow.root / "new.json"
    path.write_text('{"format": 1, "datasets": [{"datasetid": "new"}]}')
    return str(path)


def code(flow: Flow) -> str:
    path = flow.root / "definitions.py"
    path.write_text(
        "from opendataflow_dagster import build_definitions, external_dataset\n"
        "defs = build_definitions([external_dataset('new')])\n"
    )
    return str(path)


#: For each command, what prepares the ledger and the arguments that change something; {} is what the first returns.
SCENES: dict[str, tuple[Callable[[Flow], str], str]] = {
    "announce": (nothing, "weather 1"),
    "apply": (code, "{}"),
    "cancel": (claimed, "raw 1"),
    "dataset add": (nothing, "new"),
    "dataset import": (document, "{}"),
    "dataset remove": (nothing, "weather"),
    "dataset set": (nothing, "raw --owner grace"),
    "delete-run": (produced, "load 1"),
    "heal": (dead, ""),
    "hold": (nothing, "raw 1"),
    "job add": (nothing, "more --out weather"),
    "job begin": (nothing, "load 1"),
    "job end": (begun, "{}"),
    "job fail": (begun, "{}"),
    "job import": (document, "{}"),
    "job remove": (nothing, "feed"),
    "job set": (nothing, "load --lease 2h"),
    "pause": (nothing, "load"),
    "plan": (nothing, "load 2 --apply"),
    "refresh": (stale, "tidy"),
    "resubmit": (produced, "raw 1"),
    "resume": (paused, "load"),
    "rollback": (produced_twice, "raw 1"),
    "secret rotate": (password, ""),
    "secret set": (nothing, "raw"),
    "skip": (nothing, "raw 1"),
    "sweep": (long_ago, "raw --keep-versions 1"),
    "throttle": (nothing, "load 2"),
    "unhold": (held, "raw 1"),
}

ACTS = [
    " ".join(words[1:])
    for words, command in leaves(odf)
    if any("--reason" in parameter.opts for parameter in command.params)
]


@pytest.mark.parametrize("command", sorted(set(ACTS) - NOT_RECORDED))
def test_a_change_is_recorded_with_the_operators_name_and_reason(
    command: str, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODF_PASSPHRASE", "old")
    monkeypatch.setenv("ODF_NEW_PASSPHRASE", "new")
    load, feed = flow.register(
        "load: -> raw",
        "feed: -> loose",
        loose=Dataset(datasetid=DatasetId("loose")),
    )
    flow.type("insert into dataflow.dataset (datasetid) values ('weather')")
    flow.plan(load, ["1"])
    flow.plan(feed, ["1"])
    prepare, words = SCENES[command]
    said = words.format(prepare(flow)).split()
    assert recorded(flow) == []
    done = Odf(url=flow.url)(*command.split(), *said, "--as", WHO, "--reason", WHY, stdin="hush")
    assert done.exit_code == 0, done.output
    assert recorded(flow), f"{command} recorded neither {WHO} nor the reason"


def recorded(flow: Flow) -> list[str]:
    """The histories that contain both. A verb may add a name or reason of its own."""
    return [
        table
        for table, by in HISTORIES.items()
        if flow.type(
            f"select from dataflow.{table} where strpos({by}, %s) > 0 and strpos({by} || reason, %s) > 0", WHO, WHY
        )
    ]
