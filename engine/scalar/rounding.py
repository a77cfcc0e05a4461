"""Rounding of arrays with halves away from zero, which numpy does not have."""

from __future__ import annotations

from typing import Any

import numpy as np


def round_half_away_from_zero_vec(a: Any) -> Any:
    """Return the numbers of an array rounded to whole ones, halves away from zero, in their dtype."""
    numbers = np.asarray(a)
    whole = np.trunc(numbers)
    with np.errstate(invalid="ignore"):  # an infinity is none from its whole number
        is_near_next = np.abs(numbers - whole) >= 0.5
    return np.where(is_near_next, whole + np.sign(numbers), whole)
