"""Lengths of axes, shapes as vectors, and operations that change a shape but no element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial, reduce
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.exceptions import AxisError

from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant, Variable
from engine.late_names import names_elsewhere
from engine.scalar.arithmetic import mul
from engine.scalar.conversion import second
from engine.scalar.promotion import INEXACT, INTEGERS, common_dtype
from engine.scalar.type import scalar_type
from engine.tensor.axes import axes_of, axis_of, numbers_of
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.elemwise import apply_elemwise, cast, dimshuffle
from engine.tensor.index_entries import INTEGER
from engine.tensor.known_lengths import known_length
from engine.tensor.slicing import Subtensor, as_position
from engine.tensor.type import TensorType, check_dtype, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable


class Shape_i(Op):
    """The length of a tensor along axis `i` as a 0-d int64. It does not depend on the elements.

    Raises TypeError for anything but a tensor variable that has the axis.
    """

    __props__ = ("i",)

    def __init__(self, i: int) -> None:
        (self.i,) = numbers_of("Making an Op along an axis", [i])

    def make_node(self, x: Any) -> Apply:
        if not isinstance(x, Variable):
            raise TypeError(f"Taking the length of {x}: give a tensor variable")
        x = as_tensor_variable(x)
        if not 0 <= self.i < x.type.ndim:
            raise TypeError(f"Taking the length of {x} along axis {self.i}: it has {x.type.ndim} dimensions")
        return Apply(self, [x], [tensor_type("int64", ()).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.array(inputs[0].shape[self.i], "int64")

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [None]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        return [shape_i(inputs[0], inputs[0].type.ndim - node.inputs[0].type.ndim + self.i)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output does not depend on the elements."""
        return [[False]]

    def known_number(self, node: Apply, steps: int) -> int | None:
        """Return the length if the type has it."""
        known: int | None = node.inputs[0].type.shape[self.i]
        return known


@lru_cache(maxsize=64)
def _shape_i_op(axis: int) -> Shape_i:
    return Shape_i(axis)


def shape_i(x: Any, i: int) -> TensorVariable:
    """Return the length of `x` along axis `i`, which may be negative.

    It depends on `x` although its type may have the length: another tensor may take the place of `x`.
    """
    x = as_tensor_variable(x)
    return _shape_i_op(_axis_of_length(x, i))(x)


def folded_shape_i(x: Any, i: int) -> TensorVariable:
    """Return `shape_i`, but a constant if the type of `x` has the length: for rewrites."""
    x = as_tensor_variable(x)
    axis = _axis_of_length(x, i)
    known = x.type.shape[axis]
    return _shape_i_op(axis)(x) if known is None else number(known, "int64")


def _axis_of_length(x: Any, i: int) -> int:
    if type(i) is int and 0 <= i < x.type.ndim:
        return i
    return axis_of(f"Taking a length of {x}", i, x.type.ndim)


def lengths_along(x: Any) -> list[Any]:
    """Return the lengths of the tensor `x` along all axes, 0-d int64s."""
    return [_shape_i_op(axis)(x) for axis in range(x.type.ndim)]


def size_over(x: Any, axes: Sequence[int]) -> Any:
    """Return the number of elements of `x` over `axes` as a 0-d int64."""
    lengths = [shape_i(x, axis) for axis in axes]
    return reduce(partial(apply_elemwise, mul), lengths) if lengths else number(1, "int64")


class Reshape(Op):
    """The elements of a tensor, in C order, in a new shape. Inputs: the tensor and `ndim` lengths (0-d
    int64), which may be given as a list or a vector.

    One length may be -1: it is computed from the others. Raises ValueError if the number of elements
    differs. The output may be a view.
    """

    __props__ = ("ndim",)
    differentiates_complex = True
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def __init__(self, ndim: int) -> None:
        self.ndim = int(ndim)

    def make_node(self, x: Any, *lengths: Any) -> Apply:
        x = as_tensor_variable(x)
        variables = self._lengths(lengths)
        if len(variables) != self.ndim:
            raise ValueError(f"Reshaping {x} to {self.ndim} dimensions: {len(variables)} lengths were given")
        shape = _static_shape(x.type, tuple([known_length(variable) for variable in variables]))
        return Apply(self, [x, *variables], [tensor_type(x.type.dtype, shape).make_variable()])

    def _lengths(self, given: Sequence[Any]) -> list[Any]:
        shape = given[0] if len(given) == 1 else given
        if isinstance(shape, Variable) and shape.type.shape == (None,):
            # A vector of another length is refused when the function runs.
            shape = _reshape_op(1).make_node(shape, number(self.ndim, "int64")).outputs[0]
        return lengths_of(shape)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, shape = inputs[0], tuple([int(length) for length in inputs[1:]])
        if min(shape, default=0) < -1 or shape.count(-1) > 1:
            raise ValueError(f"Reshaping an array to {shape}: one length may be -1, no other may be negative")
        output_storage[0][0] = x.reshape(_check_size(x.shape, shape))

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nothing = [None] * self.ndim
        if cotangents[0] is None:
            return [None, *nothing]
        x = inputs[0]
        return [reshape(cotangents[0], lengths_along(x)), *nothing]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any] | None:
        x, *lengths = inputs
        if any(length.type.ndim for length in lengths):
            return None
        count = x.type.ndim - node.inputs[0].type.ndim
        return [reshape(x, [*lengths_along(x)[:count], *lengths])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the tensor, not on the lengths."""
        return [[True], *([False] for _ in range(self.ndim))]


def _as_length(length: Any) -> Any:
    if isinstance(length, int | np.integer) and not isinstance(length, bool):
        if not -(2**63) <= length < 2**63:
            raise ValueError(
                f"Giving a shape: a length cannot be {length}; maximum allowed dimension exceeded"
            )
        return number(int(length), "int64")
    variable = as_tensor_variable(length)
    if variable.type.ndim != 0 or variable.type.dtype not in INTEGERS:
        raise TypeError(
            f"Giving a shape: a length must be an integer of 0 dimensions, not {variable.type}; a shape is "
            "given as a tuple of lengths"
        )
    return as_position(variable)


def lengths_of(shape: Any) -> list[Any]:
    """Return the int64 lengths in `shape`: a length, a tuple of lengths, or a vector of known length.

    Those of a vector are read from it, so that a graph in which the vector is replaced has other lengths.
    Raises TypeError for anything but integers, and for a vector of unknown length.
    """
    if isinstance(shape, tuple | list | range):
        return [_as_length(length) for length in shape]
    if not isinstance(shape, Variable | np.ndarray):
        return [_as_length(shape)]
    vector = as_tensor_variable(shape)
    if vector.type.ndim == 0:
        return [_as_length(vector)]
    if vector.type.shape == (0,):
        return []
    if vector.type.ndim != 1 or vector.type.shape[0] is None or vector.type.dtype not in INTEGERS:
        raise TypeError(
            f"Using {vector} of type {vector.type} as a shape: a length must be an integer of 0 "
            "dimensions, a shape a tuple of lengths or a vector of known length"
        )
    if isinstance(vector, Constant):
        return [number(int(length), "int64") for length in vector.data]
    return [as_position(vector[position]) for position in range(vector.type.shape[0])]


def elements_of(vector: Variable) -> list[Any]:
    """Return the int64 lengths in `vector`, as `lengths_of` does; those that it was made of are not read."""
    if vector.owner is not None and isinstance(vector.owner.op, MakeVector):
        return [as_position(element) for element in vector.owner.inputs]
    return lengths_of(vector)


def _check_size(found: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with -1 replaced. Raises ValueError unless it has as many elements as `found`."""
    size, known = prod(found), prod([length for length in shape if length != -1])
    if -1 not in shape and size == known:
        return shape
    if shape.count(-1) == 1 and known and size % known == 0:
        return tuple([size // known if length == -1 else length for length in shape])
    raise ValueError(
        f"Reshaping an array of shape {found}, which has {size} elements, to {shape}: they do not fit. "
        f"Reshape: Input shape {found} is incompatible with new shape {shape}"
    )


def _static_shape(type: TensorType, lengths: tuple[int | None, ...]) -> tuple[int | None, ...]:
    if lengths.count(-1) > 1 or any(length is not None and length < -1 for length in lengths):
        raise ValueError(
            f"Reshaping {type} to {tuple(lengths)}: one length may be -1, no other may be negative"
        )
    source = [length for length in type.shape if length is not None]
    free = [length for length in lengths if length is None or length == -1]
    if len(source) < type.ndim or len(free) > 1:
        return tuple([None if length == -1 else length for length in lengths])
    due = tuple([-1 if length is None else length for length in lengths])
    known = prod([length for length in due if length != -1])
    if None in lengths and (known == 0 or prod(source) % known):
        return lengths  # it is refused when the function runs, unless nothing is to be arranged
    return _check_size(tuple(source), due)


@lru_cache(maxsize=64)
def _reshape_op(ndim: int) -> Reshape:
    return Reshape(ndim)


def reshape(x: Any, newshape: Any, ndim: int | None = None) -> TensorVariable:
    """Return the elements of `x`, in C order, in the shape `newshape`.

    `newshape` is a length, a tuple of lengths (numbers or integer variables) or a vector, which has `ndim`
    elements if its length is unknown. One length may be -1: it is computed from the others. Raises
    ValueError if the number of elements differs.
    """
    if ndim is not None:
        return _reshape_op(ndim)(x, newshape)
    lengths = lengths_of(newshape)
    return _reshape_op(len(lengths))(x, *lengths)


def flatten(x: Any, ndim: int = 1) -> TensorVariable:
    """Return `x` with `ndim` axes: the last ones merged in C order."""
    x = as_tensor_variable(x)
    doing = f"Flattening {x} of {x.type.ndim} dimensions"
    (count,) = numbers_of(doing, [ndim])
    if count < 1 or count > max(x.type.ndim, 1):
        raise ValueError(f"{doing} to {count}: from 1 to as many as it has")
    if x.type.ndim == count:
        return x
    kept = [shape_i(x, axis) for axis in range(count - 1)]
    return reshape(x, [*kept, size_over(x, range(count - 1, x.type.ndim)) if kept else -1])


def transpose(x: Any, axes: Any = None) -> TensorVariable:
    """Return `x` with its axes in the order `axes`, which may be negative; reversed if None."""
    x = as_tensor_variable(x)
    ndim, doing = x.type.ndim, f"Transposing {x}"
    order = range(ndim)[::-1] if axes is None else axes_of(doing, numbers_of(doing, axes), ndim)
    if len(order) != ndim:
        raise ValueError(f"{doing} of {ndim} dimensions by {axes!r}: each axis must occur once")
    found = dimshuffle(x, order)
    if axes is None and x.name is not None and found is not x and found.name is None:
        found.name = f"{x.name}.T"
    return found


def squeeze(x: Any, axis: Any = None) -> TensorVariable:
    """Return `x` without the axes `axis` of length 1, one or several; by default, all of static length 1."""
    x = as_tensor_variable(x)
    if axis is None:
        dropped = tuple([a for a, known in enumerate(x.type.broadcastable) if known])
    elif x.type.ndim == 0 and numbers_of(f"Squeezing {x}", axis) in ([0], [-1]):
        return x  # as numpy does
    else:
        if x.type.ndim == 0:
            given = tuple(numbers_of(f"Squeezing {x}", axis))
            raise AxisError(f"Squeezing {x}: axis {given} is out of bounds for array of dimension 0")
        dropped = axes_of(f"Squeezing {x}", axis, x.type.ndim)
    return dimshuffle(x, [a for a in range(x.type.ndim) if a not in dropped])


class MakeVector(Op):
    """The vector of `dtype` whose elements are the 0-d inputs. Raises TypeError for a wider dtype, ValueError
    for an input with dimensions.
    """

    __props__ = ("dtype",)
    differentiates_complex = True

    def __init__(self, dtype: str = "int64") -> None:
        self.dtype = check_dtype(dtype)

    def make_node(self, *elements: Any) -> Apply:
        inputs = [as_tensor_variable(element) for element in elements]
        for variable in inputs:
            if variable.type.ndim != 0:
                raise ValueError(f"Making a vector: {variable} of type {variable.type} has dimensions")
            if common_dtype(variable.type.dtype, self.dtype) != self.dtype:
                raise TypeError(
                    f"Making a vector of {self.dtype}: {variable} of type {variable.type} does not fit "
                    "as an element"
                )
        output = tensor_type(self.dtype, (len(inputs),)).make_variable()
        return Apply(self, [cast(variable, self.dtype) for variable in inputs], [output])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        output_storage[0][0] = np.array(list(inputs), self.dtype)

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        if cotangents[0] is None or self.dtype not in INEXACT:
            return [None] * len(inputs)
        return [_element(cotangents[0], position) for position in range(len(inputs))]

    def element_at(self, node: Apply, position: int) -> Variable | None:
        """Return the element at `position`, or None beyond the vector."""
        return node.inputs[position] if -len(node.inputs) <= position < len(node.inputs) else None


make_vector = MakeVector()


def _element(vector: Any, position: int) -> Any:
    return Subtensor([INTEGER]).make_node(vector, number(position, "int64")).outputs[0]


def shape(x: Any) -> TensorVariable:
    """Return the lengths of `x` as an int64 vector."""
    x = as_tensor_variable(x)
    return MakeVector("int64")(*lengths_along(x))


def shape_tuple(x: Any) -> tuple[Any, ...]:
    """Return the lengths of `x`: scalar constants where its type has them, otherwise 0-d int64s; () if its
    type has no shape."""
    known = getattr(x.type, "shape", ())
    return tuple(
        [
            shape_i(x, axis) if n is None else scalar_type("int64").make_constant(np.int64(n))
            for axis, n in enumerate(known)
        ]
    )


def size(x: Any) -> TensorVariable:
    """Return the number of elements of `x` as a 0-d int64."""
    x = as_tensor_variable(x)
    if x.type.ndim == 0:
        return apply_elemwise(second, x, number(1, "int64"))  # so that a function may have it as input
    return size_over(x, range(x.type.ndim))


def expand_dims(a: Any, axis: Any) -> TensorVariable:
    """Return `a` with new axes of length 1 at the positions `axis`, one or several, of the result."""
    a = as_tensor_variable(a)
    doing = f"Putting axes into {a}"
    given = numbers_of(doing, axis)
    ndim = a.type.ndim + len(given)
    new, kept = axes_of(doing, given, ndim), iter(range(a.type.ndim))
    return dimshuffle(a, ["x" if position in new else next(kept) for position in range(ndim)])


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
