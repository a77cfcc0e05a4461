"""New tensors: filled ones and ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.configdefaults import config, is_compiling
from engine.errors import ComplexError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.scalar.conversion import second
from engine.scalar.promotion import COMPLEX, FLOATS, INEXACT, INTEGERS, common, weak_dtype
from engine.tensor.broadcasting import unbroadcast_axes
from engine.tensor.conversion import as_tensor_variable, number, pad
from engine.tensor.elemwise import apply_elemwise, cast
from engine.tensor.known_lengths import known_length
from engine.tensor.math import abs as absolute
from engine.tensor.math import add, and_, ceil, eq, fill, gt, lt, maximum, mul, neq, sub, switch, true_div
from engine.tensor.reduction import sum as sum_over
from engine.tensor.shape import lengths_of, shape_i
from engine.tensor.type import check_dtype, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


def zeros_like(model: Any, dtype: Any = None) -> TensorVariable:
    """Return zeros in the shape of `model`, in its dtype unless one is given."""
    return _filled(model, 0, dtype)


def ones_like(model: Any, dtype: Any = None) -> TensorVariable:
    """Return ones in the shape of `model`, in its dtype unless one is given."""
    return _filled(model, 1, dtype)


empty_like = zeros_like


def _filled(x: Any, value: int, dtype: Any) -> Any:
    x = as_tensor_variable(x)
    return apply_elemwise(second, x, number(value, x.type.dtype if dtype is None else check_dtype(dtype)))


_MOST_BYTES = 2**63 - 1
LONGEST_RANGE = _MOST_BYTES // 8
"""The largest number of int64s that fits into an array."""


class Alloc(Op):
    """A tensor filled with a value. Inputs: the value, then the result's lengths (0-d int64), or one sequence
    or vector of them.

    The value has as many axes as the result; its axes of static length 1 are repeated. Raises
    ValueError for a negative length, a value that does not fit, and a result larger than any array can
    be.
    """

    __props__ = ()
    differentiates_complex = True

    def make_node(self, value: Any, *lengths: Any) -> Apply:
        value = as_tensor_variable(value)
        variables = lengths_of(lengths[0] if len(lengths) == 1 and _is_shape(lengths[0]) else lengths)
        if value.type.ndim > len(variables):
            raise ValueError(f"Filling {len(variables)} dimensions with {value.type}: it has more")
        value = pad(value, len(variables))
        known = [known_length(length) for length in variables]
        shape = [
            static if static not in (1, None) and due is None else due
            for static, due in zip(value.type.shape, known, strict=True)
        ]
        for static, due in zip(value.type.shape, shape, strict=True):
            if (due or 0) < 0 or (static not in (1, None) and static != due):
                raise ValueError(
                    f"Filling a tensor of shape {tuple(known)} with {value.type}: Alloc static input type "
                    "and target shape are incompatible"
                )
        check_size([1 if length is None else length for length in shape], value.type.dtype)
        return Apply(self, [value, *variables], [tensor_type(value.type.dtype, tuple(shape)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        value, shape = inputs[0], tuple([int(length) for length in inputs[1:]])
        static = node.inputs[0].type.shape
        for known, found, due in zip(static, value.shape, shape, strict=True):
            if due < 0 or (known != 1 and found != due):
                raise ValueError(
                    f"Filling an array of shape {shape} with one of shape {value.shape}: it does not fit. "
                    "Runtime broadcasting not allowed: only axes of static length 1 are repeated"
                )
        check_size(shape, value.dtype.name)
        output_storage[0][0] = np.array(np.broadcast_to(value, shape), order="C")

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        value, *lengths = inputs
        if any(length.type.ndim for length in lengths):
            return None
        count = value.type.ndim - node.inputs[0].type.ndim
        return self.make_node(value, *[shape_i(value, axis) for axis in range(count)], *lengths).outputs

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        value, gradient = inputs[0], cotangents[0]
        nothing = [None] * (len(inputs) - 1)
        if gradient is None or value.type.dtype not in INEXACT:
            return [None, *nothing]
        axes = unbroadcast_axes(value.type, gradient.type)
        return [sum_over(gradient, axes, keepdims=True) if axes else gradient, *nothing]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the value, not on the lengths."""
        return [[True], *([False] for _ in node.inputs[1:])]


class AllocEmpty(Op):
    """A tensor of `dtype` whose elements are not given: zeros here. Inputs: its lengths.

    Applying it makes the node of an `Alloc`.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = check_dtype(dtype)

    def make_node(self, *lengths: Any) -> Apply:
        return alloc.make_node(number(0, self.dtype), *lengths_of(lengths))


class ARange(Op):
    """The int64s from `start` to before `stop` in steps of `step`, three 0-d int64 inputs.

    Raises ValueError for a step of 0 or -2**63, and for more numbers than an array can hold. Numbers of
    another `dtype` are computed of these: applying `ARange(dtype)` is what `arange` does.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: Any = "int64") -> None:
        self.dtype = check_dtype(dtype)

    def make_node(self, start: Any, stop: Any, step: Any) -> Apply:
        if self.dtype != "int64":
            node: Any = arange(start, stop, step, self.dtype).owner
            return node
        inputs = lengths_of((start, stop, step))
        known = [known_length(v) for v in inputs]
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


_positions = ARange()


def count_between(start: int, stop: int, step: int) -> int:
    """Return how many int64s `arange(start, stop, step)` has. Raises ValueError as ARange does."""
    if step in (0, -(2**63)):
        raise ValueError(f"Making a range: its step cannot be {step or 'zero'}")
    count = max(-((start - stop) // step), 0)
    if count > LONGEST_RANGE:
        raise too_many(start, stop, step)
    return count


def too_many(start: object, stop: object, step: object) -> ValueError:
    """Return the error for a range of more numbers than an array can hold."""
    return ValueError(
        f"Making a range from {start} to {stop} in steps of {step}: Maximum allowed size exceeded; it is "
        "infinite, or longer than an array can be"
    )


def check_size(shape: Sequence[int], dtype: str) -> None:
    """Raise ValueError if an array of this shape would have more bytes than any array can.

    Lengths of 0 count as 1, as in numpy.
    """
    if math.prod([length or 1 for length in shape]) * np.dtype(dtype).itemsize > _MOST_BYTES:
        raise ValueError(
            f"Filling an array of {dtype} with shape {tuple(shape)}: array is too big; it would have more "
            "bytes than an array can have"
        )


alloc = Alloc()
"""A tensor filled with a value: `alloc(value, *shape)`, of numbers or integer variables."""


def full(shape: Any, fill_value: Any, dtype: Any = None) -> TensorVariable:
    """Return a tensor filled with `fill_value`; `shape` is a length, a tuple of them, or a vector of
    known length.
    """
    value = as_tensor_variable(fill_value)
    return alloc(cast(value, dtype or value.type.dtype), *lengths_of(shape))


def zeros(shape: Any, dtype: Any = "floatX") -> TensorVariable:
    """Return zeros. `shape` is a length, a tuple of lengths or a vector of known length."""
    return full(shape, number(0, check_dtype(dtype)))


def ones(shape: Any, dtype: Any = "floatX") -> TensorVariable:
    """Return ones. `shape` is a length, a tuple of lengths or a vector of known length."""
    return full(shape, number(1, check_dtype(dtype)))


empty = zeros
"""Undefined elements are zero here."""


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> TensorVariable:
    """Return a tensor filled with `fill_value` in the shape of `a`, in its dtype unless one is given."""
    a = as_tensor_variable(a)
    return fill(a, cast(as_tensor_variable(fill_value), dtype or a.type.dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> TensorVariable:
    """Return the numbers from `start` (0 if only a stop is given) to before `stop`, in steps of `step`.

    The bounds are numbers or 0-d tensors. Of integers the result is int64; otherwise it has the common
    dtype of the tensors, or float64 if none of them is a float. Where the flag cast_policy is "numpy+floatX"
    it has the dtype that numpy gives arrays of the bounds' dtypes, or floatX for a float64 that none of them
    has.
    Float ranges have as many elements as numpy's, each computed as start + i * step. Raises TypeError for a
    uint64, and ValueError, when the function runs if not before, for a step of 0 and for a range that is
    infinite or longer than an array can be.
    """
    if stop is None:
        start, stop = 0, start
    given = (start, stop, step)
    bounds = [_as_bound(bound) for bound in given]
    found = check_dtype(dtype or _range_dtype(given, bounds))
    if any(bound.type.dtype in COMPLEX for bound in bounds):
        raise ComplexError("Counting from one complex number to another: they have no order")
    if found in INTEGERS:
        bounds = [_as_integer(bound) for bound in bounds]
    if not any(bound.type.dtype in FLOATS for bound in bounds):
        return cast(_positions.make_node(*bounds).outputs[0], found)
    first, last, by = (cast(bound, "float64") for bound in bounds)
    known = [float(bound.data) for bound in bounds if isinstance(bound, Constant)]
    count = _count_floats(*known) if len(known) == 3 else _float_steps(first, last, by)
    positions = cast(_positions.make_node(0, count, 1).outputs[0], "float64")
    values = add(first, mul(positions, by))
    if not (isinstance(bounds[2], Constant) and math.isfinite(bounds[2].data)):
        values = switch(eq(positions, 0.0), first, values)
    return cast(values, found)


def _range_dtype(given: Sequence[Any], bounds: Sequence[Any]) -> str:
    """Return the dtype of a range between `bounds`, the tensors of `given`: Python numbers have no say."""
    if config.cast_policy == "numpy+floatX" and not is_compiling():
        return _numpy_range_dtype(given, [bound.type.dtype for bound in bounds])
    if not any(bound.type.dtype in FLOATS for bound in bounds):
        return "int64"
    tensors = [b.type.dtype for v, b in zip(given, bounds, strict=True) if type(v) not in (int, float)]
    return common(tuple(tensors)) if any(dtype in FLOATS for dtype in tensors) else "float64"


def _numpy_range_dtype(given: Sequence[Any], dtypes: Sequence[str]) -> str:
    first, last, by = (np.array(value, dtype) for value, dtype in zip((0, 1, 1), dtypes, strict=True))
    found = np.arange(first, last, by).dtype.name  # type: ignore[call-overload]
    asked = [dtype for value, dtype in zip(given, dtypes, strict=True) if type(value) is not float]
    return config.floatX if found == "float64" and "float64" not in asked else found


def _float_steps(first: Any, last: Any, by: Any) -> Any:
    """Return the number of floats from `first` to before `last`; if infinite, too many for any array."""
    steps = true_div(sub(last, first), by)
    # A quotient that underflows to 0 still makes one step.
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
    if variable.type.ndim != 0 or variable.type.dtype == "uint64":
        raise TypeError(f"Making a range: {variable} of type {variable.type} is no float and no int64")
    return variable


def _as_integer(bound: Any) -> Any:
    """Return a constant float as an int64 if that is exact; otherwise `bound`."""
    if not isinstance(bound, Constant) or bound.type.dtype not in FLOATS:
        return bound
    value = float(bound.data)
    return number(int(value), "int64") if value.is_integer() and -(2**53) <= value <= 2**53 else bound


def _is_shape(value: Any) -> bool:
    """Return True if `value` is a sequence of lengths rather than a single one."""
    if isinstance(value, Variable):
        return bool(value.type.ndim == 1)
    return isinstance(value, tuple | list | range) or np.ndim(value) == 1
