"""Sums, products and quotients with zeros and of equals as PyTensor has them, for those who ask by name.

`including("local_incsubtensor_of_zeros")` leaves out an addition of zeros to a part, `local_mul_zero` and
`local_0_dot_x` a product with zeros, `local_zero_div` a quotient of zero; `local_div_of_equals` makes 1 of
x / x; `local_add_of_sparse_write` adds to a part what was written into zeros of the same shape. Functions
are not rewritten so: adding 0.0 makes 0.0 of -0.0, and 0.0 times infinity, 0 / 0 and infinity / infinity
are NaN. All trust lengths that nothing compares then.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.canonical_products import in_shape_of
from engine.rewriting.passes.written_parts import number_in
from engine.rewriting.replacing import typed_alike
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedIncSubtensor, Dot, IncSubtensor
from engine.tensor.conversion import number
from engine.tensor.creation import zeros
from engine.tensor.elemwise import elemwise
from engine.tensor.matching import dtype_of, is_alike, tensor_type_of
from engine.tensor.shape import folded_shape_i


@node_rewriter([IncSubtensor, AdvancedIncSubtensor])
def local_incsubtensor_of_zeros(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[i].inc(0) -> x."""
    op, (x, increment) = node.op, node.inputs[:2]
    assert isinstance(op, IncSubtensor | AdvancedIncSubtensor)
    return [x] if not op.set_instead_of_inc and number_in(increment) == 0 else None


@node_rewriter([elemwise(scalar.add)])
def local_add_of_sparse_write(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x + zeros[i].inc(y) -> x[i].inc(y), if both terms are known to have the shape of the sum."""
    due = tensor_type_of(node.outputs[0])
    if None in due.shape:
        return None
    for x, term in (node.inputs, node.inputs[::-1]):
        if tensor_type_of(x) != due or tensor_type_of(term) != due or not _is_sparse_write(fgraph, term):
            continue
        assert term.owner is not None
        _, *rest = term.owner.inputs
        return typed_alike(node, term.owner.op.make_node(x, *rest).outputs[0])
    return None


def _is_sparse_write(fgraph: FunctionGraph, term: Variable) -> bool:
    """Return True if `term` is zeros with an increment of a part, and nothing else reads it."""
    write = term.owner
    if write is None or not isinstance(write.op, IncSubtensor | AdvancedIncSubtensor):
        return False
    is_read_once = len(fgraph.clients[term]) == 1
    return is_read_once and not write.op.set_instead_of_inc and number_in(write.inputs[0]) == 0


@node_rewriter([elemwise(scalar.mul)])
def local_mul_zero(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """0 * x -> 0, in the shape that the product has."""
    left_out = [v for v in node.inputs if number_in(v) == 0]
    if not left_out:
        return None
    return _filled(node, 0, [*(v for v in node.inputs if v not in left_out), *left_out])


@node_rewriter([elemwise(scalar.true_div)])
def local_zero_div(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """0 / x -> 0, in the shape that the quotient has."""
    above, below = node.inputs
    return _filled(node, 0, [below, above]) if number_in(above) == 0 else None


@node_rewriter([elemwise(scalar.true_div)])
def local_div_of_equals(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x / x -> 1, in the shape of x."""
    above, below = node.inputs
    return _filled(node, 1, [above]) if is_alike(above, below) else None


def _filled(node: Apply, value: int, left_out: Sequence[Variable]) -> list[Variable] | None:
    """Return the output of `node` as a number in the shape of all that is `left_out`."""
    output = node.outputs[0]
    found = number(value, dtype_of(output), tensor_type_of(output).ndim)
    return typed_alike(node, in_shape_of(found, left_out))


@node_rewriter([Dot])
def local_0_dot_x(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(0, x) -> 0; dot(x, 0) -> 0."""
    x, y = node.inputs
    if number_in(x) != 0 and number_in(y) != 0:
        return None
    rows = [folded_shape_i(x, axis) for axis in range(tensor_type_of(x).ndim - 1)]
    columns = [folded_shape_i(y, axis) for axis in range(1, tensor_type_of(y).ndim)]
    return typed_alike(node, zeros((*rows, *columns), dtype_of(node.outputs[0])))


NAMED_ZEROS = (
    local_add_of_sparse_write,
    local_incsubtensor_of_zeros,
    local_mul_zero,
    local_zero_div,
    local_div_of_equals,
    local_0_dot_x,
)
