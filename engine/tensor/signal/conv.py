"""Convolutions over the last axis, or the last two. A kernel computes those of two vectors, Python others: by
numpy's `convolve`, which sums directly, and SciPy's, which may use Fourier transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant
from engine.scalar.promotion import FLOATS, common_dtype
from engine.tensor.broadcasting import broadcast_lengths, unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.elemwise import cast
from engine.tensor.math import and_, floor_div, invert, lt, or_, sub
from engine.tensor.padding import padded
from engine.tensor.rearranging import flip
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import shape_i
from engine.tensor.type import TensorType, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_METHODS = ("auto", "direct", "fft")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
"""The modes of `pad` by the names that convolutions have for them."""


class _Convolve(Op):
    """Base class of the convolution of two tensors over their last `core` axes.

    Inputs: both tensors, and whether the result is the whole convolution (a 0-d bool), n + k - 1 long, or
    the part where they overlap completely, max(n, k) - min(n, k) + 1 long. Axes before the last ones
    broadcast if their static length is 1. Raises ValueError for tensors without elements, and where
    none is at least as long as the other along all axes.
    """

    __props__: tuple[str, ...] | None = ()
    core: int

    def make_node(self, x: Any, kernel: Any, full_mode: Any) -> Apply:
        x, kernel, full_mode = map(as_tensor_variable, (x, kernel, full_mode))
        if min(x.type.ndim, kernel.type.ndim) < self.core:
            raise ValueError(f"Convolving {x.type} with {kernel.type}: both must have {self.core} dimensions")
        if full_mode.type != tensor_type("bool", ()):
            raise ValueError(f"Convolving: full_mode is of type {full_mode.type}; it must be a bool")
        ndim = max(x.type.ndim, kernel.type.ndim)
        x, kernel = pad(x, ndim), pad(kernel, ndim)
        dtype = common_dtype(x.type.dtype, kernel.type.dtype)
        is_full = bool(full_mode.data) if isinstance(full_mode, Constant) else None
        lengths = [
            _static_batch(axis, x.type.shape[axis], kernel.type.shape[axis])
            if axis < ndim - self.core
            else _static_length(x.type.shape[axis], kernel.type.shape[axis], is_full)
            for axis in range(ndim)
        ]
        inputs = [cast(x, dtype), cast(kernel, dtype), full_mode]
        return Apply(self, inputs, [tensor_type(dtype, tuple(lengths)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, kernel, full_mode = inputs
        if not (x.size and kernel.size):
            raise ValueError(f"Convolving arrays of shapes {x.shape} and {kernel.shape}: one has no elements")
        batch = self._batch(node, x, kernel)
        mode = "full" if full_mode else "valid"
        left, right = (np.broadcast_to(array, (*batch, *array.shape[-self.core :])) for array in (x, kernel))
        found = [self.convolved(left[place], right[place], mode) for place in np.ndindex(*batch)]
        output_storage[0][0] = np.stack(found).reshape((*batch, *found[0].shape)).astype(x.dtype, copy=False)

    def _batch(self, node: Apply, x: np.ndarray, kernel: np.ndarray) -> tuple[int, ...]:
        """Return the lengths of the axes before the last ones."""
        types: list[TensorType] = [node.inputs[0].type, node.inputs[1].type]
        outer = [tensor_type("bool", type.shape[: -self.core]) for type in types]
        return broadcast_lengths(str(self), outer, [x.shape[: -self.core], kernel.shape[: -self.core]])

    def convolved(self, x: np.ndarray, kernel: np.ndarray, mode: str) -> np.ndarray:
        """Return the convolution of arrays of `core` dimensions."""
        raise NotImplementedError

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        x, kernel, full_mode = inputs
        gradient = cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None, None, None]
        return [
            self._of_one(x, kernel, full_mode, gradient),
            self._of_one(kernel, x, full_mode, gradient),
            None,
        ]

    def _of_one(self, x: Any, other: Any, full_mode: Any, gradient: Any) -> Any:
        """Return the gradient of `x`, which was convolved with `other`."""
        last = range(x.type.ndim - self.core, x.type.ndim)
        is_longer = lt(shape_i(other, last[0]), shape_i(x, last[0]))
        for axis in last[1:]:
            is_longer = or_(is_longer, lt(shape_i(other, axis), shape_i(x, axis)))
        found = self(gradient, flip(other, tuple(last)), and_(invert(full_mode), is_longer))
        axes = unbroadcast_axes(_outer(x, self.core), _outer(found, self.core))
        return sum_over(found, axes, keepdims=True) if axes else found

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on both tensors."""
        return [[True], [True], [False]]


class Convolve1d(_Convolve):
    """The convolution of two tensors over their last axis, by direct sums."""

    core = 1

    def convolved(self, x: np.ndarray, kernel: np.ndarray, mode: str) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.convolve(x, kernel, mode=mode)  # type: ignore[call-overload]


class Convolve2d(_Convolve):
    """The convolution of two tensors over their last two axes, by SciPy's `method`: "direct", "fft" or
    "auto", the faster one.
    """

    __props__ = ("method",)
    core = 2

    def __init__(self, method: str = "auto") -> None:
        if method not in _METHODS:
            raise ValueError(f"Convolving: method is {method!r}; it must be one of {', '.join(_METHODS)}")
        self.method = method

    def convolved(self, x: np.ndarray, kernel: np.ndarray, mode: str) -> np.ndarray:
        from scipy.signal import convolve  # it takes half a second to import

        return np.asarray(convolve(x, kernel, mode=mode, method=self.method))


def _static_batch(axis: int, first: int | None, second: int | None) -> int | None:
    if None not in (first, second) and 1 not in (first, second) and first != second:
        raise ValueError(
            f"Convolving tensors of {first} and {second} along axis {axis}: they do not broadcast"
        )
    if 1 in (first, second):
        return second if first == 1 else first
    return second if first is None else first


def _static_length(n: int | None, k: int | None, is_full: bool | None) -> int | None:
    if n is None or k is None or is_full is None:
        return None
    return n + k - 1 if is_full else abs(n - k) + 1


def _outer(x: Any, core: int) -> TensorType:
    return tensor_type("bool", x.type.shape[:-core])


def convolve1d(in1: Any, in2: Any, mode: str = "full") -> TensorVariable:
    """Return the convolution of two tensors over their last axis, of lengths n and k.

    By `mode` it is "full" (n + k - 1 long), "valid", where they overlap completely (max(n, k) - min(n, k) + 1
    long), or the middle part of length n ("same"). Other axes broadcast.
    """
    _check_mode(mode)
    in1, in2 = as_tensor_variable(in1), as_tensor_variable(in2)
    if mode == "same":
        in1 = _padded(in1, in2, 1, "fill", 0)
    return Convolve1d()(in1, in2, number(mode == "full", "bool"))


def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    method: str = "auto",
) -> TensorVariable:
    """Return the convolution of two tensors over their last two axes; the lengths are as in `convolve1d`.

    Beyond its edges `in1` continues with `fillvalue` ("fill"), with its other side ("wrap") or with its
    mirror image ("symm"), by `boundary`. `method` is "direct", "fft" or "auto", the faster one.
    """
    _check_mode(mode)
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Convolving: boundary is {boundary!r}; it must be one of {', '.join(_BOUNDARIES)}")
    in1, in2 = as_tensor_variable(in1), as_tensor_variable(in2)
    is_plain = boundary == "fill" and isinstance(fillvalue, int | float) and fillvalue == 0
    if mode == "same":
        in1 = _padded(in1, in2, 2, boundary, fillvalue)
    elif mode == "full" and not is_plain:
        in1 = _padded(in1, in2, 2, boundary, fillvalue, is_whole=True)
        mode = "valid"
    return Convolve2d(method)(in1, in2, number(mode == "full", "bool"))


def _check_mode(mode: str) -> None:
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"Convolving: mode is {mode!r}; it must be 'full', 'valid' or 'same'")


def _padded(x: Any, kernel: Any, core: int, boundary: str, fillvalue: Any, is_whole: bool = False) -> Any:
    """Return `x` with so many elements around it that a valid convolution with `kernel` is as long as `x`,
    or whole.
    """
    widths: list[Any] = [(0, 0)] * (x.type.ndim - core)
    for axis in range(-core, 0):
        beyond = sub(shape_i(kernel, axis), 1)
        after = beyond if is_whole else floor_div(beyond, 2)
        widths.append((beyond if is_whole else sub(beyond, after), after))
    return padded(x, _BOUNDARIES[boundary], widths, [(fillvalue, fillvalue)] * x.type.ndim)
