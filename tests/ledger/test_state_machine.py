"""Any walk through the verbs, crashes and hand-typed SQL: the ledger does what a simple model in Python says.

The model knows rows, not triggers: what a status word means for its row, its claim, its siblings and its inputs. After
each step the rows, the runnable set and the codes of the five answers of every chunk are those of the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import psycopg
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from psycopg.conninfo import make_conninfo

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import ClaimLost, InvalidManifest, NoGo, UnknownName
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, natural_key
from opendataflow_dagster.model.job import ALL, Job, ListedChunks, Policy
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.status import FREE, TRANSITIONS, Status
from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, fail
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import scaled
from tests.factories import Flow, job
from tests.invariants import assert_invariants

DATAIDS: Final = ("1", "2", "10")
#: What a chunk of `daily` needs of `raw`: two of them share a chunk, and one needs nothing.
WINDOW: Final = {"1": ("1", "2"), "2": ("2", "10"), "10": ()}
JOBS: Final[Mapping[str, Job]] = {
    declared.jobid: declared
    for declared in (
        job("load: -> raw"),
        job("clean: raw -> tidy"),
        job("total: tidy -> sums"),
        job("join: raw, codes -> joined"),
        job("split: tidy -> left, right"),
        job("daily: raw -> day", raw=ListedChunks(lambda dataid: WINDOW[dataid])),
        job("report: sums -> paper", sums=ALL),
        job("post: codes -> books", Policy(ordered=True)),
    )
}
#: `codes` has no producing Job; a SKIPPED chunk of `tidy` lets its consumers pass.
DATASETS: Final = ("books", "codes", "day", "joined", "left", "paper", "raw", "right", "sums", "tidy")
PASSES: Final = "tidy"
PRODUCER: Final[Mapping[str, str]] = {
    datasetid: declared.jobid for declared in JOBS.values() for datasetid in declared.outputs
}
MAX_ATTEMPTS: Final = 3
#: What a person may make of a chunk on hold, beside what it was.
GIVEN_UP: Final = ("RESUBMIT", "SKIPPED")

Word: TypeAlias = str | None
Chunk: TypeAlias = tuple[str, str]  # datasetid, dataid
RowKey: TypeAlias = tuple[str, str, str]  # datasetid, jobid, dataid
Pins: TypeAlias = dict[Chunk, int | None]


@dataclass(kw_only=True)
class Out:
    status: Word
    claim_id: int | None = None
    attempt: int = 0
    retries: int = 0
    held: Word = None
    version: int | None = None


@dataclass(kw_only=True)
class In:
    claim_id: int | None
    version: int | None


@dataclass(frozen=True, kw_only=True)
class Version:
    made_from: Pins
    content: str | None


@dataclass(kw_only=True)
class Model:
    outs: dict[RowKey, Out] = field(default_factory=dict)
    ins: dict[RowKey, In] = field(default_factory=dict)
    versions: dict[Chunk, list[Version]] = field(default_factory=dict)
    #: The chunks of `daily` whose inputs are known.
    listed: set[str] = field(default_factory=set)
    #: What each claim pinned, the version that it published with its content, and whether its lease is over.
    pins: dict[int, Pins] = field(default_factory=dict)
    published: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    expired: set[int] = field(default_factory=set)

    # Who needs what.

    def needs(self, jobid: str, dataid: str) -> list[Chunk]:
        found: list[Chunk] = []
        for source in JOBS[jobid].inputs:
            match source.mapping.kind:
                case "equal":
                    found.append((source.datasetid, dataid))
                case "listed":
                    found += [(source.datasetid, each) for each in WINDOW[dataid] if dataid in self.listed]
                case _:
                    found += [(source.datasetid, each) for each in self.dataids(source.datasetid)]
        return found

    def dataids(self, datasetid: str) -> list[str]:
        return sorted({dataid for name, _, dataid in self.outs if name == datasetid})

    def rows(self, chunk: Chunk) -> dict[RowKey, Out]:
        return {row: out for row, out in self.outs.items() if (row[0], row[2]) == chunk}

    def outputs(self, jobid: str, dataid: str) -> list[RowKey]:
        return [(output, jobid, dataid) for output in sorted(JOBS[jobid].outputs)]

    def version(self, chunk: Chunk) -> int | None:
        found = [out.version for out in self.rows(chunk).values() if out.status != "SKIPPED" and out.version]
        return max(found, default=None)

    # The answers.

    def is_ready(self, chunk: Chunk) -> bool:
        words = {out.status for out in self.rows(chunk).values()}
        return bool(words) and words <= ({"READY", "SKIPPED"} if chunk[0] == PASSES else {"READY"})

    def is_free(self, jobid: str, dataid: str) -> bool:
        return all(out.status in FREE for output in JOBS[jobid].outputs for out in self.rows((output, dataid)).values())

    def has_inputs(self, jobid: str, dataid: str) -> bool:
        """Is it known which ones, and are all READY?"""
        known = (
            dataid in self.listed if source.mapping.kind == "listed" else bool(self.dataids(source.datasetid))
            for source in JOBS[jobid].inputs
            if source.mapping.kind != "equal"
        )
        return all(known) and all(self.is_ready(chunk) for chunk in self.needs(jobid, dataid))

    def current(self, chunk: Chunk) -> set[int]:
        return {out.version for out in self.rows(chunk).values() if out.version}

    def is_wrong(self, chunk: Chunk) -> bool:
        """Is it made from what is not current any more, or the same as another chunk?"""
        if (version := self.version(chunk)) is None:
            return False
        mine = self.versions[chunk][version - 1]
        others = [(chunk[0], each) for each in self.dataids(chunk[0]) if each != chunk[1]]
        contents = {self.versions[other][each - 1].content for other in others for each in self.current(other)}
        return mine.content in contents - {None} or any(
            self.is_replaced(chunk, used) for chunk, used in mine.made_from.items()
        )

    def is_replaced(self, chunk: Chunk, used: int | None) -> bool:
        """Is it another version than the one that was used? A row that was never READY says nothing."""
        said = [out for out in self.rows(chunk).values() if out.version or out.status in ("READY", "SKIPPED")]
        return bool(said) and not any(out.version == used or (out.status == "SKIPPED" and used is None) for out in said)

    def is_locked(self, jobid: str, dataid: str) -> bool:
        kinds: dict[str, str] = {source.datasetid: source.mapping.kind for source in JOBS[jobid].inputs}
        reading = (
            (kinds[name] == "equal" or mine.claim_id is None)
            for name, each in self.needs(jobid, dataid)
            if (mine := self.ins.get((name, jobid, each)))
        )
        read_in_place = (
            row[0] in JOBS[jobid].outputs and row[2] == dataid and held.version is None
            for row, held in self.ins.items()
        )
        return not self.is_free(jobid, dataid) or any(reading) or any(read_in_place)

    def code(self, jobid: str, dataid: str) -> Code | None:
        if not self.has_inputs(jobid, dataid) or self.must_wait(jobid, dataid):
            return Code.DATA_NOT_READY
        if any(self.is_wrong(chunk) for chunk in self.needs(jobid, dataid)):
            return Code.WRONG_DATA
        return Code.LOCKED if self.is_locked(jobid, dataid) else None

    def must_wait(self, jobid: str, dataid: str) -> bool:
        """In a strictly ordered Job: for the one that runs, or for an earlier one that is not finished."""
        if not JOBS[jobid].policy.ordered:
            return False
        rows = [(row[2], out.status) for row, out in self.outs.items() if row[0] in JOBS[jobid].outputs]
        running = [each for each, status in rows if status == "RUNNING"]
        waiting = [each for each, status in rows if status not in ("READY", "SKIPPED")]
        waiting += [each for owner, each in self.runnable() if owner == jobid]
        turn = min(running or waiting, key=natural_key, default=dataid)
        return turn != dataid and (bool(running) or natural_key(turn) < natural_key(dataid))

    def runnable(self) -> dict[tuple[str, str], bool]:
        """The chunks that can run, and whether they were resubmitted."""
        found: dict[tuple[str, str], bool] = {}
        for jobid, declared in JOBS.items():
            for dataid in DATAIDS:
                asked_for = any(each.mapping.kind == "equal" for each in declared.inputs) or any(
                    row in self.outs for row in self.outputs(jobid, dataid)
                )
                if asked_for and self.is_free(jobid, dataid) and self.has_inputs(jobid, dataid):
                    rows = [out for each in declared.outputs for out in self.rows((each, dataid)).values()]
                    found[jobid, dataid] = any(out.status == "RESUBMIT" for out in rows)
        return found

    # What happens.

    def may(self, rows: Iterable[RowKey], word: Word) -> bool:
        """Has the state machine these arrows? What a client lost to a RESUBMIT it cannot make READY."""
        words = set(Status)
        changed = [row for row in rows if self.outs[row].status != word]
        outs = [self.outs[row] for row in changed]
        if word == "READY" and any(row[0] in PRODUCER and self.outs[row].status == "RESUBMIT" for row in changed):
            return False
        return all(
            word is not None and word in (out.held, *GIVEN_UP)
            if out.status == "HOLD"
            else out.status not in words or word not in words or word in TRANSITIONS[Status(out.status)]
            for out in outs
        )

    def set(self, words: Mapping[RowKey, Word], *, retry: bool = False) -> None:
        """Rows get new words, whoever wrote them."""
        changed = {row: word for row, word in words.items() if self.outs[row].status != word}
        left = {row: self.outs[row].claim_id for row, word in changed.items() if word not in ("RUNNING", "PENDING")}
        for row, word in changed.items():
            self._set_one(self.outs[row], word, retry=retry)
        self._leave(left)
        self._together(left.values(), {row for row, word in changed.items() if word == "RESUBMIT"})

    @staticmethod
    def _set_one(out: Out, word: Word, *, retry: bool) -> None:
        old = out.status
        if word == "READY":
            # Made by someone else: what we had published before is not what they made.
            out.version = out.version if old == "HOLD" and out.held == "READY" else None
            out.retries = 0
        elif word == "RESUBMIT" and not retry:
            out.retries = 0
        out.held = ("RESUBMIT" if old == "RUNNING" else old) if word == "HOLD" else None
        out.status = word
        out.claim_id = None

    def delete(self, rows: Iterable[RowKey]) -> None:
        left = {row: self.outs.pop(row).claim_id for row in rows}
        self._leave(left)
        self._together(left.values(), set())

    def _together(self, lost: Iterable[int | None], resubmitted: AbstractSet[RowKey]) -> None:
        """The outputs of a Job are claimed and made together."""
        claim_ids, chunks = set(lost) - {None}, {row[1:] for row in resubmitted if row[1] in JOBS}
        siblings = {
            row: "RESUBMIT"
            for row, out in self.outs.items()
            if out.claim_id in claim_ids
            or (row[1:] in chunks and out.status in ("RUNNING", "READY", "FAILED", "PENDING"))
        }
        if siblings:
            self.set(siblings)

    def _leave(self, left: dict[RowKey, int | None]) -> None:
        """A Job ended on these chunks: its IN rows go, but for those that another claim of the Job has, too."""
        for (_, jobid, dataid), claim_id in left.items():
            read = {*self.needs(jobid, dataid), *self.pins.get(claim_id or 0, ())} if jobid in JOBS else ()
            for chunk in read:
                if not self.is_shared(jobid, dataid, chunk):
                    self.ins.pop((chunk[0], jobid, chunk[1]), None)

    def is_shared(self, jobid: str, dataid: str | None, chunk: Chunk) -> bool:
        return any(
            row[1] == jobid and row[2] != dataid and out.claim_id is not None and chunk in self.pins[out.claim_id]
            for row, out in self.outs.items()
        )

    def take(self, taken: Claim) -> None:
        pins = {chunk: self.version(chunk) for chunk in self.needs(taken.jobid, taken.dataid)}
        for row in self.outputs(taken.jobid, taken.dataid):
            self._take_over(row)
            out = self.outs.setdefault(row, Out(status="PENDING"))
            out.status, out.claim_id, out.attempt = "RUNNING", taken.claim_id, out.attempt + 1
        for (datasetid, dataid), version in pins.items():
            self.ins[datasetid, taken.jobid, dataid] = In(claim_id=taken.claim_id, version=version)
        self.pins[taken.claim_id] = pins

    def _take_over(self, mine: RowKey) -> None:
        """What another Job has left of this output."""
        for row in sorted(set(self.rows((mine[0], mine[2]))) - {mine}):
            other = self.outs.pop(row)
            own = self.outs.setdefault(mine, other)
            own.version = max((version for version in (own.version, other.version) if version), default=None)

    def held(self, taken: Claim) -> bool:
        rows = [self.outs.get(row) for row in self.outputs(taken.jobid, taken.dataid)]
        return taken.claim_id not in self.expired and all(out and out.claim_id == taken.claim_id for out in rows)

    def publish(self, taken: Claim, content: str | None) -> None:
        rows = self.outputs(taken.jobid, taken.dataid)
        self.set(dict.fromkeys(rows, "READY"))
        for row in rows:
            made = self.versions.setdefault((row[0], row[2]), [])
            made.append(Version(made_from=self.pins[taken.claim_id], content=content))
            self.outs[row].version = len(made)
        self.published[taken.claim_id] = (self.outs[rows[0]].version or 0, content)

    def give_up(self, rows: Iterable[RowKey]) -> dict[RowKey, Word]:
        """The work ended without a result: again by itself, up to the attempt cap."""
        words: dict[RowKey, Word] = {}
        for row in rows:
            self.outs[row].retries += 1
            words[row] = "RESUBMIT" if self.outs[row].retries < MAX_ATTEMPTS else "FAILED"
        self.set(words, retry=True)
        return words

    def downstream(self, chunk: Chunk) -> AbstractSet[Chunk]:
        found, new = {chunk}, [chunk]
        while new:
            below = new.pop()
            for datasetid, _, dataid in self.outs:
                made = (datasetid, dataid)
                if made not in found and datasetid in PRODUCER and below in self.needs(PRODUCER[datasetid], dataid):
                    found.add(made)
                    new.append(made)
        return found


jobids = st.sampled_from(sorted(JOBS))
dataids = st.sampled_from(DATAIDS)
#: A chunk by name, or the n-th of those there are, RUNNING first: there most of the trouble is.
chunks = st.one_of(st.tuples(st.sampled_from(DATASETS), dataids), st.integers(0, 9))
recent = st.integers(0, 4)


class Walk(RuleBasedStateMachine):
    def __init__(self, ledger: Ledger, psql: psycopg.Connection, root: Path) -> None:
        super().__init__()
        self.ledger, self.psql, self.root = ledger, psql, root
        self.model = Model()
        #: Every claim there ever was: an old one is a stale holder, or one whose process has forgotten it.
        self.claims: list[Claim] = []
        with psql.transaction():
            psql.execute("set local session_replication_role = replica")
            psql.execute(
                "truncate dataflow.datastatus, dataflow.chunk_input, dataflow.data_manifest, dataflow.verdict, "
                "dataflow.chunk_event, dataflow.runnable, dataflow.turn, dataflow.version_sweep"
            )

    # Verbs.

    @rule(jobid=jobids, wanted=st.lists(dataids, min_size=1, max_size=3, unique=True))
    def plan(self, jobid: str, wanted: list[str]) -> None:
        model = self.model
        if jobid == "daily":
            model.listed |= set(wanted)
        new = [row for each in wanted for row in model.outputs(jobid, each) if not model.rows((row[0], row[2]))]
        model.outs.update({row: Out(status="PENDING") for row in new})
        assert plan(self.ledger, JOBS[jobid], wanted) == len(new)

    @rule(jobid=jobids, dataid=dataids)
    def claim(self, jobid: str, dataid: str) -> None:
        if (expected := self.model.code(jobid, dataid)) is None:
            self._take([claim(self.ledger, jobid, dataid)])
        else:
            with pytest.raises(NoGo) as refused:
                claim(self.ledger, jobid, dataid)
            assert refused.value.verdict.code == expected

    @rule(jobid=jobids, count=st.integers(1, 3))
    def claim_next(self, jobid: str, count: int) -> None:
        runnable = self.model.runnable()
        queue = sorted(
            (each for owner, each in runnable if owner == jobid and self.model.code(jobid, each) is None),
            key=lambda each: (not runnable[jobid, each], natural_key(each)),
        )
        taken = claim_next(self.ledger, jobid, count)
        assert {claim.dataid for claim in taken} == set(queue[:count])
        self._take(taken)

    def _take(self, taken: list[Claim]) -> None:
        # All of a batch see the ledger as it was before it.
        for mine in taken:
            self.model.take(mine)
            rows = [self.model.outs[row] for row in self.model.outputs(mine.jobid, mine.dataid)]
            assert mine.attempt == max(out.attempt for out in rows)
            pinned = sorted((pin.datasetid, pin.dataid, pin.version) for pin in mine.inputs)
            assert pinned == sorted((*chunk, version) for chunk, version in self.model.pins[mine.claim_id].items())
        self.claims += taken

    @precondition(lambda self: self.claims)
    @rule(back=recent)
    def renew(self, back: int) -> None:
        self._only_the_holder(back, lambda taken: self._renew(taken))

    def _renew(self, taken: Claim) -> None:
        (renewed,) = renew(self.ledger, [taken])
        assert renewed.lease_until > taken.lease_until

    @precondition(lambda self: self.claims)
    @rule(back=recent, content=st.sampled_from((None, None, "yesterday's file")))
    def publish(self, back: int, content: str | None) -> None:
        taken = self._claim(back)
        made = {output: self._manifest(taken, output, content) for output in taken.outputs}
        if self.model.held(taken):
            self.model.publish(taken, content)
        if (published := self.model.published.get(taken.claim_id)) is None:
            with pytest.raises(ClaimLost):
                publish(self.ledger, taken, made)
        elif content != published[1]:
            with pytest.raises(InvalidManifest):
                publish(self.ledger, taken, made)
        else:
            # Also when it is said again, because the answer was lost on its way.
            said = publish(self.ledger, taken, made)
            assert (said.datasetid, said.version) == (taken.outputs[0], published[0])

    def _manifest(self, taken: Claim, output: str, content: str | None) -> NewManifest:
        return NewManifest(location=f"{self.root}/{output}/claim-{taken.claim_id}", row_count=1, content_digest=content)

    @precondition(lambda self: self.claims)
    @rule(back=recent)
    def fail(self, back: int) -> None:
        def failed(taken: Claim) -> None:
            fail(self.ledger, taken, "disk full")
            self.model.set(dict.fromkeys(self.model.outputs(taken.jobid, taken.dataid), "FAILED"))

        self._only_the_holder(back, failed)

    @precondition(lambda self: self.claims)
    @rule(back=recent)
    def abandon(self, back: int) -> None:
        def abandoned(taken: Claim) -> None:
            abandon(self.ledger, [taken], "cancelled")
            self.model.give_up(self.model.outputs(taken.jobid, taken.dataid))

        self._only_the_holder(back, abandoned)

    def _only_the_holder(self, back: int, act: Callable[[Claim], None]) -> None:
        taken = self._claim(back)
        if self.model.held(taken):
            act(taken)
        else:
            with pytest.raises(ClaimLost):
                act(taken)

    def _claim(self, back: int) -> Claim:
        return self.claims[-1 - back % len(self.claims)]

    @rule(choice=chunks)
    def hold(self, choice: Chunk | int) -> None:
        self._take_out(self._chunk(choice), "HOLD")

    @rule(choice=chunks)
    def skip(self, choice: Chunk | int) -> None:
        self._take_out(self._chunk(choice), "SKIPPED")

    def _chunk(self, choice: Chunk | int) -> Chunk:
        if not isinstance(choice, int):
            return choice
        found = sorted((out.status != "RUNNING", row[0], row[2]) for row, out in self.model.outs.items())
        assume(found)
        return found[choice % len(found)][1:]

    def _take_out(self, out: Chunk, word: str) -> None:
        act = hold if word == "HOLD" else skip
        (datasetid, dataid), chunk = out, _chunk_key(*out)
        if not (rows := self.model.rows((datasetid, dataid))):
            if datasetid not in PRODUCER:
                with pytest.raises(UnknownName):
                    act(self.ledger, [chunk], by="ada")
                return
            row = (datasetid, PRODUCER[datasetid], dataid)
            self.model.outs[row] = Out(status=word, held="PENDING" if word == "HOLD" else None)
            assert act(self.ledger, [chunk], by="ada") == [chunk]
            return
        changed = any(out.status != word for out in rows.values())
        self.model.set(dict.fromkeys(rows, word))
        assert act(self.ledger, [chunk], by="ada") == ([chunk] if changed else [])

    @rule(choice=st.tuples(st.sampled_from(DATASETS), dataids))
    def unhold(self, choice: Chunk) -> None:
        # Of those on hold, if there are any.
        held = sorted((row[0], row[2]) for row, out in self.model.outs.items() if out.status == "HOLD")
        target = held[DATASETS.index(choice[0]) % len(held)] if held else choice
        chunk, rows = _chunk_key(*target), self.model.rows(target)
        if not rows:
            with pytest.raises(UnknownName):
                unhold(self.ledger, [chunk], by="ada")
            return
        given_back = {row: out.held or "RESUBMIT" for row, out in rows.items() if out.status == "HOLD"}
        self.model.set(given_back)
        assert unhold(self.ledger, [chunk], by="ada") == ([chunk] if given_back else [])

    @rule(choice=chunks, with_downstream=st.booleans())
    def resubmit(self, choice: Chunk | int, with_downstream: bool) -> None:
        chunk = self._chunk(choice)
        if not self.model.rows(chunk):
            with pytest.raises(UnknownName):
                resubmit(self.ledger, [_chunk_key(*chunk)], by="ada")
            return
        wanted = self.model.downstream(chunk) if with_downstream else {chunk}
        words = {
            row: "RESUBMIT"
            for each in wanted
            for row, out in self.model.rows(each).items()
            if out.status not in ("RESUBMIT", "HOLD")
        }
        self.model.set(words)
        done = {_chunk_key(row[0], row[2]) for row in words}
        held = {
            _chunk_key(*each) for each in wanted if any(out.status == "HOLD" for out in self.model.rows(each).values())
        }
        said = resubmit(self.ledger, [_chunk_key(*chunk)], by="ada", with_downstream=with_downstream)
        assert said.chunks == tuple(sorted(done))
        assert said.held == tuple(sorted(held))
        assert said.satisfied == tuple(sorted({_chunk_key(*each) for each in wanted} - done - held))

    @rule(rebuild=st.booleans())
    def heal(self, rebuild: bool) -> None:
        model = self.model
        words = model.give_up(sorted(row for row, out in model.outs.items() if out.claim_id in model.expired))
        strays = [
            row
            for row, held in model.ins.items()
            if held.claim_id and not model.is_shared(row[1], None, (row[0], row[2]))
        ]
        healed = heal(self.ledger, rebuild=rebuild)
        assert healed.resubmitted == _keys(row for row, word in words.items() if word == "RESUBMIT")
        assert healed.gave_up == _keys(row for row, word in words.items() if word == "FAILED")
        assert (healed.added, healed.removed) == (0, 0)
        if rebuild:
            assert healed.strays == len(strays)
            for row in strays:
                del model.ins[row]

    @rule(jobid=jobids, dataid=dataids, to_the_end=st.booleans())
    def produce(self, jobid: str, dataid: str, to_the_end: bool) -> None:
        """A chunk and all that it needs, as far as nobody is in the way: few walks would get there by chance."""
        self.plan(jobid, [dataid])
        for datasetid, each in self.model.needs(jobid, dataid):
            if datasetid not in PRODUCER:
                if (datasetid, "someone", each) not in self.model.outs:
                    self._announce(datasetid, each)
            elif not self.model.is_ready((datasetid, each)):
                self.produce(PRODUCER[datasetid], each, True)
        before = len(self.claims)
        self.claim(jobid, dataid)
        if len(self.claims) > before and to_the_end:
            self.publish(0, None)

    # The clock, and crashes.

    @precondition(lambda self: self.claims)
    @rule(back=recent)
    def lease_runs_out(self, back: int) -> None:
        self._expire([self._claim(back)])

    @precondition(lambda self: self.claims)
    @rule()
    def every_process_crashes(self) -> None:
        self._expire(self.claims)

    def _expire(self, claims: list[Claim]) -> None:
        ids = [claim.claim_id for claim in claims]
        self.model.expired |= set(ids)
        self._type(
            "update dataflow.datastatus set lease_until = now() - interval '1 s' "
            "where locktype = 'OUT' and claim_id = any (%s)",
            ids,
        )

    # What people and foreign clients type.

    @rule(choice=chunks, word=st.sampled_from(("RESUBMIT", "READY", "FAILED", "RUNNING", "OOPS", None)))
    def type_a_status(self, choice: Chunk | int, word: str | None) -> None:
        datasetid, dataid = self._chunk(choice)
        rows = list(self.model.rows((datasetid, dataid)))
        typed = "update dataflow.datastatus set status = %s where datasetid = %s and dataid = %s and locktype = 'OUT'"
        if self.model.may(rows, word):
            self.model.set(dict.fromkeys(rows, word))
            assert self._type(typed, word, datasetid, dataid) == len(rows)
        else:
            with pytest.raises(psycopg.Error, match=r"cannot go from|has not run since"):
                self._type(typed, word, datasetid, dataid)

    @rule(choice=chunks)
    def type_a_delete(self, choice: Chunk | int) -> None:
        datasetid, dataid = self._chunk(choice)
        rows = list(self.model.rows((datasetid, dataid)))
        assume(rows)
        typed = "delete from dataflow.datastatus where datasetid = %s and dataid = %s and locktype = 'OUT'"
        if any(self.model.outs[row].status == "HOLD" for row in rows):
            with pytest.raises(psycopg.Error, match="is on HOLD and cannot be deleted"):
                self._type(typed, datasetid, dataid)
        else:
            self.model.delete(rows)
            self._type(typed, datasetid, dataid)

    @rule(datasetid=st.sampled_from(("codes", "codes", "raw", "sums")), dataid=dataids)
    def someone_announces(self, datasetid: str, dataid: str) -> None:
        assume((datasetid, "someone", dataid) not in self.model.outs)
        self._announce(datasetid, dataid)

    def _announce(self, datasetid: str, dataid: str) -> None:
        row = (datasetid, "someone", dataid)
        self.model.outs[row] = Out(status="READY")
        self._type("insert into dataflow.datastatus values (%s, %s, %s, 'OUT', 'READY', now())", *row)

    @rule(jobid=jobids, dataid=dataids)
    def upstream_claims(self, jobid: str, dataid: str) -> None:
        """As RunJob does it: without a claim, with IN rows."""
        rows = self.model.outputs(jobid, dataid)
        assume(all(row not in self.model.outs or self.model.outs[row].status in FREE for row in rows))
        for row in rows:
            if row in self.model.outs:
                self.model.set({row: "RUNNING"})
                self._type(
                    "update dataflow.datastatus set status = 'RUNNING' where (datasetid, jobid, dataid) = (%s, %s, %s)",
                    *row,
                )
            else:
                self.model.outs[row] = Out(status="RUNNING")
                self._type("insert into dataflow.datastatus values (%s, %s, %s, 'OUT', 'RUNNING', now())", *row)
        for datasetid, each in self.model.needs(jobid, dataid):
            if (datasetid, jobid, each) not in self.model.ins:
                self.model.ins[datasetid, jobid, each] = In(claim_id=None, version=None)
                self._type(
                    "insert into dataflow.datastatus values (%s, %s, %s, 'IN', 'RUNNING', now())",
                    datasetid,
                    jobid,
                    each,
                )

    @rule(jobid=jobids, dataid=dataids)
    def upstream_ends_the_job(self, jobid: str, dataid: str) -> None:
        rows = [row for row in self.model.outputs(jobid, dataid) if row in self.model.outs]
        assume(rows and self.model.may(rows, "READY"))
        self.model.set(dict.fromkeys(rows, "READY"))
        self._type(
            "update dataflow.datastatus set status = 'READY' where jobid = %s and dataid = %s and locktype = 'OUT'",
            jobid,
            dataid,
        )
        self.model.ins = {row: held for row, held in self.model.ins.items() if row[1:] != (jobid, dataid)}
        self._type(
            "delete from dataflow.datastatus where jobid = %s and dataid = %s and locktype = 'IN'", jobid, dataid
        )

    def _type(self, statement: str, *values: object) -> int:
        return self.psql.execute(statement.encode(), values).rowcount

    # What is true after every step.

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        found = self.psql.execute(
            "select s.datasetid, s.jobid, s.dataid, s.locktype, s.claim_id, m.version, s.status, s.attempt, s.retries, "
            "s.held_status from dataflow.datastatus s left join dataflow.data_manifest m using (manifest_id)"
        ).fetchall()
        outs = {
            row[:3]: Out(claim_id=row[4], version=row[5], status=row[6], attempt=row[7], retries=row[8], held=row[9])
            for row in found
            if row[3] == "OUT"
        }
        assert outs == self.model.outs
        assert {row[:3]: In(claim_id=row[4], version=row[5]) for row in found if row[3] == "IN"} == self.model.ins

    @invariant()
    def the_answers_and_the_runnable_set_are_those_of_the_model(self) -> None:
        found = self.psql.execute(
            "select j.jobid, a.dataid, dataflow.code_of(a.problems) "
            "from unnest(%s::text[]) as j(jobid) cross join lateral dataflow.ask(j.jobid, %s::text[]) a",
            (list(JOBS), list(DATAIDS)),
            prepare=True,
        ).fetchall()
        assert {row[:2]: row[2] for row in found} == {
            (jobid, dataid): self.model.code(jobid, dataid) for jobid in JOBS for dataid in DATAIDS
        }
        runnable = self.psql.execute("select jobid, dataid, resubmit from dataflow.runnable").fetchall()
        assert {row[:2]: row[2] for row in runnable} == self.model.runnable()

    @invariant()
    def the_invariants_hold(self) -> None:
        assert_invariants(self.psql)


def _chunk_key(datasetid: str, dataid: str) -> ChunkKey:
    return ChunkKey(datasetid=DatasetId(datasetid), dataid=DataId(dataid))


def _keys(rows: Iterable[RowKey]) -> tuple[ChunkKey, ...]:
    return tuple(sorted(_chunk_key(row[0], row[2]) for row in rows))


def test_any_sequence_of_verbs_crashes_and_typed_sql_matches_the_model(url: str, tmp_path: Path) -> None:
    # Nobody cuts the power here, and a walk has thousands of commits; planning a question costs more than asking it.
    quick = make_conninfo(url, options="-c synchronous_commit=off -c plan_cache_mode=force_generic_plan")
    datasets = [
        Dataset(
            datasetid=DatasetId(name),
            location=str(tmp_path / name),
            foreign_ready="trusted",
            skipped_input="passes" if name == PASSES else "waits",
        )
        for name in DATASETS
    ]
    with Ledger(quick) as ledger, psycopg.connect(quick, autocommit=True) as psql:
        register(ledger, datasets, list(JOBS.values()))

        class Here(Walk):
            def __init__(self) -> None:
                super().__init__(ledger, psql, tmp_path)

        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=int(os.environ.get("ODF_WALKS", scaled(40, fast=3))),
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.parametrize(
    "typed",
    [
        "update dataflow.datastatus set status = 'HOLD' where datasetid = 'right'",
        "update dataflow.datastatus set status = 'SKIPPED' where datasetid = 'right'",
        "update dataflow.datastatus set status = 'FAILED' where datasetid = 'right'",
        "update dataflow.datastatus set status = 'OOPS' where datasetid = 'right'",
        "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'right'",
        "delete from dataflow.datastatus where datasetid = 'right'",
    ],
)
def test_losing_one_output_loses_the_whole_claim(flow: Flow, typed: str) -> None:
    (split,) = flow.register("split: -> left, right")
    flow.plan(split, ["1"])
    mine = claim(flow.ledger, "split", "1")
    flow.type(typed)
    for act in (
        lambda: renew(flow.ledger, [mine]),
        lambda: flow.publish(mine),
        lambda: fail(flow.ledger, mine, "disk full"),
        lambda: abandon(flow.ledger, [mine], "cancelled"),
    ):
        with pytest.raises(ClaimLost):
            act()
        assert flow.status("left/1") == "RESUBMIT"
    assert flow.chunk("left/1").version is None
    assert_invariants(flow.psql)
