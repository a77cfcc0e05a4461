"""Sets: the elements, or slices, of a tensor without repetitions, by numpy's `unique`, and membership."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.scalar.promotion import FLOATS
from engine.tensor.axes import axis_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import zeros_like
from engine.tensor.math import eq
from engine.tensor.math import invert as inverted
from engine.tensor.quantifiers import any as any_over
from engine.tensor.rearranging import shape_padright
from engine.tensor.shape import flatten, lengths_along, reshape
from engine.tensor.type import tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Unique(Op):
    """The distinct elements of a tensor in ascending order, or its distinct slices along `axis`.

    Further outputs are int64 vectors: with `return_index` the position of each one's first occurrence, with
    `return_inverse` for each element or slice which of the distinct ones it is, with `return_counts` how
    often each occurs. NaNs are one element if `equal_nan`.
    """

    __props__ = ("return_index", "return_inverse", "return_counts", "axis", "equal_nan")

    def __init__(
        self,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
        equal_nan: bool = True,
    ) -> None:
        self.return_index = bool(return_index)
        self.return_inverse = bool(return_inverse)
        self.return_counts = bool(return_counts)
        self.axis = axis
        self.equal_nan = bool(equal_nan)

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        axis = None if self.axis is None else axis_of(f"Applying {self} to {x.type}", self.axis, x.type.ndim)
        if axis != self.axis:
            given = self.return_index, self.return_inverse, self.return_counts
            return Unique(*given, axis, self.equal_nan).make_node(x)
        shape: list[int | None] = [None] if axis is None else list(x.type.shape)
        shape[axis or 0] = None
        positions = [tensor_type("int64", (None,)).make_variable() for _ in range(self._n_positions())]
        return Apply(self, [x], [tensor_type(x.type.dtype, tuple(shape)).make_variable(), *positions])

    def _n_positions(self) -> int:
        return self.return_index + self.return_inverse + self.return_counts

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        options: dict[str, Any] = {name: getattr(self, name) for name in self.__props__}
        found: Any = np.unique(inputs[0], **options)
        values, *positions = found if self._n_positions() else (found,)
        output_storage[0][0] = values
        for cell, result in zip(output_storage[1:], positions, strict=True):
            cell[0] = result.ravel().astype("int64", copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradient: it goes to the first occurrences."""
        (x,), gradient = inputs, cotangents[0]
        if gradient is None or x.type.dtype not in FLOATS:
            return [None]
        first = outputs[1] if self.return_index else self._first(x)
        if self.axis is None:
            found = zeros_like(flatten(x))[first].set(gradient)
            return [reshape(found, lengths_along(x))]
        return [zeros_like(x)[(*(slice(None),) * self.axis, first)].set(gradient)]

    def _first(self, x: Any) -> Any:
        return Unique(return_index=True, axis=self.axis, equal_nan=self.equal_nan)(x)[1]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the values depend on the tensor, and positions do not."""
        return [[True, *([False] * self._n_positions())]]


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the distinct elements of `ar` in ascending order, or its distinct slices along `axis`.

    With further results (see `Unique`) it is a list of all. NaNs are one element if `equal_nan`.
    """
    return Unique(return_index, return_inverse, return_counts, axis, equal_nan)(ar)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> TensorVariable:
    """Return True for each element of `element` that is one of `test_elements`; with `invert`, that is not.

    NaN is none. `assume_unique` is numpy's and decides nothing here.
    """
    element, tested = as_tensor_variable(element), flatten(as_tensor_variable(test_elements))
    found = any_over(eq(shape_padright(element), tested), -1)
    return inverted(found) if invert else found
