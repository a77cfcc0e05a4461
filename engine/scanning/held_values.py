"""Generators in loops: outside and in the Scan a loop has the arrays that programs hold for them; a step has
generators."""

from __future__ import annotations

from typing import Any

from engine.graph.represented import RepresentedType
from engine.inner.scan_building import ScanBuilder, State
from engine.tensor.held_arrays import held_array, held_value
from engine.tensor.shape import expand_dims
from engine.tensor.type import tensor_type


def is_held(variable: Any) -> bool:
    """Return True if values of `variable` are no arrays."""
    return isinstance(variable.type, RepresentedType)


def held_row(variable: Any) -> Any:
    """Return a new variable for the array of `variable` in a step."""
    return tensor_type(variable.type.dtype, variable.type.shape).make_variable(variable.name)


def held_state(outer: Any, inner: Any, new: Any, values: dict[Any, Any]) -> State:
    """Return the state that begins as the value of `outer`, is `inner` in a step, and then `new`.

    What a step has in place of `inner` is added to `values`.
    """
    row = held_row(inner)
    values[inner] = held_value(row, inner.type)
    new = inner.type.filter_variable(new)
    return State(expand_dims(held_array(outer), 0), (-1,), [row], held_array(new))


def last_value(buffer: Any, outer: Any) -> Any:
    """Return the value in the last row of a held state that began as `outer`."""
    return held_value(buffer[-1], outer.type)


def hold_non_sequences(loop: ScanBuilder) -> None:
    """Give `loop` the arrays of those non-sequences that are none."""
    values = {}
    for position, (outer, inner) in enumerate(loop.non_sequences):
        if is_held(inner):
            row = held_row(inner)
            values[inner] = held_value(row, inner.type)
            loop.non_sequences[position] = (held_array(outer), row)
    if values:
        loop.substitute(values)
