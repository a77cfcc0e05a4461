"""The shape that tensors have when they are broadcast, computed from their lengths alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any

from engine.graph.variables import Constant, Variable
from engine.tensor.checks import Assert
from engine.tensor.conversion import as_tensor_variable, number
from engine.tensor.math import eq, or_, switch
from engine.tensor.shape import Shape_i, lengths_along, lengths_of

_CHECK = Assert(
    "Could not broadcast dimensions: an axis broadcasts only if its length is known to be 1 when the graph "
    "is built. specify_shape tells it."
)
_CHECK_AT_RUN_TIME = Assert("Could not broadcast dimensions.")
_ONE: Any = number(1, "int64")
_Length = tuple[int | None, Any]
"""A length, and before it the number that it is if a type or a constant tells."""


def broadcast_shape(
    *arrays: Any, arrays_are_shapes: bool = False, allow_runtime_broadcast: bool = False
) -> tuple[Any, ...]:
    """Return the lengths that the arguments have when they are broadcast, 0-d int64s.

    The arguments are tensors or, with `arrays_are_shapes`, shapes. Only lengths known to be 1 broadcast; with
    `allow_runtime_broadcast` those too that turn out to be 1. Raises ValueError for known lengths that do not
    fit, and AssertionError, when the function runs, for others.
    """
    shapes = [_of_shape(each) if arrays_are_shapes else _of_tensor(each) for each in arrays]
    columns = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=(1, _ONE))
    return tuple([_common(lengths, allow_runtime_broadcast) for lengths in columns][::-1])


def broadcast_shape_iter(arrays: Iterable[Any], **options: Any) -> tuple[Any, ...]:
    """Return `broadcast_shape` of all arguments in `arrays`."""
    return broadcast_shape(*arrays, **options)


def _of_tensor(x: Any) -> list[_Length]:
    tensor = as_tensor_variable(x)
    return list(zip(tensor.type.shape, lengths_along(tensor), strict=True))


def _of_shape(shape: Any) -> list[_Length]:
    return [
        (int(length.data) if isinstance(length, Constant) else None, length) for length in lengths_of(shape)
    ]


def _common(lengths: Sequence[_Length], broadcasts_at_run_time: bool) -> Any:
    """Return the common length, which is checked when the function runs unless it is known."""
    known = {number: length for number, length in lengths if number not in (None, 1)}
    if len(known) > 1:
        raise ValueError(f"Broadcasting lengths {tuple(known)}: they do not fit")
    due = [*known.values()]
    unknown = [*{_identity(length): length for number, length in lengths if number is None}.values()]
    if len(due) + len(unknown) < 2:
        return [*due, *unknown, _ONE][0]
    if not broadcasts_at_run_time:
        length, *others = [*due, *unknown]
        return _CHECK(length, *[eq(each, length) for each in others])
    longest = due[0] if due else reduce(lambda a, b: switch(eq(a, 1), b, a), unknown)
    fitting = [or_(eq(each, 1), eq(each, longest)) for each in unknown]
    return _CHECK_AT_RUN_TIME(longest, *fitting)


def _identity(length: Variable) -> Any:
    """Return what is equal for two lengths of one axis of one tensor."""
    node = length.owner
    is_length = node is not None and isinstance(node.op, Shape_i)
    return (node.op, *node.inputs) if node is not None and is_length else length
