"""Products and powers of matrices, norms, and traces."""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

from engine.scalar.promotion import COMPLEX, common
from engine.tensor.axes import axes_of, numbers_of
from engine.tensor.blockwise import vectorize
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros
from engine.tensor.diagonals import eye, trace
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.linalg.singular_values import svd
from engine.tensor.linalg.solvers import inv
from engine.tensor.math import abs as absolute
from engine.tensor.math import mul, neq, pow, sqr, sqrt
from engine.tensor.products import matmul
from engine.tensor.rearranging import moveaxis
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import min as smallest
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import expand_dims, lengths_known, reshape, shape_i

__all__ = ["block_diag", "kron", "matrix_dot", "matrix_power", "norm", "trace"]


def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product of two tensors: `b` times each element of `a`."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ndim = max(a.type.ndim, b.type.ndim)
    a, b = (x.dimshuffle(*["x"] * (ndim - x.type.ndim), *range(x.type.ndim)) for x in (a, b))
    spread = [dimshuffle(a, [p for axis in range(ndim) for p in (axis, "x")])]
    spread.append(dimshuffle(b, [p for axis in range(ndim) for p in ("x", axis)]))
    lengths = zip(lengths_known(a), lengths_known(b), strict=True)
    return reshape(mul(*spread), [first * second for first, second in lengths])


def matrix_dot(*args: Any) -> Any:
    """Return the product of matrices, from left to right. Leading axes are a batch."""
    return reduce(matmul, args)


def matrix_power(M: Any, n: int) -> Any:
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
    return eye(shape_i(M, -2), shape_i(M, -1), 0, M.type.dtype) if found is None else found


def block_diag(*matrices: Any) -> Any:
    """Return the matrix with `matrices` along its diagonal, and zeros elsewhere. Leading axes are a batch.

    Raises TypeError for none, and for tensors of fewer than 2 dimensions.
    """
    blocks = [as_tensor_variable(matrix) for matrix in matrices]
    if not blocks or any(block.type.ndim < 2 for block in blocks):
        raise TypeError(
            f"Making a block diagonal matrix of {matrices}: All inputs must have dimension 2, or more"
        )
    arguments = ",".join(f"(m{position},n{position})" for position in range(len(blocks)))
    return vectorize(_block_diagonal, f"{arguments}->(m,n)")(*blocks)


def _block_diagonal(*blocks: Any) -> Any:
    lengths = [lengths_known(block) for block in blocks]
    dtype = common(tuple([block.type.dtype for block in blocks]))
    whole = zeros([reduce(operator.add, along) for along in zip(*lengths, strict=True)], dtype)
    row = column = 0
    for block, (rows, columns) in zip(blocks, lengths, strict=True):
        below, right = row + rows, column + columns
        whole = whole[row:below, column:right].set(cast(block, dtype))
        row, column = below, right
    return whole


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
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
        return sum_over(cast(neq(x, 0), "float64"), axes, keepdims=keepdims)
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
