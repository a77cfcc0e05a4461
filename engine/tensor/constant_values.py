"""The number that a variable is known to be when the graph is built, whatever Ops are between."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.reference import run_node
from engine.graph.represented import RepresentedType
from engine.graph.variables import Constant, Variable
from engine.scalar.conversion import Cast, second
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import INTEGERS
from engine.tensor.checks import CheckAndRaise, SpecifyShape
from engine.tensor.conversion import as_tensor_variable
from engine.tensor.creation import Alloc
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.joining import Join
from engine.tensor.none_type import NoneTypeT
from engine.tensor.shape import MakeVector, Reshape, Shape_i
from engine.tensor.single_numbers import ScalarFromTensor, TensorFromScalar
from engine.tensor.slicing import Subtensor

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_SAME_ELEMENTS = (Alloc, DimShuffle, Reshape, ScalarFromTensor, SpecifyShape, TensorFromScalar)
"""Ops all of whose elements are elements of their first input."""
MOST_NODES_DEEP = 10


class NotScalarConstantError(Exception):
    """An error of a variable that is not known to be one number."""


def get_scalar_constant_value(
    v: Any,
    elemwise: bool = True,
    only_process_constants: bool = False,
    max_recur: int = MOST_NODES_DEEP,
    raise_not_constant: bool = True,
) -> Any:
    """Return the value of `v`, of 0 dimensions, as `get_underlying_scalar_constant_value` does."""
    ndim = getattr(v.type, "ndim", 0) if isinstance(v, Variable) else np.ndim(v)
    if ndim:
        raise NotScalarConstantError(f"Finding the value of {v}: it has {ndim} dimensions, not 0")
    return get_underlying_scalar_constant_value(
        v,
        elemwise=elemwise,
        only_process_constants=only_process_constants,
        max_recur=max_recur,
        raise_not_constant=raise_not_constant,
    )


def get_underlying_scalar_constant_value(
    v: Any,
    *,
    elemwise: bool = True,
    only_process_constants: bool = False,
    max_recur: int = MOST_NODES_DEEP,
    raise_not_constant: bool = True,
) -> Any:
    """Return the number that all elements of `v` are, as an array of 0 dimensions that is the caller's own.

    Constants and what moves, repeats, checks or casts their elements are looked through, at most `max_recur`
    nodes; with `elemwise`, so are elementwise operations; with `only_process_constants`, nothing is. The
    value of NoneConst is None. Raises NotScalarConstantError if there is no such number; without
    `raise_not_constant`, `v` itself is returned.
    """
    depth = 0 if only_process_constants else max_recur
    found = _value(v, elemwise, depth)
    if found is not _UNKNOWN:
        return found
    if not raise_not_constant:
        return v
    raise NotScalarConstantError(f"Finding the value of {v}: it is not known to be one number")


_UNKNOWN = object()


def _value(v: Any, elemwise: bool, depth: int) -> Any:
    if not isinstance(v, Variable):
        return _element(v)
    if isinstance(v, Constant):
        return None if isinstance(v.type, NoneTypeT) else _element(v.data)
    if v.owner is None or depth <= 0 or isinstance(v.type, RepresentedType):
        return _UNKNOWN
    found = _node_value(v.owner, elemwise, depth - 1)
    return found if found is _UNKNOWN else np.asarray(found, getattr(v.type, "dtype", None))


def _element(data: Any) -> Any:
    """Return a copy of the one element of `data`, or of its first one if all have the same bits."""
    array = np.asarray(data)
    if array.dtype.kind not in "biufc" or array.size == 0:
        return _UNKNOWN
    first = array.ravel()[:1].reshape(())
    return np.array(first) if all(each.tobytes() == first.tobytes() for each in array.ravel()) else _UNKNOWN


def _node_value(node: Apply, elemwise: bool, depth: int) -> Any:
    op: Any = node.op
    source: Any = node.inputs[0] if node.inputs else None
    if isinstance(op, Shape_i):
        length = source.type.shape[op.i]
        return _UNKNOWN if length is None else length
    if isinstance(op, CheckAndRaise):
        conditions = [_value(each, elemwise, depth) for each in node.inputs[1:]]
        holds = all(each is not _UNKNOWN and bool(each) for each in conditions)
        return _value(source, elemwise, depth) if holds else _UNKNOWN
    if isinstance(op, _SAME_ELEMENTS):
        return _value(source, elemwise, depth)
    if isinstance(op, Subtensor):
        return _element_of(node, elemwise, depth)
    scalar_op = getattr(op, "scalar_op", op)
    if isinstance(op, Elemwise | ScalarOp) and scalar_op == second:
        return _value(node.inputs[1], elemwise, depth)
    if isinstance(op, Elemwise | ScalarOp) and (elemwise or isinstance(scalar_op, Cast)):
        return _computed(node, [_value(each, elemwise, depth) for each in node.inputs])
    return _UNKNOWN


def _computed(node: Apply, values: Sequence[Any]) -> Any:
    if len(node.outputs) > 1 or any(value is _UNKNOWN or value is None for value in values):
        return _UNKNOWN
    shaped = [value.reshape((1,) * v.type.ndim) for value, v in zip(values, node.inputs, strict=True)]
    return np.asarray(run_node(node, shaped)[0]).reshape(())


def _element_of(node: Apply, elemwise: bool, depth: int) -> Any:
    """Return the element that an index takes from a constant, or from a vector of numbers."""
    source, *positions = node.inputs
    if isinstance(source, Constant):
        known = [_value(each, elemwise, depth) for each in positions]
        if all(each is not _UNKNOWN for each in known):
            return _element(run_node(node, [source.data, *known])[0])
    maker = source.owner
    if maker is None or len(positions) != 1 or node.outputs[0].type.ndim:
        return _value(source, elemwise, depth)
    if isinstance(maker.op, MakeVector | Join):
        position = _value(positions[0], elemwise, depth)
        one_each = all(each.type.shape in ((), (1,)) for each in maker.inputs)
        if position is not _UNKNOWN and one_each and -len(maker.inputs) <= position < len(maker.inputs):
            return _value(maker.inputs[int(position)], elemwise, depth)
        return _UNKNOWN
    return _value(source, elemwise, depth)


def infer_static_shape(shape: Any) -> tuple[tuple[TensorVariable, ...], tuple[int | None, ...]]:
    """Return the lengths in `shape` as tensors of 0 dimensions, and as numbers where they are known.

    Raises TypeError for lengths that are no integers, and ValueError for those that are no single numbers.
    """
    lengths = tuple([as_tensor_variable(item, ndim=0) for item in shape])
    for length in lengths:
        if length.type.dtype not in INTEGERS:
            written = import_module("engine.printing").min_informative_str(length)
            raise TypeError(f"Shapes must be scalar integers; found one of {length.type.dtype}:\n{written}")
    known = [get_underlying_scalar_constant_value(v, raise_not_constant=False) for v in lengths]
    return lengths, tuple([None if isinstance(v, Variable) else int(v) for v in known])
