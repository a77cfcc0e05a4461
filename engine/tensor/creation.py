"""New variables that a caller gives values for, and tensors in the shape of others.

`scalar`, `vector`, `matrix`, `row`, `col` and `tensor3` take any dtype; with the prefix d they are float64, f float32,
i int32, l int64. A row's first and a column's second length is 1, so that they broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.conversion import second
from engine.scalar.promotion import FLOATS, common, weak_dtype
from engine.tensor.broadcasting import unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.elemwise import apply_elemwise, cast
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, and_, ceil, eq, fill, gt, lt, maximum, mul, neq, sub, switch, true_div
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import lengths_of
from engine.tensor.type import check_dtype, static_shape, tensor_type


def tensor(name: str | None = None, dtype: Any = "float64", shape: Sequence[int | None] = ()) -> Any:
    """A variable of `dtype`; `shape` has a length, or None, for each axis. Only a length of 1 broadcasts."""
    return tensor_type(check_dtype(dtype), static_shape(shape)).make_variable(name)


@dataclass(frozen=True)
class VariableMaker:
    """`maker(name)`: a variable of `dtype` whose static shape is `shape`; both can be given otherwise in the call."""

    shape: tuple[int | None, ...]
    dtype: str = "float64"

    def __call__(
        self, name: str | None = None, dtype: Any = None, shape: Sequence[int | None] | None = None
    ) -> Any:
        lengths = self.shape if shape is None else static_shape(shape)
        if len(lengths) != len(self.shape):
            raise ValueError(
                f"Making {name}: {len(self.shape)} lengths are needed, shape {lengths} was given"
            )
        return tensor(name, self.dtype if dtype is None else dtype, lengths)


_VECTOR, _MATRIX, _ROW, _COL, _TENSOR3 = (None,), (None, None), (1, None), (None, 1), (None, None, None)

scalar, vector, matrix = VariableMaker(()), VariableMaker(_VECTOR), VariableMaker(_MATRIX)
row, col, tensor3 = VariableMaker(_ROW), VariableMaker(_COL), VariableMaker(_TENSOR3)

dscalar, fscalar = VariableMaker((), "float64"), VariableMaker((), "float32")
iscalar, lscalar = VariableMaker((), "int32"), VariableMaker((), "int64")
dvector, fvector = VariableMaker(_VECTOR, "float64"), VariableMaker(_VECTOR, "float32")
ivector, lvector = VariableMaker(_VECTOR, "int32"), VariableMaker(_VECTOR, "int64")
dmatrix, fmatrix = VariableMaker(_MATRIX, "float64"), VariableMaker(_MATRIX, "float32")
imatrix, lmatrix = VariableMaker(_MATRIX, "int32"), VariableMaker(_MATRIX, "int64")
drow, frow = VariableMaker(_ROW, "float64"), VariableMaker(_ROW, "float32")
irow, lrow = VariableMaker(_ROW, "int32"), VariableMaker(_ROW, "int64")
dcol, fcol = VariableMaker(_COL, "float64"), VariableMaker(_COL, "float32")
icol, lcol = VariableMaker(_COL, "int32"), VariableMaker(_COL, "int64")
dtensor3, ftensor3 = VariableMaker(_TENSOR3, "float64"), VariableMaker(_TENSOR3, "float32")
itensor3, ltensor3 = VariableMaker(_TENSOR3, "int32"), VariableMaker(_TENSOR3, "int64")


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of `x`, of its dtype unless one is given."""
    return _filled(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of `x`, of its dtype unless one is given."""
    return _filled(x, 1, dtype)


def _filled(x: Any, value: int, dtype: Any) -> Any:
    x = as_tensor_variable(x)
    return apply_elemwise(second, x, number(value, x.type.dtype if dtype is None else check_dtype(dtype)))


_MOST_BYTES = 2**63 - 1
LONGEST_RANGE = _MOST_BYTES // 8
"""The most int64s that an array can have."""


class Alloc(Op):
    """A tensor of the lengths that are the further inputs (int64 of 0 dimensions), filled with the first, which has as
    many axes: those of length 1, known when the graph is built, are repeated.

    Refuses (ValueError) a negative length, another length of the value than the result's, and lengths of more bytes than
    an array can have.
    """

    __props__ = ()

    def make_node(self, value: Any, *lengths: Any) -> Apply:
        value = as_tensor_variable(value)
        variables = lengths_of(lengths)
        if value.type.ndim > len(variables):
            raise ValueError(f"Filling {len(variables)} dimensions with {value.type}: it has more")
        value = pad(value, len(variables))
        known = [int(v.data) if isinstance(v, Constant) else None for v in variables]
        shape = [
            static if static not in (1, None) and due is None else due
            for static, due in zip(value.type.shape, known, strict=True)
        ]
        for static, due in zip(value.type.shape, shape, strict=True):
            if (due or 0) < 0 or (static not in (1, None) and static != due):
                raise ValueError(
                    f"Filling a tensor of shape {tuple(known)} with {value.type}: it does not fit"
                )
        check_size([1 if length is None else length for length in shape], value.type.dtype)
        return Apply(self, [value, *variables], [tensor_type(value.type.dtype, tuple(shape)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        value, shape = inputs[0], tuple([int(length) for length in inputs[1:]])
        static = node.inputs[0].type.shape
        for known, found, due in zip(static, value.shape, shape, strict=True):
            if due < 0 or (known != 1 and found != due):
                raise ValueError(
                    f"Filling an array of shape {shape} with one of shape {value.shape}: it does not fit"
                )
        check_size(shape, value.dtype.name)
        output_storage[0][0] = np.array(np.broadcast_to(value, shape), order="C")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        value, gradient = inputs[0], cotangents[0]
        nothing = [None] * (len(inputs) - 1)
        if gradient is None or value.type.dtype not in FLOATS:
            return [None, *nothing]
        axes = unbroadcast_axes(value.type, gradient.type)
        return [sum_over(gradient, axes, keepdims=True) if axes else gradient, *nothing]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The elements depend on the value alone."""
        return [[True], *([False] for _ in node.inputs[1:])]


class ARange(Op):
    """The int64s from a start, in steps, to before a stop: inputs of int64 and 0 dimensions.

    Refuses (ValueError) a step of 0 or of -2**63, and more numbers than an array can have.
    """

    __props__ = ()

    def make_node(self, start: Any, stop: Any, step: Any) -> Apply:
        inputs = lengths_of((start, stop, step))
        known = [int(v.data) if isinstance(v, Constant) else None for v in inputs]
        length = None
        if known[0] is not None and known[1] is not None and known[2] is not None:
            length = count_between(known[0], known[1], known[2])
        elif known[2] is not None:
            count_between(0, 0, known[2])
        return Apply(self, inputs, [tensor_type("int64", (length,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        start, stop, step = (int(value) for value in inputs)
        positions = np.arange(count_between(start, stop, step), dtype="int64")
        output_storage[0][0] = np.int64(start) + positions * np.int64(step)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None] * 3


def count_between(start: int, stop: int, step: int) -> int:
    """The number of int64s from `start`, in steps, to before `stop`; refuses (ValueError) as ARange does."""
    if step in (0, -(2**63)):
        raise ValueError(f"Making a range: its step cannot be {step or 'zero'}")
    count = max(-((start - stop) // step), 0)
    if count > LONGEST_RANGE:
        raise too_many(start, stop, step)
    return count


def too_many(start: object, stop: object, step: object) -> ValueError:
    """The error for a range of more numbers than an array can have."""
    return ValueError(
        f"Making a range from {start} to {stop} in steps of {step}: Maximum allowed size exceeded; it has more numbers "
        "than an array can have, or as many as nobody can tell (inf, NaN)"
    )


def check_size(shape: Sequence[int], dtype: str) -> None:
    """Refuse (ValueError) lengths of which an array would have more bytes than there can be.

    As for numpy, a length of 0 does not make up for others.
    """
    if math.prod([length or 1 for length in shape]) * np.dtype(dtype).itemsize > _MOST_BYTES:
        raise ValueError(
            f"Filling an array of {dtype} with shape {tuple(shape)}: array is too big; it would have more bytes than an array "
            "can have"
        )


def alloc(value: Any, *shape: Any) -> Any:
    """A tensor of the lengths `shape`, numbers or integer variables, filled with `value`."""
    lengths = lengths_of(shape[0] if len(shape) == 1 and _is_shape(shape[0]) else shape)
    return Alloc().make_node(value, *lengths).outputs[0]


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor of `shape`, a length, a tuple of lengths or a vector of known length, filled with `fill_value`."""
    value = as_tensor_variable(fill_value)
    return Alloc().make_node(cast(value, dtype or value.type.dtype), *lengths_of(shape)).outputs[0]


def zeros(shape: Any, dtype: Any = "float64") -> Any:
    """Zeros in `shape`: a length, a tuple of lengths or a vector of known length."""
    return full(shape, number(0, check_dtype(dtype)))


def ones(shape: Any, dtype: Any = "float64") -> Any:
    """Ones in `shape`: a length, a tuple of lengths or a vector of known length."""
    return full(shape, number(1, check_dtype(dtype)))


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """`fill_value` in the shape of `x`, of its dtype unless one is given."""
    x = as_tensor_variable(x)
    return fill(x, cast(as_tensor_variable(fill_value), dtype or x.type.dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """The numbers from `start` (0 if only a stop is given), in steps, to before `stop`.

    Numbers or tensors of 0 dimensions; the dtype is theirs, Python's integers being int64. As many floats as numpy
    makes; each is the start and so many steps. Refuses (ValueError, in the call of the function if not before) a step of
    0, and more numbers than an array can have: up to infinity or NaN, too.
    """
    if stop is None:
        start, stop = 0, start
    bounds = [_as_bound(bound) for bound in (start, stop, step)]
    found = check_dtype(dtype or common(tuple([b.type.dtype for b in bounds])))
    if not any(bound.type.dtype in FLOATS for bound in bounds):
        return cast(ARange().make_node(*bounds).outputs[0], found)
    first, last, by = (cast(bound, "float64") for bound in bounds)
    known = [float(bound.data) for bound in bounds if isinstance(bound, Constant)]
    count = _count_floats(*known) if len(known) == 3 else _float_steps(first, last, by)
    positions = cast(ARange().make_node(0, count, 1).outputs[0], "float64")
    values = add(first, mul(positions, by))
    if not (isinstance(bounds[2], Constant) and math.isfinite(bounds[2].data)):
        values = switch(eq(positions, 0.0), first, values)
    return cast(values, found)


def _float_steps(first: Any, last: Any, by: Any) -> Any:
    """The number of floats from `first` to before `last`, an int64; where it is none, more than any array has."""
    steps = true_div(sub(last, first), by)
    # A quotient so small that it is 0 is a step nevertheless.
    is_towards = and_(neq(first, last), eq(lt(first, last), gt(by, 0.0)))
    count = maximum(cast(ceil(steps), "int64"), cast(is_towards, "int64"))
    return switch(lt(absolute(steps), 2.0**63), count, number(_MOST_BYTES, "int64"))


def _count_floats(first: float, last: float, by: float) -> int:
    steps = (last - first) / by if by else math.nan
    if not abs(steps) < 2.0**63:
        raise too_many(first, last, by)
    is_towards = first != last and (first < last) == (by > 0)
    return max(math.ceil(steps), int(is_towards))


def _as_bound(value: Any) -> Any:
    if type(value) in (int, float):
        return number(value, weak_dtype(value, ()))
    variable = as_tensor_variable(value)
    if variable.type.ndim != 0:
        raise TypeError(f"Making a range: {variable} of type {variable.type} is no number")
    return variable


def _is_shape(value: Any) -> bool:
    """Whether it has several lengths, or may have."""
    if isinstance(value, Variable):
        return bool(value.type.ndim == 1)
    return isinstance(value, tuple | list | range) or np.ndim(value) == 1
