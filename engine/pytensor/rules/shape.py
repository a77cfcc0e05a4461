"""Rules for lengths, shapes, new tensors and joined ones."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    ExtractDiag,
    Eye,
    Join,
    MakeVector,
    Nonzero,
    Split,
)
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape

import engine.tensor as pt
from engine.inner.folding import constant_of
from engine.pytensor.representation import Untranslatable, known
from engine.pytensor.scope import Rule, Scope
from engine.tensor.conversion import number
from engine.tensor.shape import elements_of, folded_shape_i, size_over


def elements(scope: Scope, vector: Any, count: int, what: str) -> list[Any]:
    """Return the `count` elements of an integer vector; another length raises ValueError when it runs."""
    if vector.type.shape[0] is None:
        message = f"{what} must have {count} elements"
        scope.require(pt.eq(folded_shape_i(vector, 0), count), ValueError, message)
        return [pt.cast(vector[position], "int64") for position in range(count)]
    if vector.type.shape[0] != count:
        raise Untranslatable(f"{what} has {vector.type.shape[0]} elements, not {count}")
    return elements_of(vector)


def _shape(scope: Scope, node: Any, x: Any) -> Any:
    return pt.shape(x)


def _shape_i(scope: Scope, node: Any, x: Any) -> Any:
    return folded_shape_i(x, node.op.i)


def _reshape(scope: Scope, node: Any, x: Any, shape: Any) -> Any:
    return pt.reshape(x, tuple(elements(scope, shape, node.op.ndim, "Shape argument to Reshape")))


def _specify_shape(scope: Scope, node: Any, x: Any, *lengths: Any) -> Any:
    for axis, length in enumerate(lengths):
        if length is None:
            continue
        message = f"SpecifyShape: dim {axis} of input has another length than expected"
        scope.require(pt.eq(folded_shape_i(x, axis), length), AssertionError, message)
    return x


def _join_dims(scope: Scope, node: Any, x: Any) -> Any:
    joined = node.op.axis_range
    before, after = _lengths(x, range(joined.start)), _lengths(x, range(joined.stop, x.type.ndim))
    return pt.reshape(x, (*before, size_over(x, joined), *after))


def _split_dims(scope: Scope, node: Any, x: Any, shape: Any) -> Any:
    axis = node.op.axis
    count = node.outputs[0].type.ndim - x.type.ndim + 1
    parts = elements(scope, shape, count, "Shape argument to SplitDims")
    before, after = _lengths(x, range(axis)), _lengths(x, range(axis + 1, x.type.ndim))
    return pt.reshape(x, (*before, *parts, *after))


def _lengths(x: Any, axes: range) -> list[Any]:
    return [folded_shape_i(x, axis) for axis in axes]


def _make_vector(scope: Scope, node: Any, *items: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    if not items:
        return pt.constant([], dtype=dtype)
    return pt.MakeVector(dtype)(*[pt.cast(item, dtype) for item in items])


def _join(scope: Scope, node: Any, *tensors: Any) -> Any:
    dtype = node.outputs[0].type.dtype
    return pt.join(node.op.axis, *[pt.cast(tensor, dtype) for tensor in tensors])


def _split(scope: Scope, node: Any, x: Any, sizes: Any) -> list[Any]:
    op = node.op
    parts, start, found = elements(scope, sizes, op.len_splits, "Split sizes"), number(0, "int64"), []
    for size in parts:
        scope.require(pt.ge(size, 0), ValueError, "Split sizes cannot be negative")
        stop = constant_of(pt.add(start, size))
        found.append(x[(slice(None),) * op.axis + (slice(known(start), known(stop)),)])
        start = stop
    message = "Split sizes do not sum to the length of the axis"
    scope.require(pt.eq(start, folded_shape_i(x, op.axis)), ValueError, message)
    return found


def _alloc(scope: Scope, node: Any, value: Any, *lengths: Any) -> Any:
    return pt.alloc(value, *lengths) if lengths else value


def _alloc_empty(scope: Scope, node: Any, *lengths: Any) -> Any:
    zero = number(0, node.outputs[0].type.dtype)
    return pt.alloc(zero, *lengths) if lengths else zero


def _arange(scope: Scope, node: Any, start: Any, stop: Any, step: Any) -> Any:
    return pt.arange(start, stop, step, dtype=node.outputs[0].type.dtype)


def _eye(scope: Scope, node: Any, rows: Any, columns: Any, offset: Any) -> Any:
    return pt.eye(rows, columns, offset, dtype=node.outputs[0].type.dtype)


def _extract_diag(scope: Scope, node: Any, x: Any) -> Any:
    op = node.op
    if x.type.ndim == 2:
        return pt.diagonal(x, op.offset)
    rest = [axis for axis in range(x.type.ndim) if axis not in (op.axis1, op.axis2)]
    rows, columns = folded_shape_i(x, op.axis1), folded_shape_i(x, op.axis2)
    down, right = max(-op.offset, 0), max(op.offset, 0)
    places = pt.arange(pt.maximum(pt.minimum(pt.sub(rows, down), pt.sub(columns, right)), 0))
    flat = pt.add(pt.mul(pt.add(places, down), columns), pt.add(places, right))
    moved = pt.dimshuffle(x, (*rest, op.axis1, op.axis2))
    lengths = [folded_shape_i(x, axis) for axis in rest]
    return pt.reshape(moved, (*lengths, pt.mul(rows, columns)))[(..., flat)]


def _nonzero(scope: Scope, node: Any, x: Any) -> list[Any]:
    return list(pt.nonzero(x))


RULES: dict[type, Rule] = {
    Shape: _shape,
    Shape_i: _shape_i,
    Reshape: _reshape,
    SpecifyShape: _specify_shape,
    JoinDims: _join_dims,
    SplitDims: _split_dims,
    MakeVector: _make_vector,
    Join: _join,
    Split: _split,
    Alloc: _alloc,
    AllocEmpty: _alloc_empty,
    ARange: _arange,
    Eye: _eye,
    ExtractDiag: _extract_diag,
    Nonzero: _nonzero,
}
