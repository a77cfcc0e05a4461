"""Lowering of products of vectors and matrices. A transposed matrix is used as it lies; another dtype than the
product's is cast first."""

from __future__ import annotations

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.lowering.kernels.dot import matrix_matrix, matrix_vector, vector_vector
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule
from engine.lowering.steps import Check, Value
from engine.tensor.products import Dot


def _lower_dot(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    output = node.outputs[0]
    left, right = (lowering.dims_of(variable) for variable in node.inputs)
    inner = table.same(left[-1], right[0], Check("dot", str(node.op), ()))
    lowering.dims[output] = (*left[:-1], *right[1:])
    if not lowering.is_needed(output):
        return
    values, transposed = [], []
    for variable in node.inputs:
        value, is_transposed = as_it_lies(lowering, lowering.value_of(variable), dtype(output))
        values.append(value)
        transposed.append(is_transposed)
    kernel, reads, lengths = _kernel(dtype(output), values, transposed, left, right, inner)
    result = lowering.allocate(output, reads, lowering.dims[output], lengths)
    table.call(kernel, reads, [result], str(node.op), lengths)


def _kernel(
    dtype: str,
    values: list[Value],
    transposed: list[bool],
    left: tuple[int, ...],
    right: tuple[int, ...],
    inner: int,
) -> tuple[Kernel, list[Value], tuple[int, ...]]:
    """The kernel, its operands in its order, and the lengths of its nest."""
    if len(left) == 2 and len(right) == 2:
        return matrix_matrix(dtype, *transposed), values, (left[0], inner, right[1])
    if len(left) == 2:
        return matrix_vector(dtype, transposed[0]), values, (left[0], inner)
    if len(right) == 2:
        return matrix_vector(dtype, not transposed[1]), values[::-1], (right[1], inner)
    return vector_vector(dtype), values, (inner,)


def as_it_lies(lowering: Lowering, value: Value, dtype: str) -> tuple[Value, bool]:
    """The contiguous memory of `value`, and whether it has to be read as transposed; copied if it is neither, or not
    of `dtype`."""
    if value.dtype == dtype and value.strides is not None and len(value.dims) == 2:
        rows, columns = (lowering.table.canonical(r) for r in value.dims)
        row_stride, column_stride = (lowering.table.canonical(r) for r in value.strides)
        if row_stride == lowering.table.constant(1) and column_stride == rows:
            return Value(value.pointer, value.dtype, (columns, rows), value.stage, None, value.buffer), True
    return lowering.contiguous(value, dtype), False


RULES: dict[type[Op], OpRule] = {Dot: OpRule(_lower_dot)}
