"""Fourier transforms of real tensors, by numpy. A last axis of length 2 has the real and imaginary parts.

The first axis has batches; the transforms are over all others. numpy's transforms, of complex tensors, are
here by their names, but for `rfft` and `irfft`: use `rfftn` and `irfftn` with one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import FLOATS
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.creation import arange
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.fourier import (
    fft,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifftn,
    ifftshift,
    ihfft,
    irfftn,
    rfftfreq,
    rfftn,
)
from engine.tensor.known_lengths import known_length
from engine.tensor.math import add, and_, floor_div, gt, lt, mul, sqrt, sub, switch, true_div
from engine.tensor.shape import lengths_of, shape_i
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

__all__ = [
    "IRFFTOp",
    "RFFTOp",
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft_op",
    "irfftn",
    "rfft",
    "rfft_op",
    "rfftfreq",
    "rfftn",
]

_NORMS = (None, "ortho", "no_norm")


class RFFTOp(Op):
    """The Fourier transform of a real tensor: the n // 2 + 1 coefficients along the last axis that are no
    conjugates of others.
    """

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = _floats(x, 2)
        last = x.type.shape[-1]
        shape = (*x.type.shape[:-1], None if last is None else last // 2 + 1, 2)
        return Apply(self, [x], [tensor_type(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        (x,) = inputs
        found = np.fft.rfftn(x, axes=range(1, x.ndim))
        output_storage[0][0] = np.stack([found.real, found.imag], -1).astype(x.dtype, copy=False)

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        *others, last = input_shapes[0]
        return [(*others, add(floor_div(last, 2), 1), number(2, "int64"))]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None]
        length = shape_i(inputs[0], -1)
        return [irfft_op(mul(cotangents[0], _weights(cotangents[0], length, 0.5)), length)]


class IRFFTOp(Op):
    """The inverse of `RFFTOp`, times the number of elements. Inputs: the coefficients, and the length of the
    result's last axis.
    """

    __props__ = ()

    def make_node(self, x: Any, length: Any) -> Apply:
        x = _floats(x, 3)
        if x.type.shape[-1] not in (2, None):
            raise TypeError(f"Transforming {x.type}: its last axis must have the real and imaginary parts")
        (length,) = lengths_of((length,))
        known = known_length(length)
        output = tensor_type(x.type.dtype, (*x.type.shape[:-2], known)).make_variable()
        return Apply(self, [x, length], [output])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, length = inputs
        lengths = (*x.shape[1:-2], int(length))
        found = np.fft.irfftn(x[..., 0] + 1j * x[..., 1], s=lengths, axes=range(1, x.ndim - 1))
        output_storage[0][0] = (found * np.prod(lengths)).astype(x.dtype, copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None:
            return [None, None]
        found = rfft_op(cotangents[0])
        return [mul(found, _weights(found, inputs[1], 2.0)), None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the coefficients."""
        return [[True], [False]]


rfft_op, irfft_op = RFFTOp(), IRFFTOp()


def _floats(x: Any, ndim: int) -> Any:
    x = as_tensor_variable(x)
    if x.type.ndim < ndim or x.type.dtype not in FLOATS:
        raise TypeError(f"Transforming {x} of type {x.type}: it must be of floats, with {ndim} axes or more")
    return x


def _weights(coefficients: Any, length: Any, inner: float) -> Any:
    """Return `inner` for the coefficients that stand for their conjugates too, 1 for the others.

    The others are the first one and, if there are two for each frequency, the last.
    """
    at = arange(shape_i(coefficients, -2))
    stands_for_two = and_(gt(at, 0), lt(mul(at, 2), length))
    weights = switch(stands_for_two, number(inner, coefficients.type.dtype), 1)
    return dimshuffle(weights, [*["x"] * (coefficients.type.ndim - 2), 0, "x"])


def rfft(inp: Any, norm: str | None = None) -> TensorVariable:
    """Return the Fourier transform of the real tensor `inp` of shape (m, ..., n), of shape
    (m, ..., n // 2 + 1, 2).

    With `norm` "ortho" it is divided by the square root of the number of elements transformed.
    """
    _check_norm(norm)
    inp = as_tensor_variable(inp)
    found = rfft_op(inp)
    lengths = [shape_i(inp, axis) for axis in range(1, inp.type.ndim)]
    return true_div(found, sqrt(_count(lengths, inp))) if norm == "ortho" else found


def irfft(inp: Any, norm: str | None = None, is_odd: bool = False) -> TensorVariable:
    """Return the real tensor with the Fourier transform `inp`; `is_odd` says if its last axis is odd.

    It is divided by the number of elements transformed, by its square root (`norm` "ortho") or by nothing
    ("no_norm").
    """
    _check_norm(norm)
    if is_odd not in (True, False):
        raise ValueError(f"Transforming back: is_odd is {is_odd!r}; it must be True or False")
    inp = as_tensor_variable(inp)
    length = add(mul(sub(shape_i(inp, -2), 1), 2), int(is_odd))
    found = irfft_op(inp, length)
    if norm == "no_norm":
        return found
    count = _count([*[shape_i(inp, axis) for axis in range(1, inp.type.ndim - 2)], length], inp)
    return true_div(found, sqrt(count) if norm == "ortho" else count)


def _check_norm(norm: Any) -> None:
    if norm not in _NORMS:
        raise ValueError(f"Transforming: norm is {norm!r}; it must be None, 'ortho' or 'no_norm'")


def _count(lengths: Sequence[Any], x: Any) -> Any:
    return cast(reduce(mul, lengths), x.type.dtype)
