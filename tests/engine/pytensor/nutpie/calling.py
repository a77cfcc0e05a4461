"""A compiled model's functions, called as nutpie's threads do: by their addresses."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

DENSITY_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
_EXPAND = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3)


class Answer(NamedTuple):
    """What the two functions give for a point; NaN where nothing was written."""

    status: int
    density: float
    gradient: np.ndarray
    expansion_status: int
    values: np.ndarray


def call(compiled: Any, point: np.ndarray) -> Answer:
    """Call both functions of a compiled model."""
    dim, expanded, user = compiled.n_dim, compiled.n_expanded, compiled.user_data.ctypes.data
    density, gradient, values = np.full((), np.nan), np.full(dim, np.nan), np.full(expanded, np.nan)
    status = DENSITY_FUNCTION(compiled.compiled_logp_func.address)(
        dim, *(array.ctypes.data for array in (point, gradient, density)), user
    )
    expansion_status = _EXPAND(compiled.compiled_expand_func.address)(
        dim, expanded, *(array.ctypes.data for array in (point, values)), user
    )
    return Answer(status, float(density), gradient, expansion_status, values)


def points(dim: int, count: int, scale: float) -> list[np.ndarray]:
    """Points around zero, the same every time."""
    return list(scale * np.random.default_rng(1).normal(size=(count, dim)))


def assert_same(found: Answer, expected: Answer) -> None:
    """Assert that two answers are equal but for rounding, in codes and in all that counts by them."""
    assert (found.status, found.expansion_status) == (expected.status, expected.expansion_status)
    if expected.status == 0:
        np.testing.assert_allclose(found.density, expected.density, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    if expected.expansion_status == 0:
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-12)
