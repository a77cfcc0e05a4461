"""Signatures of functions of arrays, as numpy's gufuncs have them: `(m,n),(n)->(m)`.

A name is the length of an axis, equal wherever it occurs; a whole number is that length itself.
https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from cachegraph.named_tuples import NamedTuple

_ARGUMENT = r"\((?:\w+(?:,\w+)*)?\)"
_ARGUMENTS = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"
_WHOLE = re.compile(rf"(?:{_ARGUMENTS})?->{_ARGUMENTS}")

Axes = tuple[str, ...]
"""The names of the axes of one argument."""


class GufuncSignature(NamedTuple):
    """The axes of the inputs and of the outputs of a function, by name."""

    inputs: tuple[Axes, ...]
    outputs: tuple[Axes, ...]

    def place_of(self, name: str) -> tuple[int, int] | None:
        """Return the first input with the axis `name`, and the axis' position there; None if none has it."""
        for position, axes in enumerate(self.inputs):
            if name in axes:
                return position, axes.index(name)
        return None


@lru_cache(maxsize=256)
def parsed(signature: str) -> GufuncSignature:
    """Return the axes that `signature` names. Raises ValueError if it is no signature."""
    text = re.sub(r"\s+", "", signature)
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"Reading the signature {signature!r}: it must look like (m,n),(n)->(m)")
    inputs, outputs = ([_axes(found) for found in re.findall(_ARGUMENT, side)] for side in text.split("->"))
    return GufuncSignature(tuple(inputs), tuple(outputs))


def _axes(argument: str) -> Axes:
    return tuple(re.findall(r"\w+", argument))


def lengths_by_name(axes: Sequence[Axes], shapes: Sequence[Sequence[int | None]]) -> dict[str, int]:
    """Return the lengths that are known, by the names of their axes.

    Raises ValueError if two axes of one name have different lengths, or a number another length.
    """
    found: dict[str, int] = {}
    for names, shape in zip(axes, shapes, strict=True):
        for name, length in zip(names, shape, strict=True):
            due = (
                int(name) if name.isdigit() else length if length is None else found.setdefault(name, length)
            )
            if length is not None and length != due:
                raise ValueError(_conflict(axes, shapes, name))
    return found


def _conflict(axes: Any, shapes: Any, name: str) -> str:
    given = ", ".join(str(tuple(shape)) for shape in shapes)
    due = ",".join(f"({','.join(names)})" for names in axes)
    square = "; the matrix must be square" if any(names.count(name) > 1 for names in axes) else ""
    return f"arrays of shapes {given} do not fit {due}: the lengths {name!r} must be equal{square}"
