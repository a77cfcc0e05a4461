"""The canonical encoding of values, and its digests.

An encoding is a stream of bytes that is the same for the same value in every process and differs for values that
differ. It is injective because every piece is either of fixed size or preceded by its length.

    encoding := HASH_VERSION(1 byte) value
    uint     := n (1 byte)                                  for n < 0xF8
              | 0xF7+k (1 byte), n in k bytes little-endian  otherwise, k the fewest that hold it (1 to 8)
    bytes    := uint(length) the bytes
    text     := bytes(UTF-8, lone surrogates encoded as if they were characters)
    value    := one tag byte, then what the tag's encoder writes: values.py, arrays.py, registry.py

Version history
    1  first
"""

from __future__ import annotations

import hashlib

import xxhash

from cachegraph.errors import InvalidEncoding

HASH_VERSION = 1

_ONE_BYTE = tuple(bytes((n,)) for n in range(0xF8))


def digest(encoding: bytes) -> bytes:
    """Return the XXH3-128 of `encoding`: 16 bytes, what an entry is found by."""
    return xxhash.xxh3_128_digest(encoding)


def strong_digest(encoding: bytes) -> bytes:
    """Return the BLAKE2b-256 of `encoding`: 32 bytes, what an entry is confirmed by."""
    return hashlib.blake2b(encoding, digest_size=32).digest()


def pack_uint(n: int) -> bytes:
    """Return `n` as the grammar's uint; raises OverflowError outside 0 <= n < 2**64."""
    if 0 <= n < 0xF8:
        return _ONE_BYTE[n]
    size = (n.bit_length() + 7) // 8
    if n < 0 or size > 8:
        raise OverflowError(f"packing {n} as a uint: it must be at least 0 and less than 2**64")
    return bytes((0xF7 + size,)) + n.to_bytes(size, "little")


class Reader:
    """Reads back what the writers wrote, from the front; raises InvalidEncoding on what they cannot have written."""

    __slots__ = ("_doing", "_encoding", "_offset")

    def __init__(self, encoding: bytes, doing: str) -> None:
        self._encoding = encoding
        self._doing = doing
        self._offset = 0

    def byte(self) -> int:
        return self._take(1)[0]

    def uint(self) -> int:
        first = self.byte()
        if first < 0xF8:
            return first
        n = int.from_bytes(self._take(first - 0xF7), "little")
        if pack_uint(n)[0] != first:
            raise self.error("the shortest form of a number", f"{n} in {first - 0xF7} bytes")
        return n

    def bytes(self) -> bytes:
        return self._take(self.uint())

    def text(self) -> str:
        content = self.bytes()
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.error("UTF-8 text", error.reason) from None

    def end(self) -> None:
        if self._offset != len(self._encoding):
            raise self.error("the end", f"{len(self._encoding) - self._offset} more bytes")

    def error(self, expected: str, found: str) -> InvalidEncoding:
        return InvalidEncoding(self._doing, self._offset, expected, found)

    def _take(self, size: int) -> bytes:
        taken = self._encoding[self._offset : self._offset + size]
        if len(taken) != size:
            raise self.error(f"{size} more bytes", f"{len(taken)}")
        self._offset += size
        return taken
