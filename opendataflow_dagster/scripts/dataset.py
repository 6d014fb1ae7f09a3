"""A DataSet from an unchanged script: its environment comes from the claim, its exit code is the law.

It is run by the same verb as `odf run`, so a script meets the same variables, limits and records under Dagster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from ..engine.declaration import Declaration, declare_with
from ..engine.options import Options, refuse_wrong_options
from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..ledger.settings import home
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidDefinition
from ..model.ids import ChunkKey, dataset_id
from ..model.manifest import Manifest
from ..scripts.environment import provision
from ..scripts.process import Stop
from ..scripts.run_script import log_path, run_script


def script_dataset(
    script: str | Path,
    name: str | None = None,
    *,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Declaration:
    """Declare the DataSet that this script makes, chunk by chunk; the Job has the script's name unless given another.

    Its environment has `dataid` and, for each DataSet, `<datasetid>_location` and its other columns; it writes into
    `<its own datasetid>_location`. `inputs` names what it reads: {"raw": "raw"}.
    """
    path = Path(script)
    if not path.is_file():
        raise InvalidDefinition(f"there is no script {path}; give a path that exists")
    if not os.access(path, os.X_OK):
        raise InvalidDefinition(f"the script {path} may not be executed; run: chmod +x {path}")
    named = dataset_id(name or path.stem)
    refuse_wrong_options(named, options)
    if options.get("checks") or options.get("schema"):
        raise InvalidDefinition(f"DataSet {named}: a script's rows are its own; let its consumer check them")
    if options.get("table"):
        raise InvalidDefinition(f"DataSet {named}: a script's files need not be Parquet; it has no table")
    declared = declare_with(named, "script", tuple(options.get("inputs", {})), None, options)
    return replace(declared, command=(str(path.resolve()), *arguments), environment={**(environment or {})})


def make_with_script(ledger: Ledger, declaration: Declaration, claim: Claim, stop: Stop) -> Manifest | str:
    """The version that the script made, or why there is none. ClaimLost: somebody else has the chunk now."""
    found = provision(ledger, declaration.jobid)
    found.refuse_too_much(declaration.command)
    outcome = run_script(
        ledger,
        claim,
        declaration.command,
        environment=found.environment(claim),
        log_path=log_path(home() / "logs", claim),
        places=found.places(claim),
        secrets=found.secrets,
        stop=stop,
    )
    if outcome.result == "lost":
        raise ClaimLost([claim], "publish")
    if outcome.result == "failed":
        return f"{outcome.reason} (log: {outcome.log})" if outcome.log else f"{outcome.reason}"
    key = ChunkKey(datasetid=declaration.datasetid, dataid=claim.dataid)
    with ledger.statement() as statement:
        version = ready_versions(statement, [key]).get(key)
    return version if version is not None else "it was published and taken away again at once"
