"""`SymbolicOp`: an Op described by the graph that computes it, built for the types it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.inner.from_graph import OpFromGraph


class SymbolicOp(OpFromGraph):
    """Base class of Ops whose graph is `build_inner_graph` of variables of the types that they are applied to.

    An Op that was not applied yet has no graph; the Op of a node has one. A subclass adds its properties to
    `__props__`. Compiling knows its graph alone.
    """

    __props__ = (*(OpFromGraph.__props__ or ()),)

    def __init__(self) -> None:
        self.fgraph: Any = None
        self.is_inline, self.name = False, None
        self.overrides = self.tangents = self.connected = None

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        """The outputs, computed from `inputs`."""
        raise NotImplementedError(f"{type(self).__name__} must implement build_inner_graph()")

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        """`inputs` as the variables that the Op takes; refuses (TypeError) what it does not take."""
        return [pt.as_tensor_variable(value) for value in inputs]

    def make_node(self, *inputs: Any) -> Apply:
        variables = self.filter_inputs(*inputs)
        op = self if self.fgraph is None else self.without_graph()
        return OpFromGraph.make_node(_of_types(op, tuple([v.type for v in variables])), *variables)

    def without_graph(self) -> SymbolicOp:
        """This Op as it was before it was applied."""
        return self.with_graph(None)

    def with_graph(self, fgraph: FrozenFunctionGraph | None) -> SymbolicOp:
        """This Op for the types of the inputs of `fgraph`."""
        new: SymbolicOp = object.__new__(type(self))
        new.__setstate__({**self.__getstate__(), "fgraph": fgraph})
        return new


@lru_cache(maxsize=1024)
def _of_types(op: SymbolicOp, types: Sequence[Any]) -> SymbolicOp:
    inputs = [type.make_variable() for type in types]
    return op.with_graph(FrozenFunctionGraph.from_io(inputs, op.build_inner_graph(*inputs)))
