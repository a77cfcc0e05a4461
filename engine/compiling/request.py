"""`FunctionRequest`: a function to be found or built; and the data among the constants of its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.compiling.interface import Interface
from engine.compiling.mode import Mode
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.graph.variables import Constant
from engine.tensor.type import is_data


class FunctionRequest(NamedTuple):
    """A function to be found or built: its graph, its interface, its mode, and its name for messages."""

    graph: FrozenFunctionGraph
    interface: Interface
    mode: Mode
    name: str

    @property
    def data(self) -> list[Any]:
        """The arrays of the graph's data, in the order in which a program binds them."""
        return [constant.data for constant in data_constants(self.graph)]


def data_constants(graph: FrozenFunctionGraph) -> tuple[Constant, ...]:
    """Return the data of `graph`, in the order in which its encoding numbers constants; kept with the graph.

    Data are large constants that no inner graph contains: no key describes their elements.
    """
    return graph.computed("data_constants", _data_constants)


def inner_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    """Return the large constants of the graphs that Ops of `graph` hold, at all depths; kept with the graph.

    Keys describe their elements, also where `graph` itself uses the same constant: were that data, a
    program could take one array for the other.
    """
    return graph.computed("inner_constants", _inner_constants)


def all_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    """Return the large constants of `graph` and of the graphs within it, at all depths."""
    return inner_constants(graph).union(_large_constants(graph))


def _data_constants(graph: FrozenFunctionGraph) -> tuple[Constant, ...]:
    inner = inner_constants(graph)
    return tuple([v for v in _large_constants(graph) if v not in inner])


def _inner_constants(graph: FrozenFunctionGraph) -> frozenset[Constant]:
    found: set[Constant] = set()
    for op in dict.fromkeys([node.op for node in graph.nodes]):
        for inner in _inner_graphs(op):
            found.update(_large_constants(inner), inner_constants(inner))
    return frozenset(found)


def _inner_graphs(op: Op) -> Iterator[FrozenFunctionGraph]:
    held = getattr(op, "fgraph", None)
    if isinstance(held, FrozenFunctionGraph):
        yield held
    for value in op.key_props().values() if op.__props__ is not None else ():
        if isinstance(value, FrozenFunctionGraph):
            yield value
        elif isinstance(value, Op):
            yield from _inner_graphs(value)


def _large_constants(graph: FrozenFunctionGraph) -> list[Constant]:
    every = [*(variable for node in graph.nodes for variable in node.inputs), *graph.outputs]
    return [v for v in dict.fromkeys(every) if isinstance(v, Constant) and is_data(v)]
