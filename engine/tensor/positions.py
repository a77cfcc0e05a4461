"""Positions in several axes as positions in one, and elements chosen by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.graph.variables import Variable
from engine.scalar.promotion import INTEGERS
from engine.tensor.conversion import as_tensor_variable, pad
from engine.tensor.creation import arange, zeros, zeros_like
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.gathering import WrapIndex
from engine.tensor.joining import stack
from engine.tensor.math import add, clip, floor_div, ge, mod, mul, sub, switch
from engine.tensor.rearranging import broadcast_arrays
from engine.tensor.searching import get_vector_length
from engine.tensor.shape import reshape, shape_i

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_MODES = ("raise", "wrap", "clip")
_ORDERS = ("C", "F")


def unravel_index(indices: Any, dims: Any, order: str = "C") -> tuple[Any, ...]:
    """Return the positions along each axis of the elements at the positions `indices` in a flattened
    tensor of shape `dims`, a vector of known length.

    It was flattened in C order, or Fortran's (`order` "F"). Positions outside raise IndexError when the
    function runs.
    """
    _check_order(order)
    lengths = _lengths(dims, None)
    total = cast(as_tensor_variable(1), "int64")
    for length in lengths:
        total = mul(total, length)
    left = _within(_whole(indices), total, "raise", 0)
    found = []
    for length in lengths[::-1] if order == "C" else lengths:
        found.append(mod(left, length))
        left = floor_div(left, length)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> TensorVariable:
    """Return the positions, in a flattened tensor of shape `dims`, of the elements at positions along each
    axis, a list of tensors.

    Positions outside raise IndexError when the function runs, or are taken by `mode`, one for all axes or
    a tuple: "wrap" or "clip". It was flattened in C order, or Fortran's (`order` "F").
    """
    _check_order(order)
    if not isinstance(multi_index, tuple | list):
        raise TypeError(f"Taking positions {multi_index!r}: multi_index must be a tuple or a list")
    count = len(multi_index)
    modes = [mode] * count if isinstance(mode, str) else list(mode)
    lengths = _lengths(dims, count)
    if len(lengths) != count or len(modes) != count:
        raise ValueError(
            f"Taking positions along {count} axes: {len(lengths)} lengths and {len(modes)} modes were given"
        )
    found: Any = None
    for axis in range(count) if order == "C" else range(count)[::-1]:
        at = _within(_whole(multi_index[axis]), lengths[axis], modes[axis], axis)
        found = at if found is None else add(mul(found, lengths[axis]), at)
    return found


def _check_order(order: str) -> None:
    if order not in _ORDERS:
        raise ValueError(f"Taking positions: order is {order!r}; it must be 'C' or 'F'")


def _lengths(dims: Any, count: int | None) -> list[Any]:
    """Return the int64s in the vector `dims`; without a `count` its length must be known."""
    vector = _whole(dims)
    if vector.type.ndim != 1:
        raise TypeError(f"Taking positions in a tensor of shape {vector.type}: a shape is a vector")
    if count is not None and vector.type.shape[0] is None:
        vector = reshape(vector, (count,))  # it raises if there are more or fewer
    return [cast(vector[axis], "int64") for axis in range(get_vector_length(vector))]


def _whole(numbers: Any) -> Any:
    found = as_tensor_variable(numbers)
    if found.type.dtype not in INTEGERS:
        raise TypeError(f"Taking positions: {found} of type {found.type} is not of integers")
    return found


def _within(positions: Any, length: Any, mode: str, axis: int) -> Any:
    """Return positions from 0 to before `length`, int64s: those outside raise IndexError or are moved."""
    if mode not in _MODES:
        raise ValueError(f"Taking positions: mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    if mode == "wrap":
        return mod(cast(positions, "int64"), length)
    if mode == "clip":
        return clip(cast(positions, "int64"), 0, sub(length, 1))
    length = cast(as_tensor_variable(length), "int64")
    if positions.type.dtype.startswith("int"):
        # Negative positions are no positions here.
        positions = switch(ge(positions, 0), cast(positions, "int64"), length)
    return WrapIndex(axis).make_node(positions, length).outputs[0]


def choose(a: Any, choices: Any, mode: str = "raise") -> TensorVariable:
    """Return, at each place, the element there of the tensor with the number that `a` has there.

    `choices` is a list of tensors, or a tensor whose first axis is theirs; they and `a` broadcast. Numbers
    outside raise IndexError when the function runs, or are taken by `mode`: "wrap" or "clip".
    """
    a = as_tensor_variable(a)
    if a.type.dtype not in INTEGERS and a.type.dtype != "bool":
        raise TypeError(f"Choosing by {a} of type {a.type}: it is not of integers")
    if not isinstance(choices, Variable) and isinstance(choices, Sequence):
        choices = stack(broadcast_arrays(*choices))
    choices = as_tensor_variable(choices)
    ndim = max(a.type.ndim, choices.type.ndim - 1)
    if choices.type.ndim == 0:
        raise TypeError(f"Choosing from {choices.type}: it has no axis of choices")
    rest = range(1, choices.type.ndim)
    choices = dimshuffle(choices, [0, *["x"] * (ndim - len(rest)), *rest])
    number = _within(cast(pad(a, ndim), "int64"), shape_i(choices, 0), mode, 0)
    return choices[(number, *(_along(choices, axis) for axis in range(1, ndim + 1)))]


def _along(choices: Any, axis: int) -> Any:
    """Return the positions along an axis, in the shape that broadcasts along the other ones but the first."""
    pattern = [0 if each == axis else "x" for each in range(1, choices.type.ndim)]
    return dimshuffle(arange(shape_i(choices, axis)), pattern)


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> TensorVariable:
    """Return `x` with the elements along its last axis in the order `y`, or put back from it (`inverse`).

    The other axes broadcast.
    """
    x, y = as_tensor_variable(x), _whole(y)
    ndim = max(x.type.ndim, y.type.ndim)
    order = pad(inverse_permutation(y) if inverse else y, ndim)
    return pad(x, ndim)[(*_rows(pad(x, ndim)), order)]


def inverse_permutation(perm: Any) -> TensorVariable:
    """Return the permutations that undo those along the last axis of `perm`, in its dtype."""
    perm = _whole(perm)
    if perm.type.ndim == 0:
        raise TypeError(f"Inverting {perm} of type {perm.type}: it has no axis")
    at = cast(arange(shape_i(perm, -1)), perm.type.dtype)
    return zeros_like(perm)[(*_rows(perm), perm)].set(at)


def _rows(x: Any) -> list[Any]:
    """Return the positions along all axes but the last, in shapes that broadcast."""
    ndim = x.type.ndim
    return [
        dimshuffle(arange(shape_i(x, axis)), [0 if each == axis else "x" for each in range(ndim)])
        for axis in range(ndim - 1)
    ]


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Any:
    """Return a matrix with a row for each element of the vector `y`: 1 at that position, 0 at the others."""
    y = as_tensor_variable(y)
    count = shape_i(y, 0)
    return zeros((count, nb_class), dtype or "float64")[arange(count), y].set(1)
