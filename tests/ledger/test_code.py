"""Every version records the code that made it, and the ledger knows the code that would make it now."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.engine.fingerprint import of_command
from opendataflow_dagster.insight.history import dataset_changes
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger.definitions import read_registry
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidManifest, InvalidName
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import NewManifest, made_by
from opendataflow_dagster.model.registry_json import registry_from_json, registry_to_json
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.rollback import rollback
from opendataflow_dagster.protocol.transfer import export_registry, import_registry, without_code
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants
from tests.scripts import Shop


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def shop(flow: Flow, tmp_path: Path) -> Shop:
    return Shop(flow=flow, folder=tmp_path)


def declare(flow: Flow, code_version: str | None, name: str = "raw") -> int:
    """As a code location does when it loads."""
    declared = replace(flow.dataset(name), code_version=code_version)
    return register(flow.ledger, [declared], [job(f"load_{name}: -> {name}")])


def make(flow: Flow, dataid: str, code_version: str | None, name: str = "raw") -> None:
    taken = claim(flow.ledger, f"load_{name}", dataid)
    publish(flow.ledger, taken, made_by(code_version, {DatasetId(name): flow.manifest(taken)}))


def codes(flow: Flow, text: str) -> list[str | None]:
    """Of each version of the chunk, oldest first."""
    with flow.ledger.statement() as statement:
        return [version.code_version for version in chunks.versions_of(statement, key(text))]


def current_code(flow: Flow, datasetid: str = "raw") -> str | None:
    with flow.ledger.transaction() as transaction:
        ((definition),) = read_registry(transaction, [datasetid], []).datasets
    return definition.dataset.code_version


# ---- what a version records


def test_a_version_keeps_the_code_that_made_it_and_a_rollback_brings_it_back(flow: Flow) -> None:
    declare(flow, "1")
    make(flow, "a", "1")
    flow.type("update dataflow.datastatus set status = 'RESUBMIT'")
    make(flow, "a", "2")
    rollback(flow.ledger, key("raw/a"), 1, by="test")
    assert codes(flow, "raw/a") == ["1", "2", "1"]
    assert_invariants(flow.psql)


def test_what_a_foreign_client_made_and_older_versions_have_no_known_code(flow: Flow) -> None:
    declare(flow, "1")
    make(flow, "old", None)
    make(flow, "foreign", "1")
    assert codes(flow, "raw/old") == [None]
    for status in ("RESUBMIT", "RUNNING", "READY"):
        flow.type(f"update dataflow.datastatus set status = '{status}' where dataid = 'foreign'")
    assert_invariants(flow.psql)
    assert flow.psql.execute("select from dataflow.datastatus where code_version is not null").rowcount == 0


def test_an_announced_version_may_name_its_code(flow: Flow) -> None:
    register(flow.ledger, [Dataset(datasetid=DatasetId("landing"))])
    manifest = NewManifest(location="s3://elsewhere/1", code_version="vendor 7")
    chunk = key("landing/1")
    announce(flow.ledger, chunk.datasetid, [chunk.dataid], by="test", manifests={chunk.dataid: manifest})
    assert codes(flow, "landing/1") == ["vendor 7"]
    assert_invariants(flow.psql)


def test_a_repeated_publication_with_other_code_is_an_error(flow: Flow) -> None:
    declare(flow, "1")
    taken = claim(flow.ledger, "load_raw", "a")
    manifest = {DatasetId("raw"): flow.manifest(taken)}
    publish(flow.ledger, taken, made_by("1", manifest))
    publish(flow.ledger, taken, made_by("1", manifest))
    with pytest.raises(InvalidManifest, match="with another code_version"):
        publish(flow.ledger, taken, made_by("2", manifest))


# ---- what the ledger knows of the current code


def test_a_change_of_the_code_is_a_change_of_the_registry_and_enters_its_history(flow: Flow) -> None:
    assert declare(flow, "1") > 0
    assert declare(flow, "1") == 0
    assert declare(flow, "2") == 1
    assert current_code(flow) == "2"
    newest, _ = dataset_changes(flow.ledger, "raw")
    assert newest.what == ("code_version: 1 -> 2",)
    assert newest.by == "test"


def test_a_definition_that_does_not_know_its_code_leaves_what_is_known(flow: Flow) -> None:
    declare(flow, "1")
    exported = registry_to_json(without_code(export_registry(flow.ledger)))
    declare(flow, "2")
    assert import_registry(flow.ledger, registry_from_json(exported)).changed == ()
    assert declare(flow, None) == 0
    assert current_code(flow) == "2"


def test_a_version_of_the_code_is_a_short_text() -> None:
    for wrong in ("", " ", "x" * 201, "two\nlines"):
        with pytest.raises(InvalidName, match="code_version of DataSet raw"):
            Dataset(datasetid=DatasetId("raw"), code_version=wrong)


def test_an_operator_registers_the_fingerprint_of_a_script_and_nothing_else(flow: Flow) -> None:
    flow.register("load: -> raw")
    with pytest.raises(psycopg.Error, match="'evil' is not the fingerprint of a script"):
        flow.type("select dataflow.register_script('load', 'evil')")


# ---- scripts


def test_the_script_that_runs_for_a_job_is_the_code_of_its_datasets(shop: Shop, flow: Flow) -> None:
    shop.register("load: -> raw, side", "other: -> elsewhere", dataids="1 2")
    script = shop.script("true")
    shop.run(script)
    first = of_command([str(script)])
    assert first is not None
    assert re.fullmatch("script:[0-9a-f]{16}", first)
    assert codes(flow, "raw/1") == codes(flow, "side/1") == [first]
    assert current_code(flow) == current_code(flow, "side") == first
    assert current_code(flow, "elsewhere") is None

    shop.run(shop.script("true # and more"))
    second = of_command([str(script)])
    assert codes(flow, "raw/2") == [second] != [first]
    assert current_code(flow) == second
    assert_invariants(flow.psql)


def test_a_script_that_is_replaced_while_a_run_goes_on_is_recorded_for_the_chunks_that_it_made(
    shop: Shop, flow: Flow
) -> None:
    shop.register("load: -> raw", dataids="1 2")
    path = shop.folder / "load.sh"
    # The new file comes under the name of the old one, as a deployment does it.
    script = shop.script(f"echo '#!/bin/sh' > {path}.new; chmod +x {path}.new; mv {path}.new {path}")
    first = of_command([str(script)])
    shop.run(script, everything=True)
    second = of_command([str(script)])
    assert (codes(flow, "raw/1"), codes(flow, "raw/2")) == ([first], [second])
    assert current_code(flow) == second != first


def test_a_forced_script_is_recorded_with_its_version_and_not_as_the_code_of_the_dataset(
    shop: Shop, flow: Flow
) -> None:
    shop.register("load: -> raw", dataids="1 2")
    usual = shop.script("true")
    shop.run(usual)
    shop.run_chunk(shop.script("exit 0", "load.sh"), "2", forced=True)
    assert codes(flow, "raw/2") == [of_command([str(usual)])]
    assert current_code(flow) == codes(flow, "raw/1")[0] != codes(flow, "raw/2")[0]


def test_a_script_does_not_replace_a_code_version_that_the_code_declares(shop: Shop, flow: Flow) -> None:
    declare(flow, "7")
    shop.run_chunk(shop.script("mkdir -p $raw_location; echo 1 > $raw_location/rows", "load_raw.sh"), "1")
    assert current_code(flow) == "7"
    assert codes(flow, "raw/1") == [of_command([str(shop.folder / "load_raw.sh")])]
