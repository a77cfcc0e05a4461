"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from engine.graph.apply import Apply
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.axes import numbers_of
from engine.tensor.checks import specify_shape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import alloc, arange, zeros
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, and_, eq, ge, le, maximum, minimum, mul, neg, sub, switch
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import lengths_along, lengths_of, shape_i
from engine.tensor.signs import is_non_negative
from engine.tensor.type import check_dtype

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def _offsets(rows: Any, columns: Any) -> Any:
    """Return a matrix whose elements say how far right of the main diagonal they are."""
    return sub(dimshuffle(arange(columns), ("x", 0)), dimshuffle(arange(rows), (0, "x")))


def _counted(length: Any) -> Any:
    """Return the numbers from 0 to `length` - 1; a negative length is refused when they are computed."""
    numbers = arange(length)
    return numbers if is_non_negative(length) else specify_shape(numbers, (length,))


def _sizes(n: Any, m: Any) -> list[Any]:
    """Return the lengths `n` and `m` (default `n`). Raises TypeError or ValueError if they are no lengths."""
    lengths = lengths_of((n, n if m is None else m))
    for length in lengths:
        if isinstance(length, Constant) and length.data < 0:
            raise ValueError(f"Making a matrix: a length cannot be {int(length.data)}")
    return lengths


def offset_of(k: Any) -> Any:
    """Return `k` as an int, or itself if it is a 0-d integer variable. Raises TypeError otherwise."""
    if isinstance(k, Variable) and not isinstance(k, Constant):
        if getattr(k.type, "ndim", None) == 0 and k.type.dtype in INTEGERS:
            return k
        raise TypeError(f"Finding a diagonal: {k} of type {k.type} is no integer of 0 dimensions")
    return _whole(k)


def _whole(k: Any) -> int:
    (number,) = numbers_of("Finding a diagonal by its number", [k])
    return number


def _offsets_in(m: Any) -> Any:
    if m.type.ndim < 2:
        raise ValueError(f"Taking a triangle of {m.type}: it must be two dimensional, or a batch of such")
    return _offsets(shape_i(m, -2), shape_i(m, -1))


class Eye(ReplacedOp):
    """A matrix of n rows and m columns with ones on the diagonal k places above the main one.

    Its inputs are the integers n, m and k. A negative length is refused (LengthError, a ValueError) when it
    is computed.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: Any = "floatX") -> None:
        self.dtype = check_dtype(dtype)

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        n, m, k = inputs
        offsets = sub(dimshuffle(_counted(m), ("x", 0)), dimshuffle(_counted(n), (0, "x")))
        return [cast(eq(offsets, k), self.dtype)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * 3

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] * 3


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = "floatX") -> TensorVariable:
    """Return an `n` by `m` (default `n`) matrix with ones on the diagonal `k` places above the main one."""
    return Eye(dtype)(*_sizes(n, m), offset_of(k))


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = "floatX") -> TensorVariable:
    """Return an `N` by `M` (default `N`) matrix with ones on and below the diagonal `k`."""
    return cast(le(_offsets(*_sizes(N, M)), offset_of(k)), check_dtype(dtype))


def tril(m: Any, k: int = 0) -> TensorVariable:
    """Return the matrix `m`, or those over the last two axes, with zeros above the diagonal `k`."""
    m = as_tensor_variable(m)
    return switch(le(_offsets_in(m), offset_of(k)), m, cast(0, m.type.dtype))


def triu(m: Any, k: int = 0) -> TensorVariable:
    """Return the matrix `m`, or those over the last two axes, with zeros below the diagonal `k`."""
    m = as_tensor_variable(m)
    return switch(ge(_offsets_in(m), offset_of(k)), m, cast(0, m.type.dtype))


def only_triangle(m: Any, lower: bool, strict: bool = False, halved: bool = False) -> Any:
    """Return the `lower` or upper triangle of `m`, with zeros elsewhere.

    With `strict` the diagonal is zero; with `halved` it is halved.
    """
    found = (tril if lower else triu)(m, (-1 if lower else 1) if strict else 0)
    if not halved:
        return found
    half = cast(0.5, m.type.dtype)
    return switch(eq(_offsets_in(m), 0), mul(half, found), found)


def _places(rows: Any, columns: Any, k: Any) -> tuple[Any, Any]:
    """Return the row and column indices of the diagonal `k` of a matrix of this size; ints are known ones."""
    down: Any
    right: Any
    length: Any
    if isinstance(k, int):
        down, right = (-k, 0) if k < 0 else (0, k)
    else:
        down, right = maximum(neg(k), 0), maximum(k, 0)
    if all(isinstance(number, int) for number in (rows, columns, k)):
        length = max(min(rows - down, columns - right), 0)
    else:
        length = maximum(minimum(sub(rows, down), sub(columns, right)), 0)
    along = arange(length)
    return add(along, down), add(along, right)


def on_diagonals(a: Any, k: Any = 0, axes: Sequence[int] = (0, 1)) -> Any:
    """Return the diagonals `k` places above the main ones of the matrices over `axes`, along a last axis."""
    rest = [axis for axis in range(a.type.ndim) if axis not in axes]
    matrices = dimshuffle(a, [*axes, *rest])
    lengths = lengths_along(matrices)
    found = matrices[_places(lengths[0], lengths[1], k)]
    return dimshuffle(found, [*range(1, found.type.ndim), 0])


def matrices_of_diagonals(diag: Any, k: Any, axes: Sequence[int]) -> Any:
    """Return zeros with the vectors of the last axis of `diag` where `on_diagonals` would take them."""
    ndim = diag.type.ndim + 1
    size = add(shape_i(diag, -1), absolute(k))
    lengths = [shape_i(diag, axis) for axis in range(ndim - 2)]
    found = zeros((*lengths, size, size), diag.type.dtype)[(..., *_places(size, size, k))].set(diag)
    rest = iter(range(ndim - 2))
    at = {axes[0]: ndim - 2, axes[1]: ndim - 1}
    return dimshuffle(found, [at[axis] if axis in at else next(rest) for axis in range(ndim)])


def identity_like(x: Any, dtype: Any = None) -> TensorVariable:
    """Return a matrix of the shape of the matrix `x` with ones on its main diagonal."""
    x = as_tensor_variable(x)
    return eye(shape_i(x, 0), shape_i(x, 1), 0, dtype or x.type.dtype)


def with_diagonals(a: Any, val: Any) -> Any:
    """Return `a` with `val` where all indices are equal; lengths that differ are refused when it runs."""
    if a.type.ndim == 2:
        return with_diagonal(a, val, 0)
    lengths = lengths_along(a)
    are_equal = reduce(and_, [eq(length, lengths[0]) for length in lengths[1:]])
    # A length of -1 is refused.
    values = alloc(cast(val, a.type.dtype), switch(are_equal, lengths[0], -1))
    return a[(arange(lengths[0]),) * a.type.ndim].set(values)


def with_diagonal(a: Any, val: Any, k: Any) -> Any:
    """Return the matrix `a` with `val` on the diagonal `k` places above the main one."""
    rows, columns = lengths_along(a)
    return a[_places(rows, columns, k)].set(cast(val, a.type.dtype))
