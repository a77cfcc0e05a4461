"""A stage of the engine's as a step of a program: its function, and PyTensor's code where that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.scalar.basic import ScalarType

from cachegraph.named_tuples import NamedTuple
from engine.compiling.mode import Mode
from engine.pytensor.nodes import NodesStep, Places, Values
from engine.pytensor.requirement import Requirement

if TYPE_CHECKING:
    from engine.pytensor.stages import EngineStage

MODE = Mode().excluding("stabilize")
"""PyTensor's stable forms are made already: two kinds in one graph would not cancel as one does."""


class StagePart(NamedTuple):
    """The part of PyTensor's graph that a step computes: `results` from `sources`.

    `places` are those of the program.
    """

    fgraph: Any
    nodes: Sequence[Any]
    sources: Sequence[Any]
    results: Sequence[Any]
    places: Places


class EngineStep:
    """Runs one stage as a function of the engine.

    It takes the values at the places `inputs`, and gives those at `outputs`. If there are `requirements`, the
    function has two outputs more: whether each holds, and whether all do.

    If it raises an error, PyTensor computes the nodes: it raises its own error, or takes what the engine
    refuses, such as an increment that broadcasts. `repeats` counts the latter, by the engine's error.
    """

    part: StagePart
    requirements: Sequence[Requirement]

    def __init__(self, fgraph: Any, stage: EngineStage, outputs: Sequence[Any], places: Places) -> None:
        import engine
        import engine.tensor as pt
        from engine.graph.traversal import graph_inputs

        self.repeats: Counter[str] = Counter()
        self.part = StagePart(fgraph, stage.nodes, list(stage.sources), outputs, places)
        results = [stage.values[variable] for variable in outputs]
        self.requirements = list(stage.requirements)
        if self.requirements:
            held = pt.stack([requirement.condition for requirement in self.requirements])
            results += [held, pt.all(held)]
        leaves = set(graph_inputs(results))
        sources = [(variable, inner) for variable, inner in stage.sources.items() if inner in leaves]
        # In the order of the graph's inputs, so that a whole graph's values are passed on as they come.
        sources.sort(key=lambda pair: places(pair[0]))
        self.function = engine.function([inner for _, inner in sources], results, mode=MODE)
        self.inputs = [places(variable) for variable, _ in sources]
        self.outputs = [places(variable) for variable in outputs]
        self.scalars = [places(variable) for variable in outputs if isinstance(variable.type, ScalarType)]

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the values of the outputs, as the engine gives them.

        Raises the error of the first requirement that is not met.
        """
        results = self.function(*inputs)
        if self.requirements:
            if not results.pop():
                first = self.requirements[int(results.pop().argmin())]
                raise first.error(first.message)
            results.pop()
        return results

    def __call__(self, values: Values) -> None:
        try:
            results = self.results([values[place] for place in self.inputs])
        except Exception as error:
            self.by_pytensor(values, error)
            return
        for place, result in zip(self.outputs, results, strict=True):
            values[place] = result
        for place in self.scalars:
            values[place] = values[place][()]

    def by_pytensor(self, values: Values, error: Exception) -> None:
        """Set the results in `values`, as PyTensor computes them; `error` is why the engine did not.

        Raises PyTensor's error; `error` if memory ran out.
        """
        if isinstance(error, MemoryError):
            raise error
        step, places, wanted = self._same_nodes
        part = self.part
        # PyTensor may give views of what it is given, which the caller may write into.
        given = [values[part.places(variable)] for variable in part.sources]
        found = places.values([v.copy() if isinstance(v, np.ndarray) else v for v in given])
        step(found)
        self.repeats[str(error)] += 1
        for variable, place, number in zip(part.results, self.outputs, wanted, strict=True):
            values[place] = _in_its_dtype(found[number], variable)

    @cached_property
    def _same_nodes(self) -> tuple[NodesStep, Places, list[int]]:
        """The stage by PyTensor's code, and the places in it: first of what it reads; and of the results."""
        part = self.part
        places = Places(part.sources)
        step = NodesStep(part.fgraph, part.nodes, places)
        return step, places, [places(variable) for variable in part.results]


def _in_its_dtype(value: Any, variable: Any) -> Any:
    """Return `value` in the dtype of its variable, as the engine gives it: some performs give a wider one."""
    dtype = getattr(variable.type, "dtype", None)
    if isinstance(value, np.ndarray) and dtype is not None and value.dtype != dtype:
        return value.astype(dtype)
    return value
