"""Elementwise fusion: operations that pass values to each other element by element become one `Composite`.

Joined nodes have results of one shape: their types broadcast alike, and a value passes directly from one to
the next. So nothing small is computed inside a larger loop, and nothing twice: a value with other users
becomes one more output.

Operations for one reduction alone become a separate Composite with one output: a backend can compute it
inside the reduction's loop, without storing it. `RecomputeForReductions` prepares this. In `m = x - a;
sum(exp(m)); m - b` fusion would store `m` for both, since a value that a reduction's loop reads cannot
leave it; with a copy of `m` for the sum, both loops compute it where they use it.

What may be joined without a cycle, stages say (`fusion_stages.py`). A group too large for one Composite is
cut in topological order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from engine import scalar
from engine.graph import Apply, Constant, FunctionGraph, Variable, graph_inputs, io_toposort
from engine.inner.base import HasInnerGraph
from engine.inner.composite import Composite
from engine.rewriting.elementwise_pattern import scalar_op_of
from engine.rewriting.passes.fusion_stages import Stages, fit_one_loop
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.scalar import ScalarOp, scalar_type
from engine.scalar.embedded import has_loops
from engine.tensor.elemwise import Elemwise
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.reduction import Reduction

MAX_STATEMENTS = 100
"""The largest number of operations in one Composite: compile time grows faster than linearly."""
MAX_INPUTS = 31
"""The largest number of tensors that one Composite reads: 32 arrays with its result, as a ufunc of numpy.

A sum of very many tensors, such as the gradient of a parameter shared by all layers, becomes equal
Composites, compiled once.
"""


class FusionOptimizer(GraphRewriter):
    """The fusion of Elemwise nodes that fit one loop to an Elemwise of a Composite."""

    name = "fusion"

    def apply(self, fgraph: FunctionGraph) -> tuple[FusionOptimizer, int, int]:
        """Rewrite `fgraph`; return this rewriter, the number of Composites, and that of nodes in them."""
        sizes = self._fused(fgraph)
        return self, len(sizes), sum(sizes)

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for _ in self._fused(fgraph):
            report.count(self.name)

    def _fused(self, fgraph: FunctionGraph) -> list[int]:
        """Fuse nodes, and return how many became one, for each Composite."""
        parts = [part for group in Stages(fgraph).groups() for part in _parts(group)]
        wanted = [part for part in parts if len(part) > 1 or _has_unread(fgraph, part[0])]
        return [len(part) for part in wanted if _fuse(fgraph, part)]


def _parts(group: Sequence[Apply]) -> Iterator[list[Apply]]:
    """Yield `group` in topological order in parts that respect MAX_STATEMENTS and MAX_INPUTS."""
    part: list[Apply] = []
    size = 0
    read: set[Variable] = set()
    for node in group:
        cost = _statements(node)
        read.update([v for v in node.inputs if not is_baked(v) and v.owner not in part])
        if part and (size + cost > MAX_STATEMENTS or len(read) > MAX_INPUTS):
            yield part
            part, size, read = [], 0, {v for v in node.inputs if not is_baked(v)}
        part.append(node)
        size += cost
    yield part


def _has_unread(fgraph: FunctionGraph, node: Apply) -> bool:
    """Return True for a Composite, written by a user, with results or arguments that nothing reads."""
    if not isinstance(scalar_op_of(node), Composite) or not has_loops(node):
        return False
    return len(_read_by(fgraph, node)) < len(node.inputs) or not all(map(fgraph.clients.get, node.outputs))


def _read_by(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Return the inputs of `node` that its used results depend on: a Composite may have others."""
    op = scalar_op_of(node)
    if not isinstance(op, Composite):
        return list(node.inputs)
    used = [inner for v, inner in zip(node.outputs, op.fgraph.outputs, strict=True) if fgraph.clients.get(v)]
    read = set(graph_inputs(used))
    return [v for v, inner in zip(node.inputs, op.fgraph.inputs, strict=True) if inner in read]


def _statements(node: Apply) -> int:
    op = scalar_op_of(node)
    return len(op.fgraph.nodes) if isinstance(op, HasInnerGraph) else 1


def _fuse(fgraph: FunctionGraph, nodes: Sequence[Apply]) -> bool:
    """Replace `nodes` by one; return False if that is impossible (for constants alone)."""
    members = set(nodes)
    outputs = [
        variable
        for node in nodes
        for variable in node.outputs
        if any(client not in members for client, _ in fgraph.clients[variable])
    ]
    outputs = _canonical(outputs, members)
    body = _Body(fgraph, members, outputs, drop_fills=True)
    if not body.has_shape_of(outputs[0]):
        body = _Body(fgraph, members, outputs, drop_fills=False)
    if not body.inputs:
        return False
    op = Elemwise(Composite([body.scalars[variable] for variable in body.inputs], body.results))
    fused = Apply(op, body.inputs, [variable.type.make_variable(variable.name) for variable in outputs])
    fgraph.replace_all(zip(outputs, fused.outputs, strict=True), "fusion")
    return True


def _canonical(outputs: list[Variable], members: set[Apply]) -> list[Variable]:
    """Return `outputs` in an order that depends on their own computation, not on their users."""
    if len(outputs) == 1:
        return outputs
    return sorted(outputs, key=lambda variable: _structure(variable, members))


def _structure(output: Variable, members: set[Apply]) -> tuple[tuple[str, ...], ...]:
    """Return the operations of `members` that compute `output`, with inputs numbered by first use."""
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
    """Return True for a constant of one element: a Composite holds its value instead of reading it."""
    return isinstance(variable, Constant) and variable.data.size == 1


def _inside(outputs: Sequence[Variable], members: set[Apply]) -> list[Apply]:
    """Return the nodes of `members` that compute `outputs`, ordered by structure."""
    computed = [variable for node in members for variable in node.inputs]
    blockers = {variable for variable in computed if variable.owner not in members}
    return io_toposort(blockers, outputs)


class _Body:
    """The scalar graph of `members`: `inputs` (tensors, by first use), their `scalars`, and the `results`.

    With `drop_fills`, `second(a, b)` becomes b, and variables that only give a shape are no inputs.
    """

    def __init__(
        self, fgraph: FunctionGraph, members: set[Apply], outputs: Sequence[Variable], drop_fills: bool
    ) -> None:
        self.inputs: list[Variable] = []
        self.scalars: dict[Variable, Variable] = {}
        for node in _inside(outputs, members):
            op = scalar_op_of(node)
            if drop_fills and op == scalar.second:
                self.scalars[node.outputs[0]] = self._scalar(node.inputs[1])
                continue
            operands = _read_by(fgraph, node) if drop_fills else node.inputs
            found = self._apply(op, [self._scalar(v, v in operands) for v in node.inputs])
            self.scalars.update(zip(node.outputs, found, strict=True))
        self.results = [self.scalars[variable] for variable in outputs]

    def has_shape_of(self, output: Variable) -> bool:
        """Return True if the inputs together broadcast like `output`."""
        axes = zip(*[tensor_type_of(variable).broadcastable for variable in self.inputs], strict=True)
        return bool(self.inputs) and tuple(map(all, axes)) == tensor_type_of(output).broadcastable

    def _scalar(self, variable: Variable, is_read: bool = True) -> Variable:
        found = self.scalars.get(variable)
        if found is None:
            type = scalar_type(dtype_of(variable))
            if not is_read:
                return type.make_variable()
            if is_baked(variable):
                found = type.make_constant(cast(Constant, variable).data.reshape(())[()])
            else:
                self.inputs.append(variable)
                found = type.make_variable()
            self.scalars[variable] = found
        return found

    def _apply(self, op: ScalarOp, arguments: Sequence[Variable]) -> Sequence[Variable]:
        """Return the results of `op` on `arguments`; a Composite is expanded, on arguments of its dtypes."""
        if not isinstance(op, Composite):
            return op.make_node(*arguments).outputs
        fitting = [
            argument if dtype_of(argument) == dtype else scalar.Cast(dtype).make_node(argument).outputs[0]
            for argument, dtype in zip(arguments, op.input_dtypes, strict=True)
        ]
        return op.fgraph.bind(fitting)


CHEAP = (scalar.add, scalar.sub, scalar.mul, scalar.neg, scalar.sqr, scalar.maximum, scalar.minimum)
"""Operations that take no longer than reading an element."""


class RecomputeForReductions(GraphRewriter):
    """A copy of cheap operations that a reduction shares with others, for the reduction's own loop."""

    name = "recompute_for_reductions"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for reduction in fgraph.toposort():
            if isinstance(reduction.op, Reduction):
                for consumer in _computed_for(fgraph, reduction):
                    _separate(fgraph, consumer, report)


def _computed_for(fgraph: FunctionGraph, reduction: Apply) -> list[Apply]:
    """Return the elementwise nodes that are computed in the loop of `reduction` and for nothing else."""
    found: list[Apply] = []
    waiting = [reduction.inputs[0]]
    while waiting:
        variable = waiting.pop()
        node = variable.owner
        if node is None or not isinstance(node.op, Elemwise) or len(fgraph.clients[variable]) != 1:
            continue
        if not found or fit_one_loop(node, found[0]):
            found.append(node)
            waiting += node.inputs
    return found


def _separate(fgraph: FunctionGraph, consumer: Apply, report: RewriteReport) -> None:
    for position, variable in enumerate(consumer.inputs):
        producer = variable.owner
        if producer is not None and _is_cheaper_twice(fgraph, producer, consumer, variable):
            copy = producer.clone_with_new_inputs(producer.inputs).outputs[0]
            fgraph.change_node_input(consumer, position, copy, RecomputeForReductions.name)
            report.count(RecomputeForReductions.name)


def _is_cheaper_twice(fgraph: FunctionGraph, producer: Apply, consumer: Apply, shared: Variable) -> bool:
    """Return True if all users of `shared` can compute it themselves, from values that are stored anyway."""
    if not isinstance(producer.op, Elemwise) or producer.op.scalar_op not in CHEAP:
        return False
    clients = [client for client, _ in fgraph.clients[shared]]
    if len(clients) < 2 or not all(isinstance(c, Apply) and fit_one_loop(producer, c) for c in clients):
        return False
    return not any(v.owner is not None and fit_one_loop(v.owner, producer) for v in producer.inputs)
