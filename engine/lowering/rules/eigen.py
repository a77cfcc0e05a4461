"""Lowering of the eigenvalues and eigenvectors of one symmetric matrix."""

from __future__ import annotations

from typing import cast

from engine.graph.apply import Apply
from engine.lowering.kernels.eigen import symmetric_eigen
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.steps import Check, Value
from engine.lowering.table import Table
from engine.runtime.registers import ADDRESS_OF_DETAILS
from engine.tensor.linalg.eigen import Eigh


def _lower_eigh(lowering: Lowering, node: Apply) -> None:
    table, op = lowering.table, cast(Eigh, node.op)
    values, vectors = node.outputs
    rows, columns = lowering.dims_of(node.inputs[0])
    rows = table.same(rows, columns, Check("rows", str(op), ("the matrix must be square",)))
    lowering.dims[values], lowering.dims[vectors] = (rows,), (rows, rows)
    if not any(map(lowering.is_needed, node.outputs)):
        return
    matrix = lowering.value_of(node.inputs[0])
    is_evr = op.driver == "evr"
    size = table.product((rows, rows))
    # What LAPACK asks for. Another number of floats is another size of blocks, and vectors of another sign.
    if is_evr:
        floats, integers, room = (_sum(table, rows, count) for count in (33, 10, 12))
    else:
        floats = table.compute("ADDSAT", _sum(table, rows, 6, 1), _sum(table, size, 2))
        integers = room = _sum(table, rows, 5, 3)
    found = lowering.allocate(values, [matrix], (rows,), (size, floats, room))
    stage, of = found.stage, dtype(values)
    by_row = table.buffer(of, (rows, rows), stage)
    scratch = [table.buffer(of, (floats,), stage), table.buffer("int64", (room,), stage)]
    overwritten = table.buffer(of, (rows, rows), stage) if is_evr else by_row
    # Column after column, as SciPy gives it: of the other triangle LAPACK makes vectors of another sign.
    strides = (matrix.strides or table.strides(matrix.dims))[::-1]
    turned = Value(matrix.pointer, of, (rows, rows), matrix.stage, strides, matrix.buffer)
    lowering.copy(turned, overwritten)
    named = {"rows": rows, "floats": floats, "integers": integers, "details": ADDRESS_OF_DETAILS}
    writes = [found, by_row, *scratch, *([overwritten] if is_evr else [])]
    table.call(symmetric_eigen(of, op.driver, op.lower), [], writes, str(op), named=named)
    columns_first = (table.constant(1), rows)
    lowering.values[vectors] = Value(
        by_row.pointer, of, (rows, rows), by_row.stage, columns_first, by_row.buffer
    )


def _sum(table: Table, register: int, factor: int, more: int = 0) -> int:
    """Return the register of `factor` times a length, and some more."""
    product = table.compute("MULSAT", register, table.constant(factor))
    return table.compute("ADDSAT", product, table.constant(more))


def is_of_pair(node: Apply) -> bool:
    """Return True for eigenvalues of a pair of matrices, which Python computes."""
    return isinstance(node.op, Eigh) and node.op.generalized


RULES: Rules = {Eigh: OpRule(_lower_eigh)}
