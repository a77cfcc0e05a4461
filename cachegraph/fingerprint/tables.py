"""Tables: the parts of an encoding that are written once and referred to by number.

table := uint(n) bytes*n        uint and bytes as in encoder.py
"""

from __future__ import annotations

from collections.abc import Sequence

from cachegraph.fingerprint.encoder import pack_uint, prefixed


class Table:
    """Numbers things as they are met, equal ones once. Whoever uses it keeps alive what it knows by id."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._by_id: dict[int, bytes] = {}
        self._by_encoding: dict[bytes, int] = {}

    def known(self, item: object) -> bytes | None:
        """Return the number of `item`, packed; None if it was not added."""
        return self._by_id.get(id(item))

    def add(self, item: object, encoding: bytes) -> bytes:
        """Return the number of `item`, packed, which `encoding` describes; from now on it is known."""
        number = self._by_id[id(item)] = pack_uint(self.position(encoding))
        return number

    def position(self, encoding: bytes) -> int:
        """Return the number of what `encoding` describes."""
        found = self._by_encoding.setdefault(encoding, len(self._rows))
        if found == len(self._rows):
            self._rows.append(encoding)
        return found

    def encoding(self) -> bytes:
        """Return the table, written."""
        return pack_uint(len(self._rows)) + b"".join(map(prefixed, self._rows))


def counted(items: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return how many items there are, packed, and the items."""
    return pack_uint(len(items)), *items
