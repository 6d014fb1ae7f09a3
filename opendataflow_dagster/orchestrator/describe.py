"""What a code location declares, as JSON, without registering it: what `odf check` and `odf apply` start.

python -m opendataflow_dagster.orchestrator.describe DEFINITIONS.PY RESULT.JSON
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from ..model.definition import Connection, Definition
from ..model.errors import InvalidDefinition, OpenDataFlowError
from ..model.registry import Registry
from ..model.registry_json import registry_to_json
from . import definitions
from .catalogue import Catalogue


def describe(file: Path) -> dict[str, object]:
    """All DataSets and Jobs of a file that calls `build_definitions`."""
    found: list[Catalogue] = []
    definitions.only_describe = found
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location("definitions", file)
    if spec is None or spec.loader is None:
        raise InvalidDefinition(f"{file} cannot be imported; give a Python file")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    if not found:
        raise InvalidDefinition(f"{file} does not call build_definitions, so there is nothing of ours in it")
    entries = [one for catalogue in found for one in catalogue.entries.values()]
    registry = Registry(
        datasets=tuple(Definition(dataset=one.dataset, connection=Connection()) for one in entries),
        jobs=tuple(one.job for one in entries if one.job is not None),
    )
    limits = {
        one.job.jobid: one.declaration.concurrency
        for one in entries
        if one.job is not None and one.declaration.concurrency is not None
    }
    return {"registry": registry_to_json(registry), "concurrency": limits}


def main(file: str, result: str) -> int:
    try:
        described = describe(Path(file).resolve())
    except OpenDataFlowError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    Path(result).write_text(json.dumps(described), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
