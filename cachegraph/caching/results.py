"""The comparison of the results of two builds: equal, or close enough to differ only in the order
of arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = {4: 1e-4, 8: 1e-9}
"""Relative tolerances, by the bytes of a real number. Compilers reorder arithmetic (fastmath)."""
_OF_OTHERS = 1e-2


def is_close(found: np.ndarray[Any, Any], due: np.ndarray[Any, Any], magnitude: float = 1.0) -> bool:
    """Return True if `found` may stand for `due`: same dtype and shape, NaN in the same places, integers
    equal, numbers close.

    The tolerance is relative to the number itself and to `magnitude`.
    """
    if found.dtype != due.dtype or found.shape != due.shape:
        return False
    if due.dtype.kind not in "fc":
        return bool(np.array_equal(found, due))
    tolerance = TOLERANCE.get(due.real.dtype.itemsize, _OF_OTHERS)
    with np.errstate(all="ignore"):
        return bool(np.allclose(found, due, rtol=tolerance, atol=tolerance * magnitude, equal_nan=True))
