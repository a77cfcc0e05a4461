"""Comparing the stored graph of a function with one that is rewritten anew, for the cache's mode verify."""

from __future__ import annotations

from typing import Any

from pytensor.compile.maker import FunctionMaker

from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.stored.stored_graph import StoredGraph


def rewritten_copy(copied: Specification, mode: Any, accept_inplace: bool) -> Any:
    """The optimized graph that PyTensor makes of a specification, whose graph is rewritten in place.

    Raises what PyTensor raises.
    """
    graph, updates = FunctionMaker.create_fgraph(copied.inputs, copied.outputs, accept_inplace)
    FunctionMaker.prepare_fgraph(copied.inputs, copied.outputs, updates, graph, mode, None)
    return graph


def difference(stored: StoredGraph, made: StoredGraph) -> str | None:
    """What two stored graphs differ in, for people; None if they are the same graph. Raises what loading them raises."""
    first, second = stored.load(), made.load()
    if first.freeze() == second.freeze():
        return None
    nodes = zip(first.toposort(), second.toposort(), strict=False)
    for number, (a, b) in enumerate(nodes):
        if a.op != b.op:
            return f"node {number} is {a.op}, not {b.op}"
    counts = len(first.apply_nodes), len(second.apply_nodes)
    return (
        f"{counts[0]} nodes, not {counts[1]}" if counts[0] != counts[1] else "another input, constant or type"
    )
