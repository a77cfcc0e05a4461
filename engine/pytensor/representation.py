"""PyTensor's types and values as the engine's, of the same dtype. PyTensor computes with float16 and complex
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import TensorType

import engine.tensor as pt
from engine.graph.variables import Constant
from engine.inner.folding import constant_of
from engine.scalar.promotion import COMPILED, FLOATS
from engine.tensor.conversion import number


class Untranslatable(Exception):
    """A node, or a type, has no counterpart in the engine; the message is the reason."""


def check_type(type: Any) -> None:
    """Raise Untranslatable unless the engine represents variables of this type of PyTensor's."""
    # A subclass, such as a sparse matrix, has other values.
    if type.__class__ is not TensorType and type.__class__ is not ScalarType:
        raise Untranslatable(f"the engine has no {type}")
    if type.dtype not in COMPILED:
        raise Untranslatable(f"the engine has no {type.dtype}")


def static_shape(type: Any) -> tuple[int | None, ...]:
    """Return the static shape of a type of PyTensor's; that of a scalar is ()."""
    return tuple(getattr(type, "shape", ()))


def new_variable(type: Any, name: str | None = None) -> Any:
    """Return a new engine variable for a type of PyTensor's. Raises Untranslatable as `check_type` does."""
    check_type(type)
    return pt.tensor(name, type.dtype, static_shape(type))


def constant(type: Any, value: Any) -> Any:
    """Return a constant of PyTensor's as one of the engine's."""
    check_type(type)
    array = np.asarray(value)
    if array.ndim == 0 and type.dtype not in FLOATS:
        return number(int(array), type.dtype)
    return pt.constant(array, dtype=type.dtype)


def cast(variable: Any, dtype: str) -> Any:
    """Return `variable` in `dtype`; a constant as a constant."""
    found = pt.cast(variable, dtype)
    return constant_of(found) if isinstance(variable, Constant) else found


def known(variable: Any) -> Any:
    """Return the int that a constant integer without axes is; any other variable as it is."""
    is_number = isinstance(variable, Constant) and variable.type.ndim == 0
    return int(variable.data) if is_number and variable.type.dtype not in FLOATS else variable


def fitted(variable: Any, type: Any) -> Any:
    """Return `variable` as one that stands for a variable of PyTensor's of that `type`.

    An axis of static length 1 there is one here: the length is then checked when the function runs. Raises
    Untranslatable for another rank.
    """
    check_type(type)
    shape = static_shape(type)
    if variable.type.ndim != len(shape):
        raise Untranslatable(f"it has {len(shape)} dimensions, and {variable.type.ndim} in the engine")
    found = cast(variable, type.dtype)
    lengths = zip(shape, variable.type.shape, strict=True)
    kept = [axis for axis, (due, known) in enumerate(lengths) if due != 1 or known == 1]
    if len(kept) == len(shape):
        return found
    order: list[Any] = ["x"] * len(shape)
    for place, axis in enumerate(kept):
        order[axis] = place
    return pt.dimshuffle(pt.DimShuffle(len(shape), kept)(found), order)
