"""Arguments that many commands share: a DataSet, a Job, some chunks. Shells complete their names from the ledger."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from .connection import registered_names

_DATASETS, _JOBS = 0, 1


def _completed_from(index: int) -> Any:
    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in registered_names()[index] if name.startswith(incomplete)]

    return complete


dataset_argument = click.argument("datasetid", metavar="DATASET", shell_complete=_completed_from(_DATASETS))
optional_dataset = click.argument(
    "datasetid", metavar="[DATASET]", required=False, shell_complete=_completed_from(_DATASETS)
)
job_argument = click.argument("jobid", metavar="JOB", shell_complete=_completed_from(_JOBS))
optional_job = click.argument("jobid", metavar="[JOB]", required=False, shell_complete=_completed_from(_JOBS))
job_option = click.option(
    "--job", "jobid", metavar="JOB", help="Only chunks of this Job.", shell_complete=_completed_from(_JOBS)
)
chunks_argument = click.argument("chunks", metavar="[DATAID|FROM..TO]...", nargs=-1)
