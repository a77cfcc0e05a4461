"""A graph of PyTensor's in stages: parts that the engine computes, and nodes that PyTensor computes.

A node belongs to the engine if it has a rule that takes it. Every other node runs by its own `perform`
between two stages of the engine, so any Op and any type may occur. Most graphs are one stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytensor.graph.basic import Constant

from engine.pytensor.nodes import NodeStage
from engine.pytensor.representation import Untranslatable, new_variable
from engine.pytensor.rules import rule_of
from engine.pytensor.scope import Scope

_FIRST = -1
"""The stage of inputs and constants, and of nodes of PyTensor's that need nothing else."""


class EngineStage(Scope):
    """A part of a graph that the engine computes; `sources` maps variables from elsewhere to its inputs."""

    def __init__(self, outside: dict[Any, int], number: int) -> None:
        super().__init__(rule_of)
        self.nodes: list[Any] = []
        self.sources: dict[Any, Any] = {}
        self._outside = outside
        self._number = number

    def value(self, variable: Any) -> Any:
        if variable in self.values or isinstance(variable, Constant):
            return super().value(variable)
        if self._outside.get(variable, self._number) == self._number:
            raise Untranslatable(f"{variable} of type {variable.type} is not known")
        found = self.values[variable] = self.sources[variable] = new_variable(variable.type, variable.name)
        return found


Stage = EngineStage | NodeStage


def stages_of(fgraph: Any, order: Sequence[Any], given: Iterable[Any] = ()) -> list[Stage]:
    """Return the stages of `fgraph`, whose nodes may be computed in `order`; each node as early as it can be.

    `given` are variables that were computed before. Stages with an even number are the engine's, the others
    PyTensor's.
    """
    place: dict[Any, int] = dict.fromkeys([*fgraph.inputs, *given], _FIRST)
    stages: dict[int, Stage] = {}
    # What a node overwrites must have been read before.
    before = fgraph.orderings()
    for node in order:
        waits = [place.get(variable, _FIRST) for variable in node.inputs]
        waits += [place[output] for other in before.get(node, ()) for output in other.outputs]
        number = _add(stages, place, node, max(waits, default=_FIRST))
        place.update(dict.fromkeys(node.outputs, number))
    return [stages[number] for number in sorted(stages) if stages[number].nodes]


def _add(stages: dict[int, Stage], place: dict[Any, int], node: Any, earliest: int) -> int:
    """Add `node` to the first stage from `earliest` on that takes it; return the number of that stage."""
    number = earliest + earliest % 2
    engine = stages.setdefault(number, EngineStage(place, number))
    assert isinstance(engine, EngineStage)
    try:
        engine.translate(node)
    except Untranslatable as reason:
        number = earliest + 1 - earliest % 2
        others = stages.setdefault(number, NodeStage())
        assert isinstance(others, NodeStage)
        others.reasons.append(str(reason))
        others.nodes.append(node)
    else:
        engine.nodes.append(node)
    return number


def read_later(stages: Sequence[Stage], outputs: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield for each stage the variables computed in it that the function's caller, or later stages, read.

    The caller's come first, in the order of `outputs`.
    """
    for position, stage in enumerate(stages):
        made = {output for node in stage.nodes for output in node.outputs}
        later = [v for other in stages[position + 1 :] for node in other.nodes for v in node.inputs]
        yield list(dict.fromkeys([v for v in [*outputs, *later] if v in made]))
