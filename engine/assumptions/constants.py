"""Properties that the numbers of a constant matrix show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.assumptions.core import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    PERMUTATION,
    SELECTION,
    SYMMETRIC,
    UPPER_TRIANGULAR,
    AssumptionKey,
    FactState,
)


def state_of_constant(constant: Any, key: AssumptionKey) -> FactState:
    """Return what the numbers of `constant` show about the property `key` of its matrices."""
    found = _FINDERS.get(key)
    matrices = np.asarray(constant.data)
    if found is None or matrices.ndim < 2:
        return FactState.UNKNOWN
    if key != SELECTION and matrices.shape[-1] != matrices.shape[-2]:
        return FactState.FALSE
    return FactState.TRUE if found(matrices) else FactState.FALSE


def _is_selection(matrices: np.ndarray) -> bool:
    """Return True if each column has a single 1, and zeros."""
    ones = matrices == 1
    return bool(np.all(ones | (matrices == 0)) and np.all(ones.sum(axis=-2) == 1))


_FINDERS: dict[AssumptionKey, Callable[[np.ndarray], bool]] = {
    DIAGONAL: lambda m: not np.any(m[..., ~np.eye(m.shape[-1], dtype=bool)]),
    LOWER_TRIANGULAR: lambda m: not np.any(np.triu(m, 1)),
    UPPER_TRIANGULAR: lambda m: not np.any(np.tril(m, -1)),
    SYMMETRIC: lambda m: np.array_equal(m, np.swapaxes(m, -1, -2)),
    SELECTION: _is_selection,
    PERMUTATION: lambda m: _is_selection(m) and _is_selection(np.swapaxes(m, -1, -2)),
}
