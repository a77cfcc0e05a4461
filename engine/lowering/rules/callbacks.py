"""Lowering of what Python computes: user Ops, the engine's Ops that have no kernel, and SciPy's solvers
on compiled functions of their own.

The program stops and has `perform` called (graph/reference.py), or the function that the Op gives
numba (codegen/numba/calls.py). A function for numba that returns one number is tried as a kernel first.

The options of the callback of an Op, as JSON: {"op": a user Op's name in what is stored, or one of the
engine's, pickled, in base 64; "inputs" and "outputs": a list of [dtype, [length or null for each axis]]},
for a value that is no array with the name of its type (runtime/callbacks.py) as a third item.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import cast

from cachegraph import pickling
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.represented import RepresentedType
from engine.graph.user_ops import needs_python
from engine.graph.variables import Variable
from engine.inner.optimize_ops import MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp, ScipyWrapperOp
from engine.lowering.kernels.building import KernelBuilder
from engine.lowering.loops import Elements, Evaluate, Kernel, Place, WriteElement
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.rules.elementwise import elementwise_dims
from engine.runtime.callbacks import Callback
from engine.runtime.kernel_interface import COMPUTED
from engine.scalar.embedded import Embedded, embedded_node, refused_signatures
from engine.tensor.elemwise import Elemwise
from engine.tensor.type import TensorType


def python_rule(node: Apply) -> OpRule | None:
    """Return the rule by which Python computes `node`, or None if its Op has no perform() or is not one on
    values that programs hold.

    An Op of the engine that has no kernel is computed by its own perform(), the reference.
    """
    if isinstance(node.op, Elemwise):
        return _ELEMENTWISE
    if type(node.op).perform is Op.perform and not hasattr(node.op, "numba_function"):
        return None
    if not all(isinstance(v.type, TensorType | RepresentedType) for v in (*node.inputs, *node.outputs)):
        return None
    return _EVALUATE if _may_be_kernel(node) else _PERFORM


def _may_be_kernel(node: Apply) -> bool:
    """Return True if `node` gives numba a function of arrays that returns one number, not refused so far."""
    if not hasattr(node.op, "numba_function") or len(node.outputs) != 1:
        return False
    if _signature(node) in refused_signatures(node.op):
        return False
    variables = (*node.inputs, *node.outputs)
    return node.outputs[0].type.ndim == 0 and all(v.type.dtype in COMPUTED for v in variables)


def _signature(node: Apply) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(map(dtype, node.inputs)), tuple(v.type.ndim for v in node.inputs)


def _lower_evaluate(lowering: Lowering, node: Apply) -> None:
    (output,) = node.outputs
    lowering.dims[output] = ()
    if not lowering.is_needed(output):
        return
    dtypes, ranks = _signature(node)
    kernel = _evaluation(embedded_node(node, dtypes, dtype(output), ranks))
    reads = [lowering.contiguous(lowering.value_of(variable)) for variable in node.inputs]
    result = lowering.allocate(output, reads, (), [length for value in reads for length in value.dims])
    lowering.table.call(kernel, reads, [result], str(node.op))


def _evaluation(function: Embedded) -> Kernel:
    """Return the kernel that stores what `function` returns for its C-contiguous arrays."""
    builder, arrays = KernelBuilder(), []
    for position, (of, rank) in enumerate(zip(function.arguments, function.ranks or (), strict=True)):
        pointer = builder.pointer(f"x{position}", of, ("input", position))
        lengths = [builder.integer(f"n{position}_{dim}", ("length", position, dim)) for dim in range(rank)]
        arrays.append(Elements(pointer, tuple(lengths)))
    result = builder.pointer("y", function.result, ("output", 0))
    body = (Evaluate("v", function, tuple(arrays)), WriteElement(Place(result), "v"))
    return builder.kernel(body, f"function: {function}")


def _lower_perform(lowering: Lowering, node: Apply) -> None:
    if any(map(lowering.is_needed, node.outputs)) or not _has_known_lengths(node):
        lowering.invoke(node, callback_of(lowering, node), [[None] * v.type.ndim for v in node.outputs])
        return
    for output in node.outputs:
        lowering.dims[output] = tuple(map(lowering.table.constant, output.type.shape))


def _lower_elementwise(lowering: Lowering, node: Apply) -> None:
    dims = elementwise_dims(lowering, node)
    if any(map(lowering.is_needed, node.outputs)):
        lowering.invoke(node, callback_of(lowering, node), [dims] * len(node.outputs))
        return
    lowering.dims.update(dict.fromkeys(node.outputs, dims))


def callback_of(lowering: Lowering, node: Apply) -> Callback:
    """Return the callback that computes `node` by its Op's perform(), or numba function."""
    is_reference = not needs_python(node.op)
    options = {
        "op": b64encode(pickling.dumps(node.op)).decode() if is_reference else lowering.name_of(node.op),
        "inputs": _described(node.inputs),
        "outputs": _described(node.outputs),
    }
    kind = "compiled" if hasattr(node.op, "numba_function") else "perform"
    return Callback(
        ("varying" if node.op.varies else "reference") if is_reference else kind,
        1,
        json.dumps(options, sort_keys=True, separators=(",", ":")),
        (),
    )


def _described(variables: Sequence[Variable]) -> list[list[object]]:
    return [
        [v.type.dtype, v.type.shape, *([v.type.stored_name] if isinstance(v.type, RepresentedType) else ())]
        for v in variables
    ]


def _has_known_lengths(node: Apply) -> bool:
    return not any(None in output.type.shape for output in node.outputs)


def _reads(node: Apply) -> Sequence[Variable]:
    return node.inputs if _has_known_lengths(node) else ()


def _lengths(node: Apply) -> Sequence[Variable]:
    """Return the inputs if the types leave lengths open: only the result tells those."""
    return () if _has_known_lengths(node) else node.inputs


def _lower_optimizer(lowering: Lowering, node: Apply) -> None:
    solution, success = node.outputs
    lengths = lowering.dims_of(node.inputs[0])
    if not (lowering.is_needed(solution) or lowering.is_needed(success)):
        lowering.dims.update({solution: lengths, success: ()})
        return
    op = cast(ScipyWrapperOp, node.op)
    lowering.invoke(node, Callback("optimize", 1, op.description, (op.fgraph,)), [lengths, ()])


_EVALUATE = OpRule(_lower_evaluate)
_PERFORM = OpRule(_lower_perform, _reads, _lengths)
_ELEMENTWISE = OpRule(_lower_elementwise)

RULES: Rules = {op: OpRule(_lower_optimizer) for op in (MinimizeOp, MinimizeScalarOp, RootOp, RootScalarOp)}
