"""The external objects of a stored graph: what its pickles refer to by number instead of containing it.

These are a few functions and classes, the user Ops of the graph in hand and their classes. So this module
and the graph in hand decide what an entry can reach, not the entry.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from cachegraph.pytensor.describe.held_arrays import HeldArrays

_EXCEPTIONS = (
    *(AssertionError, ArithmeticError, IndexError, KeyError, LookupError),
    *(NotImplementedError, OverflowError, RuntimeError, TypeError),
    *(ValueError, ZeroDivisionError, np.linalg.LinAlgError),
)
"""Exceptions that checking Ops hold, to raise them. Their order is part of the format, too."""

_SCALARS = (
    *(bool, int, float, complex),
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
)
"""The types of numbers, which Ops hold. Their order is part of the format, too."""

NOT_USER_CLASSES = frozenset((*_EXCEPTIONS, *_SCALARS))
"""The external classes that do not belong to users."""

_FUNCTIONS = (
    *("upcast_out", "upcast_out_nobool", "upcast_out_min8", "upgrade_to_float"),
    *("upgrade_to_float64", "same_out", "same_out_nobool", "same_out_min8"),
    *("upcast_out_no_complex", "same_out_float_only", "int_out", "float_out"),
    *("upgrade_to_float_no_complex", "same_out_nocomplex", "real_out", "Sign._output_types_preference"),
)
"""The functions of pytensor.scalar.basic that Ops hold as properties: they give the types of scalar results.

Their order is part of the format of stored_graph.py: new ones are added at the end.
"""


class LostGradient:
    """A stand-in for functions or graphs that a user gave an OpFromGraph for its gradient.

    A stored graph does not hold them: the compiled function needs none. Taking the gradient raises
    NotImplementedError.
    """

    def __call__(self, *arguments: object) -> Any:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "taking a gradient through the optimized graph of a function from the cache: what its Op was "
            "given for its gradient is not stored; differentiate the graph that the function was made of"
        )


LOST = LostGradient()


class Context:
    """The parts of a graph in hand that its stored form refers to.

    `names` are those of variables, by number. `arrays` are those of its constants. `classes` and `ops` are
    those from outside PyTensor and PyMC, in the order of the key: first each Op object that the graph's own
    nodes apply (the key says which nodes share one), then those within Ops as encoded, one per encoding.
    Neither PyTensor's equality nor identity alone would do: Ops that it finds equal may compute different
    things, and of two graphs with one key, one may hold an Op twice within Ops where the other holds two that
    are alike.
    """

    def __init__(
        self,
        names: Mapping[int, str] | None = None,
        classes: tuple[type, ...] = (),
        ops: tuple[Any, ...] = (),
        arrays: HeldArrays | None = None,
    ) -> None:
        self.names = {} if names is None else names
        self.classes = classes
        self.ops = ops
        self.arrays = HeldArrays() if arrays is None else arrays

    def external(self) -> list[object]:
        """Return the objects that the pickles of a graph refer to by number.

        A function that this PyTensor lacks is replaced by a tuple of its names.
        """
        functions = (_function("pytensor.scalar.basic", path) for path in _FUNCTIONS)
        return [LOST, self.arrays, *functions, *_EXCEPTIONS, *_SCALARS, *self.classes, *self.ops]


def arrays_in(external: Sequence[object]) -> HeldArrays:
    """Return the arrays of the graph in hand, among the external objects of a Context."""
    arrays = external[1]
    assert isinstance(arrays, HeldArrays)
    return arrays


def _function(module: str, path: str) -> Any:
    try:
        return attrgetter(path)(sys.modules.get(module))
    except AttributeError:
        return module, path
