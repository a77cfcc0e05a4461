"""The frozen graphs that Ops hold, as they are stored and as PyTensor interns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import FrozenApply, NominalVariable
from pytensor.graph.fg import FrozenFunctionGraph, Output

from cachegraph import pickling
from cachegraph.pytensor.describe.host_packages import HOSTS
from cachegraph.pytensor.stored.constants import same_constant
from cachegraph.pytensor.stored.externals import arrays_in
from cachegraph.pytensor.stored.graph_section import GraphTable, Section
from cachegraph.pytensor.stored.op_pickling import held_graphs


def inner_graphs(ops: Sequence[Any], external: Sequence[object]) -> list[Any]:
    """The frozen graphs that `ops` hold at all depths, each after those that its own Ops hold.

    Raises what pickle raises for an Op that cannot be pickled.
    """
    found: dict[Any, None] = {}
    waiting: list[tuple[Any, bool]] = [(graph, False) for graph in reversed(held_graphs(ops, external))]
    while waiting:
        graph, is_complete = waiting.pop()
        if is_complete:
            found[graph] = None
        elif graph not in found:
            held = held_graphs([node.op for node in graph.toposort()], external)
            waiting += [(graph, True), *((inner, False) for inner in reversed(held))]
    return list(found)


def named_by(graph: Any) -> list[Any]:
    """What the Ops that hold `graph` name beside the graph itself: the variables that it computes."""
    return [graph, *(variable for node in graph.toposort() for variable in node.outputs)]


def pack_frozen(graph: Any, external: Sequence[object]) -> bytes:
    """`graph` in the stored form; `external` names the graphs that its Ops hold."""
    order = graph.toposort()
    section = GraphTable(graph.inputs, order, graph.outputs, arrays_in(external)).section
    positions = tuple(node.topo_idx for node in order)
    types = tuple(variable.type for variable in graph.inputs)
    return pickling.dumps((section.dumps(external), types, positions))


def unpack_frozen(content: bytes, external: Sequence[object]) -> Any:
    """The canonical frozen graph that `content` holds.

    Raises ValueError where PyTensor has interned a node with other bits in a constant that it takes for equal, and as
    pickling.loads does.
    """
    section, types, positions = pickling.loads(content, HOSTS)
    inputs = tuple(NominalVariable(number, type_) for number, type_ in enumerate(types))
    nodes: list[Any] = []

    def apply(op: Any, arguments: list[Any], output_types: list[Any], position: int) -> Any:
        nodes.append(_interned(op, tuple(arguments), tuple(output_types), positions[position]))
        return nodes[-1].outputs

    _, outputs = Section.loads(section, external).rebuild(inputs, apply)
    ends = tuple(_interned(Output(number), (output,), (), -1) for number, output in enumerate(outputs))
    return FrozenFunctionGraph(inputs, tuple(nodes), ends)


def _interned(op: Any, inputs: tuple[Any, ...], types: tuple[Any, ...], position: int) -> Any:
    node = FrozenApply(op, inputs, types, position)
    for wanted, found in zip(inputs, node.inputs, strict=True):
        if wanted is not found and not same_constant(wanted, found):
            raise ValueError(f"{node} is interned with the constant {found!r} where {wanted!r} was stored")
    return node
