"""The primitives of every encoding: digests, numbers, texts, and their reader.

    uint  := n (1 byte)                                   for n < 0xF8
           | 0xF7+k (1 byte), n in k bytes little-endian  otherwise, k the fewest that hold it (1 to 8)
    bytes := uint(length) the bytes
    text  := bytes(UTF-8, lone surrogates encoded as if they were characters)
    rows  := uint(n) bytes*n

XXH3-128 finds an entry, and accidental damage. Its secret is public, so anyone can make two contents of
one digest. BLAKE2b-256 confirms that a content is the one that was meant: it confirms keys, names blobs,
and stands for arrays, files and source in an encoding.

Version history of canonical encodings (HASH_VERSION)
    1  first
    2  extension files and source are described by BLAKE2b-256, as large arrays are
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xxhash

try:
    # The same function as hashlib.blake2b, without the 4 ms that hashlib takes to load OpenSSL.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from cachegraph.errors import InvalidEncoding

HASH_VERSION = 2
MAX_DEPTH = 100
"""The deepest nesting of values."""

_ONE_BYTE = tuple(bytes((n,)) for n in range(0xF8))


def digest(content: bytes | memoryview) -> bytes:
    """Return the XXH3-128 of `content`: 16 bytes that find an entry but never confirm it."""
    return xxhash.xxh3_128_digest(content)


def running_digest() -> xxhash.xxh3_128:
    """Return what makes the digest of contents that come one after the other."""
    return xxhash.xxh3_128()


def strong_digest(content: bytes) -> bytes:
    """Return the BLAKE2b-256 of `content`: 32 bytes that confirm it."""
    return blake2b(content, digest_size=32).digest()


def content_name(content: bytes) -> str:
    """Return the name of a blob: BLAKE2b-256 and length of `content` in 80 hexadecimal digits.

    A reader knows from the length how much to read before it reads anything.
    """
    return f"{strong_digest(content).hex()}{len(content):016x}"


def named_length(name: str) -> int:
    """Return the length of the content with that name."""
    return int(name[64:], 16)


def pack_uint(n: int) -> bytes:
    """Return `n` as the grammar's uint; raises ValueError outside 0 <= n < 2**64."""
    if 0 <= n < 0xF8:
        return _ONE_BYTE[n]
    size = (n.bit_length() + 7) // 8
    if n < 0 or size > 8:
        raise ValueError(
            f"encoding {n} as a uint: it must be at least 0 and less than 2**64; use value() for any int"
        )
    return bytes((0xF7 + size,)) + n.to_bytes(size, "little")


def prefixed(content: bytes) -> bytes:
    """Return `content` as the grammar's bytes, preceded by its length."""
    return pack_uint(len(content)) + content


def pack_text(text: str) -> bytes:
    """Return `text` as the grammar's text."""
    return prefixed(text.encode("utf-8", "surrogatepass"))


def counted(items: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the packed number of items, and the items."""
    return pack_uint(len(items)), *items


class NumberedRows:
    """Encodings written once and referred to by number; equal ones share a number.

    Objects are known by id: whoever adds them must keep them alive.
    """

    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._by_id: dict[int, bytes] = {}
        self._by_encoding: dict[bytes, int] = {}

    def known(self, item: object) -> bytes | None:
        """Return the packed number of `item`; None if it was not added."""
        return self._by_id.get(id(item))

    def add(self, item: object, encoding: bytes) -> bytes:
        """Add `item`, which `encoding` describes, and return its packed number."""
        number = self._by_id[id(item)] = pack_uint(self.position(encoding))
        return number

    def position(self, encoding: bytes) -> int:
        """Return the number of the row `encoding`, adding it if it is new."""
        found = self._by_encoding.setdefault(encoding, len(self._rows))
        if found == len(self._rows):
            self._rows.append(encoding)
        return found

    def encoding(self) -> bytes:
        """Return the rows in the grammar above."""
        return pack_uint(len(self._rows)) + b"".join(map(prefixed, self._rows))


_NO_TAGS: Mapping[bytes, Callable[[Reader], Any]] = {}


class Reader:
    """A reader of what an Encoder wrote; it raises InvalidEncoding for anything else.

    `tags` maps the tags that another grammar adds to the readers of their values, which decoder.py calls.
    """

    __slots__ = ("_doing", "_encoding", "_offset", "tags")

    def __init__(
        self, encoding: bytes, doing: str, tags: Mapping[bytes, Callable[[Reader], Any]] = _NO_TAGS
    ) -> None:
        self._encoding = encoding
        self._doing = doing
        self._offset = 0
        self.tags = tags

    def byte(self) -> int:
        """Return the next byte as a number."""
        return self.take(1)[0]

    def uint(self) -> int:
        """Return the next uint; refuses longer forms than the shortest."""
        first = self.byte()
        if first < 0xF8:
            return first
        n = int.from_bytes(self.take(first - 0xF7), "little")
        if pack_uint(n)[0] != first:
            raise self.error("the shortest form of a number", f"{n} in {first - 0xF7} bytes")
        return n

    def bytes(self) -> builtins.bytes:
        """Return the next length-prefixed bytes."""
        return self.take(self.uint())

    def text(self) -> str:
        """Return the next text."""
        content = self.bytes()
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.error("UTF-8 text", error.reason) from None

    def nested(self) -> Reader:
        """Return a reader of the next length-prefixed bytes, for the same purpose and with the same tags."""
        return Reader(self.bytes(), self._doing, self.tags)

    def peek(self, size: int) -> builtins.bytes:
        """Return the next `size` bytes, or as many as there are, without advancing."""
        return self._encoding[self._offset : self._offset + size]

    def end(self) -> None:
        """Raise InvalidEncoding unless everything was read."""
        if self._offset != len(self._encoding):
            raise self.error("the end", f"{len(self._encoding) - self._offset} more bytes")

    def error(self, expected: str, found: str) -> InvalidEncoding:
        """Return the error for `found` where `expected` was due."""
        return InvalidEncoding(self._doing, self._offset, expected, found)

    def take(self, size: int) -> builtins.bytes:
        """Return the next `size` bytes."""
        taken = self._encoding[self._offset : self._offset + size]
        if len(taken) != size:
            raise self.error(f"{size} more bytes", f"{len(taken)}")
        self._offset += size
        return taken
