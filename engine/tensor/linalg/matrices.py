"""Products and powers of matrices, norms, and traces."""

from __future__ import annotations

from functools import reduce
from typing import Any

from engine.tensor.axes import axes_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonal import eye, trace
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.linalg.solvers import inv
from engine.tensor.math import abs as absolute
from engine.tensor.math import mul, neq, pow, sqr, sqrt
from engine.tensor.products import dot
from engine.tensor.reduction import max as largest
from engine.tensor.reduction import min as smallest
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import lengths_known, reshape, shape_i

__all__ = ["kron", "matrix_dot", "matrix_power", "norm", "trace"]


def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product of two tensors of up to 2 dimensions: `b` times each element of `a`."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    ndim = max(a.type.ndim, b.type.ndim)
    if ndim > 2:
        raise TypeError(f"Multiplying {a.type} and {b.type}: they have more than 2 dimensions")
    a, b = (x.dimshuffle(*["x"] * (ndim - x.type.ndim), *range(x.type.ndim)) for x in (a, b))
    spread = [dimshuffle(a, [p for axis in range(ndim) for p in (axis, "x")])]
    spread.append(dimshuffle(b, [p for axis in range(ndim) for p in ("x", axis)]))
    lengths = zip(lengths_known(a), lengths_known(b), strict=True)
    return reshape(mul(*spread), [first * second for first, second in lengths])


def matrix_dot(*args: Any) -> Any:
    """Return the product of matrices, from left to right."""
    return reduce(dot, args)


def matrix_power(M: Any, n: int) -> Any:
    """Return the square matrix `M` multiplied with itself `n` times; a negative `n` takes its inverse."""
    M = as_tensor_variable(M)
    if n < 0:
        M, n = inv(M), -n
    found = None
    while n:
        if n % 2:
            found = M if found is None else dot(found, M)
        n //= 2
        M = dot(M, M) if n else M
    return eye(shape_i(M, 0), shape_i(M, 1), 0, M.type.dtype) if found is None else found


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of vectors, or with two axes of matrices, as numpy.linalg.norm does.

    `ord` is a number for vectors, and "fro", 1, -1, inf or -inf for matrices. Raises NotImplementedError
    for norms of matrices by singular values, and ValueError for others.
    """
    x = as_tensor_variable(x)
    axes = axes_of("Taking a norm", axis, x.type.ndim)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return sqrt(sum_over(sqr(x), axes, keepdims=keepdims))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"Taking a norm with ord={ord!r} over {len(axes)} axes: give one or two")
    return _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Taking the norm of vectors: ord is {ord!r}; it must be a number")
    sizes = absolute(x)
    if ord in (float("inf"), float("-inf")):
        return (largest if ord > 0 else smallest)(sizes, axis, keepdims)
    if ord == 0:
        return sum_over(cast(neq(x, 0), "float64"), axis, keepdims=keepdims)
    return pow(sum_over(pow(sizes, ord), axis, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in (2, -2, "nuc"):
        raise NotImplementedError(f"Taking the norm of matrices with ord={ord!r}: it needs singular values")
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ValueError(f"Taking the norm of matrices: ord={ord!r} is none")
    summed, compared = axes if ord in (1, -1) else axes[::-1]
    sums = sum_over(absolute(x), summed, keepdims=True)
    found = (largest if ord > 0 else smallest)(sums, compared, keepdims=True)
    return found if keepdims else dimshuffle(found, [a for a in range(x.type.ndim) if a not in axes])
