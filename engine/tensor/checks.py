"""Checks that a function makes when it runs: conditions, and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.errors import LengthError
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.graph.variables import Constant
from engine.scalar.makers import cast as cast_number
from engine.scalar.promotion import INTEGERS
from engine.scalar.type import ScalarType
from engine.tensor import quantifiers
from engine.tensor.axes import axes_of
from engine.tensor.conversion import as_tensor_variable, pad
from engine.tensor.elemwise import cast, dimshuffle
from engine.tensor.known_lengths import known_length
from engine.tensor.math import fill
from engine.tensor.type import static_shape, tensor_type

if TYPE_CHECKING:
    from engine.tensor.variable import TensorVariable

_MOST_PRINTED = 30


class CheckedValue(Op):
    """Returns its first input, if a check with the others holds: these have no derivatives."""

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [cotangents[0], *([None] * (len(inputs) - 1))]

    def pushforward(self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return [tangents[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the output depends on the value, not on the others."""
        return [[True], *([False] for _ in node.inputs[1:])]


class CheckAndRaise(CheckedValue):
    """Returns its first input if all others, conditions, are true; else it raises `exc_type(msg)`.

    The check is made where the value is used, not where its shape is. Raises ValueError unless `exc_type`
    is a class of exceptions.
    """

    __props__: tuple[str, ...] | None = ("msg", "exc_type")
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}
    differentiates_complex = True
    holds_code = True  # the class of the exception

    def __init__(self, exc_type: type[Exception], msg: str = "") -> None:
        if not (isinstance(exc_type, type) and issubclass(exc_type, Exception)):
            raise ValueError(f"Making a check that raises {exc_type!r}: it must be a subclass of Exception")
        self.exc_type = exc_type
        self.msg = msg

    def make_node(self, value: Any, *conditions: Any) -> Apply:
        """Return the node on tensors; on numbers, if the value is one."""
        if isinstance(getattr(value, "type", None), ScalarType):
            numbers = [cast_number(condition, "bool") for condition in conditions]
            return Apply(self, [value, *numbers], [value.type.make_variable()])
        value = as_tensor_variable(value)
        found = [_condition(condition) for condition in conditions]
        for condition in found:
            if condition.type.ndim != 0:
                raise TypeError(
                    f"Checking {condition} of type {condition.type}: a condition has 0 dimensions; "
                    "take all() of it"
                )
        return Apply(self, [value, *found], [value.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        value, *conditions = inputs
        if not all(conditions):
            raise self.exc_type(self.msg)
        output_storage[0][0] = value

    def infer_shape(self, fgraph: None, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the value."""
        return [input_shapes[0]]

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the batch of the value, checked as one: each condition holds at all places of its batch."""
        value, *conditions = inputs
        checked = self(value, *[quantifiers.all(condition) for condition in conditions])
        core = node.inputs[0].type.ndim
        batch = max(value.type.ndim - core, *(condition.type.ndim for condition in conditions))
        for condition in conditions:
            if condition.type.ndim:
                places = dimshuffle(condition, [*range(condition.type.ndim), *["x"] * core])
                checked = fill(pad(places, batch + core), pad(checked, batch + core))
        return [checked]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{raises={self.exc_type.__name__}, msg='{self._shortened}'}}"

    __repr__ = __str__

    @property
    def _shortened(self) -> str:
        return self.msg if len(self.msg) <= _MOST_PRINTED else f"{self.msg[: _MOST_PRINTED - 3]}..."


def _condition(value: Any) -> Any:
    """Return a condition as a tensor of bool; a number of that dtype as it is."""
    if getattr(value, "type", None) == ScalarType("bool"):
        return value
    return cast(as_tensor_variable(value), "bool")


class Assert(CheckAndRaise):
    """A check that raises AssertionError."""

    __props__ = ("msg", "exc_type")

    def __init__(self, msg: str = "PyTensor Assert failed!") -> None:
        super().__init__(AssertionError, msg)

    def __str__(self) -> str:
        return f"Assert{{msg='{self._shortened}'}}"

    __repr__ = __str__


assert_op = Assert()


class SpecifyShape(CheckedValue):
    """Returns its first input, whose lengths along `axes` must be the others; else it raises LengthError.

    Without `axes`, there is a length or None for each axis. The output's type has those lengths that are
    constants. The check is made where the value or the shape of the output is used.
    """

    __props__ = ("axes",)
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}
    differentiates_complex = True

    def __init__(self, axes: Sequence[int] | None = None) -> None:
        self.axes: Any = None if axes is None else tuple(axes)

    def make_node(self, x: Any, *lengths: Any) -> Apply:
        x = as_tensor_variable(x)
        if self.axes is None:
            axes = [axis for axis, length in enumerate(lengths) if length is not None]
            if len(lengths) != x.type.ndim:
                raise ValueError(_never_match(x, len(lengths)))
            return SpecifyShape(axes).make_node(x, *[lengths[axis] for axis in axes])
        given = [as_tensor_variable(length) for length in lengths]
        for length in given:
            if length.type.dtype not in INTEGERS or length.type.ndim != 0:
                raise TypeError(
                    f"Specifying a length of {x} by {length} of type {length.type}: shape values "
                    "must be integer types"
                )
        given = [cast(length, "int64") for length in given]
        return Apply(self, [x, *given], [tensor_type(x.type.dtype, self._static(x, given)).make_variable()])

    def _static(self, x: Any, lengths: Sequence[Any]) -> tuple[int | None, ...]:
        static = list(x.type.shape)
        for axis, length in zip(self.axes, lengths, strict=True):
            if static[axis] is None:
                static[axis] = known_length(length)
        return static_shape(static)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        x, *lengths = inputs
        due: list[int | None] = [None] * x.ndim
        for axis, length in zip(self.axes, lengths, strict=True):
            due[axis] = int(length)
        if any(n not in (None, found) for n, found in zip(due, x.shape, strict=True)):
            raise LengthError(f"SpecifyShape: {LengthError.text(x.shape, tuple(due))}")
        output_storage[0][0] = x

    def vectorized(self, node: Apply, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the batch, with the lengths after those of the batch; refuse lengths that differ in it."""
        x, *lengths = inputs
        lengths = [dimshuffle(n, ()) if all(n.type.broadcastable) else n for n in lengths]
        if any(length.type.ndim for length in lengths):
            raise NotImplementedError(
                "Vectorizing SpecifyShape: its lengths are a batch, too; give one for all"
            )
        count = x.type.ndim - node.inputs[0].type.ndim
        return [SpecifyShape([axis + count for axis in self.axes])(x, *lengths)]

    def __str__(self) -> str:
        return "SpecifyShape"

    __repr__ = __str__


def specify_shape(x: Any, shape: Any) -> TensorVariable:
    """Return `x` with a known shape: a length, a vector of known length, or None for each axis; one `...`
    stands for all others. Its type has the lengths that are constants; the function checks them all.

    Raises ValueError for a wrong number of lengths, and TypeError for what is no integer.
    """
    x = as_tensor_variable(x)
    given = _lengths(x, shape)
    if len(given) != x.type.ndim:
        raise ValueError(_never_match(x, len(given)))
    axes = [axis for axis, length in enumerate(given) if length is not None]
    if all(_is_known(x.type.shape[axis], given[axis]) for axis in axes):
        return x
    return SpecifyShape(axes)(x, *[given[axis] for axis in axes])


def specify_broadcastable(x: Any, *axes: int) -> TensorVariable:
    """Return `x` with length 1 along `axes`, which its type then says; the function checks them."""
    x = as_tensor_variable(x)
    ones = axes_of(f"Specifying lengths of {x}", axes, x.type.ndim)
    return specify_shape(x, [1 if axis in ones else None for axis in range(x.type.ndim)])


def _never_match(x: Any, count: int) -> str:
    return f"Input `x` is {x.type.ndim}-dimensional and will never match a shape of length {count}."


def _lengths(x: Any, shape: Any) -> list[Any]:
    given = list(shape) if isinstance(shape, tuple | list) else [shape]
    if len(given) == 1 and given[0] is not None and given[0] is not ...:
        vector = as_tensor_variable(given[0])
        if vector.type.ndim == 1:
            if vector.type.shape[0] is None:
                raise ValueError("Shape vector must have fixed dimensions")
            given = list(vector.data) if isinstance(vector, Constant) else list(vector)
    places = [position for position, length in enumerate(given) if length is ...]
    if len(places) > 1:
        raise ValueError("Multiple Ellipsis in specify_shape")
    if places:
        others = [None] * (x.type.ndim - len(given) + 1)
        given[places[0] : places[0] + 1] = others
    return given


def _is_known(static: int | None, length: Any) -> bool:
    value = length.data if isinstance(length, Constant) else length
    return static is not None and isinstance(value, int | np.integer | np.ndarray) and int(value) == static
