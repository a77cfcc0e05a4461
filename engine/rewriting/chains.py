"""Chains of nodes of one graph: each node reads what the one before it computed, at the same places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

from cachegraph.named_tuples import NamedTuple
from engine.graph import Apply, FrozenFunctionGraph, FunctionGraph
from engine.inner.from_graph import OpFromGraph
from engine.tensor.type import TensorType

Link = tuple[int, int]
"""The position of an input of a node, and that of the output of the node before which it is."""


class Chain(NamedTuple):
    """Nodes of OpFromGraphs with one `graph`; each but the first reads its predecessor as `links` say."""

    graph: FrozenFunctionGraph
    nodes: Sequence[Apply]
    links: Sequence[Link]


def chains_of(fgraph: FunctionGraph, fewest: int) -> Iterator[Chain]:
    """Return the chains of at least `fewest` nodes, those whose nodes come first before others.

    A node that is read by two nodes of its graph, or reads two, is in none.
    """
    if sum(isinstance(node.op, OpFromGraph) for node in fgraph.apply_nodes) < fewest:
        return
    by_graph: dict[FrozenFunctionGraph, list[Apply]] = {}
    for node in fgraph.toposort():
        if isinstance(node.op, OpFromGraph) and _has_tensors_only(node.op.fgraph):
            by_graph.setdefault(node.op.fgraph, []).append(node)
    for graph, nodes in by_graph.items():
        if len(nodes) >= fewest:
            yield from (chain for chain in _chains(graph, nodes) if len(chain.nodes) >= fewest)


def _has_tensors_only(graph: FrozenFunctionGraph) -> bool:
    return all(isinstance(variable.type, TensorType) for variable in (*graph.inputs, *graph.outputs))


def _chains(graph: FrozenFunctionGraph, nodes: Sequence[Apply]) -> Iterator[Chain]:
    """Return the chains among `nodes`, all those of `graph` in an order in which they can run."""
    before, after = _neighbours(nodes)
    for first in nodes:
        if first in before:
            continue
        run = [first]
        while run[-1] in after:
            run.append(after[run[-1]])
        yield from _equally_linked(graph, run)


def _neighbours(nodes: Sequence[Apply]) -> tuple[dict[Apply, Apply], dict[Apply, Apply]]:
    """Return the only predecessor, and the only successor, of each node that has one among `nodes`."""
    members = set(nodes)
    readers: dict[Apply, list[Apply]] = {}
    only_read: dict[Apply, Apply] = {}
    for node in nodes:
        read = list(dict.fromkeys([v.owner for v in node.inputs if v.owner in members]))
        for owner in read:
            readers.setdefault(owner, []).append(node)
        if len(read) == 1:
            only_read[node] = read[0]
    after = {node: found[0] for node, found in readers.items() if len(found) == 1 and found[0] in only_read}
    return {following: node for node, following in after.items()}, after


def _equally_linked(graph: FrozenFunctionGraph, run: Sequence[Apply]) -> Iterator[Chain]:
    """Return the parts of `run` in which all links are the same."""
    begin = 0
    links: tuple[Link, ...] = ()
    for place, (node, following) in enumerate(pairwise(run), 1):
        found = tuple([(p, cast(int, v.index)) for p, v in enumerate(following.inputs) if v.owner is node])
        if links and found != links:
            yield Chain(graph, run[begin:place], links)
            begin, found = place, ()
        links = found
    yield Chain(graph, run[begin:], links)
