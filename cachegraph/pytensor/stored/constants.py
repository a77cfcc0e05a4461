"""The data of a constant in stored form, strides included: numba types an array by its layout.

data  := plain value | array | (sparse class, shape, True if its indices are sorted, array, array, array)
array := (elements, strides) | reference to an array of the graph in hand (held_arrays.py)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cachegraph.pytensor.describe.held_arrays import HeldArrays
from cachegraph.pytensor.errors import Unstorable

_PLAIN = (type(None), bool, int, float, complex, str, slice, np.generic)

_MOST_SPREAD = 16
"""The most times that a strided array's memory may exceed its elements, lest a column's whole matrix is
kept.

numba knows two contiguous layouts, and one for all others.
"""


_SPARSE = ("csr_matrix", "csc_matrix")
"""The classes of the matrices of PyTensor's sparse types."""


def pack_constant(data: Any, held: HeldArrays) -> Any:
    """Return what is pickled in the place of `data`: a tuple for an array or a sparse matrix.

    Raises Unstorable for what is no plain value.
    """
    if isinstance(data, _PLAIN):
        return data
    if _is_sparse(data):
        parts = [pack_constant(part, held) for part in _parts(data)]
        return type(data).__name__, data.shape, bool(data.has_sorted_indices), *parts
    if type(data) is not np.ndarray or data.dtype.hasobject:
        raise Unstorable(f"a constant of {type(data).__module__}.{type(data).__qualname__}")
    if reference := held.reference(data):
        return reference
    is_spread = _memory_size(data.strides, data.shape, data.itemsize) > _MOST_SPREAD * (data.nbytes + 64)
    strides = _narrow(data).strides if is_spread else data.strides
    return np.ascontiguousarray(data).reshape(data.shape), strides


def unpack_constant(cls: Any, type_: Any, data: Any) -> Any:
    """Return the constant; raises ValueError if the type would hold other data than was stored."""
    value = _value(data)
    constant = cls(type_, value)
    if constant.data is not value and not _same_data(constant.data, value):
        raise ValueError(f"the constant {constant} holds another value than was stored")
    return constant


def same_constant(first: Any, second: Any) -> bool:
    """Return True if two constants have the same bits; PyTensor takes 0.0 and -0.0 for equal."""
    return first.type == second.type and _same_data(first.data, second.data)


def _value(packed: Any) -> Any:
    if not isinstance(packed, tuple):
        return packed
    return _sparse(*packed) if isinstance(packed[0], str) else _array(*packed)


def _is_sparse(data: Any) -> bool:
    cls = type(data)
    return cls.__name__ in _SPARSE and cls.__module__.startswith("scipy.sparse.")


def _sparse(name: str, shape: tuple[int, int], is_sorted: bool, *parts: Any) -> Any:
    """Return the sparse matrix; raises ValueError if SciPy changes what was stored."""
    import scipy.sparse

    if name not in _SPARSE:
        raise ValueError(
            f"reading a constant: found a sparse matrix of class {name}, where {_SPARSE} are read"
        )
    stored = [_array(*part) for part in parts]
    matrix = getattr(scipy.sparse, name)(tuple(stored), shape=shape, copy=False)
    matrix.has_sorted_indices = is_sorted
    for part, found in zip(stored, _parts(matrix), strict=True):
        if not _same_data(part, found):
            raise ValueError(
                f"reading a constant: the {name} of shape {shape} is another one than was stored"
            )
    return matrix


def _same_data(first: Any, second: Any) -> bool:
    if _is_sparse(first) and type(first) is type(second):
        pairs = zip(_parts(first), _parts(second), strict=True)
        return first.shape == second.shape and all(_same_data(*pair) for pair in pairs)
    if isinstance(first, np.ndarray | np.generic) and isinstance(second, np.ndarray | np.generic):
        bits = [(x.dtype, x.shape, x.tobytes()) for x in (first, second)]
        return bits[0] == bits[1]
    if isinstance(first, float | complex):
        return type(first) is type(second) and repr(first) == repr(second)
    return type(first) is type(second) and bool(first == second)


def _parts(matrix: Any) -> tuple[Any, ...]:
    return matrix.data, matrix.indices, matrix.indptr


def _array(first: Any, *rest: Any) -> Any:
    """Return the referenced array in hand, or one of the stored elements and strides."""
    return first.array(*rest) if isinstance(first, HeldArrays) else _strided(first, *rest)


def _strided(elements: np.ndarray[Any, Any], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array of these elements with these strides."""
    if elements.strides == strides or elements.size == 0:
        return elements
    memory = np.zeros(_memory_size(strides, elements.shape, elements.itemsize), np.uint8)
    first = -sum(span for span in _spans(strides, elements.shape) if span < 0)
    array: np.ndarray[Any, Any] = np.ndarray(elements.shape, elements.dtype, memory, first, strides)
    array[...] = elements
    return array


def _narrow(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of the same shape with elements closer together, but, as in `data`, not contiguous."""
    return np.empty((*data.shape[:-1], 2 * data.shape[-1]), data.dtype)[..., ::2]


def _spans(strides: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    return [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]


def _memory_size(strides: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> int:
    return sum(abs(span) for span in _spans(strides, shape)) + itemsize
