"""Object code in the memory of this process."""

from __future__ import annotations


class LinkedObjects:
    """Objects that were linked together: `addresses` has that of each symbol that was exported.

    `memory` holds the code, which is freed with this object.
    """

    __slots__ = ("__weakref__", "_memory", "addresses")

    def __init__(self, addresses: dict[str, int], memory: object) -> None:
        self.addresses = addresses
        self._memory = memory
