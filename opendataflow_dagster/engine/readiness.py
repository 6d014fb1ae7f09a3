"""Which chunks can run now, and what blocks the others. The claim in the run decides."""

from __future__ import annotations

from collections.abc import Sequence

from ..ledger import reports
from ..ledger.database import Ledger
from ..model.ids import DataId, JobId


def runnable_chunks(ledger: Ledger, jobids: Sequence[JobId], count: int) -> dict[JobId, dict[DataId, float]]:
    """At most `count` chunks of each Job, in order, and for how many seconds each has been runnable."""
    with ledger.statement() as statement:
        return reports.what_can_run(statement, jobids, count)


def blocked_chunks(ledger: Ledger, jobids: Sequence[JobId]) -> list[str]:
    """One sentence for each cause, with an example."""
    with ledger.statement() as statement:
        causes = reports.what_blocks(statement, jobids)
    sentences = []
    for blocked in causes:
        count = f"{blocked.chunks:,}" if blocked.chunks < 1000 else "1,000 or more"
        reason = f" ({blocked.reason[:200]})" if blocked.reason else ""
        sentences.append(f"{blocked.jobid}: {count} {blocked.word}, e.g. {blocked.example}{reason}")
    return sentences
