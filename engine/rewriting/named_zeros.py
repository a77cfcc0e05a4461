"""Sums and products with zeros, in the form that PyTensor gives them, for those who ask by name.

`including("local_incsubtensor_of_zeros")` leaves out an addition of zeros to a part, and `local_0_dot_x` a
product with zeros. Functions are not rewritten so: adding 0.0 makes 0.0 of -0.0, and 0.0 times infinity is
NaN. Both trust lengths that nothing compares then.
"""

from __future__ import annotations

from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.passes.written_parts import number_in
from engine.rewriting.replacing import typed_alike
from engine.rewriting.rewriters import node_rewriter
from engine.tensor import AdvancedIncSubtensor, Dot, IncSubtensor
from engine.tensor.creation import zeros
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.shape import folded_shape_i


@node_rewriter([IncSubtensor, AdvancedIncSubtensor])
def local_incsubtensor_of_zeros(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """x[i].inc(0) -> x."""
    op, (x, increment) = node.op, node.inputs[:2]
    assert isinstance(op, IncSubtensor | AdvancedIncSubtensor)
    return [x] if not op.set_instead_of_inc and number_in(increment) == 0 else None


@node_rewriter([Dot])
def local_0_dot_x(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(0, x) -> 0; dot(x, 0) -> 0."""
    x, y = node.inputs
    if number_in(x) != 0 and number_in(y) != 0:
        return None
    rows = [folded_shape_i(x, axis) for axis in range(tensor_type_of(x).ndim - 1)]
    columns = [folded_shape_i(y, axis) for axis in range(1, tensor_type_of(y).ndim)]
    return typed_alike(node, zeros((*rows, *columns), dtype_of(node.outputs[0])))


NAMED_ZEROS = (local_incsubtensor_of_zeros, local_0_dot_x)
