"""Elementwise fusion: operations that pass values to each other, element by element, become one `Composite`.

Nodes that are joined have results of one shape: their types broadcast alike, and a value passes directly from one to
the next. So nothing small is ever computed inside of a larger loop, and nothing is computed twice: a value that is
used elsewhere becomes one more output.

No cycle can arise. Each node gets a stage: at least that of what it is joined to, and more than that of everything
else it needs. Only nodes of equal stage are joined, so whatever lies between two Composites has a stage in between.
A group too large for one Composite is cut in topological order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from engine import scalar
from engine.graph.apply import Apply
from engine.graph.fgraph import FunctionGraph
from engine.graph.traversal import io_toposort
from engine.graph.variables import Constant, Variable
from engine.inner.composite import Composite
from engine.rewriting.pattern import dtype_of, scalar_op_of, tensor_type_of
from engine.rewriting.report import RewriteReport
from engine.rewriting.rewriters import GraphRewriter
from engine.scalar import ScalarOp, scalar_type
from engine.tensor.elemwise import Elemwise

MAX_STATEMENTS = 100
"""The most operations in one Composite: compiling is more than linear in them."""


class FusionOptimizer(GraphRewriter):
    """Makes each group of Elemwise nodes that can be computed in one loop an Elemwise of a Composite."""

    name = "fusion"

    def apply(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        order = fgraph.toposort()
        stages = _stages(order)
        _delay(fgraph, order, stages)
        for group in _groups(order, stages):
            for part in _parts(group):
                if len(part) > 1 and _fuse(fgraph, part):
                    report.count(self.name)


def _is_fusable(node: Apply) -> bool:
    return isinstance(node.op, Elemwise)


def _joins(producer: Apply, consumer: Apply) -> bool:
    """Whether a value that `producer` passes to `consumer` can stay within one loop."""
    if not (_is_fusable(producer) and _is_fusable(consumer)):
        return False
    return _broadcastable(producer) == _broadcastable(consumer)


def _broadcastable(node: Apply) -> tuple[bool, ...]:
    return tensor_type_of(node.outputs[0]).broadcastable


def _producers(node: Apply) -> Iterator[Apply]:
    return (variable.owner for variable in node.inputs if variable.owner is not None)


def _stages(order: Sequence[Apply]) -> dict[Apply, int]:
    """For each node, the first stage that it can be in."""
    stages: dict[Apply, int] = {}
    for node in order:
        needed = [stages[p] if _joins(p, node) else stages[p] + 1 for p in _producers(node)]
        stages[node] = max(needed, default=0)
    return stages


def _delay(fgraph: FunctionGraph, order: Sequence[Apply], stages: dict[Apply, int]) -> None:
    """Move a node that is used only by nodes of one later stage, all of which it can be joined to, to that stage."""
    for node in reversed(order):
        clients = [client for output in node.outputs for client, _ in fgraph.clients[output]]
        later = {stages.get(client) for client in clients}
        if len(later) == 1 and None not in later and all(_joins(node, client) for client in clients):
            stages[node] = cast(int, later.pop())


def _groups(order: Sequence[Apply], stages: dict[Apply, int]) -> list[list[Apply]]:
    """The nodes that are connected within a stage, each group in topological order."""
    leader: dict[Apply, Apply] = {node: node for node in order}

    def find(node: Apply) -> Apply:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for node in order:
        for producer in _producers(node):
            if stages[producer] == stages[node] and _joins(producer, node):
                leader[find(node)] = find(producer)
    groups: dict[Apply, list[Apply]] = {}
    for node in order:
        if _is_fusable(node):
            groups.setdefault(find(node), []).append(node)
    return sorted(groups.values(), key=lambda group: stages[group[0]])


def _parts(group: Sequence[Apply]) -> Iterator[list[Apply]]:
    """`group` cut, in topological order, into parts of at most MAX_STATEMENTS operations."""
    part: list[Apply] = []
    size = 0
    for node in group:
        cost = _statements(node)
        if part and size + cost > MAX_STATEMENTS:
            yield part
            part, size = [], 0
        part.append(node)
        size += cost
    yield part


def _statements(node: Apply) -> int:
    op = scalar_op_of(node)
    return len(op.fgraph.nodes) if isinstance(op, Composite) else 1


def _fuse(fgraph: FunctionGraph, nodes: Sequence[Apply]) -> bool:
    """Replace `nodes` by one; whether that was possible (of constants alone it is not)."""
    members = set(nodes)
    outputs = [
        variable
        for node in nodes
        for variable in node.outputs
        if any(client not in members for client, _ in fgraph.clients[variable])
    ]
    outputs = _canonical(outputs, members)
    body = _Body(members, outputs, drop_fills=True)
    if not body.has_shape_of(outputs[0]):
        body = _Body(members, outputs, drop_fills=False)
    if not body.inputs:
        return False
    op = Elemwise(Composite([body.scalars[variable] for variable in body.inputs], body.results))
    fused = Apply(op, body.inputs, [variable.type.make_variable(variable.name) for variable in outputs])
    fgraph.replace_all(zip(outputs, fused.outputs, strict=True), "fusion")
    return True


def _canonical(outputs: list[Variable], members: set[Apply]) -> list[Variable]:
    """`outputs` in an order that depends on what each computes alone, not on where in a graph they are used."""
    if len(outputs) == 1:
        return outputs
    return sorted(outputs, key=lambda variable: _structure(variable, members))


def _structure(output: Variable, members: set[Apply]) -> tuple[tuple[str, ...], ...]:
    """The operations that compute `output` within `members`, with inputs numbered by their first use."""
    numbers: dict[Variable, str] = {}
    rows = []
    for node in _inside([output], members):
        rows.append(
            (_name(scalar_op_of(node)), *[_number(variable, members, numbers) for variable in node.inputs])
        )
        for variable in node.outputs:
            numbers[variable] = f"v{len(numbers)}"
    return (*rows, (numbers[output],))


def _name(op: ScalarOp) -> str:
    return (
        str(op)
        if not isinstance(op, Composite)
        else " ".join(_name(cast(ScalarOp, n.op)) for n in op.fgraph.nodes)
    )


def _number(variable: Variable, members: set[Apply], numbers: dict[Variable, str]) -> str:
    if variable in numbers:
        return numbers[variable]
    if is_baked(variable):
        data = cast(Constant, variable).data
        return f"{data.dtype.name} {data.tobytes().hex()}"
    return numbers.setdefault(variable, f"i{len(numbers)} {dtype_of(variable)}")


def is_baked(variable: Variable) -> bool:
    """Whether `variable` is a constant of one element: a Composite holds its value instead of reading it."""
    return isinstance(variable, Constant) and variable.data.size == 1


def _inside(outputs: Sequence[Variable], members: set[Apply]) -> list[Apply]:
    """The nodes of `members` that compute `outputs`, ordered by structure."""
    computed = [variable for node in members for variable in node.inputs]
    blockers = {variable for variable in computed if variable.owner not in members}
    return io_toposort(blockers, outputs)


class _Body:
    """The scalar graph of `members`: `inputs` (tensors, by first use), their `scalars`, and the `results`.

    With `drop_fills`, `second(a, b)` is b, and what only gives a shape is no input.
    """

    def __init__(self, members: set[Apply], outputs: Sequence[Variable], drop_fills: bool) -> None:
        self.inputs: list[Variable] = []
        self.scalars: dict[Variable, Variable] = {}
        for node in _inside(outputs, members):
            op = scalar_op_of(node)
            if drop_fills and op == scalar.second:
                self.scalars[node.outputs[0]] = self._scalar(node.inputs[1])
                continue
            found = self._apply(op, [self._scalar(variable) for variable in node.inputs])
            self.scalars.update(zip(node.outputs, found, strict=True))
        self.results = [self.scalars[variable] for variable in outputs]

    def has_shape_of(self, output: Variable) -> bool:
        """Whether the inputs together broadcast as `output` does."""
        axes = zip(*[tensor_type_of(variable).broadcastable for variable in self.inputs], strict=True)
        return bool(self.inputs) and tuple(map(all, axes)) == tensor_type_of(output).broadcastable

    def _scalar(self, variable: Variable) -> Variable:
        found = self.scalars.get(variable)
        if found is None:
            type = scalar_type(dtype_of(variable))
            if is_baked(variable):
                found = type.make_constant(cast(Constant, variable).data.reshape(())[()])
            else:
                self.inputs.append(variable)
                found = type.make_variable()
            self.scalars[variable] = found
        return found

    def _apply(self, op: ScalarOp, arguments: Sequence[Variable]) -> Sequence[Variable]:
        """`op` of `arguments`; a Composite is opened."""
        if isinstance(op, Composite):
            return op.fgraph.bind(arguments)
        return op.make_node(*arguments).outputs
