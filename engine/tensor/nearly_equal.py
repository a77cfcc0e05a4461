"""Comparison of arrays up to rounding, as users' tests ask a type for it."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCES = {"float16": 5e-3, "float32": 1e-4, "complex64": 1e-4}
"""Relative and absolute tolerance by dtype; 1e-5 for all others."""


def values_eq_approx(
    a: Any,
    b: Any,
    allow_remove_inf: bool = False,
    allow_remove_nan: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """Return True if two arrays of one dtype and shape have nearly the same numbers.

    NaN equals NaN unless `allow_remove_nan` is False; with `allow_remove_inf` a place where either is
    infinite does not count. The tolerances follow from the dtype unless they are given.
    """
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return False
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    tolerance = TOLERANCES.get(a.dtype.name, 1e-5)
    found = np.isclose(
        a,
        b,
        tolerance if rtol is None else rtol,
        tolerance if atol is None else atol,
        equal_nan=allow_remove_nan,
    )
    if allow_remove_inf:
        found |= np.isinf(a) | np.isinf(b)
    return bool(found.all())
