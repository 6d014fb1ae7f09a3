"""Every name on a command line that is not known gives an error with the nearest names; a new command must be added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.cli.reference import leaves
from tests.factories import Flow
from tests.ledger.test_cli_every import script, spare
from tests.operator import Odf

DATASET, JOB, CHUNK, STATUS = (f"did you mean {name}" for name in ("delays", "average", "2024-01-09", "FAILED"))

#: Texts that name nothing that is known: anything is right.
FREE = {
    *("address", "arguments", "by", "ciphertext", "database", "description", "domain", "expected_by", "external_id"),
    *("fresh_within", "hostname"),
    *("listen", "location", "owner", "partitions", "reason", "retry_on", "schema_hash", "schemaname", "script"),
    *("tablename", "target", "username"),
}
#: Names that the command creates, or that need not exist (any more).
NEW = {
    ("announce", "dataids"),
    ("dataset add", "datasetid"),
    ("delete-run", "dataid"),
    ("force", "dataid"),
    ("job add", "env"),
    ("job add", "jobid"),
    ("hold", "chunks"),
    ("job begin", "dataid"),
    ("job set", "env"),
    ("plan", "chunks"),
    ("run", "dataid"),
    ("secret encrypt", "datasetid"),
    ("skip", "chunks"),
    ("why", "dataid"),
}


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Arguments with a misspelt name, and what is suggested."""

    arguments: str
    suggests: str
    first: Callable[[Flow, Path], object] = lambda _, __: None


def dataset(arguments: str) -> Typed:
    return Typed(arguments=arguments, suggests=DATASET)


def job(arguments: str) -> Typed:
    return Typed(arguments=arguments, suggests=JOB)


def chunk(arguments: str) -> Typed:
    return Typed(arguments=arguments, suggests=CHUNK)


def status(arguments: str) -> Typed:
    return Typed(arguments=arguments, suggests=STATUS)


def zone(arguments: str) -> Typed:
    return Typed(arguments=arguments, suggests="did you mean Europe/Berlin")


NAMES: dict[tuple[str, str], Typed] = {
    ("announce", "datasetid"): dataset("delasy 1"),
    ("chunk show", "datasetid"): dataset("delasy 2024-01-09"),
    ("chunk show", "dataid"): chunk("delays 2024-01-099"),
    ("chunks", "datasetid"): dataset("Delay"),
    ("chunks", "chunks"): chunk("delays 2024-01-099"),
    ("chunks", "statuses"): status("delays --status failled"),
    ("dataset export", "datasets"): dataset("delasy"),
    ("dataset remove", "datasetid"): dataset("delasy"),
    ("dataset set", "datasetid"): dataset("delasy --owner ada"),
    ("dataset set", "timezone"): zone("delays --timezone Europe/Berln"),
    ("dataset add", "timezone"): zone("new --timezone europe/berlin"),
    ("dataset show", "datasetid"): dataset("delasy"),
    ("delete-run", "jobid"): job("averge 2024-01-09"),
    ("diff", "datasetid"): dataset("delasy 2024-01-09"),
    ("diff", "dataid"): chunk("delays 2024-01-099"),
    ("force", "jobid"): Typed(arguments="--job averge --dataid 1 {tmp}/load.sh", suggests=JOB, first=script),
    ("history", "datasetid"): dataset("delasy"),
    ("history", "dataid"): chunk("delays 2024-01-099"),
    ("history", "jobid"): job("--job averge"),
    ("history", "statuses"): status("--status failled"),
    ("job add", "inputs"): dataset("new --in delasy --out flights"),
    ("job add", "outputs"): dataset("new --out delasy"),
    ("job begin", "jobid"): job("averge"),
    ("job end", "locations"): Typed(arguments="3 --location extar=/x", suggests="did you mean extra?", first=spare),
    ("job export", "jobs"): job("averge"),
    ("job remove", "jobid"): job("averge"),
    ("job set", "jobid"): job("averge --lease 1h"),
    ("job set", "inputs"): dataset("load --in delasy"),
    ("job set", "outputs"): dataset("load --out delasy"),
    ("job show", "jobid"): job("averge"),
    ("pause", "jobid"): job("averge"),
    ("plan", "jobid"): job("averge"),
    ("resume", "jobid"): job("averge"),
    ("refresh", "datasets"): dataset("delasy"),
    ("rollback", "datasetid"): dataset("delasy 2024-01-09"),
    ("rollback", "dataid"): chunk("delays 2024-01-099"),
    ("run", "jobid"): Typed(arguments="--job averge {tmp}/load.sh", suggests=JOB, first=script),
    ("runs", "jobid"): job("averge"),
    ("stale", "datasets"): dataset("delasy"),
    ("status", "datasets"): dataset("delasy"),
    ("sweep", "datasetid"): dataset("delasy"),
    ("table refresh", "datasetid"): dataset("delasy"),
    ("throttle", "jobid"): job("averge 2"),
    ("why", "jobid"): job("averge"),
    **{(verb, "datasetid"): dataset("delasy 2024-01-09") for verb in ("cancel", "hold", "resubmit", "skip", "unhold")},
    **{(verb, "jobid"): job("--job averge 2024-01-09") for verb in ("cancel", "hold", "resubmit", "skip", "unhold")},
    **{(verb, "chunks"): chunk("delays 2024-01-099") for verb in ("cancel", "resubmit", "unhold")},
    **{
        (verb, "statuses"): status("delays --status failled")
        for verb in ("cancel", "hold", "resubmit", "skip", "unhold")
    },
}
#: They need more than a ledger.
ELSEWHERE = {
    ("diff", "key"): "ledger/test_diff.py::test_a_given_key_replaces_the_declared_one",
    ("secret decrypt", "datasetid"): "ledger/test_secrets.py::test_a_misspelt_dataset_gives_the_nearest_name",
    ("secret set", "datasetid"): "ledger/test_secrets.py::test_a_misspelt_dataset_gives_the_nearest_name",
}


def test_every_text_of_every_command_is_a_known_name_a_new_one_or_free() -> None:
    texts = {
        (" ".join(words[1:]), str(parameter.name))
        for words, command in leaves(odf)
        for parameter in command.params
        if isinstance(parameter.type, click.types.StringParamType | click.types.UnprocessedParamType)
    }
    named = {text for text in texts if text[1] not in FREE}
    # A new text is a name with a misspelling in NAMES, or one that need not exist (NEW), or no name at all (FREE).
    assert named - NEW - {*NAMES, *ELSEWHERE} == set()
    assert {*NEW, *NAMES, *ELSEWHERE} - named == set()
    for test in ELSEWHERE.values():
        file, _, function = test.partition("::")
        assert f"\ndef {function}(" in (Path(__file__).parents[1] / file).read_text(), test


@pytest.mark.parametrize(("command", "row"), [pytest.param(*item, id=" ".join(item[0])) for item in NAMES.items()])
def test_a_misspelt_name_gives_the_nearest_ones(
    month: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, str], row: Typed
) -> None:
    monkeypatch.setenv("ODF_HOME", str(tmp_path / "home"))
    row.first(month, tmp_path)
    words = row.arguments.format(tmp=tmp_path).split()
    assert row.suggests in Odf(url=month.url).error(*command[0].split(), *words)
