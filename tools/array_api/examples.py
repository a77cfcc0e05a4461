"""Example calls, and arrays of each dtype: ordinary numbers and special ones, in many shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
DTYPES = BOOL + NUMERIC

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (5,), (2, 3), (0, 3), (2, 1, 3))
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((3,), (3,)),
    ((2, 1), (3,)),
    ((0,), (1,)),
    ((2, 3), ()),
    ((2, 3), (0, 1, 1)),
)

AXES: tuple[dict[str, Any], ...] = (
    {},
    {"axis": 0},
    {"axis": -1, "keepdims": True},
    {"keepdims": True},
    {"axis": (0, -1)},
    {"axis": ()},
)
"""Options of reductions."""

Array = np.ndarray


class EagerCall(NamedTuple):
    """A call of the function `name`; a numpy dtype among the arguments is a dtype of the namespace."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    dtypes: tuple[str, ...]


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return small ordinary numbers, some of them equal; of unsigned dtypes none is negative."""
    random = np.random.default_rng([seed, *shape])
    if dtype in FLOATS + COMPLEX:
        found = np.round(random.normal(size=shape) * 4, 2)
        return np.asarray(
            found + 1j * np.round(random.normal(size=shape), 1) if dtype in COMPLEX else found, dtype
        )
    lowest = -6 if dtype in SIGNED else 0
    return np.asarray(
        random.integers(lowest, 7, shape) > 2 if dtype == "bool" else random.integers(lowest, 7, shape), dtype
    )


def specials(dtype: str) -> Array:
    """Return a vector of the numbers of a dtype at which functions have special cases."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return np.unique(
            np.array([0, 1, 2, 3, 7, limits.min, limits.min + 1, limits.max, limits.max - 1], dtype)
        )
    if dtype in COMPLEX:
        parts = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
        return _grid(parts, dtype)
    limits_of_floats = np.finfo(dtype)
    ends = [limits_of_floats.max, limits_of_floats.tiny, limits_of_floats.smallest_subnormal]
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 1e-20, -40.0, 710.0]
    return np.array([*ordinary, *ends, np.inf, -np.inf, np.nan], dtype)


def _grid(parts: Array, dtype: str) -> Array:
    found = np.empty((parts.size, parts.size), dtype)
    found.real, found.imag = parts[:, None], parts
    return found.ravel()


def examples(dtype: str, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Array]:
    """Return an array for each shape, the vector of special numbers, and one with strides."""
    strided = numbers(dtype, (6, 4))[::2, ::-1].T
    return [*(numbers(dtype, shape) for shape in shapes), specials(dtype), strided]


def pairs(first: str, second: str) -> list[tuple[Array, Array]]:
    """Return pairs of arrays that broadcast, and all pairs of special numbers of the two dtypes."""
    found = [(numbers(first, one), numbers(second, other, 1)) for one, other in PAIRS]
    return [*found, (specials(first)[:, None], specials(second))]


def promotable(dtypes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the pairs of `dtypes` of which the standard says the common dtype."""
    return [(first, second) for first in dtypes for second in dtypes if _is_promotable(first, second)]


def _is_promotable(first: str, second: str) -> bool:
    for kind in (BOOL, INTEGERS, INEXACT):
        if first in kind and second in kind:
            return np.result_type(first, second).name in kind
    return False


def matrices(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return well-conditioned matrices."""
    found = numbers(dtype, shape, seed)
    return np.asarray(found + 9 * np.eye(*shape[-2:]), dtype)


def hermitian(dtype: str, shape: tuple[int, ...]) -> Array:
    """Return positive definite matrices."""
    found = matrices(dtype, shape)
    return np.asarray(found @ np.conj(np.swapaxes(found, -1, -2)), dtype)


def weak_numbers(dtype: str) -> list[Any]:
    """Return Python numbers that an array of `dtype` meets."""
    if dtype == "bool":
        return [True, False]
    return [2, 0, *([0.5, np.inf] if dtype in INEXACT else []), *([1 - 2j] if dtype in COMPLEX else [])]


def wide(dtype: str) -> str:
    """Return the widest dtype of the kind of `dtype`."""
    return "complex128" if dtype in COMPLEX else "float64" if dtype in FLOATS else "int64"
