"""Products of tensors over an axis of length 1, which are elementwise products, in a batch too."""

from __future__ import annotations

from typing import Any

from engine import scalar
from engine.graph import Apply, FunctionGraph, Variable
from engine.rewriting.elementwise_pattern import apply_scalar
from engine.rewriting.replacing import typed
from engine.rewriting.rewriters import node_rewriter
from engine.scalar.promotion import FLOATS
from engine.tensor.blockwise import Blockwise
from engine.tensor.checks import specify_shape
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.matching import dtype_of, tensor_type_of
from engine.tensor.products import Dot


@node_rewriter([Dot, Blockwise])
def local_dot_to_mul(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(x, y) -> x * y, of floats, if the axes that are multiplied have length 1.

    A length that no type tells is compared with 1 when it is computed. A column times a row stays: see
    `local_outer_to_mul`.
    """
    return None if _is_outer(node) else _elementwise(node)


@node_rewriter([Dot])
def local_outer_to_mul(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """dot(x, y) -> x * y of a column and a row of floats, for a loop that reads it.

    It is no canonical form: a library that looks for products of matrices finds this one among them.
    """
    return _elementwise(node) if _is_outer(node) else None


def _is_outer(node: Apply) -> bool:
    """Return True for a product of two matrices, of which one has one column and the other has one row."""
    if not isinstance(node.op, Dot):
        return False
    x, y = (tensor_type_of(v).shape for v in node.inputs)
    return x[1:] == (1,) and len(y) == 2 and y[0] == 1


def _elementwise(node: Apply) -> list[Variable] | None:
    batch_ndim = 0 if isinstance(node.op, Dot) else _batch_ndim_of_dot(node)
    output = node.outputs[0]
    if batch_ndim is None or dtype_of(output) not in FLOATS:
        return None
    x, y = node.inputs
    x_is_matrix, y_is_matrix = (tensor_type_of(v).ndim - batch_ndim == 2 for v in (x, y))
    last, first = batch_ndim + x_is_matrix, batch_ndim
    if 1 not in (tensor_type_of(x).shape[last], tensor_type_of(y).shape[first]):
        return None
    # The axis of length 1 stays where it stands for the rows or columns of the other matrix.
    left = _of_length_1(x, last, y_is_matrix)
    right = _of_length_1(y, first, x_is_matrix)
    dtype = dtype_of(output)
    result = apply_scalar(scalar.mul, cast(left, dtype), cast(right, dtype))
    return typed(node, result)


def sums_alike(x: Variable, y: Variable) -> bool:
    """Return False for matrices `x` and `y` of which one alone is known to have length 1 along the axis that
    their product sums over: a product of elements would repeat it, and not compare the lengths.
    """
    return (tensor_type_of(x).shape[-1] == 1) == (tensor_type_of(y).shape[-2] == 1)


def _batch_ndim_of_dot(node: Apply) -> int | None:
    """Return the number of batch axes of a product of batches; None for another Blockwise."""
    assert isinstance(node.op, Blockwise)
    return node.op.batch_ndim(node) if isinstance(node.op.core_op, Dot) else None


def _of_length_1(x: Any, axis: int, keeps_it: bool) -> Any:
    """Return `x`, whose length along `axis` is known, or checked, to be 1; without this axis if it is not to
    be kept.
    """
    shape = tensor_type_of(x).shape
    if shape[axis] != 1:
        x = specify_shape(x, [1 if a == axis else None for a in range(len(shape))])
    return x if keeps_it else dimshuffle(x, [a for a in range(len(shape)) if a != axis])
