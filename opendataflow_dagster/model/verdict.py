"""The five questions and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from .ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, ManifestId


class Question(StrEnum):
    READY = "READY"
    RIGHT = "RIGHT"
    PLACED = "PLACED"
    VALID = "VALID"
    SAFE = "SAFE"


class Code(StrEnum):
    """What a no is called: one for each question, in order."""

    DATA_NOT_READY = "DATA_NOT_READY"
    WRONG_DATA = "WRONG_DATA"
    INVALID_PATH = "INVALID_PATH"
    NOT_VALIDATED = "NOT_VALIDATED"
    LOCKED = "LOCKED"


CODES: Final = dict(zip(Question, Code, strict=True))

_YES: Final = {
    Question.READY: "every input chunk is READY",
    Question.RIGHT: "every chunk is registered, expected and current",
    Question.PLACED: "every input is where its DataSet has it, with all its files",
    Question.VALID: "every input has passed its checks, or its DataSet trusts its producer",
    Question.SAFE: "nobody writes the inputs, and nobody holds the output",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class InputVersion:
    """The evidence: an input chunk, and the version of it that was asked about. No manifest: made by someone else."""

    datasetid: DatasetId
    dataid: DataId
    manifest_id: ManifestId | None
    version: int | None

    @property
    def chunk(self) -> ChunkKey:
        return ChunkKey(datasetid=self.datasetid, dataid=self.dataid)

    def __str__(self) -> str:
        return f"{self.datasetid}/{self.dataid}" + (f" version {self.version}" if self.version else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    question: Question
    yes: bool
    reason: str

    @classmethod
    def of(cls, question: Question, no: str | None) -> Answer:
        return cls(question=question, yes=no is None, reason=_YES[question] if no is None else no)

    def __str__(self) -> str:
        return f"{self.question} {'yes' if self.yes else 'no'}: {self.reason}"


#: What every claim has.
FIVE_YES: Final = tuple(Answer.of(question, None) for question in Question)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    jobid: JobId
    dataid: DataId
    answers: tuple[Answer, ...]
    #: The evidence for all five.
    inputs: tuple[InputVersion, ...] = ()
    asked: datetime | None = None
    claim_id: ClaimId | None = None

    @property
    def go(self) -> bool:
        return all(answer.yes for answer in self.answers)

    @property
    def code(self) -> Code | None:
        """The first no."""
        return next((CODES[answer.question] for answer in self.answers if not answer.yes), None)

    def __str__(self) -> str:
        if self.go:
            return f"{self.jobid}/{self.dataid}: go"
        reasons = "; ".join(answer.reason for answer in self.answers if not answer.yes)
        return f"{self.jobid}/{self.dataid}: {self.code}: {reasons}"
