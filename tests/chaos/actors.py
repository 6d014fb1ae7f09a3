"""The processes of the hostile run: claimers, typists, and stewards who heal, throttle, register, plan and sweep."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TypeVar

import psycopg
from psycopg import errors

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.errors import (
    ClaimLost,
    ForbiddenTransition,
    LedgerConflict,
    OpenDataFlowError,
    UnknownName,
)
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId
from opendataflow_dagster.model.retention import Retention
from opendataflow_dagster.protocol.cancel import cancel
from opendataflow_dagster.protocol.claim import claim_many, claim_next
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.publish import publish_many
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, fail_many
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.request import request
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.sweep import sweep
from opendataflow_dagster.protocol.throttle import pause, resume, throttle
from tests.chaos.pipeline import DATASETS, EXTERNAL, JOBS, LEASE, LIMITED, Scene, Witness, content_of

Result = TypeVar("Result")

#: An operator's verbs may refuse with these; for a claimer they would be a defect.
REFUSALS = (ForbiddenTransition, UnknownName)


def claimer(scene: Scene, name: str, is_cut: bool) -> None:
    witness = Witness(scene.witness, name)
    patience = timedelta(seconds=2)
    with Ledger(scene.cut_url if is_cut else scene.url, actor=name, connections=1, patience=patience) as ledger:
        claims = _Claimer(scene, ledger, witness, scene.random(name))
        _act_until_the_end(scene, witness, claims.produce_some)


class _Claimer:
    def __init__(self, scene: Scene, ledger: Ledger, witness: Witness, random: Random) -> None:
        self._scene, self._ledger, self._witness, self._random = scene, ledger, witness, random

    def produce_some(self) -> None:
        jobid = self._random.choice(list(JOBS))
        count = self._random.choice((1, 1, 3, 10))
        if self._random.random() < 0.5:
            claims: Sequence[Claim] = claim_next(self._ledger, jobid, count)
        else:
            claims = self._requested(jobid, count)
        if not claims:
            _rest(0.01)
            return
        for claim in claims:
            self._witness.saw("claim", claim_id=claim.claim_id, jobid=claim.jobid, dataid=claim.dataid)
        self._read(claims)
        _rest(self._random.choice((0, 0, 0.05, 0.5)))
        self._random.choices(
            (self._publish, self._publish_late, self._fail, self._abandon, self._vanish), (80, 3, 7, 7, 3)
        )[0](claims)

    def _requested(self, jobid: str, count: int) -> Sequence[Claim]:
        """As a run of Dagster: a person's backfill repeats what is READY, a sensor's run does not."""
        dataids = self._scene.some(self._random, count, jobid)
        requested = datetime.now(UTC) if self._random.random() < 0.5 else None
        request(self._ledger, JOBS[jobid], dataids, by="backfill", requested=requested)
        for dataid in dataids:
            self._witness.saw("planned", jobid=jobid, dataid=dataid)
        return claim_many(self._ledger, jobid, dataids).claims

    def _read(self, claims: Sequence[Claim]) -> None:
        """Every pinned version stays readable, byte for byte, as long as the claim is held."""
        damaged = [
            (claim, manifest.location)
            for claim in claims
            for manifest in claim.manifests
            if not _is_intact(manifest.location, manifest.datasetid, manifest.dataid)
        ]
        for claim, location in damaged:
            with suppress(ClaimLost):
                renew(self._ledger, [claim])
                raise AssertionError(f"claim {claim.claim_id} is held, but the pinned {location} is damaged")

    def _publish(self, claims: Sequence[Claim]) -> None:
        if self._random.random() < 0.3:
            claims = self._renewed(claims)
        staged = [self._scene.staged(claim) for claim in claims]
        published = self._until_answered(lambda: publish_many(self._ledger, staged))
        for version in published.versions:
            self._witness.saw("published", claim_id=version.claim_id, manifest_id=version.manifest_id)
        # A misfit is a lost claim whose folder was swept already.
        for claim in (*published.lost, *(misfit.claim for misfit in published.misfits)):
            self._witness.saw("lost", claim_id=claim.claim_id)

    def _publish_late(self, claims: Sequence[Claim]) -> None:
        """A process that was suspended."""
        _rest(LEASE.total_seconds() + 0.5)
        self._publish(claims)

    def _fail(self, claims: Sequence[Claim]) -> None:
        reasons = [self._random.choice(("disk full", "bad row")) for _ in claims]
        with suppress(ClaimLost):
            self._until_answered(lambda: fail_many(self._ledger, claims, reasons))
            self._witness.saw("failed", count=len(claims))

    def _abandon(self, claims: Sequence[Claim]) -> None:
        with suppress(ClaimLost):
            self._until_answered(lambda: abandon(self._ledger, claims, "cancelled"))
            self._witness.saw("abandoned", count=len(claims))

    def _vanish(self, claims: Sequence[Claim]) -> None:
        self._witness.saw("vanished", count=len(claims))

    def _renewed(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        try:
            return self._until_answered(lambda: renew(self._ledger, claims))
        except ClaimLost:
            return claims

    def _until_answered(self, call: Callable[[], Result]) -> Result:
        """The outcome of a claim is worth a second try."""
        while True:
            try:
                return call()
            except OpenDataFlowError as error:
                if not error.retryable or self._scene.is_over():
                    raise
                self._witness.saw(type(error).__name__)
                _rest(0.1)


def _is_intact(location: str, datasetid: str, dataid: str) -> bool:
    folder = Path(location)
    with suppress(FileNotFoundError):
        return (folder / "part-0").read_text() == content_of(datasetid, dataid, int(folder.name.partition("-")[0]))
    return False


def steward(scene: Scene, name: str) -> None:
    """Operators and daemons, through the verbs."""
    witness, random = Witness(scene.witness, name), scene.random(name)
    with Ledger(scene.url, actor=name, connections=1, patience=timedelta(seconds=2)) as ledger:

        def some_chunks() -> list[ChunkKey]:
            datasetid = random.choice([name for name in DATASETS if name not in (EXTERNAL, "paper")])
            dataids = scene.some(random, random.choice((1, 5)))
            return [ChunkKey(datasetid=DatasetId(datasetid), dataid=DataId(dataid)) for dataid in dataids]

        def register_changed() -> None:
            changed = replace(JOBS["clean"], policy=replace(JOBS["clean"].policy, max_attempts=random.randint(3, 6)))
            extra = scene.dataset(f"extra{random.randint(1, 5)}")
            register(ledger, [extra], [changed])

        def plan_some() -> None:
            jobid = random.choice(list(JOBS))
            dataids = scene.some(random, 3, jobid)
            plan(ledger, JOBS[jobid], dataids)
            for dataid in dataids:
                witness.saw("planned", jobid=jobid, dataid=dataid)

        def sweep_some() -> None:
            retention = Retention(versions=1, grace=timedelta(0), failed=LEASE)
            sweep(ledger, random.choice([name for name in DATASETS if name != EXTERNAL]), retention, by=name)

        acts: dict[str, tuple[int, Callable[[], object]]] = {
            "heal": (20, lambda: heal(ledger)),
            "rebuild": (1, lambda: heal(ledger, rebuild=True)),
            "throttle": (8, lambda: throttle(ledger, "varied", random.choice((1, 2, 4, 8)), by=name)),
            "pause": (4, lambda: pause(ledger, random.choice(("varied", "load", "split", LIMITED)), by=name)),
            "resume": (16, lambda: resume(ledger, random.choice(("varied", "load", "split", LIMITED)), by=name)),
            "register": (4, register_changed),
            "plan": (20, plan_some),
            "sweep": (5, sweep_some),
            "resubmit": (5, lambda: resubmit(ledger, some_chunks(), by=name)),
            "cascade": (1, lambda: resubmit(ledger, some_chunks()[:1], by=name, with_downstream=True)),
            "hold": (5, lambda: hold(ledger, some_chunks(), by=name)),
            "unhold": (5, lambda: unhold(ledger, some_chunks(), by=name)),
            "skip": (2, lambda: skip(ledger, some_chunks(), by=name)),
            "cancel": (5, lambda: cancel(ledger, some_chunks(), by=name)),
            "force": (2, lambda: force(ledger, "split", scene.some(random, 1)[0], by=name)),
        }

        def act() -> None:
            what = random.choices(list(acts), [weight for weight, _ in acts.values()])[0]
            try:
                acts[what][1]()
                witness.saw(what)
            except REFUSALS:
                witness.saw("refused")
            _rest(random.uniform(0, 0.1))

        _act_until_the_end(scene, witness, act)


#: What people and foreign clients type, with its weight. Half of it concerns one chunk, half several.
OF_CHUNKS = "datasetid = %(datasetid)s and dataid = any (%(dataids)s) and locktype = 'OUT'"
TYPED: dict[str, tuple[int, str]] = {
    "RESUBMIT": (25, f"update dataflow.datastatus set status = 'RESUBMIT' where {OF_CHUNKS}"),
    "HOLD": (6, f"update dataflow.datastatus set status = 'HOLD' where {OF_CHUNKS}"),
    "unhold": (12, f"update dataflow.datastatus set status = held_status where status = 'HOLD' and {OF_CHUNKS}"),
    "SKIPPED": (3, f"update dataflow.datastatus set status = 'SKIPPED' where {OF_CHUNKS}"),
    "FAILED": (4, f"update dataflow.datastatus set status = 'FAILED' where {OF_CHUNKS}"),
    "unknown word": (2, f"update dataflow.datastatus set status = 'OOPS' where {OF_CHUNKS}"),
    "foreign READY": (4, f"update dataflow.datastatus set status = 'READY' where {OF_CHUNKS}"),
    "delete": (8, f"delete from dataflow.datastatus where status = 'PENDING' and {OF_CHUNKS}"),
    "announce": (
        20,
        "insert into dataflow.datastatus select 'codes', 'someone', d, 'OUT', 'READY', now()"
        " from unnest(%(dataids)s::text[]) as d order by d on conflict (datasetid, jobid, dataid)"
        " do update set status = case datastatus.status when 'READY' then 'RESUBMIT' else 'READY' end"
        " where datastatus.status not in ('HOLD', 'SKIPPED')",
    ),
}


def typist(scene: Scene, name: str) -> None:
    """A person in psql, and foreign clients."""
    witness, random = Witness(scene.witness, name), scene.random(name)

    def type_some() -> None:
        with psycopg.connect(scene.typist_url, connect_timeout=5) as connection:
            for _ in range(random.randint(1, 40)):
                # Sometimes a transaction stays open for a while, with its rows locked.
                for _ in range(random.choice((1, 1, 1, 3))):
                    what = random.choices(list(TYPED), [weight for weight, _ in TYPED.values()])[0]
                    dataids = scene.some(random, random.choice((1, 4)))
                    given = {"datasetid": random.choice(DATASETS), "dataids": dataids}
                    connection.execute(TYPED[what][1].encode(), given)
                    witness.saw(f"typed {what}")
                _rest(random.choice((0, 0, 0, 0.2)))
                if random.random() < 0.9:
                    connection.commit()
                else:
                    connection.rollback()
                _rest(random.uniform(0, 0.05))

    def type_on() -> None:
        try:
            type_some()
        except errors.DeadlockDetected as error:
            # Two people whose transactions change several things in opposite orders; nobody can prevent that.
            witness.saw("deadlocked", detail=error.diag.message_detail)
        except psycopg.OperationalError:
            witness.saw("disconnected")
            _rest(0.1)
        except psycopg.Error as error:
            if error.sqlstate != "DF001":  # a forbidden transition
                raise
            witness.saw("refused")

    _act_until_the_end(scene, witness, type_on)


def _act_until_the_end(scene: Scene, witness: Witness, act: Callable[[], None]) -> None:
    while not scene.is_over():
        try:
            act()
        except ClaimLost:
            witness.saw("ClaimLost")
        except Exception as error:
            if isinstance(error, OpenDataFlowError) and error.retryable:
                witness.saw(type(error).__name__)
                _rest(0 if isinstance(error, LedgerConflict) else 0.1)
            else:
                witness.saw("unexpected", error=traceback.format_exc())
                _rest(0.1)
    witness.saw("ended")


def _rest(seconds: float) -> None:
    time.sleep(seconds)
