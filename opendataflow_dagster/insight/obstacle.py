"""obstacle: what one chunk waits for, in words. Beside the five answers: is it asked for, and who makes it?"""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger.waiting import Asked
from ..model.ids import ChunkKey, DataId
from ..model.verdict import Answer, Verdict

#: Beside the codes of the five questions.
NOT_ASKED_FOR = "NOT_ASKED_FOR"
NOT_EVALUATED = "NOT_EVALUATED"
NO_PRODUCER = "NO_PRODUCER"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkObstacle:
    """Why a chunk is not there; no code: nothing is in its way."""

    dataid: DataId
    code: str | None
    reason: str


def first_obstacle(asked: Asked) -> ChunkObstacle:
    """What has to happen first."""
    verdict = asked.verdict
    if not verdict.go:
        return ChunkObstacle(dataid=verdict.dataid, code=verdict.code, reason=refusals(verdict)[0].reason)
    if asked.is_evaluated:
        return ChunkObstacle(dataid=verdict.dataid, code=None, reason="it can run now")
    if asked.is_runnable:
        return ChunkObstacle(
            dataid=verdict.dataid, code=NOT_EVALUATED, reason="its answers are not stored yet; run: odf heal"
        )
    return ChunkObstacle(
        dataid=verdict.dataid,
        code=NOT_ASKED_FOR,
        reason=f"nobody has asked for {verdict.jobid}/{verdict.dataid}; run its job for it, "
        f"or plan it with: odf plan {verdict.jobid} {verdict.dataid} --apply",
    )


def no_producer(key: ChunkKey, is_registered: bool) -> ChunkObstacle:
    reason = (
        f"no job makes {key}; announce it with: odf announce {key.datasetid} {key.dataid}"
        if is_registered
        else f"DataSet {key.datasetid} is not registered, but a job reads it; register it, or correct the job"
    )
    return ChunkObstacle(dataid=key.dataid, code=NO_PRODUCER, reason=reason)


def refusals(verdict: Verdict) -> list[Answer]:
    return [answer for answer in verdict.answers if not answer.yes]
