"""Ops that change the gradient of a value, not the value; rewriting removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.errors import NullGradientError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros_like
from engine.tensor.math import clip, mul


class GradientControl(Op):
    """Returns its input. Subclasses say what becomes of the gradient."""

    __props__: tuple[str, ...] | None = ()

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = inputs[0].copy()

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return list(tangents)


class ZeroGrad(GradientControl):
    """A value with a gradient of 0."""

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [zeros_like(inputs[0])]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [None if tangents[0] is None else zeros_like(inputs[0])]


class DisconnectedGrad(GradientControl):
    """A value that gradients do not go through, as if it were a constant."""

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output is not connected with the input."""
        return [[False]]


class UndefinedGrad(GradientControl):
    """A value whose gradient is refused (NullGradientError)."""

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        raise NullGradientError(f"Taking a gradient through {inputs[0]}: it was declared undefined", self)

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise NullGradientError(f"Taking a tangent through {inputs[0]}: it was declared undefined", self)


class GradClip(GradientControl):
    """A value whose gradient is clipped to [`clip_lower_bound`, `clip_upper_bound`].

    Raises ValueError if the lower bound is not below the upper one.
    """

    __props__ = ("clip_lower_bound", "clip_upper_bound")

    def __init__(self, clip_lower_bound: float, clip_upper_bound: float) -> None:
        if not clip_lower_bound <= clip_upper_bound:
            raise ValueError(
                f"Clipping a gradient: the bounds are {clip_lower_bound} and {clip_upper_bound}; the lower "
                "one must be the first"
            )
        self.clip_lower_bound = float(clip_lower_bound)
        self.clip_upper_bound = float(clip_upper_bound)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        bounds = self.clip_lower_bound, self.clip_upper_bound
        return [None if cotangents[0] is None else clip(cotangents[0], *bounds)]


class GradScale(GradientControl):
    """A value whose gradient is multiplied by `multiplier`."""

    __props__ = ("multiplier",)

    def __init__(self, multiplier: float) -> None:
        self.multiplier = float(multiplier)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None if cotangents[0] is None else mul(cotangents[0], self.multiplier)]


zero_grad_, disconnected_grad_, undefined_grad_ = ZeroGrad(), DisconnectedGrad(), UndefinedGrad()
"""The Ops of the functions of these names."""


def zero_grad(x: Any) -> Any:
    """Return `x` with a gradient of 0."""
    return zero_grad_(x)


def disconnected_grad(x: Any) -> Any:
    """Return `x` as a constant of gradients: they do not go through it."""
    return disconnected_grad_(x)


def undefined_grad(x: Any) -> Any:
    """Return `x`; a gradient through it is refused (NullGradientError)."""
    return undefined_grad_(x)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Any:
    """Return `x` with its gradient clipped to these bounds; refuse (ValueError) bounds in the wrong order."""
    return GradClip(lower_bound, upper_bound)(x)


def grad_scale(x: Any, multiplier: float) -> Any:
    """Return `x` with its gradient multiplied by a number."""
    return GradScale(multiplier)(x)
