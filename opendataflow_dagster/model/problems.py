"""The problems that the five questions find, and the sentence for each.

The ledger returns a problem as a name with facts; here it becomes what a person reads. Rewording a sentence needs no
change of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Question(StrEnum):
    READY = "READY"
    RIGHT = "RIGHT"
    PLACED = "PLACED"
    VALID = "VALID"
    SAFE = "SAFE"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why the answer to a question is no."""

    question: Question
    name: str
    #: What the sentence needs, such as the chunk in the way.
    facts: Mapping[str, Any]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Problem:
        facts = {name: value for name, value in stored.items() if name not in ("question", "problem")}
        return cls(question=Question(stored["question"]), name=stored["problem"], facts=facts)

    def to_json(self) -> dict[str, Any]:
        return {"question": self.question, "problem": self.name, **self.facts}

    def __str__(self) -> str:
        """What is wrong with which chunk, and the next step."""
        facts = self.facts
        derived = {
            "chunk": f"{facts.get('datasetid')}/{facts.get('dataid')}",
            "row": _row(facts),
            "step": _STEPS.get(facts.get("status", "NULL"), "resubmit it to run it again"),
            "used": _version(facts.get("used")),
            "current": _version(facts.get("current")),
            "why": f" ({facts['reason']})" if facts.get("reason") else "",
            "failed": ", ".join(facts.get("checks") or ["a check"]),
        }
        return SENTENCES[self.name].format_map({**facts, **derived})


SENTENCES: Final = {
    # READY
    "ABSENT": "{chunk} does not exist; run its producer or announce it",
    "NOT_READY": "{chunk} is {row}; wait for its producer, or resubmit it if it failed",
    "NOT_TODAY": "{chunk} is not the current day in {timezone}; wait for the day, or resubmit a day that is past",
    "UNLISTED": "no input chunks of {datasetid} are known for {jobid}/{dataid}; plan the chunk",
    "NOT_ITS_TURN": "job {jobid} is strictly ordered and chunk {turn} comes first; finish or skip chunk {turn}",
    # RIGHT
    "UNREGISTERED": "DataSet {datasetid} is not registered; register it",
    "NO_SUCH_PARTITION": "{datasetid} has no partition {dataid}; use one of its dataids, or correct its partitions",
    "NOT_ITS_MANIFEST": "{chunk} points to a manifest of another chunk; resubmit it",
    "OLD_MANIFEST": "{chunk} points to version {version}, which has been superseded; resubmit it",
    "OTHER_SCHEMA": "{chunk} has schema {schema_hash}, declared is {declared}; resubmit it, or declare the new schema",
    "REPEATED": "{chunk} has the same content as {datasetid}/{other}; resubmit the wrong one, or allow repeats",
    "STALE": "{chunk} is stale: it was made from {used} of {input}, but {current} is current; resubmit it",
    "NO_OUTPUT": "job {jobid} has no OUT DataSet; register one",
    # PLACED
    "NOTHING_THERE": "nothing is published for {chunk}; wait for its producer",
    "OUTSIDE": "{chunk} is at {location}, outside its root {root}; resubmit it in this environment",
    "MISPLACED": "{text}; restore the files, or resubmit the chunk they belong to",
    # VALID
    "FAILED_CHECK": "{chunk} version {version} failed {failed}; resubmit it",
    "NO_MANIFEST": "{chunk} became READY without a manifest, which {datasetid} refuses; resubmit it",
    # SAFE
    "LOCKED": "{chunk} is {row}; wait until it is released",
    "READING": "job {jobid} is already reading {chunk}; wait for it, or resubmit its output",
    "TAKEN": "{chunk} is {row}; {step}",
    "READ_IN_PLACE": "a consumer is reading {chunk} in place; wait for it",
    "PAUSED": "job {jobid} has been paused since {since}{why}; resume it",
    "AT_LIMIT": "job {jobid} is at its concurrency limit ({running} running); retry later, or raise the limit",
    # Any question
    "MORE": "and {count} more",
    #: A sentence that release 0.1.0 stored.
    "TEXT": "{text}",
}
_STEPS: Final = {"RUNNING": "wait for it, or resubmit it", "HOLD": "unhold it"}


def _version(number: int | None) -> str:
    return f"version {number}" if number else "a version without a manifest"


def _row(facts: Mapping[str, Any]) -> str:
    """A row that is in the way: its status, job, since when, and why."""
    details: Sequence[str] = (
        f"job {facts.get('jobid')}",
        f"since {facts.get('since')}",
        *([f"claim {facts['claim_id']}"] if facts.get("claim_id") else []),
        *([facts["reason"]] if facts.get("reason") else []),
    )
    return f"{facts.get('status', 'NULL')} ({', '.join(details)})"
