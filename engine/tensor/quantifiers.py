"""Logical reductions: `all` and `any`."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import numpy as np

from engine.graph.apply import Apply
from engine.scalar import and_, or_
from engine.scalar.promotion import COMPLEX
from engine.tensor.axes import normalize_axis
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.math import neq
from engine.tensor.reduction import Reduction

if typing.TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class All(Reduction):
    """True where all elements over `axis` are nonzero; true for no elements."""

    scalar_op: typing.ClassVar[typing.Any] = and_

    def make_node(self, x: typing.Any) -> Apply:
        return super().make_node(_is_true(x))

    def perform(
        self, node: Apply, inputs: Sequence[typing.Any], output_storage: Sequence[list[typing.Any]]
    ) -> None:
        output_storage[0][0] = np.asarray(np.all(inputs[0], axis=self.axis))

    def pullback(
        self,
        inputs: Sequence[typing.Any],
        outputs: Sequence[typing.Any],
        cotangents: Sequence[typing.Any],
    ) -> list[typing.Any]:
        return [None]


class Any(All):
    """True where any element over `axis` is nonzero; false for no elements."""

    scalar_op: typing.ClassVar[typing.Any] = or_

    def perform(
        self, node: Apply, inputs: Sequence[typing.Any], output_storage: Sequence[list[typing.Any]]
    ) -> None:
        output_storage[0][0] = np.asarray(np.any(inputs[0], axis=self.axis))


def _is_true(x: typing.Any) -> typing.Any:
    x = as_tensor_variable(x)
    return neq(x, 0) if x.type.dtype in COMPLEX else cast(x, "bool")


def all(x: typing.Any, axis: typing.Any = None, keepdims: bool = False) -> TensorVariable:
    """Return True where all elements of `x` over `axis` (one, several, or all axes) are nonzero."""
    return _quantified(All, x, axis, keepdims)


def any(x: typing.Any, axis: typing.Any = None, keepdims: bool = False) -> TensorVariable:
    """Return True where any element of `x` over `axis` (one, several, or all axes) is nonzero."""
    return _quantified(Any, x, axis, keepdims)


def _quantified(kind: type[All], x: typing.Any, axis: typing.Any, keepdims: bool) -> typing.Any:
    x = as_tensor_variable(x)
    axes = normalize_axis("Reducing a tensor", axis, x.type.ndim)
    if not axes:
        return _is_true(x)
    op = kind(axes)
    found = op.make_node(x).outputs[0]
    return op.expand(found, x.type.ndim) if keepdims else found
