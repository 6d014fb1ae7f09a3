"""Claimers, typists and stewards work while everything that they need is killed, cut and restarted. Then the audit.

make test                    about a minute
make chaos MINUTES=120       as long as you like; SEED=7 makes other choices
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.publish import publish_many
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.throttle import resume, throttle
from tests.chaos.audit import audit
from tests.chaos.hazards import CuttingProxy, Troupe, own_server, torment
from tests.chaos.pipeline import EXTERNAL, JOBS, LEASE, Scene, counts
from tests.effort import PATIENCE_SECONDS

SECONDS: Final = float(os.environ.get("ODF_CHAOS_MINUTES", "1")) * 60
SEED: Final = int(os.environ.get("ODF_CHAOS_SEED", "12"))
#: More chunks make the audit longer and the run no more hostile.
SIZE: Final = min(1000, 100 + int(SECONDS / 2))


def _begin(url: str, root: Path, hazards: Counter[str]) -> Scene:
    parts = conninfo_to_dict(url)
    proxy = CuttingProxy(int(str(parts["port"])), Random(f"{SEED} proxy"), hazards)
    scene = Scene(
        url=url,
        cut_url=make_conninfo("", **{**parts, "port": proxy.port}),
        typist_url=make_conninfo("", **{**parts, "user": "typist", "password": "secret"}),
        root=root,
        seed=SEED,
        size=SIZE,
        until=time.monotonic() + SECONDS,
    )
    with Ledger(url, actor="chaos") as ledger, psycopg.connect(url, autocommit=True) as psql:
        schema.install(ledger)
        psql.execute("create role typist login password 'secret' in role dataflow_operator")
        scene.register(ledger)
    return scene


def _until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, f"timed out: {what}"
        time.sleep(0.2)


def _settle(ledger: Ledger, psql: psycopg.Connection) -> None:
    """Nobody works any more: what is RUNNING must end with its lease, by heal alone."""
    for jobid in JOBS:
        resume(ledger, jobid, by="chaos")

    def nothing_runs() -> bool:
        heal(ledger)
        return not psql.execute("select from dataflow.datastatus where status = 'RUNNING'").rowcount

    _until(nothing_runs, f"chunks are RUNNING after their lease of {LEASE}")


def _recover(scene: Scene, ledger: Ledger, psql: psycopg.Connection) -> None:
    """The one act of recovery, for everything: RESUBMIT. Then the Jobs run undisturbed."""
    psql.execute("update dataflow.datastatus set status = 'RESUBMIT' where locktype = 'OUT'")
    psql.execute("delete from dataflow.datastatus where datasetid = %s", (EXTERNAL,))
    psql.execute(
        "insert into dataflow.datastatus select %s, 'someone', d, 'OUT', 'READY', now() from unnest(%s::text[]) d",
        (EXTERNAL, scene.dataids()),
    )
    throttle(ledger, "varied", None, by="chaos")
    for jobid, declared in JOBS.items():
        plan(ledger, declared, scene.dataids(jobid))
    is_idle = False
    while not is_idle:
        is_idle = True
        for jobid in JOBS:
            while claims := claim_next(ledger, jobid, 100):
                published = publish_many(ledger, [scene.staged(claim) for claim in claims])
                assert not published.lost
                assert not published.misfits
                is_idle = False


def _assert_sound(scene: Scene, psql: psycopg.Connection) -> None:
    problems = audit(psql, scene.witness)
    assert not problems, "\n".join(problems)


def _assert_all_ready(scene: Scene, psql: psycopg.Connection) -> None:
    rows = psql.execute("select datasetid, dataid, status from dataflow.datastatus").fetchall()
    assert [row for row in rows if row[2] != "READY"] == []
    assert {(datasetid, dataid) for datasetid, dataid, _ in rows} >= {
        (output, dataid)
        for jobid, declared in JOBS.items()
        for output in declared.outputs
        for dataid in scene.dataids(jobid)
    }


def _report(seen: Counter[str], hazards: Counter[str]) -> None:
    print(f"\nThe hostile run: {SECONDS:.0f} seconds, seed {SEED}, {SIZE} chunks of each DataSet")
    for counted in (hazards, seen):
        print("; ".join(f"{what}: {count:,}" for what, count in sorted(counted.items())))


def test_whatever_is_killed_cut_or_typed_nothing_is_lost_and_nothing_doubled(tmp_path: Path) -> None:
    hazards: Counter[str] = Counter()
    with own_server(tmp_path / "home") as (embedded, url):
        scene = _begin(url, tmp_path, hazards)
        troupe = Troupe(scene)
        torment(scene, embedded, tmp_path / "home", troupe, hazards)
        assert troupe.join() == [], "a process waits forever, or died by itself"
        with Ledger(url, actor="chaos") as ledger, psycopg.connect(url, autocommit=True) as psql:
            _settle(ledger, psql)
            seen = counts(scene.witness)
            _report(seen, hazards)
            _assert_sound(scene, psql)
            _recover(scene, ledger, psql)
            _assert_sound(scene, psql)
            _assert_all_ready(scene, psql)
    assert min(hazards.values()) > 0
    assert seen["published"] > SECONDS
