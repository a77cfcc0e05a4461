"""Products and powers of matrices, and norms."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from engine.scalar.promotion import COMPLEX, FLOATS, common
from engine.tensor.axes import axes_of, normalize_axis, numbers_of
from engine.tensor.blockwise import batched
from engine.tensor.conversion import as_tensor_variable, pad
from engine.tensor.creation import alloc, zeros
from engine.tensor.diagonals import eye
from engine.tensor.elemwise import as_gradient, cast, dimshuffle
from engine.tensor.linalg.equations import inv
from engine.tensor.linalg.matrix_op import MatrixOp
from engine.tensor.linalg.singular_values import svd
from engine.tensor.math import abs as absolute
from engine.tensor.math import mul, neq, pow, sqr, sqrt
from engine.tensor.products import matmul
from engine.tensor.rearranging import moveaxis
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import min as smallest
from engine.tensor.reduction import sum as sum_over
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import expand_dims, lengths_along, reshape, shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

__all__ = [
    "block_diag",
    "kron",
    "matrix_dot",
    "matrix_norm",
    "matrix_power",
    "norm",
    "vector_norm",
]


class KroneckerProduct(ReplacedOp):
    """The second tensor times each element of the first, in blocks. Both have as many axes."""

    __props__ = ()

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        a, b = inputs
        if a.type.ndim != b.type.ndim:
            raise TypeError(f"Applying {self} to {a.type} and {b.type}: both must have as many dimensions")
        lengths = zip(lengths_along(a), lengths_along(b), strict=True)
        product = mul(_spread(a, 0), _spread(b, 1))
        return [reshape(product, [first * second for first, second in lengths])]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        (a, b), gradient = inputs, cotangents[0]
        if gradient is None:
            return [None, None]
        ndim = a.type.ndim
        pairs = zip(lengths_along(a), lengths_along(b), strict=True)
        apart = reshape(gradient, [length for pair in pairs for length in pair])
        of_a = sum_over(mul(apart, _spread(b, 1)), range(1, 2 * ndim, 2))
        of_b = sum_over(mul(apart, _spread(a, 0)), range(0, 2 * ndim, 2))
        return [as_gradient(of_a, a.type.dtype), as_gradient(of_b, b.type.dtype)]


def _spread(x: Any, place: int) -> Any:
    """Return `x` with an axis of length 1 beside each of its axes, which come first in each pair if `place`
    is 0.
    """
    pairs = ([axis, "x"][:: -1 if place else 1] for axis in range(x.type.ndim))
    return dimshuffle(x, [each for pair in pairs for each in pair])


def kron(a: Any, b: Any) -> TensorVariable:
    """Return the Kronecker product of two tensors: `b` times each element of `a`."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ndim = max(a.type.ndim, b.type.ndim)
    return KroneckerProduct()(pad(a, ndim), pad(b, ndim))


def matrix_dot(*args: Any) -> TensorVariable:
    """Return the product of matrices, from left to right. Leading axes are a batch."""
    return reduce(matmul, args)


def matrix_power(M: Any, n: int) -> TensorVariable:
    """Return the square matrix `M` multiplied with itself `n` times; a negative `n` takes its inverse.

    Leading axes are a batch.
    """
    M = as_tensor_variable(M)
    if n < 0:
        M, n = inv(M), -n
    found = None
    while n:
        if n % 2:
            found = M if found is None else matmul(found, M)
        n //= 2
        M = matmul(M, M) if n else M
    if found is not None:
        return found
    return alloc(eye(shape_i(M, -2), shape_i(M, -1), 0, M.type.dtype), *lengths_along(M))


class BlockDiagonal(ReplacedOp, MatrixOp):
    """The matrix with `n_inputs` matrices along its diagonal, and zeros elsewhere."""

    __props__ = ("n_inputs",)
    differentiates_complex = True

    def __init__(self, n_inputs: int) -> None:
        if n_inputs < 1:
            raise ValueError("n_inputs must be greater than 0")
        self.n_inputs = n_inputs
        arguments = ",".join(f"(m{position},n{position})" for position in range(n_inputs))
        self.gufunc_signature = f"{arguments}->(m,n)"

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        lengths = [lengths_along(block) for block in inputs]
        dtype = common(tuple([block.type.dtype for block in inputs]))
        whole = zeros([reduce(operator.add, along) for along in zip(*lengths, strict=True)], dtype)
        for place, block in zip(_blocks(lengths), inputs, strict=True):
            whole = whole[place].set(cast(block, dtype))
        return [whole]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        gradient = cotangents[0]
        if gradient is None:
            return [None] * len(inputs)
        places = _blocks([lengths_along(block) for block in inputs])
        return [as_gradient(gradient[p], b.type.dtype) for p, b in zip(places, inputs, strict=True)]


def _blocks(lengths: Sequence[Sequence[Any]]) -> Iterator[tuple[slice, slice]]:
    """Yield the place of each block of these `lengths`."""
    row: Any = 0
    column: Any = 0
    for rows, columns in lengths:
        below, right = row + rows, column + columns
        yield slice(row, below), slice(column, right)
        row, column = below, right


def block_diag(*matrices: Any) -> TensorVariable:
    """Return the matrix with `matrices` along its diagonal, and zeros elsewhere. Leading axes are a batch.

    Raises TypeError for none, and for tensors of fewer than 2 dimensions.
    """
    blocks = [as_tensor_variable(matrix) for matrix in matrices]
    if not blocks or any(block.type.ndim < 2 for block in blocks):
        raise TypeError(
            f"Making a block diagonal matrix of {matrices}: All inputs must have dimension 2, or more"
        )
    return batched(BlockDiagonal(len(blocks)), *blocks)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the norm of vectors, or with two axes of matrices, as numpy.linalg.norm does.

    `ord` is a number for vectors, or "inf" or "-inf", and "fro", "nuc", 1, -1, 2, -2, inf or -inf for
    matrices. Without `axis` it is that of the last two axes, or the only one; others are a batch. Raises
    ValueError for other orders and numbers of axes.
    """
    x = as_tensor_variable(x)
    ord = {"f": "fro", "inf": math.inf, "-inf": -math.inf}.get(ord, ord) if isinstance(ord, str) else ord
    axes = axes_of("Taking a norm", _axes_given(x, axis), x.type.ndim)
    if len(axes) not in (1, 2):
        raise ValueError(
            "Cannot compute norm when core_dims < 1 or core_dims > 3, found: core_dims = "
            f"{len(axes)}: give one or two axes"
        )
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return sqrt(sum_over(sqr(_sizes(x)), axes, keepdims=keepdims))
    rule = _vector_norm if len(axes) == 1 else _matrix_norm
    return rule(x, ord, axes, keepdims)


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> TensorVariable:
    """Return the norm of the matrices in the last two axes of `x`. `ord` is that of `norm`."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> TensorVariable:
    """Return the norm of vectors whose elements are along `axis`, one or several axes, or all (None).

    `ord` is a number.
    """
    x = as_tensor_variable(x)
    axes = normalize_axis("Taking the norm of vectors", axis, x.type.ndim)
    if ord == 2:
        return sqrt(sum_over(sqr(_sizes(x)), axes, keepdims=keepdims))
    return _vector_norm(x, ord, axes, keepdims)


def _sizes(x: Any) -> Any:
    return absolute(x) if x.type.dtype in COMPLEX else x


def _axes_given(x: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(max(x.type.ndim - 2, 0), x.type.ndim))
    try:
        return tuple(numbers_of("Taking a norm", axis if isinstance(axis, tuple) else [axis]))
    except TypeError as error:
        raise TypeError("'axis' must be None, an integer, or a tuple of integers") from error


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors: it must be a number")
    sizes = absolute(x)
    if ord in (math.inf, -math.inf):
        return (largest if ord > 0 else smallest)(sizes, axes, keepdims)
    if ord == 0:
        dtype = sizes.type.dtype if sizes.type.dtype in FLOATS else "float64"
        return sum_over(cast(neq(x, 0), dtype), axes, keepdims=keepdims)
    return pow(sum_over(pow(sizes, ord), axes, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord not in (1, -1, 2, -2, math.inf, -math.inf, "nuc"):
        raise ValueError(f"Invalid norm order for matrices: {ord}")
    if ord in (2, -2, "nuc"):
        values = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        found = (sum_over if ord == "nuc" else largest if ord > 0 else smallest)(values, -1)
        return expand_dims(found, axes) if keepdims else found
    summed, compared = axes if ord in (1, -1) else axes[::-1]
    sums = sum_over(absolute(x), summed, keepdims=True)
    found = (largest if ord > 0 else smallest)(sums, compared, keepdims=True)
    return found if keepdims else dimshuffle(found, [a for a in range(x.type.ndim) if a not in axes])
