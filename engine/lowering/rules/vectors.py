"""Lowering of what a kernel computes of two vectors: places in a sorted one, and convolutions."""

from __future__ import annotations

from typing import cast

from engine.graph.apply import Apply
from engine.lowering.kernels.vectors import convolve, search_sorted
from engine.lowering.lower import Lowering, dtype
from engine.lowering.op_rule import OpRule, Rules
from engine.lowering.steps import Check
from engine.tensor.searching import SearchsortedOp
from engine.tensor.signal.conv import Convolve1d


def _lower_search_sorted(lowering: Lowering, node: Apply) -> None:
    table, output = lowering.table, node.outputs[0]
    lowering.dims[output] = lowering.dims_of(node.inputs[1])
    if not lowering.is_needed(output):
        return
    x, keys = (lowering.contiguous(lowering.value_of(variable)) for variable in node.inputs)
    extents = (x.dims[0], table.product(keys.dims))
    result = lowering.allocate(output, [x, keys], lowering.dims[output], extents)
    kernel = search_sorted(x.dtype, cast(SearchsortedOp, node.op).side)
    table.call(kernel, [x, keys], [result], str(node.op), extents)


def _lower_convolve(lowering: Lowering, node: Apply) -> None:
    """Lower a convolution of vectors: the part where they overlap completely is a view of the whole."""
    table, output = lowering.table, node.outputs[0]
    one, full = table.constant(1), lowering.scalar_of(node.inputs[2])
    n, m = (lowering.dims_of(variable)[0] for variable in node.inputs[:2])
    shorter = table.compute("MIN", n, m)
    about = Check("rows", str(node.op), ("one of the vectors has no elements",))
    table.same(table.compute("MIN", shorter, one), one, about)
    size = table.compute("SUB", table.compute("ADD", n, m), one)
    cut = table.compute("SUB", one, full)
    start = table.compute("MUL", cut, table.compute("SUB", shorter, one))
    length = table.compute("SUB", size, table.compute("ADD", start, start))
    lowering.dims[output] = (length,)
    if not lowering.is_needed(output):
        return
    vectors = [lowering.contiguous(lowering.value_of(variable)) for variable in node.inputs[:2]]
    stage = max(table.stage((size, start, length)), *(vector.stage for vector in vectors))
    stage = max(stage, lowering.first_stage(output))
    whole = table.buffer(dtype(output), (size,), stage)
    table.call(convolve(whole.dtype), vectors, [whole], str(node.op), (n, m, size))
    lowering.values[output] = table.view(whole, start, (length,), None)


def has_rows(node: Apply) -> bool:
    """Return True for a convolution of more than two vectors, which Python computes."""
    return type(node.op) is Convolve1d and node.outputs[0].type.ndim > 1


RULES: Rules = {
    SearchsortedOp: OpRule(_lower_search_sorted),
    Convolve1d: OpRule(_lower_convolve, lambda node: node.inputs[:2], lambda node: node.inputs[2:]),
}
