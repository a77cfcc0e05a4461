"""Lowering of products and of linear algebra. A transposed matrix is used as it lies in memory.

An operand of another dtype than the product is cast first. LAPACK overwrites copies: that of a matrix
of right-hand sides is transposed, because LAPACK reads column after column, and the solution is a view
of it.
"""

from __future__ import annotations

from typing import cast

from engine.graph.apply import Apply
from engine.lowering.kernels.dot import matrix_matrix, matrix_vector, vector_vector
from engine.lowering.kernels.lapack import cholesky, slogdet, solve_general, solve_positive, solve_triangular
from engine.lowering.loops import Kernel
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.steps import Check, Value
from engine.runtime.registers import ADDRESS_OF_DETAILS
from engine.tensor.linalg.equations import CholeskySolve, Solve, SolveTriangular
from engine.tensor.linalg.factorizations import Cholesky, SLogDet
from engine.tensor.products import Dot


def _lower_dot(lowering: Lowering, node: Apply) -> None:
    table = lowering.table
    output = node.outputs[0]
    left, right = (lowering.dims_of(variable) for variable in node.inputs)
    inner = table.canonical(left[-1])
    if not table.are_same(inner, right[0]):
        inner = table.same(inner, right[0], Check("dot", str(node.op), ()))
    lowering.dims[output] = (*left[:-1], *right[1:])
    if not lowering.is_needed(output):
        return
    values, transposed = [], []
    for variable in node.inputs:
        value, is_transposed = matrix_as_stored(lowering, lowering.value_of(variable), dtype(output))
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
    """Return the kernel, its operands in its order, and the lengths of its nest."""
    if len(left) == 2 and len(right) == 2:
        return matrix_matrix(dtype, *transposed), values, (left[0], inner, right[1])
    if len(left) == 2:
        return matrix_vector(dtype, transposed[0]), values, (left[0], inner)
    if len(right) == 2:
        return matrix_vector(dtype, not transposed[1]), values[::-1], (right[1], inner)
    return vector_vector(dtype), values, (inner,)


def matrix_as_stored(lowering: Lowering, value: Value, dtype: str) -> tuple[Value, bool]:
    """Return the contiguous memory of `value`, and True if it is to be read as transposed.

    It is a copy if `value` is neither, or not of `dtype`.
    """
    if value.dtype == dtype and value.strides is not None and len(value.dims) == 2:
        rows, columns = (lowering.table.canonical(r) for r in value.dims)
        row_stride, column_stride = (lowering.table.canonical(r) for r in value.strides)
        if row_stride == lowering.table.constant(1) and column_stride == rows:
            return Value(value.pointer, value.dtype, (columns, rows), value.stage, None, value.buffer), True
    return lowering.contiguous(value, dtype), False


def _rows(lowering: Lowering, node: Apply) -> int:
    """Return the number of rows of the matrix, which must be square, and of any right-hand side."""
    table = lowering.table
    rows, columns = lowering.dims_of(node.inputs[0])
    rows = table.same(rows, columns, Check("rows", str(node.op), ("the matrix must be square",)))
    for right in node.inputs[1:]:
        about = "the right-hand side must have a row for each of the matrix"
        rows = table.same(rows, lowering.dims_of(right)[0], Check("rows", str(node.op), (about,)))
    return rows


def _copied(lowering: Lowering, value: Value, stage: int) -> Value:
    """Return a copy of `value` that nothing else reads."""
    result = lowering.table.buffer(value.dtype, value.dims, stage)
    lowering.copy(value, result)
    return result


def _right_side(lowering: Lowering, node: Apply, matrix: Value, rows: int) -> Value:
    """Return a copy of the right-hand side, column after column, declared as the memory of the solution."""
    table, output = lowering.table, node.outputs[0]
    value = lowering.value_of(node.inputs[1])
    if len(value.dims) == 1:
        result = lowering.allocate(output, [value, matrix], lowering.dims[output])
        lowering.copy(value, result)
        return result
    strides = value.strides or table.strides(value.dims)
    columns = Value(value.pointer, value.dtype, value.dims[::-1], value.stage, strides[::-1], value.buffer)
    stage = max(matrix.stage, value.stage, table.stage(lowering.dims[output]))
    result = _copied(lowering, columns, stage)
    view = (table.constant(1), rows)
    lowering.values[output] = Value(
        result.pointer, result.dtype, lowering.dims[output], result.stage, view, result.buffer
    )
    return result


def _lower_solver(lowering: Lowering, node: Apply) -> None:
    table, output, op = lowering.table, node.outputs[0], node.op
    rows = _rows(lowering, node)
    lowering.dims[output] = (rows, *lowering.dims_of(node.inputs[1])[1:])
    if not lowering.is_needed(output):
        return
    matrix, transposed = matrix_as_stored(lowering, lowering.value_of(node.inputs[0]), dtype(node.inputs[0]))
    right = _right_side(lowering, node, matrix, rows)
    if isinstance(op, SolveTriangular):
        kernel = solve_triangular(matrix.dtype, op.lower, op.unit_diagonal, transposed)
        _call(lowering, node, kernel, [matrix], [right], rows)
    elif isinstance(op, CholeskySolve):
        for is_turned in (not op.lower, op.lower):
            kernel = solve_triangular(matrix.dtype, op.lower != is_turned, False, transposed != is_turned)
            _call(lowering, node, kernel, [matrix], [right], rows)
    elif cast(Solve, op).assume_a == "pos":
        kernel = solve_positive(matrix.dtype, cast(Solve, op).lower != transposed)
        _call(lowering, node, kernel, [], [right, _copied(lowering, matrix, right.stage)], rows)
    else:
        pivots = table.buffer("int64", (rows,), right.stage)
        kernel = solve_general(matrix.dtype, transposed)
        _call(lowering, node, kernel, [], [right, _copied(lowering, matrix, right.stage), pivots], rows)


def _lower_cholesky(lowering: Lowering, node: Apply) -> None:
    output, op = node.outputs[0], cast(Cholesky, node.op)
    rows = _rows(lowering, node)
    lowering.dims[output] = (rows, rows)
    if not lowering.is_needed(output):
        return
    matrix = lowering.value_of(node.inputs[0])
    result = lowering.allocate(output, [matrix], lowering.dims[output])
    lowering.copy(matrix, result)
    kernel = cholesky(dtype(output), op.lower, op.on_error == "raise")
    _call(lowering, node, kernel, [], [result], rows)


def _lower_slogdet(lowering: Lowering, node: Apply) -> None:
    rows = _rows(lowering, node)
    lowering.dims.update(dict.fromkeys(node.outputs, ()))
    if not any(map(lowering.is_needed, node.outputs)):
        return
    # A transposed matrix has the same determinant.
    matrix, _ = matrix_as_stored(lowering, lowering.value_of(node.inputs[0]), dtype(node.inputs[0]))
    results = [lowering.allocate(output, [matrix], (), (rows,)) for output in node.outputs]
    stage = results[0].stage
    copy = _copied(lowering, matrix, stage)
    pivots = lowering.table.buffer("int64", (rows,), stage)
    _call(lowering, node, slogdet(matrix.dtype), [], [*results, copy, pivots], rows)


def _call(
    lowering: Lowering, node: Apply, kernel: Kernel, reads: list[Value], writes: list[Value], rows: int
) -> None:
    right = node.inputs[1:]
    columns = lowering.table.product(lowering.dims_of(right[0])[1:]) if right else rows
    named = {"rows": rows, "columns": columns, "details": ADDRESS_OF_DETAILS}
    lowering.table.call(kernel, reads, writes, str(node.op), named=named)


RULES: Rules = {
    Dot: OpRule(_lower_dot),
    Solve: OpRule(_lower_solver),
    SolveTriangular: OpRule(_lower_solver),
    CholeskySolve: OpRule(_lower_solver),
    Cholesky: OpRule(_lower_cholesky),
    SLogDet: OpRule(_lower_slogdet),
}
