"""`HasInnerGraph`: what Ops that hold a graph have in common."""

from __future__ import annotations

from typing import Any

from engine.graph.frozen import FrozenFunctionGraph, NominalVariable
from engine.graph.variables import Variable


class HasInnerGraph:
    """An Op that holds exactly one graph, `fgraph`, frozen: the Op cannot change, and neither can its graph."""

    fgraph: FrozenFunctionGraph

    @property
    def inner_inputs(self) -> tuple[NominalVariable, ...]:
        """The inputs of the graph."""
        return self.fgraph.inputs

    @property
    def inner_outputs(self) -> tuple[Variable, ...]:
        """The outputs of the graph."""
        return self.fgraph.outputs

    def clone(self) -> Any:
        """This Op itself: nothing in it can change."""
        return self
