"""The pickled form of a mutable graph: flat tables.

Each node is listed after those it needs: so a pickler has written the inputs of every node before the node,
and never recurses, however deep the graph. Its memo makes Features, and everything else pickled with the
graph, refer to the same nodes and variables after loading. Nodes that left the graph are listed too if its
journal or a Feature refers to them.

The tables, version 1:

    nodes        the nodes, those of the graph and others
    variables    the variables of the graph
    ranks        the rank of each of `nodes`, or -1 if it is not in the graph
    inputs       numbers in `variables`
    outputs      for each output the node of the Op `Output` that uses it
    clients      for each of `variables` the number of its clients, then for each its node, as a number in
                 `nodes` or -1 - (number of an output), and the position among the node's inputs
    features     the Features, in the order of attachment
    journal      the kept edits, and the Features that keep them
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any
from weakref import WeakSet

from engine.graph.apply import Apply
from engine.graph.editable import EditableGraph
from engine.graph.edits import Edit
from engine.graph.tables import Clients, Output
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable


def flatten(graph: EditableGraph) -> dict[str, Any]:
    """Return the tables of `graph`."""
    nodes = _known_nodes(graph)
    node_number = {node: number for number, node in enumerate(nodes)}
    node_number |= {use: -1 - number for number, use in enumerate(graph.output_uses)}
    variable_number = {variable: number for number, variable in enumerate(graph.is_variable)}
    clients: list[int] = []
    for variable in graph.is_variable:
        uses = graph.clients[variable]
        clients.append(len(uses))
        for node, index in uses:
            clients += (node_number[node], index)
    return {
        "nodes": nodes,
        "variables": list(graph.is_variable),
        "ranks": [graph.ranks.get(node, -1) for node in nodes],
        "inputs": [variable_number[variable] for variable in graph.inputs],
        "outputs": graph.output_uses,
        "clients": clients,
        "features": graph.features,
        "journal": (graph.journal.edits, graph.journal.keepers),
    }


def restore(graph: EditableGraph, state: Mapping[str, Any]) -> None:
    """Fill an empty `graph` from its tables."""
    nodes, uses, variables = state["nodes"], state["outputs"], state["variables"]
    graph.ranks = {node: rank for node, rank in zip(nodes, state["ranks"], strict=True) if rank >= 0}
    graph.is_variable = dict.fromkeys(variables)
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


def _known_nodes(graph: EditableGraph) -> list[Apply]:
    """Return all nodes that the graph, its journal or its Features refer to, each after those it needs."""
    parts = [*graph.is_variable, *references(graph.journal.edits)]
    for feature in graph.features:
        parts += references(vars(feature))
    variables: list[Variable] = []
    for part in parts:
        variables += [part] if isinstance(part, Variable) else [*part.inputs, *part.outputs]
    return io_toposort((), variables)


def references(value: object) -> Iterator[Apply | Variable]:
    """Yield the nodes and variables in `value`: nested containers of the standard library, and edits."""
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
