"""Matrix products outside a loop, instead of one product (or outer product) per step.

A product of a row with a non-sequence is computed for all rows at once: before the loop if the row is from
a sequence, after it if no step uses the product. A sum over all steps of products of two rows, as in
gradients of matrices, becomes one product of the rows of all steps. The rewrites push_out_seq,
push_out_scan_output and push_out_dot1 of Theano are the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine.tensor as pt
from engine import scalar
from engine.graph import Apply, Variable, ancestors, io_toposort
from engine.inner.scan_building import State
from engine.rewriting.opened_scans import NewOutputs, OpenedScan
from engine.rewriting.passes.shapes import has_length
from engine.tensor import DimShuffle, Dot
from engine.tensor.matching import operands_of, tensor_type_of
from engine.tensor.shape import folded_shape_i

Times = Callable[[Any], Any]
"""A function from all rows of the changing factor to all rows of a product."""


def push_out_products(scan: OpenedScan) -> None:
    """Move all such products of a Scan out of its loop."""
    if scan.loop.stop is None:
        steps = scan.loop.n_steps
        scan.used_up = {row for sequence, row in scan.loop.sequences if has_length(sequence, steps)}
        _products_of_sequences(scan)
        _sums_of_products(scan)
    _mapped_products(scan)


def _products_of_sequences(scan: OpenedScan) -> None:
    """Make the products of a sequence's rows with a non-sequence a new sequence."""
    loop = scan.loop
    memo: dict[Variable, Variable] = {}
    for node in io_toposort(loop.varying, loop.outputs):
        found = _times(scan, node)
        sequence: Any = found and next((s for s, row in loop.sequences if row is found[0]), None)
        if found and sequence is not None:
            product = found[1](sequence if found[0] in scan.used_up else sequence[: loop.n_steps])
            output = node.outputs[0]
            row = output.type.make_variable()
            if output.type.is_super(_row_type(product)):
                memo[output] = row
                loop.sequences.append((product, row))
    if memo:
        loop.substitute(memo)


def _mapped_products(scan: OpenedScan) -> None:
    """Return the rows of a factor, instead of those of a product that no step uses."""
    loop = scan.loop
    for output, inner in list(zip(scan.mapped, loop.mapped, strict=True)):
        if output is None or inner.owner is None or _number_of_uses(scan, inner) != 1:
            continue
        found = _times(scan, inner.owner)
        is_as_large = found is not None and tensor_type_of(found[0]).ndim == tensor_type_of(inner).ndim
        if found is not None and (is_as_large or scan.has_trace(found[0])):
            factor, times = found
            place = next(k for k, variable in enumerate(scan.mapped) if variable is output)
            del scan.mapped[place], loop.mapped[place]
            scan.add_trace(factor)
            scan.derived[output] = _applied(times, factor)


def _applied(times: Times, factor: Variable) -> Callable[[NewOutputs], Variable]:
    return lambda outputs: times(outputs.trace(factor))


def _times(scan: OpenedScan, node: Apply) -> tuple[Variable, Times] | None:
    """Return the changing factor of a product, and the product of all its rows; None for other nodes."""
    if not isinstance(node.op, Dot):
        return None
    left, right = node.inputs
    matrix = scan.outside(right)
    if matrix is not None:
        return left, lambda rows: _rows_times(rows, matrix)
    matrix = scan.outside(left)
    if matrix is None or tensor_type_of(right).ndim != 1:
        return None
    return right, lambda rows: pt.dot(rows, matrix.T)  # type: ignore[attr-defined]


def _rows_times(rows: Any, matrix: Any) -> Any:
    """Return the product of each row, a vector or a matrix, with a vector or a matrix."""
    if rows.type.ndim == 2:
        return pt.dot(rows, matrix)
    lengths = [folded_shape_i(rows, 0), folded_shape_i(rows, 1)]
    return pt.reshape(pt.dot(_flat(rows), matrix), [*lengths, *list(_lengths(matrix))[1:]])


def _flat(rows: Any) -> Any:
    """Return a stack of matrices as one matrix."""
    lengths = list(_lengths(rows))
    return pt.reshape(rows, [pt.mul(lengths[0], lengths[1]), lengths[2]])


def _lengths(x: Any) -> list[Any]:
    return [folded_shape_i(x, axis) for axis in range(x.type.ndim)]


def _row_type(trace: Any) -> Any:
    return trace.type.clone(shape=trace.type.shape[1:])


def _number_of_uses(scan: OpenedScan, variable: Variable) -> int:
    """Return the number of uses of a variable in steps: as an input of nodes, and as a result."""
    nodes = io_toposort(scan.loop.varying, scan.loop.outputs)
    every = [*(v for node in nodes for v in node.inputs), *scan.loop.outputs]
    return sum(found is variable for found in every)


def _sums_of_products(scan: OpenedScan) -> None:
    """Drop each state that sums products and of which only the last row is read."""
    for state in list(scan.loop.states):
        factors = _summed(scan, state)
        reads = scan.reads.get(state)
        if factors is None or reads is None or state.taps != (-1,):
            continue
        place = scan.loop.states.index(state)
        del scan.loop.states[place], scan.buffers[place], scan.reads[state]
        for pair in factors:
            for factor in pair:
                scan.add_trace(factor)
        for variable, read in reads:
            scan.derived[variable] = _read_of_sum(state, factors, read)


def _read_of_sum(
    state: State, factors: list[tuple[Variable, Variable]], read: Callable[[Variable], Variable]
) -> Callable[[NewOutputs], Variable]:
    def derived(outputs: NewOutputs) -> Variable:
        total = state.initial
        for left, right in factors:
            product = _sum_of_products(outputs.trace(left), outputs.trace(right))
            total = pt.add(total, pt.expand_dims(product, 0))
        return read(total)

    return derived


def _sum_of_products(left: Any, right: Any) -> Any:
    """Return the sum of row products.

    Rows that are vectors give outer products; of rows that are matrices, the first is transposed.
    """
    if left.type.ndim == 3:
        left, right = _flat(left), _flat(right)
    return pt.dot(left.T, right)


def _summed(scan: OpenedScan, state: State) -> list[tuple[Variable, Variable]] | None:
    """Return the factors of the products that a state sums; None if it does anything else."""
    (row, *others), terms = state.rows, _terms(state.new)
    if others or sum(term is row for term in terms) != 1:
        return None
    products = [_factors(term) for term in terms if term is not row]
    outputs = scan.loop.outputs
    outputs.remove(state.new)  # only once: another state may have the same value
    if None in products or row in ancestors(outputs, scan.loop.varying):
        return None
    found = [pair for pair in products if pair is not None]
    return None if any(row in ancestors(pair) for pair in found) else found


def _terms(variable: Variable) -> list[Variable]:
    """Return the terms of a sum."""
    operands = operands_of(variable, scalar.add)
    alike = operands is not None and all(_kind(v) == _kind(variable) for v in operands)
    return [term for v in operands or () for term in _terms(v)] if alike else [variable]


def _kind(variable: Variable) -> tuple[str, tuple[bool, ...]]:
    type = tensor_type_of(variable)
    return type.dtype, type.broadcastable


def _factors(term: Variable) -> tuple[Variable, Variable] | None:
    """Return the factors of an outer product, or of a matrix product with the first factor transposed."""
    node = term.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.new_order == (1, 0):
        swapped = _factors(node.inputs[0])
        return swapped and swapped[::-1]
    if node is not None and isinstance(node.op, Dot):
        left, right = node.inputs
        if tensor_type_of(left).ndim == tensor_type_of(right).ndim == 2:
            first = _reordered(left, (1, 0))
            return None if first is None else (first, right)
        return None
    operands = operands_of(term, scalar.mul)
    if operands is None:
        return None
    columns, rows = ([_reordered(v, order) for v in operands] for order in ((0, "x"), ("x", 0)))
    for one, other in ((0, 1), (1, 0)):
        column, row = columns[one], rows[other]
        if column is not None and row is not None and column.type.dtype == row.type.dtype:
            return column, row
    return None


def _reordered(variable: Variable, order: tuple[int | str, ...]) -> Variable | None:
    """Return x if `variable` is x with its axes in `order`, else None."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle) or node.op.new_order != order:
        return None
    return node.inputs[0]
