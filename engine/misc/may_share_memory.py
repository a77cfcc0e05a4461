"""`may_share_memory`, under PyTensor's path."""

from __future__ import annotations

from typing import Any

import numpy as np


def may_share_memory(a: Any, b: Any, raise_other_type: bool = True) -> bool:
    """Return True if two arrays have memory between the same bounds; False if one is no array.

    With `raise_other_type`, raises TypeError for what is no array.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    if raise_other_type:
        raise TypeError(f"Comparing the memory of {type(a).__name__} and {type(b).__name__}: give two arrays")
    return False
