"""What a stored graph names beside the classes of PyTensor and PyMC: a few functions, its user's Ops and their classes.

A pickle of a graph refers to them by number, so that what an entry can reach is decided here, and by the graph in hand,
not by the entry.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from cachegraph.pytensor.describe.held_arrays import HeldArrays

_EXCEPTIONS = (
    AssertionError,
    ArithmeticError,
    IndexError,
    KeyError,
    LookupError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    ZeroDivisionError,
    np.linalg.LinAlgError,
)
"""What Ops that check hold, to be raised. Their order is part of the format, too."""

_SCALARS = (
    *(bool, int, float, complex),
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
)
"""The types of numbers, which Ops hold. Their order is part of the format, too."""

NOT_USER_CLASSES = frozenset((*_EXCEPTIONS, *_SCALARS))
"""The classes that are external objects, but no user's."""

_FUNCTIONS = (
    ("pytensor.scalar.basic", "upcast_out"),
    ("pytensor.scalar.basic", "upcast_out_nobool"),
    ("pytensor.scalar.basic", "upcast_out_min8"),
    ("pytensor.scalar.basic", "upgrade_to_float"),
    ("pytensor.scalar.basic", "upgrade_to_float64"),
    ("pytensor.scalar.basic", "same_out"),
    ("pytensor.scalar.basic", "same_out_nobool"),
    ("pytensor.scalar.basic", "same_out_min8"),
    ("pytensor.scalar.basic", "upcast_out_no_complex"),
    ("pytensor.scalar.basic", "same_out_float_only"),
    ("pytensor.scalar.basic", "int_out"),
    ("pytensor.scalar.basic", "float_out"),
    ("pytensor.scalar.basic", "upgrade_to_float_no_complex"),
    ("pytensor.scalar.basic", "same_out_nocomplex"),
    ("pytensor.scalar.basic", "real_out"),
    ("pytensor.scalar.basic", "Sign._output_types_preference"),
)
"""The functions that Ops of PyTensor hold in their properties: they give the types of scalar results.

Their order is part of the format of optimized.py: new ones are added at the end."""


class LostGradient:
    """Stands where an OpFromGraph of a stored graph had functions or graphs of its user for its gradient.

    Whoever asks for that gradient is told (NotImplementedError); the compiled function needs none.
    """

    def __call__(self, *arguments: object) -> Any:
        """Refuse."""
        raise NotImplementedError(
            "taking a gradient through the optimized graph of a function that came from the cache: what its Op was "
            "given for its gradient is not kept; differentiate the graph that the function was made of"
        )


LOST = LostGradient()


@dataclass(frozen=True)
class Context:
    """What a stored graph takes from the graph in hand.

    `names` are those of variables, by number. `classes` and `ops` are those outside PyTensor and PyMC that it may hold, in an
    order that the key of the graph in hand decides: first each Op that its own nodes apply, of which the key says which are one,
    then those within Ops as its encoding met them, of those with equal encodings the first. Neither PyTensor's equality nor
    identity alone would do: Ops that it takes for equal may compute different things, and within Ops the one of two graphs
    with one key may hold an Op twice where the other holds two that are alike. `arrays` are those of its constants.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    classes: tuple[type, ...] = ()
    ops: tuple[Any, ...] = ()
    arrays: HeldArrays = field(default_factory=HeldArrays)

    def external(self) -> list[object]:
        """The objects that the pickles of a graph name by number; in the place of a function that this PyTensor lacks
        there is a tuple of its names."""
        functions = (_function(module, name) for module, name in _FUNCTIONS)
        return [LOST, self.arrays, *functions, *_EXCEPTIONS, *_SCALARS, *self.classes, *self.ops]


def arrays_in(external: Sequence[object]) -> HeldArrays:
    """The arrays of the graph in hand, among the external objects that a Context gives."""
    arrays = external[1]
    assert isinstance(arrays, HeldArrays)
    return arrays


def _function(module: str, path: str) -> Any:
    try:
        return attrgetter(path)(sys.modules.get(module))
    except AttributeError:
        return module, path
