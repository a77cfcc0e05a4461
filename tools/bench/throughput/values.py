"""The arrays that the operations take, by name: of about `size` elements, or what goes with such an array."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import numpy as np

Values = np.ndarray
FEW = 64
"""Elements of the array that much is added to."""


def values(name: str, size: int, dtype: str) -> Values:
    """Return the array `name` for `size` elements, of `dtype` unless it is of integers or bools."""
    random = np.random.default_rng([size, *name.encode()])
    found = _VALUES[name](random, size)
    return found.astype(dtype) if found.dtype == np.float64 else found


def sample(result: Values) -> list[float]:
    """Return at most 997 elements of `result`, its first and last among them, for comparisons."""
    flat = np.asarray(result).ravel()
    picked = flat[np.linspace(0, flat.size - 1, min(flat.size, 997)).astype(np.int64)]
    return [float(number) for number in picked]


def _normal(random: np.random.Generator, size: int) -> Values:
    return random.normal(size=size)


def _matrix(random: np.random.Generator, size: int) -> Values:
    side = isqrt(size)
    return random.normal(size=(side, side))


_VALUES: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "normal": _normal,
    "other": _normal,
    "positive": lambda random, size: random.uniform(0.125, 4.0, size=size),
    "true": lambda random, size: random.random(size=size) < 0.5,
    "matrix": _matrix,
    "near-one": lambda random, size: np.exp(0.015625 * _matrix(random, size)),
    "column": lambda random, size: random.normal(size=(isqrt(size), 1)),
    "row": lambda random, size: random.normal(size=(1, isqrt(size))),
    "vector": lambda random, size: random.normal(size=isqrt(size)),
    "index": lambda random, size: random.integers(0, size, size=size),
    "row-index": lambda random, size: random.integers(0, isqrt(size), size=isqrt(size)),
    "few": lambda random, size: random.normal(size=FEW),
    "few-index": lambda random, size: random.integers(0, FEW, size=size),
}
