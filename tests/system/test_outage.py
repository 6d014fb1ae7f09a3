"""The outage that this system was born from: one bad mount fails a whole daily cycle, and one act heals it in order."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from opendataflow_dagster import LedgerResource, daily, script_dataset
from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.orchestrator.readiness_sensor import readiness_sensor
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.scripts.order import NOT_READY
from opendataflow_dagster.scripts.runner import run_next
from tests.dagster_project import Project
from tests.factories import Flow
from tests.scripts import Shop

DAY = "2024-01-05"
COUNT = 700
LAYERS = 7


@pytest.fixture
def shop(flow: Flow, tmp_path: Path) -> Shop:
    return Shop(flow=flow, folder=tmp_path)


@pytest.mark.parametrize("act", ["odf resubmit", "typed SQL"])
def test_all_jobs_that_a_bad_mount_failed_heal_in_order_after_one_human_act(shop: Shop, act: str) -> None:
    jobs = a_daily_cycle(shop)
    mount = shop.folder / "mount"
    script = shop.script(f'#!/bin/sh\nif test -e {mount}; then :; else echo "{mount} is not mounted" >&2; exit 1; fi')
    fail_all(shop, script, jobs)
    assert statuses(shop) == {"FAILED": COUNT}

    begun = time.monotonic()
    why = CliRunner().invoke(odf, ["why", "--failed", "--json"], env={"ODF_DATABASE_URL": shop.flow.url})
    assert time.monotonic() - begun < 2
    (cause,) = json.loads(why.output)["causes"]
    assert (cause["count"], f"exit code 1: {mount} is not mounted" in cause["reason"]) == (COUNT, True)

    mount.touch()
    if act == "odf resubmit":
        done = CliRunner().invoke(
            odf,
            ["resubmit", "--failed", "--yes", "--as", "ada", "--reason", "mount is back"],
            env={"ODF_DATABASE_URL": shop.flow.url},
        )
        assert done.exit_code == 0
    else:
        shop.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where status = 'FAILED'")

    heal_by_a_scheduler(shop, script, jobs)
    assert statuses(shop) == {"READY": COUNT}
    assert out_of_order(shop) == 0
    assert shop.flow.psql.execute("select count(*) from dataflow.data_manifest").fetchone() == (COUNT,), "each once"


def test_the_sensor_heals_a_chain_of_scripts_in_order_after_one_typed_statement(project: Project) -> None:
    mount, script = project.flow.root.parent / "mount", project.flow.root.parent / "make.sh"
    script.write_text(
        f'#!/bin/bash\ntest -e {mount} || {{ echo "{mount} is not mounted" >&2; exit 1; }}\n'
        'place="$1_location"; mkdir -p "${!place}"; echo made > "${!place}/part-0"\n'
    )
    script.chmod(0o755)
    names = [f"step{number}" for number in range(LAYERS)]
    inputs = [{}, *({"before": name} for name in names[:-1])]
    project.build(
        *(
            script_dataset(script, name, job=name, arguments=[name], partitions=daily(DAY, DAY), inputs=needs)
            for name, needs in zip(names, inputs, strict=True)
        )
    )
    for name in names:
        fail(project.flow.ledger, force(project.flow.ledger, name, DAY, by="test"), f"{mount} is not mounted")
    assert started_by(project) == []

    mount.touch()
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where status = 'FAILED'")
    started: list[str] = []
    while jobs := started_by(project):
        started += jobs
        assert all(project.launch_as_sensor(jobid, [DAY]).success for jobid in jobs)
    assert started == names
    assert [project.flow.status(f"{name}/{DAY}") for name in names] == ["READY"] * LAYERS


def started_by(project: Project) -> list[str]:
    """What one tick of the readiness sensor starts."""
    assert project.graph is not None
    context = dg.build_sensor_context(
        instance=project.instance, definitions=project.definitions, resources={"ledger": LedgerResource()}
    )
    requests = readiness_sensor(project.graph).evaluate_tick(context).run_requests or ()
    return [one.job_name or "" for one in requests]


def a_daily_cycle(shop: Shop) -> list[str]:
    """Chains of seven Jobs, the first of each fed by the landing. Registered by plain SQL, as upstream does it, and
    made once by someone else's programs."""
    width = COUNT // LAYERS
    names = [[f"layer{layer}_{number}" for number in range(width)] for layer in range(LAYERS)]
    items = [
        (name, itemtype, datasetid)
        for layer, part in enumerate(names)
        for number, name in enumerate(part)
        for itemtype, datasetid in (
            ("IN", "landing" if layer == 0 else f"{names[layer - 1][number]}_data"),
            ("OUT", f"{name}_data"),
        )
    ]
    shop.flow.type(
        "insert into dataflow.dataset (datasetid) select distinct unnest(%s::text[])", [one[2] for one in items]
    )
    shop.flow.type(
        "insert into dataflow.job (jobid, itemtype, datasetid)"
        " select * from unnest(%s::text[], %s::text[], %s::text[])",
        *map(list, zip(*items, strict=True)),
    )
    shop.flow.type(
        "insert into dataflow.datastatus select j.datasetid, j.jobid, %s, 'OUT', 'READY', now()"
        "  from dataflow.job j where j.itemtype = 'OUT'"
        " union all select 'landing', 'landing', %s, 'OUT', 'READY', now()",
        DAY,
        DAY,
    )
    return [name for part in names for name in part]


def fail_all(shop: Shop, script: Path, jobs: list[str]) -> None:
    """Each Job of the cycle is tried once, consumers while their input is still the good one."""
    for layer in reversed(range(LAYERS)):
        shop.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where jobid like %s", f"layer{layer}%")
        first, *others = [one for one in jobs if one.startswith(f"layer{layer}")]
        assert run_next(shop.flow.ledger, shop.order(script, jobid=first)).failed == 1
        # The others as that one, without a process for each.
        reason = shop.flow.chunk(f"{first}_data/{DAY}").reason or ""
        for jobid in others:
            (taken,) = claim_next(shop.flow.ledger, jobid)
            fail(shop.flow.ledger, taken, reason.replace(first, jobid))


def heal_by_a_scheduler(shop: Shop, script: Path, jobs: list[str]) -> None:
    """It knows nothing of the outage, nor of what comes before what: it calls `odf run` for each Job in any order, and
    those that are not ready again after a while. Some in a process of their own, as cron does."""
    chance = random.Random(7)  # noqa: S311 - no secret, the same in each run
    by_cron = set(chance.sample(jobs, 5))
    left, passes = list(jobs), 0
    while left:
        chance.shuffle(left)
        codes = {jobid: run_as(shop, script, jobid, in_a_process=jobid in by_cron) for jobid in left}
        assert set(codes.values()) <= {0, NOT_READY}
        left, passes = [jobid for jobid, code in codes.items() if code == NOT_READY], passes + 1
        assert passes <= LAYERS, "each pass finishes at least the first of what is left of a chain"
    assert passes > 1, "some were asked before their producers"


def run_as(shop: Shop, script: Path, jobid: str, *, in_a_process: bool) -> int:
    if in_a_process:
        return shop.odf("run", "--job", jobid, script).returncode
    return run_next(shop.flow.ledger, shop.order(script, jobid=jobid)).exit_code


def statuses(shop: Shop) -> dict[str, int]:
    found = shop.flow.psql.execute(
        "select status, count(*) from dataflow.datastatus where jobid <> 'landing' group by 1"
    ).fetchall()
    return dict(found)


def out_of_order(shop: Shop) -> int:
    """Jobs that began before the new version of their input was there, or did not read it."""
    (found,) = shop.flow.psql.execute(
        "select count(*) from dataflow.data_manifest m"
        " cross join lateral jsonb_to_recordset(m.inputs) as i(datasetid text, manifest_id bigint)"
        "  left join dataflow.data_manifest p on p.manifest_id = i.manifest_id and p.published <= m.published"
        " where i.datasetid <> 'landing' and p.manifest_id is null"
    ).fetchall()
    return int(found[0])
