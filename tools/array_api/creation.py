"""The functions of the standard that make arrays, and those on dtypes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import engine.tensor as pt
from engine.scalar.promotion import COMPLEX, FLOATS, INTEGERS, SIGNED, UNSIGNED, weak_dtype
from engine.tensor.conversion import as_tensor_variable

DTYPES = ("bool", *INTEGERS, "float32", "float64", *COMPLEX)
"""The dtypes of the standard."""

KINDS = {
    "bool": ("bool",),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": ("float32", "float64"),
    "complex floating": COMPLEX,
    "numeric": DTYPES[1:],
}
"""The dtypes of each kind."""


class FloatInformation(NamedTuple):
    """The limits of a dtype of floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: str


class IntegerInformation(NamedTuple):
    """The limits of a dtype of integers."""

    bits: int
    max: int
    min: int
    dtype: str


def asarray(obj: Any, *, dtype: str | None = None, copy: bool | None = None) -> Any:
    """Return `obj`, an array, a number or a nested list, as an array of `dtype`."""
    return pt.tensor_copy(as_tensor_variable(obj, dtype=dtype))


def from_dlpack(x: Any) -> Any:
    """Return the array that `x` holds."""
    return asarray(x)


def astype(x: Any, dtype: str, *, copy: bool = True) -> Any:
    """Return `x` cast to `dtype`. Raises TypeError for a complex `x` and a real dtype."""
    return pt.tensor_copy(pt.cast(x, dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: str | None = None) -> Any:
    """Return `start`, `start + step`, ..., below `stop`; with one number, the integers from 0 below it."""
    return pt.arange(start, stop, step, dtype)


def empty(shape: Any, *, dtype: str | None = None) -> Any:
    """Return an array whose elements may be anything."""
    return pt.empty(_lengths(shape), dtype or "float64")


def zeros(shape: Any, *, dtype: str | None = None) -> Any:
    """Return an array of zeros."""
    return pt.zeros(_lengths(shape), dtype or "float64")


def ones(shape: Any, *, dtype: str | None = None) -> Any:
    """Return an array of ones."""
    return pt.ones(_lengths(shape), dtype or "float64")


def full(shape: Any, fill_value: Any, *, dtype: str | None = None) -> Any:
    """Return an array whose elements are `fill_value`."""
    return pt.full(_lengths(shape), fill_value, dtype or weak_dtype(fill_value, ()))


def eye(n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: str | None = None) -> Any:
    """Return a matrix with ones on its diagonal `k`."""
    return pt.eye(n_rows, n_cols, k, dtype or "float64")


def linspace(start: Any, stop: Any, num: int, *, dtype: str | None = None, endpoint: bool = True) -> Any:
    """Return `num` numbers from `start` to `stop`, at equal distances."""
    return pt.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Return the coordinates of a grid, an array for each of the vectors `arrays`."""
    return tuple(pt.meshgrid(*arrays, indexing=indexing))


def _lengths(shape: Any) -> Any:
    return (shape,) if isinstance(shape, int) else shape


def finfo(type: Any) -> FloatInformation:
    """Return the limits of a dtype of floats, or of that of an array."""
    found = np.finfo(_dtype(type))
    numbers = (float(number) for number in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatInformation(found.bits, *numbers, found.dtype.name)


def iinfo(type: Any) -> IntegerInformation:
    """Return the limits of a dtype of integers, or of that of an array."""
    found = np.iinfo(_dtype(type))
    return IntegerInformation(found.bits, int(found.max), int(found.min), found.dtype.name)


def isdtype(dtype: str, kind: Any) -> bool:
    """Return True if `dtype` is of `kind`: the name of a kind, a dtype, or a tuple of such."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    return dtype in KINDS.get(kind, (kind,))


def result_type(*values: Any) -> str:
    """Return the common dtype of arrays, dtypes and Python numbers. Raises TypeError if they mix kinds."""
    strong = [_dtype(value) for value in values if not _is_number(value)]
    if not strong:
        raise ValueError("Taking the dtype of a result: there is neither an array nor a dtype")
    dtype = strong[0]
    for other in strong[1:]:
        dtype = _promoted(dtype, other)
    for number in filter(_is_number, values):
        dtype = _promoted(weak_dtype(number, (dtype,)), dtype)
    return dtype


def can_cast(from_: Any, to: str) -> bool:
    """Return True if all values of the dtype, or of that of the array, `from_` have the dtype `to`."""
    try:
        return _promoted(_dtype(from_), to) == to
    except TypeError:
        return False


def _promoted(first: str, second: str) -> str:
    kinds = [
        {"bool": 0, "integral": 1}.get(next(kind for kind in _ORDER if isdtype(each, kind)), 2)
        for each in (first, second)
    ]
    dtype = np.result_type(first, second).name
    if kinds[0] != kinds[1] or (kinds[0] == 1 and dtype in FLOATS):
        raise TypeError(f"Promoting {first} and {second}: the standard has no common dtype of them")
    return dtype


_ORDER = ("bool", "integral", "real floating", "complex floating")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


def _dtype(value: Any) -> str:
    return value if isinstance(value, str) else value.dtype


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to."""
    if not shapes:
        return ()
    found = pt.broadcast_shape(*shapes, arrays_are_shapes=True)
    return tuple([int(length.data) for length in found])


FUNCTIONS = {
    function.__name__: function
    for function in (
        arange,
        asarray,
        astype,
        broadcast_shapes,
        can_cast,
        empty,
        eye,
        finfo,
        from_dlpack,
        full,
        iinfo,
        isdtype,
        linspace,
        meshgrid,
        ones,
        result_type,
        zeros,
    )
} | {
    "empty_like": lambda x, *, dtype=None: pt.empty_like(x, dtype),
    "full_like": lambda x, fill_value, *, dtype=None: pt.full_like(x, fill_value, dtype),
    "ones_like": lambda x, *, dtype=None: pt.ones_like(x, dtype),
    "zeros_like": lambda x, *, dtype=None: pt.zeros_like(x, dtype),
    "tril": lambda x, *, k=0: pt.tril(x, k),
    "triu": lambda x, *, k=0: pt.triu(x, k),
}
"""The functions by their names."""
