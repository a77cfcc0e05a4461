"""A `FunctionGraph` as flat tables, which is how it is pickled.

Nodes are listed each after those it needs: a pickler that goes through the list meets no node whose inputs it has not
written before, so it never recurses, however deep the graph. It remembers what it wrote, so that Features, or whatever
else is pickled with the graph, refer to the same nodes and variables when they are loaded. Listed are also the nodes that
are not in the graph any more but that its journal or a Feature refers to.

The tables, version 1:

    nodes        the nodes, those of the graph and others
    variables    the variables of the graph
    ranks        for each of `nodes` its rank, or -1 if it is not in the graph
    inputs       numbers in `variables`
    outputs      for each output the node that stands for its use
    clients      for each of `variables` the number of its clients, then for each its node, as a number in `nodes` or
                 -1 - (number of an output), and which of its inputs it is
    features     the Features, in the order in which they were attached
    journal      the edits that are kept, and for whom
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from engine.graph.apply import Apply
from engine.graph.clients import Clients, Output
from engine.graph.edits import Edit
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable

if TYPE_CHECKING:
    from engine.graph.fgraph import FunctionGraph


def flatten(graph: FunctionGraph) -> dict[str, Any]:
    """The tables of `graph`."""
    nodes = _known_nodes(graph)
    node_number = {node: number for number, node in enumerate(nodes)}
    node_number |= {use: -1 - number for number, use in enumerate(graph.output_uses)}
    variable_number = {variable: number for number, variable in enumerate(graph.variables)}
    clients: list[int] = []
    for variable in graph.variables:
        uses = graph.clients[variable]
        clients.append(len(uses))
        for node, index in uses:
            clients += (node_number[node], index)
    return {
        "nodes": nodes,
        "variables": list(graph.variables),
        "ranks": [graph.apply_nodes.get(node, -1) for node in nodes],
        "inputs": [variable_number[variable] for variable in graph.inputs],
        "outputs": graph.output_uses,
        "clients": clients,
        "features": graph.features,
        "journal": (graph.journal.edits, graph.journal.keepers),
    }


def restore(graph: FunctionGraph, state: Mapping[str, Any]) -> None:
    """Fill an empty `graph` from its tables."""
    nodes, uses, variables = state["nodes"], state["outputs"], state["variables"]
    graph.apply_nodes = {node: rank for node, rank in zip(nodes, state["ranks"], strict=True) if rank >= 0}
    graph.variables = dict.fromkeys(variables)
    graph.inputs = [variables[number] for number in state["inputs"]]
    graph.is_input = dict.fromkeys(graph.inputs)
    graph.output_uses = list(uses)
    graph.outputs = [use.inputs[0] for use in uses]
    numbers = iter(state["clients"])
    for variable in variables:
        pairs = islice(numbers, 2 * next(numbers))
        clients = graph.clients[variable] = Clients()
        for number in pairs:
            clients.append((nodes[number] if number >= 0 else uses[-1 - number], next(pairs)))
    graph.journal.edits, graph.journal.keepers = (list(part) for part in state["journal"])
    graph.take_features(state["features"])


def _known_nodes(graph: FunctionGraph) -> list[Apply]:
    """All nodes that the graph, its journal or its Features refer to, each after those it needs."""
    parts = [*graph.variables, *references(graph.journal.edits)]
    for feature in graph.features:
        parts += references(vars(feature))
    variables: list[Variable] = []
    for part in parts:
        variables += [part] if isinstance(part, Variable) else [*part.inputs, *part.outputs]
    return io_toposort((), variables)


def references(value: object) -> Iterator[Apply | Variable]:
    """The nodes and variables in `value`: containers of the standard library in one another, and edits."""
    waiting: deque[object] = deque([value])
    while waiting:
        item = waiting.popleft()
        if isinstance(item, Variable | Apply):
            if not (isinstance(item, Apply) and isinstance(item.op, Output)):
                yield item
        elif isinstance(item, Edit):
            yield from references(list(item.parts()))
        elif isinstance(item, Mapping):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple | deque | Set | WeakSet):
            waiting.extend(_elements(item))


def _elements(container: Iterable[object]) -> Iterable[object]:
    return container
