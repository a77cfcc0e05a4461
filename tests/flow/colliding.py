"""Two arrays of one XXH3-128, made by hand: its secret is public.

For long input it reads stripes of 64 bytes, eight lanes each, and adds to accumulator i the product
of the halves of lane i xor the secret, and to its neighbour lane i itself. Where the low half of a
lane equals the secret's, the product is 0 whatever the high half is; what the high half adds to the
neighbour, another stripe of the same block takes away again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash

SIZE = 10_000
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
)
"""Where XXH3's secret begins."""
_STRIPES = (2, 3)
_LANE = 2


def _lane(stripe: int, high: int) -> int:
    """The 64 bits of that lane that have no product, with `high` as their upper half."""
    offset = 8 * stripe + 8 * _LANE
    return high << 32 | int.from_bytes(_SECRET[offset : offset + 4], "little")


def _array(highs: tuple[int, int]) -> np.ndarray[Any, Any]:
    found = np.random.default_rng(1).normal(size=SIZE)
    for stripe, high in zip(_STRIPES, highs, strict=True):
        found.view(np.uint64)[8 * stripe + _LANE] = _lane(stripe, high)
    return found


def colliding_arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two arrays of 80 kB of ordinary numbers that differ in two places, about 1 and 2**20 here, twice
    2**10 there.
    """
    one, other = _array((0x3FF00000, 0x41300000)), _array((0x40900000, 0x40900000))
    assert xxhash.xxh3_128_digest(one.tobytes()) == xxhash.xxh3_128_digest(other.tobytes())
    return one, other
