"""PyTensor's types and values as the engine's.

The engine has bool, int32, int64, float32 and float64. A variable of a smaller or unsigned integer dtype
is represented by an int64 with the same value. Arithmetic is done in int64, and its result is brought back
into the range of the dtype: modulo a power of two both give the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import TensorType

import engine.tensor as pt
from engine.tensor.conversion import number

_OWN = ("bool", "int32", "int64", "float32", "float64")
_BITS = {"int8": 8, "int16": 16, "uint8": 8, "uint16": 16, "uint32": 32}


class Untranslatable(Exception):
    """A node, or a type, has no counterpart in the engine; the message is the reason."""


def engine_dtype(dtype: str) -> str:
    """Return the dtype by which the engine represents `dtype`. Raises Untranslatable if there is none."""
    if dtype in _OWN:
        return dtype
    if dtype in _BITS:
        return "int64"
    raise Untranslatable(f"the engine has no {dtype}")


def check_type(type: Any) -> None:
    """Raise Untranslatable unless the engine represents variables of this type of PyTensor's."""
    # A subclass, such as a sparse matrix, has other values.
    if type.__class__ is not TensorType and type.__class__ is not ScalarType:
        raise Untranslatable(f"the engine has no {type}")
    engine_dtype(type.dtype)


def static_shape(type: Any) -> tuple[int | None, ...]:
    """Return the static shape of a type of PyTensor's; that of a scalar is ()."""
    return tuple(getattr(type, "shape", ()))


def new_variable(type: Any, name: str | None = None) -> Any:
    """Return a new engine variable for a type of PyTensor's. Raises Untranslatable as `check_type` does."""
    check_type(type)
    return pt.tensor(name, engine_dtype(type.dtype), static_shape(type))


def constant(type: Any, value: Any) -> Any:
    """Return a constant of PyTensor's as one of the engine's."""
    check_type(type)
    dtype = engine_dtype(type.dtype)
    array = np.asarray(value)
    if array.ndim == 0 and dtype not in ("float32", "float64"):
        return number(bool(array) if dtype == "bool" else int(array), dtype)
    return pt.constant(array, dtype=dtype)


def narrowed(variable: Any, dtype: str) -> Any:
    """Return `variable` as a representation of `dtype`: cast, and brought into its range modulo its size."""
    bits = _BITS.get(dtype)
    found = pt.cast(variable, engine_dtype(dtype))
    if bits is None or variable.type.dtype == "bool":
        return found
    low = pt.and_(found, number(2**bits - 1, "int64"))
    if dtype.startswith("u"):
        return low
    half = number(2 ** (bits - 1), "int64")
    return pt.sub(pt.xor(low, half), half)


def fitted(variable: Any, type: Any) -> Any:
    """Return `variable` as one that stands for a variable of PyTensor's of that `type`.

    An axis of static length 1 there is one here: the length is then checked when the function runs. Raises
    Untranslatable for another rank.
    """
    check_type(type)
    shape = static_shape(type)
    if variable.type.ndim != len(shape):
        raise Untranslatable(f"it has {len(shape)} dimensions, and {variable.type.ndim} in the engine")
    found = pt.cast(variable, engine_dtype(type.dtype))
    lengths = zip(shape, variable.type.shape, strict=True)
    kept = [axis for axis, (due, known) in enumerate(lengths) if due != 1 or known == 1]
    if len(kept) == len(shape):
        return found
    order: list[Any] = ["x"] * len(shape)
    for place, axis in enumerate(kept):
        order[axis] = place
    return pt.dimshuffle(pt.DimShuffle(len(shape), kept)(found), order)
