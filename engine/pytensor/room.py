"""The memory that the results of a prologue may take (prologue.py)."""

from __future__ import annotations

KEPT_BYTES, KEPT_TIMES = 16 * 2**20, 4
"""Results that are kept may take so many bytes; or as many times what the data take, if that is more."""


def room_for(data_bytes: int) -> int:
    """Return how many bytes may be kept of a function whose data take so many."""
    return max(KEPT_BYTES, KEPT_TIMES * data_bytes)
