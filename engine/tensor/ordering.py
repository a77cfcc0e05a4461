"""Sorting, and the positions of the largest and smallest elements. NaNs are sorted to the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import FLOATS, INEXACT, INTEGERS
from engine.tensor.axes import axes_given, axis_of, normalize_axis, with_axis
from engine.tensor.checks import Assert
from engine.tensor.conditional import ifelse
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import arange, zeros_like
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.math import add, eq, ge, lt, maximum, mod, sub
from engine.tensor.replaced_op import ReplacedOp
from engine.tensor.shape import flatten, lengths_along, reshape, shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class ArgSortOp(Op):
    """The int64 positions that sort a tensor along its last axis.

    Equal elements keep their order if it is `stable`, else they have the one of numpy's default sort. The
    `kind` says what was asked for; `order` is None, as tensors have no fields.
    """

    __props__ = ("kind", "stable")

    def __init__(self, kind: str = "quicksort", order: None = None, *, stable: bool = True) -> None:
        _check_sort(kind, order, None)
        self.kind, self.stable = kind, bool(stable)

    def make_node(self, x: Any) -> Apply:
        x = _with_an_axis(x)
        return Apply(self, [x], [tensor_type("int64", x.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.argsort(inputs[0], -1, "stable" if self.stable else "quicksort").astype(
            "int64", copy=False
        )

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(inputs[0]).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


class SortOp(ReplacedOp):
    """A tensor whose elements are sorted along its last axis.

    Of the `kind` "stable" elements that are equal but for their bits keep their order: zeros of both signs,
    and NaNs. Otherwise it is left open. `order` is None, as tensors have no fields.
    """

    __props__ = ("kind",)

    def __init__(self, kind: str = "quicksort", order: None = None) -> None:
        _check_sort(kind, order, None)
        self.kind = kind

    def make_node(self, x: Any) -> Apply:
        x = _with_an_axis(x)
        return Apply(self, [x], [x.type.make_variable()])

    def is_replaced(self, inputs: Sequence[Any]) -> bool:
        """Return True if the order of equal elements can be seen."""
        return self.kind == "stable" and inputs[0].type.dtype in INEXACT

    def replacement(self, *inputs: Any) -> Sequence[Any]:
        """Return the elements at the positions that sort them."""
        (x,) = inputs
        return [reshape(flatten(x)[_sources(x)], _lengths(x))]

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.sort(inputs[0], axis=-1, kind="stable" if self.kind == "stable" else None)

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return self.make_node(inputs[0]).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradient: each element gets that of the place to which it is sorted."""
        (x,), (gradient,) = inputs, cotangents
        if gradient is None or x.type.dtype not in FLOATS:
            return [None]
        moved = zeros_like(flatten(gradient))[_sources(x)].set(flatten(gradient))
        return [reshape(moved, _lengths(x))]


def _with_an_axis(x: Any) -> Any:
    x = as_tensor_variable(x)
    if x.type.ndim == 0:
        raise TypeError(f"Sorting {x} of type {x.type}: it has no axis")
    return x


def _sources(x: Any) -> Any:
    """Return where in the flattened `x` each element of the flattened sorted tensor is."""
    positions = flatten(ArgSortOp().make_node(x).outputs[0])
    length = shape_i(x, x.type.ndim - 1)
    # The flattened tensor has the rows one after the other.
    at = arange(shape_i(positions, 0))
    return add(sub(at, mod(at, maximum(length, 1))), positions)


def _lengths(x: Any) -> list[Any]:
    return lengths_along(x)


_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def argsort(
    a: Any, axis: Any = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None
) -> TensorVariable:
    """Return the positions that sort `a` along `axis`, or the flattened `a` if None. The axis may be
    symbolic.

    Equal elements keep their order, unless `stable` is False or `kind` is "quicksort" or "heapsort": then
    they have the one of numpy's default sort. `order` is None, as tensors have no fields.
    """
    _check_sort(kind, order, stable)
    is_stable = stable is not False and kind not in ("quicksort", "heapsort")
    op = ArgSortOp(_kind(kind, stable), stable=is_stable)
    return _along("ArgSort", a, axis, lambda last: op.make_node(last).outputs[0])


def sort(
    a: Any, axis: Any = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None
) -> TensorVariable:
    """Return `a` sorted along `axis`, or flattened and sorted if None. The axis may be symbolic.

    With `stable` or `kind` "stable" zeros of both signs keep their order, and NaNs theirs. `order` is None,
    as tensors have no fields.
    """
    _check_sort(kind, order, stable)
    op = SortOp(_kind(kind, stable))
    return _along("Sort", a, axis, lambda last: op.make_node(last).outputs[0])


def _check_sort(kind: str | None, order: None, stable: bool | None) -> None:
    if kind not in _KINDS:
        raise ValueError(f"Sorting: kind must be one of {', '.join(map(str, _KINDS))}, not {kind!r}")
    if order is not None:
        raise ValueError(f"Sorting: the order argument is not applicable to tensors, found {order!r}")
    if kind is not None and stable is not None:
        raise ValueError("Sorting: kind and stable cannot be set at the same time")


def _kind(kind: str | None, stable: bool | None) -> str:
    return kind or ("stable" if stable else "quicksort")


def _along(what: str, x: Any, axis: Any, of_last: Callable[[Any], Any]) -> Any:
    """Return what `of_last` makes of the last axis, of `axis` instead; a symbolic one chooses a branch."""
    if not isinstance(axis, Variable) or isinstance(axis, Constant):
        last, axes = _with_axis_last(x, axis)
        return dimshuffle(of_last(last), axes)
    x = _with_an_axis(x)
    if axis.type.dtype not in INTEGERS:
        raise ValueError(f"Sorting {x}: {what} axis must have an integer dtype, got {axis.type.dtype}")
    ndim = x.type.ndim
    number = cast(axis, "int64")
    number = _IN_BOUNDS(mod(number, ndim), ge(number, -ndim), lt(number, ndim))
    found = _along(what, x, ndim - 1, of_last)
    for place in range(ndim - 1):
        found = ifelse(eq(number, place), _along(what, x, place, of_last), found)
    return found


_IN_BOUNDS = Assert("Sorting: the axis is out of bounds")


def _with_axis_last(x: Any, axis: Any) -> tuple[Any, list[int]]:
    """Return `x` with `axis` last, and the order of axes that undoes this."""
    x = as_tensor_variable(x)
    if axis is None:
        return flatten(x), [0]
    number = axis_of("Sorting a tensor", axis, x.type.ndim)
    ndim = x.type.ndim
    order = [*[a for a in range(ndim) if a != number], number]
    return dimshuffle(x, order), [order.index(a) for a in range(ndim)]


class _Extreme(Op):
    """Base class of the position of the first extreme element over `axis`: one axis, several, or all (None).

    Over several axes it is the position among their elements in C order. A NaN is the most extreme. Raises
    ValueError for no elements. The Op of a node has a sorted tuple of non-negative axes.
    """

    __props__ = ("axis",)

    def __init__(self, axis: Any) -> None:
        self.axis: Any = axes_given("Finding a position", axis)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        axes = normalize_axis(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        shape = [length for number, length in enumerate(x.type.shape) if number not in axes]
        op = self if axes == self.axis else with_axis(self, axes)
        return Apply(op, [x], [tensor_type("int64", tuple(shape)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        (x,) = inputs
        kept = [axis for axis in range(x.ndim) if axis not in self.axis]
        shape = [x.shape[axis] for axis in kept]
        rows = np.transpose(x, [*kept, *self.axis]).reshape(
            [*shape, math.prod(x.shape[axis] for axis in self.axis)]
        )
        output_storage[0][0] = np.asarray(self.found(rows), "int64")

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        count = inputs[0].type.ndim - node.inputs[0].type.ndim
        return with_axis(self, tuple([axis + count for axis in self.axis])).make_node(inputs[0]).outputs

    def found(self, x: np.ndarray) -> Any:
        """Return the positions along the last axis of an array."""
        raise NotImplementedError

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


class Argmax(_Extreme):
    """The position of the first largest element."""

    def found(self, x: np.ndarray) -> Any:
        return np.argmax(x, axis=-1)


class Argmin(_Extreme):
    """The position of the first smallest element."""

    def found(self, x: np.ndarray) -> Any:
        return np.argmin(x, axis=-1)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first largest element over `axis`: one axis, several, or all (None).

    Over several axes it is the position among their elements in C order.
    """
    return _position(Argmax, x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first smallest element over `axis`: one axis, several, or all (None).

    Over several axes it is the position among their elements in C order.
    """
    return _position(Argmin, x, axis, keepdims)


def _position(op: type[_Extreme], x: Any, axis: Any, keepdims: bool) -> Any:
    x = as_tensor_variable(x)
    axes = normalize_axis("Finding a position", axis, x.type.ndim)
    found = op(axes).make_node(x).outputs[0]
    kept = iter(range(found.type.ndim))
    if not keepdims:
        return found
    return dimshuffle(found, ["x" if a in axes else next(kept) for a in range(x.type.ndim)])
