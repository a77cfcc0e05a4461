"""Sums and products of all elements up to each one, along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import FLOATS
from engine.tensor.axes import axis_of, numbers_of, with_axis
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import cast
from engine.tensor.shape import flatten

_DEFAULT = {"bool": "int64", "int32": "int64"}


class CumOp(Op):
    """The sums (`mode` "add") or products ("mul") of the elements up to each one along `axis`, in their dtype."""

    __props__ = ("axis", "mode")

    def __init__(self, axis: int, mode: str = "add") -> None:
        (self.axis,) = numbers_of("Making an Op along an axis", [axis])
        self.mode = mode
        if mode not in ("add", "mul"):
            raise ValueError(f'Making a CumOp with mode={mode!r}: it must be "add" or "mul"')

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype == "bool":
            raise TypeError(f"Applying {self} to {x.type}: it takes numbers")
        axis = axis_of(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        return Apply(self if axis == self.axis else with_axis(self, axis), [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        function = np.cumsum if self.mode == "add" else np.cumprod
        with np.errstate(all="ignore"):
            output_storage[0][0] = function(inputs[0], axis=self.axis, dtype=inputs[0].dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Of a product: for elements that are not 0."""
        x, gradient = inputs[0], cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None]
        if self.mode == "add":
            return [self._from_end(gradient)]
        return [pt.true_div(self._from_end(pt.mul(gradient, outputs[0])), x)]

    def _from_end(self, x: Any) -> Any:
        """The sums of the elements from each one on."""
        backwards = tuple([slice(None)] * self.axis + [slice(None, None, -1)])
        found: Any = CumOp(self.axis, "add").make_node(x[backwards]).outputs[0]
        return found[backwards]

    def __str__(self) -> str:
        return f"CumOp{{{self.axis}, {self.mode}}}"

    __repr__ = __str__


def cumsum(x: Any, axis: Any = None) -> Any:
    """The sum of all elements up to each one along `axis`; without one, of `x` flattened. Bools and int32 become int64."""
    return _cumulative(x, axis, "add")


def cumprod(x: Any, axis: Any = None) -> Any:
    """The product of all elements up to each one along `axis`; without one, of `x` flattened. Bools and int32 become int64.

    Its gradient is that of elements that are not 0.
    """
    return _cumulative(x, axis, "mul")


def _cumulative(x: Any, axis: Any, mode: str) -> Any:
    x = as_tensor_variable(x)
    if axis is None:
        x, axis = flatten(x), 0
    number = axis_of("Adding or multiplying up a tensor", axis, x.type.ndim)
    x = cast(x, _DEFAULT.get(x.type.dtype, x.type.dtype))
    return CumOp(number, mode).make_node(x).outputs[0]
