"""Conversion of arrays and numbers to constants of a graph."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from engine.configdefaults import config, is_compiling
from engine.errors import MaskedArrayError
from engine.graph.apply import Apply
from engine.graph.props import is_of_engine
from engine.graph.represented import RepresentedType
from engine.graph.types import Type
from engine.graph.variables import Constant, Variable
from engine.scalar.promotion import COMPLEX, weak_dtype
from engine.scalar.type import ScalarType
from engine.tensor import variable
from engine.tensor.type import TensorType, check_dtype, is_data, is_masked, tensor_type
from engine.tensor.variable import TensorConstant, TensorVariable

_WEAK = (bool, int, float, complex)


def constant(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> TensorConstant:
    """Return `x` (an array, a number or nested lists of numbers) as a constant, cast to `dtype` if
    one is given.

    Its static shape is the array's shape, so axes of length 1 broadcast. With `ndim`, axes of length 1
    are prepended, or left out in front. A constant stays itself if it fits. Without `dtype`,
    Python ints become int64 and floats float64, or floatX where the flag cast_policy is "numpy+floatX".
    """
    if isinstance(x, TensorConstant) and dtype in (None, x.type.dtype) and ndim in (None, x.ndim):
        return x
    data = _to_array(x.data if isinstance(x, TensorConstant) else x, dtype)
    if ndim is not None and ndim != data.ndim:
        surplus = max(data.ndim - ndim, 0)
        if any(length != 1 for length in data.shape[:surplus]):
            raise ValueError(f"Making a constant of {ndim} dimensions: the value has {data.ndim}")
        data = data.reshape((1,) * (ndim - data.ndim) + data.shape[surplus:])
    return TensorConstant(tensor_type(data.dtype.name, data.shape), data, name)


def _to_array(value: Any, dtype: Any) -> np.ndarray:
    if is_masked(value):
        raise MaskedArrayError("Making a constant of a masked array")
    if isinstance(value, list | tuple) and _holds_variables(value):
        raise TypeError(
            "Making a constant of a list that contains variables: as_tensor makes a tensor of them"
        )
    try:
        data = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"Making a constant of {value!r}: numpy makes no array of it ({error})") from error
    if data.dtype.kind not in "biufc":
        raise TypeError(f"Making a constant of {value!r} ({type(value).__name__}): it is not made of numbers")
    if dtype is None and (_is_empty_list(value, data) or _becomes_floatX(value)):
        data = data.astype(check_dtype("floatX"))
    wanted = check_dtype(data.dtype if dtype is None else dtype)
    if data.dtype.kind == "c" and wanted not in COMPLEX:
        raise TypeError(f"Making a constant of {value!r} as {wanted}: its imaginary part would be lost")
    with np.errstate(all="ignore"):
        return data.astype(wanted, copy=False)


def _is_empty_list(value: Any, data: np.ndarray) -> bool:
    return data.size == 0 and not isinstance(value, np.ndarray | np.generic)


def _becomes_floatX(value: Any) -> bool:
    """Return True for a Python float where the flag cast_policy makes these floatX."""
    return type(value) is float and config.cast_policy == "numpy+floatX" and not is_compiling()


def _holds_variables(value: Sequence[Any]) -> bool:
    return any(
        isinstance(item, Variable) or (isinstance(item, list | tuple) and _holds_variables(item))
        for item in value
    )


def _stacked(items: Sequence[Any]) -> Any:
    """Return the tensor of variables, numbers and lists of them, along a new first axis."""
    parts = [v if type(v) in _WEAK else as_tensor_variable(v) for v in items]
    dtypes = tuple([v.type.dtype for v in parts if isinstance(v, Variable)])
    tensors = [v if isinstance(v, Variable) else number(v, weak_dtype(v, dtypes)) for v in parts]
    found = variable.operations.stack(tensors)
    if tensors and all(isinstance(v, Constant) and not is_data(v) for v in tensors):
        arrays: list[Any] = [v.data for v in tensors]  # type: ignore[union-attr]
        return constant(np.stack(arrays), dtype=found.type.dtype)
    return found


def as_tensor_variable(
    x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None
) -> TensorVariable:
    """Return `x` as a tensor variable: a variable itself, anything else converted by `constant`.

    A list or tuple with variables becomes a tensor of their common dtype, in which Python numbers have no
    say. A range becomes an ARange. A scalar variable becomes a tensor of 0 dimensions. With `ndim`, axes of
    length 1 are prepended to a variable that has fewer. A tensor variable keeps its dtype, as in PyTensor:
    `dtype` is for values. Raises TypeError for a variable of another kind of type.
    """
    if isinstance(x, range):
        return _range(x, name, ndim, dtype)
    if isinstance(x, list | tuple) and _holds_variables(x):
        return as_tensor_variable(_stacked(x), name, ndim, dtype)
    if isinstance(x, Apply):
        if x.op.default_output is None and x.nout != 1:
            raise TypeError(f"Using {x} as a tensor: Multi-output Op without default_output; choose one")
        x = x.out
    if not isinstance(x, Variable):
        return constant(x, name, ndim, dtype)
    if isinstance(x.type, ScalarType):
        return as_tensor_variable(variable.operations.tensor_from_scalar.elementwise(x), name, ndim, dtype)
    if not isinstance(x.type, TensorType):
        raise TypeError(
            f"Using {x} of type {x.type} as a tensor: it is no tensor variable (of no TensorType)"
        )
    tensor: Any = x  # also a frozen one, whose class is made for it
    return tensor if ndim is None else pad(tensor, ndim)


as_tensor = as_tensor_variable


def _range(value: range, name: str | None, ndim: int | None, dtype: Any) -> Any:
    if ndim not in (None, 1):
        raise ValueError(f"Making a tensor of {value}: ndim for range must be 1, not {ndim}")
    found = variable.operations.arange(value.start, value.stop, value.step, dtype)
    found.name = name
    return found


def as_symbolic(value: Any) -> Any:
    """Return `value` as a variable: itself if its values are no arrays, else what as_tensor_variable does."""
    if isinstance(value, Variable) and (isinstance(value.type, RepresentedType) or is_foreign(value.type)):
        return value
    return as_tensor_variable(value)


def is_foreign(type: Type) -> bool:
    """Return True for a type of a user's whose values are no arrays: programs hold any objects for them."""
    return not isinstance(type, TensorType | RepresentedType) and not is_of_engine(type)


def as_tensors(values: Sequence[Any]) -> list[Any]:
    """Return the arguments of one elementwise operation as tensor variables of equal rank.

    Python numbers take the dtype of the other arguments (NEP 50). Axes of length 1 are prepended.
    """
    tensors = [v if type(v) in _WEAK else as_tensor_variable(v) for v in values]
    strong = [v.type for v in tensors if isinstance(v, Variable)]
    ndim = max([type.ndim for type in strong], default=0)
    if len(strong) == len(tensors):
        return [v if v.type.ndim == ndim else pad(v, ndim) for v in tensors]
    dtypes = tuple([type.dtype for type in strong])
    return [
        (v if v.type.ndim == ndim else pad(v, ndim))
        if isinstance(v, Variable)
        else number(v, weak_dtype(v, dtypes), ndim)
        for v in tensors
    ]


def number(value: bool | int | float | complex, dtype: str, ndim: int = 0) -> Any:
    """Return a Python number as a constant of `dtype` with `ndim` axes of length 1; equal ones are shared."""
    if isinstance(value, float | complex):
        kind = "complex" if isinstance(value, complex) else "float"
        return _number(kind, struct.pack("<dd", value.real, value.imag), dtype, ndim)
    return _number("whole", int(value), dtype, ndim)


@lru_cache(maxsize=1024)
def _number(kind: str, bits: Any, dtype: str, ndim: int) -> TensorConstant:
    value = bits if kind == "whole" else complex(*struct.unpack("<dd", bits))
    value = value.real if kind == "float" else value
    with np.errstate(all="ignore"):
        data = np.full((1,) * ndim, value, dtype)
    return TensorConstant(tensor_type(dtype, data.shape), data)


def pad(tensor: Any, ndim: int) -> Any:
    """Return `tensor` with axes of length 1 prepended, or left out in front, so that it has `ndim` axes."""
    missing = ndim - tensor.type.ndim
    if missing < 0:
        if not all(tensor.type.broadcastable[:-missing]):
            raise ValueError(
                f"Tensor of type {tensor.type} could not be cast to have {ndim} dimensions: {tensor} has "
                "other lengths than 1 in front"
            )
        return TensorVariable.dimshuffle(tensor, *range(-missing, tensor.type.ndim))
    if missing == 0:
        return tensor
    if isinstance(tensor, Constant) and not is_data(tensor):
        data = tensor.data.reshape((1,) * missing + tensor.data.shape)
        return TensorConstant(tensor_type(tensor.type.dtype, data.shape), data)
    return TensorVariable.dimshuffle(tensor, *["x"] * missing, *range(tensor.type.ndim))
