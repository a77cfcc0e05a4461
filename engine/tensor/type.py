"""`TensorType`: arrays of one dtype and rank, some of whose lengths may be known.

The values are C-ordered or strided numpy arrays in native byte order. Of the static shape only a 1 broadcasts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from xxhash import xxh3_128_hexdigest

from cachegraph.pickling import rebuilds_pickled
from engine.graph.types import Type
from engine.graph.variables import Constant
from engine.scalar.promotion import DTYPES
from engine.tensor.variable import TensorConstant, TensorVariable

LARGEST_CONSTANT = 32
"""A constant of more elements than this is data: no rewrite looks inside it, and its values are in no key."""

_LARGEST_KEY = 1024


class TensorType(Type):
    """Arrays of `dtype` (float64, float32, int64, int32 or bool); `shape` has the length of each axis, or None."""

    __props__ = ("dtype", "shape")
    variable_type = TensorVariable
    constant_type = TensorConstant

    def __init__(self, dtype: Any, shape: Sequence[int | None] = ()) -> None:
        self.dtype = check_dtype(dtype)
        self.shape = static_shape(shape)
        self.ndim = len(self.shape)
        self.broadcastable = tuple([length == 1 for length in self.shape])
        self.numpy_dtype = np.dtype(self.dtype)
        if any(length is not None and length < 0 for length in self.shape):
            raise ValueError(
                f"Making a TensorType of shape {self.shape}: a length is negative; use None if unknown"
            )

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> np.ndarray:
        """`value` as an array of this type: itself if it is one, otherwise converted.

        An array is converted if the dtype holds all values of its own, anything else (numbers, lists) if it holds
        these values exactly; Python floats are taken as float32. With `allow_downcast` everything is cast, with
        `strict` nothing is. Refuses (TypeError) what cannot be converted, another rank, and other lengths.
        """
        if type(value) is np.ndarray and value.dtype == self.numpy_dtype and value.flags.aligned:
            return self._check_shape(value)
        if strict:
            raise TypeError(
                f"Using {_describe(value)} as {self}: it must be an array of dtype {self.dtype} as it is"
            )
        with np.errstate(all="ignore"):
            return self._check_shape(self._convert(value, allow_downcast))

    def _convert(self, value: Any, allow_downcast: bool | None) -> np.ndarray:
        found = _as_array(value, self)
        if isinstance(value, np.ndarray) and np.can_cast(found.dtype, self.numpy_dtype):
            return np.require(found, self.numpy_dtype, "A")
        if found.dtype.kind not in "biuf":
            raise TypeError(f"Using {_describe(value)} as {self}: its dtype {found.dtype} is not of numbers")
        result = found.astype(self.numpy_dtype)
        if allow_downcast or (type(value) is float and self.dtype == "float32" and allow_downcast is None):
            return result
        if isinstance(value, np.ndarray) or not np.array_equal(
            found, result, equal_nan=found.dtype.kind == "f"
        ):
            raise TypeError(
                f"Using {_describe(value)} as {self}: dtype {self.dtype} is expected, {found.dtype} was found, and "
                "converting could lose digits; cast the value first, or use allow_downcast=True"
            )
        return result

    def _check_shape(self, value: np.ndarray) -> np.ndarray:
        if value.ndim != self.ndim:
            raise TypeError(
                f"Using an array of shape {value.shape} as {self}: {self.ndim} dimensions are expected, "
                f"{value.ndim} were found"
            )
        if value.shape != self.shape:
            for axis, (expected, found) in enumerate(zip(self.shape, value.shape, strict=True)):
                if expected is not None and expected != found:
                    raise TypeError(
                        f"Using an array of shape {value.shape} as {self}: length {expected} is expected along axis "
                        f"{axis}, {found} was found"
                    )
        return value

    def data_key(self, value: Any) -> tuple[Any, ...]:
        """Dtype, shape, and the bytes in C order (a digest of them from 1 KiB): strides are not identity."""
        data = (
            value.tobytes()
            if value.nbytes <= _LARGEST_KEY
            else xxh3_128_hexdigest(np.ascontiguousarray(value).data)
        )
        return value.dtype.str, value.shape, data

    def same_data(self, first: Any, second: Any) -> bool:
        if first is second:
            return True
        if first.dtype != second.dtype or first.shape != second.shape:
            return False
        return bool(first.tobytes() == second.tobytes())

    def is_super(self, other: Type) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorType) or self.dtype != other.dtype or self.ndim != other.ndim:
            return False
        return all(
            mine is None or mine == theirs for mine, theirs in zip(self.shape, other.shape, strict=True)
        )

    def intersection(self, other: Type) -> TensorType | None:
        """The type that knows each length that this one or `other` does; None if two lengths, the ranks or dtypes differ."""
        if not isinstance(other, TensorType) or self.dtype != other.dtype or self.ndim != other.ndim:
            return None
        pairs = list(zip(self.shape, other.shape, strict=True))
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return None
        return self.clone(shape=[theirs if mine is None else mine for mine, theirs in pairs])

    def filter_variable(self, variable: Any) -> Any:
        """`variable` as a variable of this type; values become constants.

        Refuses (TypeError) a variable that may hold other values.
        """
        if not hasattr(variable, "owner"):
            return self.make_constant(variable)
        return super().filter_variable(variable)

    def make_constant(self, value: Any, name: str | None = None) -> TensorConstant:
        return TensorConstant(self, self.filter(value), name)

    def clone(self, dtype: str | None = None, shape: Sequence[int | None] | None = None) -> TensorType:
        """This type with another dtype, or another static shape."""
        return tensor_type(dtype or self.dtype, self.shape if shape is None else tuple(shape))

    def __reduce__(self) -> tuple[Any, ...]:
        return tensor_type, (self.dtype, self.shape)

    def __str__(self) -> str:
        lengths = ", ".join("?" if length is None else str(length) for length in self.shape)
        return f"Tensor({self.dtype}, ({lengths}{',' if self.ndim == 1 else ''}))"

    __repr__ = __str__


def static_shape(shape: Any) -> tuple[int | None, ...]:
    """`shape`, which has a length or None for each axis, as plain numbers; refuses (TypeError) everything else."""
    if not isinstance(shape, Iterable) or hasattr(shape, "owner"):
        raise TypeError(f"Making a type of shape {shape!r}: give a tuple of a length, or None, for each axis")
    lengths = tuple(shape)
    for length in lengths:
        if length is not None and type(length) is not int and not _is_whole(length):
            raise TypeError(
                f"Making a type of shape {lengths}: {length!r} is neither a whole number nor None"
            )
    return tuple([None if length is None else int(length) for length in lengths])


def _is_whole(length: Any) -> bool:
    if isinstance(length, np.ndarray) and length.ndim == 0:
        length = length[()]
    return isinstance(length, int | np.integer) and not isinstance(length, bool)


@rebuilds_pickled
@lru_cache(maxsize=4096)
def tensor_type(dtype: str, shape: tuple[int | None, ...]) -> TensorType:
    """The TensorType of `dtype` and `shape`; mostly the same object every time."""
    return TensorType(dtype, shape)


def check_dtype(dtype: Any) -> str:
    """The name of `dtype`; refuses (TypeError) one that the engine has not."""
    if dtype in DTYPES and type(dtype) is str:
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise TypeError(
            f"Using dtype {name}: the engine has {', '.join(DTYPES)}; convert the value to one of these"
        )
    return name


def is_data(constant: Constant) -> bool:
    """Whether `constant` (frozen or not) is data: more than 32 elements, which no rewrite and no key looks at."""
    return isinstance(constant.type, TensorType) and constant.data.size > LARGEST_CONSTANT


def is_masked(value: Any) -> bool:
    """Whether `value` is a masked array, or a list that has one (asked without importing numpy.ma, which takes as long as
    this package)."""
    if isinstance(value, list | tuple):
        return "numpy.ma" in sys.modules and any(map(is_masked, value))
    return type(value) is not np.ndarray and isinstance(value, np.ndarray) and hasattr(value, "mask")


def _as_array(value: Any, type: TensorType) -> np.ndarray:
    if is_masked(value):
        raise TypeError(f"Using a masked array as {type}: its mask would be lost; fill it first")
    if hasattr(value, "owner"):
        raise TypeError(f"Using {value} as {type}: it is a variable of a graph, a value is expected")
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Using {_describe(value)} as {type}: numpy makes no array of it ({error})"
        ) from error


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
