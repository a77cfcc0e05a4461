"""Sorting along an axis. It is stable, and NaNs come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.tensor.axes import axis_of
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.elemwise import dimshuffle
from engine.tensor.shape import flatten, reshape, shape_i
from engine.tensor.type import tensor_type


class ArgSortOp(Op):
    """The positions, int64, that sort a tensor along its last axis."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim == 0:
            raise TypeError(f"Sorting {x} of type {x.type}: it has no axis")
        return Apply(self, [x], [tensor_type("int64", x.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.argsort(inputs[0], axis=-1, kind="stable").astype("int64", copy=False)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]


def argsort(x: Any, axis: Any = -1) -> Any:
    """The positions that sort `x` along `axis`; without one, `x` flattened. Equal elements keep their order."""
    x, order = _with_axis_last(x, axis)
    return dimshuffle(ArgSortOp().make_node(x).outputs[0], order)


def sort(x: Any, axis: Any = -1) -> Any:
    """`x` sorted along `axis`; without one, `x` flattened."""
    x, order = _with_axis_last(x, axis)
    last = x.type.ndim - 1
    positions = flatten(ArgSortOp().make_node(x).outputs[0])
    length = shape_i(x, last)
    # Rows lie one behind the other in what is flattened.
    row = pt.sub(
        pt.arange(shape_i(positions, 0)), pt.mod(pt.arange(shape_i(positions, 0)), pt.maximum(length, 1))
    )
    taken = flatten(x)[pt.add(row, positions)]
    return dimshuffle(reshape(taken, [shape_i(x, a) for a in range(x.type.ndim)]), order)


def _with_axis_last(x: Any, axis: Any) -> tuple[Any, list[int]]:
    """`x` with `axis` last, and the order that puts it back."""
    x = as_tensor_variable(x)
    if axis is None:
        return flatten(x), [0]
    number = axis_of("Sorting a tensor", axis, x.type.ndim)
    ndim = x.type.ndim
    order = [*[a for a in range(ndim) if a != number], number]
    return dimshuffle(x, order), [order.index(a) for a in range(ndim)]
