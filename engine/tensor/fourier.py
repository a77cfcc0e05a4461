"""Discrete Fourier transforms as numpy has them: of complex tensors, along any axes, by callbacks to numpy.

The Ops divide by nothing; the functions do, as `norm` says. PyTensor's transforms of real tensors are in
engine.tensor.fft.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import COMPLEX, part_of
from engine.tensor.axes import axes_of
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.creation import arange, zeros
from engine.tensor.elementary import conj, real
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.known_lengths import known_length
from engine.tensor.math import add, and_, eq, floor_div, gt, lt, minimum, mul, sqrt, sub, switch, true_div
from engine.tensor.rearranging import roll, slice_at_axis
from engine.tensor.shape import lengths_along, lengths_of, reshape, shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_SINGLE = ("float16", "float32", "complex64")


class Fourier(Op):
    """Base class of the transforms along `axes`, of which the last is halved where a side is real."""

    __props__: tuple[str, ...] = ("axes",)
    differentiates_complex = True

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)

    def computed(self, x: Any, *length: Any) -> Any:
        """Return the transform of the array `x`."""
        raise NotImplementedError(f"{type(self).__name__} must implement computed()")

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = self.computed(*inputs).astype(node.outputs[0].type.dtype, order="C")


class FourierTransform(Fourier):
    """The sums of a complex tensor times `exp(-2 pi i j k / n)` along `axes`; with plus if `inverse`."""

    __props__ = ("axes", "inverse")

    def __init__(self, axes: Sequence[int], inverse: bool = False) -> None:
        super().__init__(axes)
        self.inverse = bool(inverse)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        x = cast(x, "complex64" if x.type.dtype in _SINGLE else "complex128")
        return Apply(self, [x], [x.type.make_variable()])

    def computed(self, x: Any, *length: Any) -> Any:
        if self.inverse:
            return np.fft.ifftn(x, axes=self.axes, norm="forward")
        return np.fft.fftn(x, axes=self.axes)

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        return [input_shapes[0]]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        return [FourierTransform(self.axes, not self.inverse)(cotangents[0])]


class HalfTransform(Fourier):
    """The transform of a real tensor, without the half along the last of `axes` that repeats conjugates."""

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype in COMPLEX:
            raise TypeError(f"Transforming {x} of type {x.type}: it must be real; use fftn")
        x = cast(x, "float32" if x.type.dtype in _SINGLE else "float64")
        shape = list(x.type.shape)
        last = shape[self.axes[-1]]
        shape[self.axes[-1]] = None if last is None else last // 2 + 1
        dtype = "complex64" if x.type.dtype == "float32" else "complex128"
        return Apply(self, [x], [tensor_type(dtype, tuple(shape)).make_variable()])

    def computed(self, x: Any, *length: Any) -> Any:
        return np.fft.rfftn(x, axes=self.axes)

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        shape = list(input_shapes[0])
        shape[self.axes[-1]] = add(floor_div(shape[self.axes[-1]], 2), 1)
        return [tuple(shape)]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        whole = _resized(cotangents[0], self.axes[-1], shape_i(inputs[0], self.axes[-1]))
        return [real(FourierTransform(self.axes, inverse=True)(whole))]


class TransformOfHalf(Fourier):
    """The real tensor that `HalfTransform` gives the input of, times the number of elements along `axes`.

    Inputs: `length // 2 + 1` coefficients along the last axis, and the `length` of the result there.
    """

    def make_node(self, x: Any, length: Any) -> Apply:
        x = as_tensor_variable(x)
        x = cast(x, "complex64" if x.type.dtype in _SINGLE else "complex128")
        (length,) = lengths_of((length,))
        shape = list(x.type.shape)
        shape[self.axes[-1]] = known_length(length)
        output = tensor_type(part_of(x.type.dtype), tuple(shape)).make_variable()
        return Apply(self, [x, length], [output])

    def computed(self, x: Any, *length: Any) -> Any:
        lengths = [x.shape[axis] for axis in self.axes[:-1]]
        return np.fft.irfftn(x, [*lengths, int(length[0])], self.axes, norm="forward")

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        shape = list(input_shapes[0])
        shape[self.axes[-1]] = node.inputs[1]
        return [tuple(shape)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradient: a coefficient that stands for its conjugate too counts twice."""
        if cotangents[0] is None:
            return [None, None]
        x, length = inputs
        last = self.axes[-1]
        at = arange(shape_i(x, last))
        stands_for_two = and_(gt(at, 0), lt(mul(at, 2), length))
        weights = switch(stands_for_two, number(2.0, part_of(x.type.dtype)), 1)
        order = [0 if axis == last else "x" for axis in range(x.type.ndim)]
        return [mul(HalfTransform(self.axes)(cotangents[0]), dimshuffle(weights, order)), None]


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> TensorVariable:
    """Return the Fourier transform of `a` along `axes`: by default the last ones that `s` has lengths for,
    or all.

    Along these axes `a` is cut, or filled with zeros, to the lengths `s`. `norm` "ortho" divides by the
    square root of the number of elements along them, "forward" by the number, "backward" (None) by nothing.
    The result is complex64 for floats of up to 32 bits and complex64, otherwise complex128. Refuses
    (ValueError) axes that come twice and other norms.
    """
    a, axes = _prepared(a, s, axes)
    return _scaled(FourierTransform(axes)(a), _lengths(a, axes), norm, is_inverse=False)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> TensorVariable:
    """Return the inverse of `fftn`. It divides by what `fftn` does not divide by."""
    a, axes = _prepared(a, s, axes)
    return _scaled(FourierTransform(axes, inverse=True)(a), _lengths(a, axes), norm, is_inverse=True)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> TensorVariable:
    """Return the first `n // 2 + 1` coefficients of `fftn` along the last of `axes`, for a real `a`.

    Raises TypeError for a complex one.
    """
    a, axes = _prepared(a, s, axes)
    return _scaled(HalfTransform(axes)(a), _lengths(a, axes), norm, is_inverse=False)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> TensorVariable:
    """Return the inverse of `rfftn`, a real tensor.

    Its last axis has the length that `s` says, or `2 * (m - 1)` for `m` coefficients.
    """
    a = as_tensor_variable(a)
    found = _axes_of(a, s, axes)
    length = mul(sub(shape_i(a, found[-1]), 1), 2) if s is None else s[-1]
    coefficients = add(floor_div(length, 2), 1)
    a, axes = _prepared(a, None if s is None else [*s[:-1], coefficients], found)
    lengths = [*_lengths(a, axes)[:-1], length]
    return _scaled(TransformOfHalf(axes)(a, length), lengths, norm, is_inverse=True)


def fft(a: Any, n: Any = None, axis: Any = -1, norm: str | None = None) -> TensorVariable:
    """Return `fftn` along one axis, of which the first `n` elements are used.

    `axis` may be an integer variable; None is the last one.
    """
    return _along(axis, a, lambda x, number: fftn(x, None if n is None else (n,), (number,), norm))


def ifft(a: Any, n: Any = None, axis: Any = -1, norm: str | None = None) -> TensorVariable:
    """Return `ifftn` along one axis, of which the first `n` elements are used; `axis` is as for `fft`."""
    return _along(axis, a, lambda x, number: ifftn(x, None if n is None else (n,), (number,), norm))


def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Return the `n` real coefficients of a tensor whose further elements along `axis` are conjugates."""
    return irfftn(conj(a), None if n is None else (n,), (axis,), _opposite(norm))


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Return the inverse of `hfft`: the first `n // 2 + 1` elements along `axis`."""
    return conj(rfftn(a, None if n is None else (n,), (axis,), _opposite(norm)))


def fftfreq(n: Any, d: Any = 1.0) -> TensorVariable:
    """Return the frequencies of the `n` coefficients of a transform whose samples are `d` apart."""
    half = floor_div(sub(n, 1), 2)
    at = arange(n)
    return true_div(switch(gt(at, half), sub(at, n), at), mul(n, d))


def rfftfreq(n: Any, d: Any = 1.0) -> TensorVariable:
    """Return the frequencies of the `n // 2 + 1` coefficients of `rfftn` of samples that are `d` apart."""
    return true_div(arange(add(floor_div(n, 2), 1)), mul(n, d))


def fftshift(x: Any, axes: Any = None) -> TensorVariable:
    """Return `x` with the frequency 0 moved to the middle of `axes`, by default of all."""
    return _shifted(x, axes, lambda length: floor_div(length, 2))


def ifftshift(x: Any, axes: Any = None) -> TensorVariable:
    """Return the inverse of `fftshift`."""
    return _shifted(x, axes, lambda length: sub(0, floor_div(length, 2)))


def _along(axis: Any, a: Any, transform: Callable[[Any, Any], Any]) -> Any:
    """Return the `transform` of `a` along `axis`, a number, None for the last one, or an integer variable.

    For a variable, the axes before it, and those behind it, are one axis each while `a` is transformed.
    """
    if axis is None or not isinstance(axis, Variable) or isinstance(axis, Constant):
        return transform(a, -1 if axis is None else axis)
    a = as_tensor_variable(a)
    (axis,) = lengths_of((axis,))
    axis = switch(lt(axis, 0), add(axis, a.type.ndim), axis)
    lengths = lengths_along(a)
    before = [switch(gt(axis, place), length, 1) for place, length in enumerate(lengths)]
    behind = [switch(lt(axis, place), length, 1) for place, length in enumerate(lengths)]
    # No axis of `a` is meant by a number out of bounds: the elements then have no place.
    own = [switch(eq(axis, place), length, 0) for place, length in enumerate(lengths)]
    found = transform(reshape(a, [reduce(mul, before), reduce(add, own), reduce(mul, behind)]), 1)
    length = shape_i(found, 1)
    return reshape(found, [switch(eq(axis, place), length, old) for place, old in enumerate(lengths)])


def _shifted(x: Any, axes: Any, shift: Any) -> Any:
    x = as_tensor_variable(x)
    for axis in axes_of(f"Moving frequencies of {x}", axes, x.type.ndim):
        x = roll(x, shift(shape_i(x, axis)), axis)
    return x


def _prepared(a: Any, s: Any, axes: Any) -> tuple[Any, tuple[int, ...]]:
    """Return `a` with the lengths `s`, and its axes to transform."""
    a = as_tensor_variable(a)
    found = _axes_of(a, s, axes)
    for axis, length in zip(found, () if s is None else s, strict=s is not None):
        a = _resized(a, axis, length)
    return a, found


def _axes_of(a: Any, s: Any, axes: Any) -> tuple[int, ...]:
    doing = f"Transforming {a} of type {a.type}"
    if axes is None and s is not None:
        axes = range(-len(s), 0)
    found = axes_of(doing, axes, a.type.ndim)
    if not found:
        raise ValueError(f"{doing}: it needs an axis at least")
    if s is not None and len(s) != len(found):
        raise ValueError(f"{doing}: there are {len(found)} axes and {len(s)} lengths")
    return found


def _resized(x: Any, axis: int, length: Any) -> Any:
    """Return `x` with the first `length` elements along `axis`, with zeros where it has fewer."""
    if x.type.shape[axis] is not None and x.type.shape[axis] == length:
        return x
    lengths = lengths_along(x)
    kept = slice_at_axis(slice(None, minimum(lengths[axis], length)), axis)
    lengths[axis] = length
    return zeros(lengths, x.type.dtype)[kept].set(x[kept])


def _lengths(x: Any, axes: Sequence[int]) -> list[Any]:
    return [shape_i(x, axis) for axis in axes]


def _opposite(norm: str | None) -> str | None:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _scaled(x: Any, lengths: Sequence[Any], norm: str | None, is_inverse: bool) -> Any:
    """Return `x` divided by what `norm` says, given the lengths of the axes that were transformed."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"Transforming: norm is {norm!r}; it must be 'backward', 'ortho' or 'forward'")
    if norm != "ortho" and (norm == "forward") == is_inverse:
        return x
    count = cast(reduce(mul, lengths), part_of(x.type.dtype))
    return true_div(x, sqrt(count) if norm == "ortho" else count)
