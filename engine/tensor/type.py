"""`TensorType`: arrays of one dtype and rank, optionally of known lengths.

Values are numpy arrays in native byte order, with any strides. A static length of 1 broadcasts; no
other does.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import FrameType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from xxhash import xxh3_128_hexdigest

from cachegraph.pickling.rebuilding import rebuilds_pickled
from engine.configdefaults import config, is_compiling
from engine.errors import Float64Error, MaskedArrayError, NotNumbersError, RangeError, StaticShapeError
from engine.graph.types import Type
from engine.graph.variables import Constant
from engine.late_names import names_elsewhere
from engine.scalar.promotion import COMPLEX, DTYPES, ROUNDED
from engine.tensor import variable as tensor_variable
from engine.tensor.nearly_equal import values_eq_approx
from engine.tensor.variable import TensorConstant, TensorVariable

LARGEST_CONSTANT = 32
"""A constant with more elements is data: no rewrite reads its values, and no key contains them."""

_LARGEST_KEY = 1024
_NAMES = ("Scalar", "Vector", "Matrix")


class TensorType(Type):
    """Arrays of `dtype` (engine.scalar.promotion.DTYPES); `shape` has a length or None per axis.

    `broadcastable`, an older word, has True for each axis of length 1, and a DeprecationWarning.
    """

    __props__ = ("dtype", "shape")
    variable_type = TensorVariable
    constant_type = TensorConstant

    def __init__(
        self, dtype: Any, shape: Sequence[int | None] = (), broadcastable: Sequence[bool] | None = None
    ) -> None:
        self.dtype = check_dtype(dtype)
        self.shape = static_shape(shape) if broadcastable is None else broadcast_shape_of(broadcastable)
        self.ndim = len(self.shape)
        self.broadcastable = tuple([length == 1 for length in self.shape])
        self.numpy_dtype = np.dtype(self.dtype)
        if any(length is not None and length < 0 for length in self.shape):
            raise ValueError(
                f"Making a TensorType of shape {self.shape}: a length is negative; use None if unknown"
            )

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> np.ndarray:
        """Return `value` as an array of this type: itself if it fits, also one of a class of its own (a
        memmap), otherwise converted.

        An array is converted if this dtype holds all values of its own; anything else (numbers, lists) if
        its values are exact here. A Python float may be rounded to float32 or float16. `allow_downcast` casts
        everything, `strict` nothing. Raises TypeError for what cannot be converted, for another rank and
        for other lengths; for whole numbers outside of the dtype's range RangeError, which is one.
        """
        is_array = type(value) is np.ndarray or (isinstance(value, np.ndarray) and not is_masked(value))
        if is_array and value.dtype == self.numpy_dtype and value.flags.aligned:
            return self._check_shape(value)
        if strict:
            raise TypeError(
                f"Using {_describe(value)} as {self}: it must be an array of dtype {self.dtype} as it is"
            )
        found = _as_array(value, self)
        if found.dtype == self.numpy_dtype and found.flags.aligned:
            return self._check_shape(found)
        with np.errstate(all="ignore"):
            return self._check_shape(self._convert(value, found, allow_downcast))

    def _convert(self, value: Any, found: np.ndarray, allow_downcast: bool | None) -> np.ndarray:
        if isinstance(value, np.ndarray) and np.can_cast(found.dtype, self.numpy_dtype):
            return found.astype(self.numpy_dtype)
        if found.dtype.kind not in "biufc":
            raise NotNumbersError(
                f"Using {_describe(value)} as {self}: its dtype {found.dtype} is not of numbers"
            )
        if found.dtype.kind == "c" and self.dtype not in COMPLEX:
            raise TypeError(f"Using {_describe(value)} as {self}: its imaginary part would be lost")
        result = found.astype(self.numpy_dtype)
        is_number = type(value) in (float, complex)
        if allow_downcast or (is_number and self.dtype in ROUNDED and allow_downcast is None):
            return result
        if isinstance(value, np.ndarray) or not np.array_equal(
            found, result, equal_nan=found.dtype.kind in "fc"
        ):
            are_whole = found.dtype.kind in "iu" and self.numpy_dtype.kind in "iu"
            is_outside = are_whole and not isinstance(value, np.ndarray)
            raise (RangeError if is_outside else TypeError)(
                f"Using {_describe(value)} as {self}: dtype {self.dtype} is expected, {found.dtype} was "
                "found, and converting could lose digits; cast the value first, or use allow_downcast=True"
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
                        f"Using an array of shape {value.shape} as {self}: length {expected} is expected "
                        f"along axis {axis}, {found} was found"
                    )
        return value

    def as_scalar(self, variable: Any) -> Any:
        """Return `variable`, of this type, as a scalar. Raises TypeError unless it has 0 dimensions."""
        return tensor_variable.operations.scalar_from_tensor(variable)

    def data_key(self, value: Any) -> tuple[Any, ...]:
        """Return dtype, shape and the bytes in C order (above 1 KiB a digest). Strides are not identity."""
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
        """Return the type with the static lengths of both, or None if lengths, ranks or dtypes conflict."""
        if not isinstance(other, TensorType) or self.dtype != other.dtype or self.ndim != other.ndim:
            return None
        pairs = list(zip(self.shape, other.shape, strict=True))
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return None
        return self.clone(shape=[theirs if mine is None else mine for mine, theirs in pairs])

    def in_same_class(self, other: Type) -> bool:
        """Return True if dtype, rank and the axes that broadcast are equal."""
        if not isinstance(other, TensorType) or self.dtype != other.dtype:
            return False
        return self.broadcastable == other.broadcastable

    def convert_variable(self, variable: Any) -> Any:
        """Return `variable` with the static lengths of this type too, or None if they conflict."""
        if self.is_super(variable.type):
            return variable
        found = self.intersection(variable.type)
        return None if found is None else tensor_variable.operations.specify_shape(variable, found.shape)

    values_eq_approx = staticmethod(values_eq_approx)

    @staticmethod
    def values_eq(a: Any, b: Any) -> bool:
        """Return True if two arrays have one dtype, one shape and equal elements; NaN equals NaN."""
        a, b = np.asarray(a), np.asarray(b)
        nan = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        return bool(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=nan))

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        """Return True if two arrays may share memory; False for anything else."""
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)

    def filter_variable(self, variable: Any, allow_convert: bool = True) -> Any:
        """Return `variable` as a variable of this type; values become constants.

        Raises TypeError for a variable whose values may not fit; with `allow_convert` its lengths are
        checked when the function runs.
        """
        if not hasattr(variable, "owner"):
            return self.make_constant(variable)
        return super().filter_variable(variable, allow_convert)

    def make_constant(self, value: Any, name: str | None = None) -> TensorConstant:
        return TensorConstant(self, np.asarray(self.filter(value)), name)

    def make_variable(self, name: str | None = None) -> TensorVariable:
        if config.warn_float64 != "ignore" and self.dtype == "float64" and not is_compiling():
            _tell_of_float64(self, name)
        return TensorVariable(self, None, None, name)

    def __call__(self, name: str | None = None, dtype: Any = None, shape: Any = None) -> TensorVariable:
        """Return a new variable, of this type unless another `dtype` or `shape` is given.

        Raises ValueError for a shape that does not have the lengths that this type knows.
        """
        if dtype is None and shape is None:
            return self.make_variable(name)
        lengths = self.shape if shape is None else static_shape(shape)
        if len(lengths) != self.ndim:
            raise ValueError(f"Making {name}: {self.ndim} lengths are needed, shape {lengths} was given")
        if any(known not in (None, given) for known, given in zip(self.shape, lengths, strict=True)):
            raise ValueError(f"Making {name}: {self} knows its lengths, shape {lengths} has others")
        return tensor_type(check_dtype(dtype or self.dtype), lengths).make_variable(name)

    def clone(
        self,
        dtype: str | None = None,
        shape: Sequence[int | None] | None = None,
        broadcastable: Sequence[bool] | None = None,
    ) -> TensorType:
        """Return this type with another dtype or static shape; `broadcastable` is an older word for that."""
        lengths = shape if broadcastable is None else broadcast_shape_of(broadcastable)
        return tensor_type(dtype or self.dtype, self.shape if lengths is None else tuple(lengths))

    def __reduce__(self) -> tuple[Any, ...]:
        return tensor_type, (self.dtype, self.shape)

    def __str__(self) -> str:
        lengths = ", ".join("?" if length is None else str(length) for length in self.shape)
        name = _NAMES[self.ndim] if self.ndim < len(_NAMES) else f"Tensor{self.ndim}"
        return f"{name}({self.dtype}, shape=({lengths}{',' if self.ndim == 1 else ''}))"

    __repr__ = __str__


def _tell_of_float64(type: TensorType, name: str | None) -> None:
    """Do what the flag warn_float64 says: raise Float64Error, or warn of the line that called the engine."""
    message = f"Making {name or 'a variable'} of type {type}: the flag warn_float64 asks to be told"
    if config.warn_float64 == "raise":
        raise Float64Error(f"{message}; cast it, or its arguments, to float32", type)
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "engine":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def static_shape(shape: Any) -> tuple[int | None, ...]:
    """Return `shape` as a tuple of ints and None: True, an axis that broadcasts, is 1, and False None.

    Raises TypeError for anything else.
    """
    if not isinstance(shape, Iterable) or hasattr(shape, "owner"):
        raise TypeError(
            f"Making a type of shape {shape!r}: Shape must be a tuple, of a length or None for each axis"
        )
    lengths = tuple([bool(length) if isinstance(length, np.bool_) else length for length in shape])
    for length in lengths:
        if type(length) not in (int, bool, NoneType) and not _is_whole(length):
            raise StaticShapeError(
                f"Making a type of shape {lengths}: TensorType broadcastable/shape must be a boolean, "
                f"integer or None. Shape entries must be None or integer, found {length!r}"
            )
    return tuple([None if length is None or length is False else int(length) for length in lengths])


def broadcast_shape_of(broadcastable: Sequence[bool]) -> tuple[int | None, ...]:
    """Return the static shape of axes that broadcast, or do not; warn that the word is an older one."""
    warnings.warn(
        "The `broadcastable` keyword is deprecated; use `shape`, with 1 for each axis that broadcasts",
        DeprecationWarning,
        stacklevel=3,
    )
    return static_shape(map(bool, broadcastable))


def _is_whole(length: Any) -> bool:
    if isinstance(length, np.ndarray) and length.ndim == 0:
        length = length[()]
    return isinstance(length, int | np.integer) and not isinstance(length, bool)


@rebuilds_pickled
@lru_cache(maxsize=4096)
def tensor_type(dtype: str, shape: tuple[int | None, ...]) -> TensorType:
    """Return the TensorType of `dtype` and `shape`, cached."""
    return TensorType(dtype, shape)


def check_dtype(dtype: Any) -> str:
    """Return the name of `dtype`; "floatX" is the flag's. Raises TypeError for a dtype that the engine does
    not have.
    """
    if dtype in DTYPES and type(dtype) is str:
        return dtype
    if isinstance(dtype, str) and dtype == "floatX":
        return config.floatX
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
    """Return True if `constant`, frozen or not, is data: too large for rewrites and keys to read."""
    return isinstance(constant.type, TensorType) and constant.data.size > LARGEST_CONSTANT


def is_masked(value: Any) -> bool:
    """Return True for a masked array or a list with one. It does not import numpy.ma, which is slow."""
    if isinstance(value, list | tuple):
        return "numpy.ma" in sys.modules and any(map(is_masked, value))
    return type(value) is not np.ndarray and isinstance(value, np.ndarray) and hasattr(value, "mask")


def _as_array(value: Any, type: TensorType) -> np.ndarray:
    if is_masked(value):
        raise MaskedArrayError(f"Using a masked array as {type}")
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


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__)
