"""A DataSet from an unchanged script, which gets the same variables, limits and records as with `odf run`."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Unpack

from ..engine.declaration import Declaration, declare
from ..engine.fingerprint import of_command
from ..engine.options import Options, refuse_wrong_options
from ..engine.producer import HeldClaim
from ..engine.source import SourceContext
from ..ledger.settings import home
from ..model.errors import InvalidDefinition
from ..model.ids import DatasetId, dataset_id
from ..model.manifest import NewManifest
from .environment import provision
from .process import Stop
from .program import Limits, Program


@dataclass(frozen=True, kw_only=True)
class ScriptSource:
    kinds: ClassVar[frozenset[str]] = frozenset({"script"})
    is_produced: ClassVar[bool] = True

    command: tuple[str, ...]

    def fingerprint(self) -> str | None:
        return of_command(self.command)

    def validate(self, declaration: Declaration) -> None:
        name = declaration.datasetid
        if declaration.checks or declaration.schema is not None:
            raise InvalidDefinition(
                f"DataSet {name}: checks and schema need a DataFrame, but a script writes files; check a consumer"
            )
        if declaration.table:
            raise InvalidDefinition(f"DataSet {name}: a script may write other files than Parquet, so it has no table")

    def make(
        self, declaration: Declaration, context: SourceContext, held: HeldClaim
    ) -> Mapping[DatasetId, NewManifest]:
        provided = provision(context.ledger, declaration.jobid)
        provided.refuse_too_much(self.command)
        stop = Stop()
        program = Program(command=self.command, logs=home() / "logs", stop=stop, limits=Limits())
        with held.cancellation.calling(partial(stop.get, signal.SIGTERM)):
            return program.run(held, provided)


def script_dataset(
    script: str | Path,
    name: str | None = None,
    *,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Declaration:
    """Declare the DataSet that this script makes, chunk by chunk. Its name is the script's unless you give one.

    The script's environment has `dataid` and, for each DataSet, `<datasetid>_location` and its other columns. The
    script writes into `<its own datasetid>_location`. `inputs` names what it reads: {"raw": "raw"}.
    """
    path = Path(script)
    if not path.is_file():
        raise InvalidDefinition(f"there is no script {path}; give a path that exists")
    if not os.access(path, os.X_OK):
        raise InvalidDefinition(f"the script {path} is not executable; run: chmod +x {path}")
    datasetid = dataset_id(name or path.stem)
    refuse_wrong_options(datasetid, options)
    source = ScriptSource(command=(str(path.resolve()), *arguments))
    return declare(datasetid, source, tuple(options.get("inputs", {})), options, environment=environment)
