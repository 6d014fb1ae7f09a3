"""A DataSet from a Python function.

    @dataset(partitions=daily("2013-01-01", "2013-12-31"), checks=[not_null("carrier")])
    def clean_flights(raw_flights: DataFrame) -> DataFrame: ...

The declaration can still be called like the plain function, so its tests need nothing of the framework.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, Unpack

from ..model.errors import InvalidDefinition
from ..model.ids import dataset_id
from .chunk import ChunkContext, Inputs
from .declaration import Declaration, declare
from .fingerprint import of_function
from .options import Options, refuse_wrong_options
from .spark_source import SparkSource

CONTEXT = "context"


@dataclass(frozen=True, kw_only=True)
class PythonSource(SparkSource):
    kinds: ClassVar[frozenset[str]] = frozenset({"spark", "python"})

    function: Callable[..., object]
    parameters: tuple[str, ...]
    takes_context: bool

    def fingerprint(self) -> str | None:
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str | None:
        """The declaration asks when it loads: later, the file may have changed, and the function not."""
        return of_function(self.function)

    def compute(self, inputs: Inputs, context: ChunkContext) -> object:
        arguments: dict[str, object] = {parameter: inputs.frame(parameter) for parameter in self.parameters}
        return self.function(**arguments, **({CONTEXT: context} if self.takes_context else {}))


class Decorator(Protocol):
    def __call__(self, function: Callable[..., object], /) -> Declaration: ...


def dataset(name: str | None = None, **options: Unpack[Options]) -> Decorator:
    """Declare the DataSet that this function makes, chunk by chunk. Its name is the function's unless you give one.

    Every parameter without a default is an input DataSet. A parameter named `context` receives the ChunkContext.
    """

    if callable(name):
        raise InvalidDefinition("@dataset is used without parentheses; write @dataset() or @dataset(partitions=...)")

    def decorate(function: Callable[..., object]) -> Declaration:
        datasetid = dataset_id(name or function.__name__)
        refuse_wrong_options(datasetid, options)
        parameters, takes_context = _parameters(datasetid, function, options.get("inputs", {}))
        described = options.copy()
        described.setdefault("description", inspect.getdoc(function))
        source = PythonSource(function=function, parameters=parameters, takes_context=takes_context)
        return declare(datasetid, source, parameters, described, function=function)

    return decorate


def _parameters(
    name: str, function: Callable[..., object], inputs: Mapping[str, object]
) -> tuple[tuple[str, ...], bool]:
    """The inputs, and whether the function takes the context."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InvalidDefinition(f"DataSet {name}: its function yields or awaits; return one DataFrame instead")
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidDefinition(
                f"DataSet {name}: the parameter {parameter} does not name a single input; use one parameter per input"
            )
    names = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is parameter.empty or parameter.name in inputs
    ]
    return tuple(name for name in names if name != CONTEXT), CONTEXT in parameters
