"""Lowering of reductions. An elementwise computation that only a reduction reads runs inside its loops."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Variable
from engine.lowering.kernels.reduce import reduction
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.operations import FLOATS
from engine.lowering.rules.elementwise import Loops, flat_work, has_loops, loops_of
from engine.lowering.steps import FlatReduction, FlatWork, Value
from engine.tensor import quantifiers
from engine.tensor.reduction import Max, Min, Prod, Sum

FEW = 64
"""Elements that are reduced one at a time: such kernels may become parts of larger ones."""


def _lower_reduction(lowering: Lowering, node: Apply) -> None:
    source, output = node.inputs[0], node.outputs[0]
    op = cast(Any, node.op)
    lengths = lowering.dims_of(source)
    lowering.dims[output] = tuple(length for dim, length in enumerate(lengths) if dim not in op.axis)
    if not lowering.is_needed(output):
        return
    loops = _loops(lowering, source, lengths)
    count = lowering.table.number(lowering.table.product([lengths[dim] for dim in op.axis]))
    kernel = reduction(
        _KINDS[type(op)],
        loops.operands,
        loops.statements,
        loops.outputs[0],
        len(lengths),
        op.axis,
        getattr(op, "acc_dtype", dtype(source)),
        dtype(output),
        getattr(op, "initial", False),
        count is not None and count <= FEW,
    )
    result = lowering.allocate(output, loops.values, lowering.dims[output], lengths)
    work = _flat_work(lowering, node, loops, result)
    lowering.table.call(kernel, loops.values, [result], str(op), loops.dims, work=work)


def _flat_work(lowering: Lowering, node: Apply, loops: Loops, result: Value) -> FlatWork | None:
    """Return the work of a reduction to one number if it is one loop that cannot fail, else None."""
    op = cast(Any, node.op)
    work = flat_work(lowering.table, loops)
    if work is None or len(op.axis) < len(loops.dims) or result.buffer is None:
        return None
    accumulator = getattr(op, "acc_dtype", dtype(node.inputs[0]))
    # A product of floats is not cut into blocks: it is computed in the order of the elements.
    if isinstance(op, Max | Min) or (isinstance(op, Prod) and accumulator in FLOATS):
        return None
    reduction = FlatReduction(
        _KINDS[type(op)], loops.outputs[0], accumulator, result.pointer, result.dtype, result.buffer
    )
    return replace(work, reductions=(reduction,))


def _loops(lowering: Lowering, source: Variable, lengths: tuple[int, ...]) -> Loops:
    producer = source.owner if source in lowering.analysis.fused else None
    if producer is not None and has_loops(producer) and len(producer.outputs) == 1:
        return loops_of(lowering, producer)
    value = lowering.value_of(source)
    operand = lowering.operand(value, (False,) * len(lengths))
    return Loops((value,), (operand,), (), (("input", 0),), lengths)


_KINDS: dict[type[Op], str] = {
    Sum: "sum",
    Prod: "prod",
    Max: "max",
    Min: "min",
    quantifiers.All: "all",
    quantifiers.Any: "any",
}
RULES: Rules = {op: OpRule(_lower_reduction, reduces=True) for op in _KINDS}
