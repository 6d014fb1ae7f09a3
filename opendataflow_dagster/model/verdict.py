"""The five questions and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from .ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, ManifestId
from .problems import Problem, Question


class Code(StrEnum):
    """The code of a no: one for each question, in order."""

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
_YES_WITHOUT_INPUTS: Final = {
    Question.READY: "it reads no input",
    Question.RIGHT: "the chunk is registered and expected",
    Question.PLACED: "it reads no input",
    Question.VALID: "it reads no input",
    Question.SAFE: "nobody holds the output",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class InputVersion:
    """The evidence: an input chunk and the version that was asked about. No manifest: a foreign client made it."""

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

    def __str__(self) -> str:
        return f"{self.question} {'yes' if self.yes else 'no'}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    jobid: JobId
    dataid: DataId
    #: The nos, in the order of the questions; none: five yes.
    problems: tuple[Problem, ...] = ()
    #: The evidence for all five answers.
    inputs: tuple[InputVersion, ...] = ()
    asked: datetime | None = None
    claim_id: ClaimId | None = None

    @property
    def go(self) -> bool:
        return not self.problems

    @property
    def code(self) -> Code | None:
        """The first no."""
        return next((CODES[question] for question in Question if self._nos(question)), None)

    @property
    def answers(self) -> tuple[Answer, ...]:
        is_unlisted = any(problem.name == "UNLISTED" for problem in self.problems)
        yes = _YES if self.inputs or is_unlisted else _YES_WITHOUT_INPUTS
        return tuple(
            Answer(question=question, yes=not (nos := self._nos(question)), reason="; ".join(nos) or yes[question])
            for question in Question
        )

    def with_problems(self, problems: Sequence[Problem]) -> Verdict:
        """The same verdict, with more nos."""
        problems = sorted((*self.problems, *problems), key=lambda no: list(Question).index(no.question))
        return replace(self, problems=tuple(problems))

    def _nos(self, question: Question) -> list[str]:
        return [str(problem) for problem in self.problems if problem.question is question]

    def __str__(self) -> str:
        if self.go:
            return f"{self.jobid}/{self.dataid}: go"
        # Two questions may have the same reason.
        reasons = "; ".join(dict.fromkeys(answer.reason for answer in self.answers if not answer.yes))
        return f"{self.jobid}/{self.dataid}: {self.code}: {reasons}"
