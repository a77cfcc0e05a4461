"""`check_integrity`: a test that the tables of a graph agree with its nodes and with each other."""

from __future__ import annotations

from engine.errors import InconsistencyError
from engine.graph.apply import Apply
from engine.graph.tables import GraphTables, Output
from engine.graph.traversal import io_toposort
from engine.graph.variables import Constant


def check_integrity(graph: GraphTables) -> None:
    """Refuse (InconsistencyError) a graph whose nodes, variables, clients and ranks disagree."""
    _check_nodes(graph)
    _check_outputs(graph)
    _check_clients(graph)
    _check_roots(graph)


def _check_nodes(graph: GraphTables) -> None:
    for node in io_toposort(graph.is_input, graph.outputs):
        if node not in graph.apply_nodes:
            raise InconsistencyError(
                f"Checking a graph: an output needs {node}, which is not among its nodes"
            )
    for node, rank in graph.apply_nodes.items():
        for variable in node.inputs:
            if variable in graph.is_input or variable.owner is None:
                continue
            if graph.apply_nodes.get(variable.owner, rank) >= rank:
                raise InconsistencyError(
                    f"Checking a graph: {node} is not ranked above {variable.owner}, which it needs"
                )


def _check_outputs(graph: GraphTables) -> None:
    if len(graph.outputs) != len(graph.output_uses):
        raise InconsistencyError("Checking a graph: the numbers of its outputs and of their uses differ")
    for index, (output, use) in enumerate(zip(graph.outputs, graph.output_uses, strict=True)):
        if use.op != Output(index) or use.inputs[0] is not output:
            raise InconsistencyError(
                f"Checking a graph: {output} is output {index}, but {use} says otherwise"
            )


def _check_clients(graph: GraphTables) -> None:
    known = set(graph.variables)
    expected = dict.fromkeys(graph.inputs)
    nodes: list[Apply] = [*graph.apply_nodes, *graph.output_uses]
    for node in nodes:
        expected.update(dict.fromkeys(node.inputs))
        expected.update(dict.fromkeys(node.outputs))
    if not known.issuperset(expected) or known != graph.clients.keys():
        raise InconsistencyError(
            "Checking a graph: its variables are not those of its nodes, inputs and outputs"
        )
    if sum([len(clients) for clients in graph.clients.values()]) != sum([len(node.inputs) for node in nodes]):
        raise InconsistencyError(
            "Checking a graph: the numbers of its clients and of the uses of its variables differ"
        )
    uses = set(graph.output_uses)
    for variable, clients in graph.clients.items():
        wrong = len(clients) > 1 and len(set(clients)) != len(clients)
        for node, index in clients:
            known_node = node in graph.apply_nodes or node in uses
            wrong = wrong or not known_node or node.inputs[index] is not variable
        if wrong:
            raise InconsistencyError(
                f"Checking a graph: {variable} has clients that are not its uses: {clients}"
            )


def _check_roots(graph: GraphTables) -> None:
    if list(graph.is_input) != graph.inputs and set(graph.is_input) != set(graph.inputs):
        raise InconsistencyError("Checking a graph: `inputs` and `is_input` differ")
    for variable in graph.variables:
        if variable in graph.is_input:
            continue
        known = (
            isinstance(variable, Constant) if variable.owner is None else variable.owner in graph.apply_nodes
        )
        if not known:
            raise InconsistencyError(
                f"Checking a graph: {variable} is neither an input, a constant nor computed in it"
            )
