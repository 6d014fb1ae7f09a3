"""Prints what a code location declares as JSON, without registering it. `odf check` and `odf apply` start this.

python -m opendataflow_dagster.orchestrator.declared_registry DEFINITIONS.PY RESULT.JSON
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from ..engine.dataset_graph import DatasetGraph, registry_of
from ..model.errors import InvalidDefinition, OpenDataFlowError
from ..model.registry_json import registry_to_json
from . import definitions


def declared_registry(file: Path) -> dict[str, object]:
    """All DataSets and Jobs of a file that calls `build_definitions`, and the declared concurrency limits."""
    graphs: list[DatasetGraph] = []
    definitions.collected_graphs = graphs
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location("definitions", file)
    if spec is None or spec.loader is None:
        raise InvalidDefinition(f"{file} cannot be imported; give a Python file")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    if not graphs:
        raise InvalidDefinition(f"{file} does not call build_definitions, so it declares no DataSet")
    limits = {
        job.jobid: node.declaration.concurrency
        for graph in graphs
        for node, job in graph.produced
        if node.declaration.concurrency is not None
    }
    return {"registry": registry_to_json(registry_of(graphs)), "concurrency": limits}


def main(file: str, result: str) -> int:
    try:
        declared = declared_registry(Path(file).resolve())
    except OpenDataFlowError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    Path(result).write_text(json.dumps(declared), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
