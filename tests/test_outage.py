"""The outage that this system was born from: one bad mount fails a whole daily cycle, and one act heals it in order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.run_job import run_next
from tests.factories import Flow
from tests.scripts import Shop

DAY = "2024-01-05"
LAYERS = 7


@pytest.fixture
def shop(flow: Flow, tmp_path: Path) -> Shop:
    return Shop(flow=flow, folder=tmp_path)


@pytest.mark.parametrize(("act", "count"), [("odf resubmit", 700), ("typed SQL", 70)])
def test_all_jobs_that_a_bad_mount_failed_heal_in_order_after_one_human_act(shop: Shop, act: str, count: int) -> None:
    jobs = a_daily_cycle(shop, count)
    mount = shop.folder / "mount"
    script = shop.script(f'#!/bin/sh\nif test -e {mount}; then :; else echo "{mount} is not mounted" >&2; exit 1; fi')
    fail_all(shop, script, jobs)
    assert statuses(shop) == {"FAILED": count}

    begun = time.monotonic()
    why = CliRunner().invoke(odf, ["why", "--failed", "--json"], env={"ODF_DATABASE_URL": shop.flow.url})
    assert time.monotonic() - begun < 2
    (cause,) = json.loads(why.output)["causes"]
    assert (cause["count"], f"exit code 1: {mount} is not mounted" in str(cause)) == (count, True)

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

    for consumer in jobs[-3:]:
        assert run_next(shop.flow.ledger, shop.order(script, jobid=consumer)).exit_code == 1, "its producer comes first"
    heal_by_a_scheduler(shop, script, jobs)
    assert statuses(shop) == {"READY": count}
    assert out_of_order(shop) == 0
    assert shop.flow.psql.execute("select count(*) from dataflow.data_manifest").fetchone() == (count,), "each once"


def a_daily_cycle(shop: Shop, count: int) -> list[str]:
    """Chains of seven Jobs, the first of each fed by the landing; producers first. Registered by plain SQL, as upstream
    does it, and made once by someone else's programs."""
    width = count // LAYERS
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
    """It knows nothing of the outage; it calls `odf run` for each Job, as it does every five minutes."""
    for jobid in jobs:
        report = run_next(shop.flow.ledger, shop.order(script, jobid=jobid))
        assert (report.finished, report.exit_code) == (1, 0)


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
