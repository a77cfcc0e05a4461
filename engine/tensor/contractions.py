"""Products of tensors over chosen axes, as products of matrices and sums of products, and cross products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.tensor.axes import axes_of, axis_of, numbers_of
from engine.tensor.checks import Assert, specify_shape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.joining import stack
from engine.tensor.math import eq, mul, sub
from engine.tensor.products import matmul, matrix_product
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import expand_dims, reshape, shape_i, size_over, squeeze, transpose

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def dot(a: Any, b: Any) -> TensorVariable:
    """Return the sums of products over the last axis of `a` and the one before the last of `b`, as numpy.

    A `b` of one dimension has one axis to sum over. If one has no dimensions, the product is elementwise.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if min(a.type.ndim, b.type.ndim) == 0 or max(a.type.ndim, b.type.ndim) <= 2:
        return matrix_product(a, b)
    return tensordot(a, b, [[a.type.ndim - 1], [max(0, b.type.ndim - 2)]])


dense_dot = dot


def tensordot(a: Any, b: Any, axes: Any = 2) -> TensorVariable:
    """Return the products of `a` and `b` summed over `axes`: the number of the last axes of `a` and the first
    of `b`, or the axes of `a` and those of `b`.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    left, right = _axes_of_both(axes, a.type.ndim, b.type.ndim)
    for first, second in zip(left, right, strict=True):
        lengths = a.type.shape[first], b.type.shape[second]
        if None not in lengths and lengths[0] != lengths[1]:
            raise ValueError(
                f"Multiplying tensors: axis {first} of {a.type} and axis {second} of {b.type} "
                "differ in length: Input arrays have inconsistent type shape"
            )
    if not left:
        return mul(dimshuffle(a, [*range(a.type.ndim), *["x"] * b.type.ndim]), b)
    if len(left) == 1 and a.type.ndim <= 2 and b.type.ndim <= 2:
        return matrix_product(
            a if left[0] == a.type.ndim - 1 else transpose(a), transpose(b) if right[0] else b
        )
    rows = [axis for axis in range(a.type.ndim) if axis not in left]
    columns = [axis for axis in range(b.type.ndim) if axis not in right]
    b = _with_equal_lengths(a, b, left, right)
    product = matrix_product(_as_matrix(a, rows, left), _as_matrix(b, right, columns))
    return reshape(product, [*(shape_i(a, axis) for axis in rows), *(shape_i(b, axis) for axis in columns)])


def _with_equal_lengths(a: Any, b: Any, left: Sequence[int], right: Sequence[int]) -> Any:
    """Return `b`, checked to have the lengths of `a` along the axes of the sum.

    The product compares one length; of several axes it compares the product of theirs.
    """
    pairs = zip(left, right, strict=True)
    unknown = [(i, j) for i, j in pairs if a.type.shape[i] is None or b.type.shape[j] is None]
    if len(left) < 2 or not unknown:
        return b
    return _EQUAL_LENGTHS(b, *[eq(shape_i(a, i), shape_i(b, j)) for i, j in unknown])


_EQUAL_LENGTHS = Assert("Input array shape along reduced axes of tensordot are not equal")


def _axes_of_both(axes: Any, left: int, right: int) -> tuple[Sequence[int], Sequence[int]]:
    doing = "Multiplying tensors"
    if isinstance(axes, int):
        if not 0 <= axes <= min(left, right):
            raise ValueError(f"{doing} of {left} and {right} dimensions: they have not {axes} axes in common")
        return range(left - axes, left), range(axes)
    first, second = axes
    found = axes_of(doing, numbers_of(doing, first), left), axes_of(doing, numbers_of(doing, second), right)
    if len(found[0]) != len(found[1]):
        raise ValueError(f"{doing}: the axes {first!r} and {second!r} are not as many")
    return found


def _as_matrix(x: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
    moved = dimshuffle(x, [*rows, *columns])
    return reshape(moved, (size_over(x, rows), size_over(x, columns)))


def vecdot(x1: Any, x2: Any, dtype: Any = None) -> TensorVariable:
    """Return the products of `x1` and `x2`, which are not conjugated, summed over their last axis in their
    dtype.
    """
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    if x1.type.ndim == x2.type.ndim == 1:
        products = mul(x1, x2)
        return _as_dtype(sum_over(products, -1, dtype=products.type.dtype), dtype)
    return squeeze(matmul(expand_dims(x1, -2), expand_dims(x2, -1), dtype), (-2, -1))


def matvec(x1: Any, x2: Any, dtype: Any = None) -> TensorVariable:
    """Return the products of the matrices in the last two axes of `x1` with the vectors in `x2`'s last."""
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    if x1.type.ndim == 2 and x2.type.ndim == 1:
        return _as_dtype(matrix_product(x1, x2), dtype)
    return squeeze(matmul(x1, expand_dims(x2, -1), dtype), -1)


def vecmat(x1: Any, x2: Any, dtype: Any = None) -> TensorVariable:
    """Return the products of the vectors in the last axis of `x1` with the matrices in `x2`'s last two."""
    x1, x2 = as_tensor_variable(x1), as_tensor_variable(x2)
    if x1.type.ndim == 1 and x2.type.ndim == 2:
        return _as_dtype(matrix_product(x1, x2), dtype)
    return squeeze(matmul(expand_dims(x1, -2), x2, dtype), -2)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> TensorVariable:
    """Return the cross products of the vectors of 3 elements along `axisa` of `a` and `axisb` of `b`, along
    `axisc` of the result, or along `axis` of all three. Raises ValueError for other lengths.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    (a0, a1, a2), (b0, b1, b2) = _elements(a, axisa), _elements(b, axisb)
    found = [sub(mul(a1, b2), mul(a2, b1)), sub(mul(a2, b0), mul(a0, b2)), sub(mul(a0, b1), mul(a1, b0))]
    return stack(found, axisc)


def _elements(x: Any, axis: int) -> list[Any]:
    x = as_tensor_variable(x)
    place = axis_of(f"Taking a cross product of {x} of type {x.type}", axis, x.type.ndim)
    if x.type.shape[place] not in (3, None):
        raise ValueError(f"Taking a cross product of {x} of type {x.type}: axis {place} must have length 3")
    if x.type.shape[place] is None:
        x = specify_shape(x, [3 if each == place else None for each in range(x.type.ndim)])
    return [x[(*(slice(None),) * place, each)] for each in range(3)]


def _as_dtype(x: Any, dtype: Any) -> Any:
    return x if dtype is None else cast(x, dtype)
