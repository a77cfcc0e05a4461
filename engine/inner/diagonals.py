"""Ops that take, make and fill diagonals, and the functions that apply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.inner.named_op import NamedOp
from engine.tensor.axes import axes_of, numbers_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.diagonals import (
    matrices_of_diagonals,
    offset_of,
    on_diagonals,
    with_diagonal,
    with_diagonals,
)
from engine.tensor.reduction import sum as sum_over

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_OWN = ("offset", "axis1", "axis2")


class ExtractDiag(NamedOp):
    """The diagonals `offset` places above the main ones of the matrices over two axes, along a last axis.

    Raises ValueError for fewer than 2 dimensions. `view`, PyTensor's permission to share memory, has no
    effect.
    """

    __props__ = (*(NamedOp.__props__ or ()), *_OWN)

    def __init__(self, offset: int = 0, axis1: int = 0, axis2: int = 1, view: bool = False) -> None:
        super().__init__()
        self.offset, self.axis1, self.axis2 = numbers_of("Taking a diagonal", (offset, axis1, axis2))

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (x,) = inputs
        return [on_diagonals(x, self.offset, (self.axis1, self.axis2))]


class AllocDiag(NamedOp):
    """Zeros with the vectors of the last axis on the diagonals that `ExtractDiag` takes."""

    __props__ = (*(NamedOp.__props__ or ()), *_OWN)

    def __init__(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> None:
        super().__init__()
        self.offset, self.axis1, self.axis2 = numbers_of("Making a diagonal", (offset, axis1, axis2))

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        (diag,) = inputs
        return [matrices_of_diagonals(diag, self.offset, (self.axis1, self.axis2))]


class FillDiagonal(NamedOp):
    """The first input with the second, a number, where all indices are equal.

    Raises TypeError for fewer than 2 dimensions and for a second input that is no number.
    """

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        return _matrix_and_number(self, inputs, None)

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        return [with_diagonals(*inputs)]


class FillDiagonalOffset(NamedOp):
    """A matrix with a number on one diagonal. Inputs: the matrix, the number, how far above the main one.

    Raises TypeError for other than 2 dimensions, and for what is no number.
    """

    def filter_inputs(self, *inputs: Any) -> list[Any]:
        return _matrix_and_number(self, inputs, 2)

    def build_inner_graph(self, *inputs: Any) -> list[Any]:
        return [with_diagonal(*inputs)]


def _matrix_and_number(op: NamedOp, inputs: Sequence[Any], ndim: int | None) -> list[Any]:
    a, *numbers = map(as_tensor_variable, inputs)
    if a.type.ndim < 2 or ndim not in (None, a.type.ndim) or any(each.type.ndim for each in numbers):
        types = ", ".join(str(each.type) for each in (a, *numbers))
        raise TypeError(
            f"Applying {op} to {types}: it must have {ndim or '2 or more'} dimensions, then numbers"
        )
    return [a, *numbers]


def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return the diagonals `offset` places above the main ones, along a new last axis.

    They are those of the matrices over `axis1` and `axis2`. Raises ValueError for fewer than 2 dimensions.
    """
    a = as_tensor_variable(a)
    if a.type.ndim < 2:
        raise ValueError(f"Taking a diagonal of {a.type}: it must have 2 dimensions or more")
    first, second = axes_of(f"Taking a diagonal of {a}", (axis1, axis2), a.type.ndim)
    k = offset_of(offset)
    return ExtractDiag(k, first, second)(a) if isinstance(k, int) else on_diagonals(a, k, (first, second))


extract_diag = diagonal


def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return the sum of the main diagonal of a matrix, or of the one that `diagonal` takes.

    Raises ValueError for fewer than 2 dimensions.
    """
    return sum_over(diagonal(a, offset, axis1, axis2), -1)


def alloc_diag(diag: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return zeros with the vectors of the last axis of `diag` on the diagonals that `diagonal` takes."""
    diag = as_tensor_variable(diag)
    axes = axes_of(f"Making a diagonal of {diag}", (axis1, axis2), diag.type.ndim + 1)
    k = offset_of(offset)
    return AllocDiag(k, *axes)(diag) if isinstance(k, int) else matrices_of_diagonals(diag, k, axes)


def diag(v: Any, k: Any = 0) -> TensorVariable:
    """Return the square matrix with the vector `v` on its diagonal `k`; of a matrix, return that diagonal."""
    v = as_tensor_variable(v)
    if v.type.ndim not in (1, 2):
        raise ValueError(f"Taking or making a diagonal of {v.type}: Input must be 1- or 2-d.")
    return alloc_diag(v, k) if v.type.ndim == 1 else diagonal(v, k)


def fill_diagonal(a: Any, val: Any) -> TensorVariable:
    """Return `a` with `val` where all indices are equal.

    Raises ValueError, when the function runs, if `a` has more than 2 dimensions of different lengths.
    """
    return FillDiagonal()(a, val)


def fill_diagonal_offset(a: Any, val: Any, offset: Any) -> TensorVariable:
    """Return the matrix `a` with `val` on the diagonal `offset` places above the main one."""
    return FillDiagonalOffset()(a, val, offset_of(offset))
