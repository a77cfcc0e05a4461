"""The canonical encoding of values, its digests, and the reader of what was encoded.

An encoding is a stream of bytes that is the same for the same value in every process and differs for values that
differ. It is injective because every piece is either of fixed size or preceded by its length.

    encoding := HASH_VERSION(1 byte) value
    uint     := n (1 byte)                                   for n < 0xF8
              | 0xF7+k (1 byte), n in k bytes little-endian  otherwise, k the fewest that hold it (1 to 8)
    bytes    := uint(length) the bytes
    text     := bytes(UTF-8, lone surrogates encoded as if they were characters)
    value    := one tag byte, then what the tag's encoder writes: see values.py, arrays.py, registry.py, callables.py,
                wrappers.py, classes.py and reached.py

Version history
    1  first
    2  extension files and source are described by BLAKE2b-256, as large arrays are
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cachegraph.errors import InvalidEncoding, Unfingerprintable
from cachegraph.fingerprint.primitives import digest, strong_digest
from cachegraph.fingerprint.registry import ENCODERS, find_encoder, is_registered

HASH_VERSION = 2
MAX_DEPTH = 100

_ONE_BYTE = tuple(bytes((n,)) for n in range(0xF8))


def encode(value: object, described: Collection[str] = ()) -> bytes:
    """Return the canonical encoding of `value`; raises Unfingerprintable if it, or anything in it, has none.

    `described` names the packages whose source another part of the key describes: their code is not followed.
    """
    encoder = Encoder(described)
    encoder.value(value)
    return encoder.encoding


def fingerprint(value: object) -> bytes:
    """Return the digest of the canonical encoding of `value`: 16 bytes; raises Unfingerprintable."""
    return digest(encode(value))


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
    """Return `content` as the grammar's bytes: preceded by its length."""
    return pack_uint(len(content)) + content


class Encoder:
    """Collects one canonical encoding, which starts with HASH_VERSION.

    A caller that lays out a structure of its own writes it with tag, uint, bytes and text, and what is inside it with
    value. An Encoder that has raised holds half an encoding: throw it away.
    """

    __slots__ = ("_buffer", "_definition", "_open", "described", "follows")

    def __init__(self, described: Collection[str] = ()) -> None:
        """`described` names the packages whose source another part of the key describes: their code is not followed."""
        self._buffer = bytearray((HASH_VERSION,))
        self._open: list[object] = []
        self._definition: _Definition | None = None
        self.described = described
        # Whether what is written now was reached by code, and so is to be described by its own.
        self.follows = False

    @property
    def encoding(self) -> builtins.bytes:
        """A copy of what has been written so far."""
        return bytes(self._buffer)

    def tag(self, tag: builtins.bytes) -> None:
        """Write `tag` as it is. What may follow one tag must not be confusable with what may follow another."""
        self._buffer += tag

    def uint(self, n: int) -> None:
        """Write `n`, 0 <= n < 2**64; raises ValueError otherwise."""
        if 0 <= n < 0xF8:
            self._buffer.append(n)
        else:
            self._buffer += pack_uint(n)

    def bytes(self, content: builtins.bytes) -> None:
        """Write `content`, preceded by its length."""
        self.uint(len(content))
        self._buffer += content

    def text(self, text: str) -> None:
        """Write `text`, preceded by the length of its UTF-8."""
        content = text.encode("utf-8", "surrogatepass")
        self.uint(len(content))
        self._buffer += content

    def strong_digest(self, content: builtins.bytes) -> None:
        """Write the strong digest of `content`, which stands for it: for what is too large to be kept with every key."""
        self._buffer += strong_digest(content)

    def value(self, value: Any) -> None:
        """Write `value` with the encoder of its type; raises Unfingerprintable if it, or anything in it, has none."""
        cls = type(value)
        try:
            if self.follows:
                self._value_reached_by_code(cls, value)
            else:
                (ENCODERS.get(cls) or find_encoder(cls))(self, value)
        except RecursionError:
            raise Unfingerprintable(
                _name(cls), "the Python stack ran out; nest the value less deeply"
            ) from None

    def _value_reached_by_code(self, cls: type, value: Any) -> None:
        from cachegraph.fingerprint import reached

        write = reached.encoder_for(cls, self.described, is_registered(cls))
        (write or ENCODERS.get(cls) or find_encoder(cls))(self, value)

    def definition(self, value: Any, write: Callable[[Encoder, Any], None]) -> None:
        """Write `value`, whose body `write` writes, and what that refers to by definitions, cycles included.

        Within another definition it is a reference, and its body comes once, after the one that is being written.
        """
        if self._definition is not None:
            self.tag(b"@")
            self.uint(self._definition.number(value, write))
            return
        self._definition = _Definition()
        self._definition.number(value, write)
        outside, self.follows = self.follows, True
        self.tag(b"L")
        start = self.mark()
        try:
            for item, write_body in self._definition.bodies():
                mark = self.mark()
                write_body(self, item)
                self.bytes(self.cut(mark))
            if self._definition.has_order:
                self._write_order(self._definition)
        except (Unfingerprintable, RecursionError):
            raise
        except Exception as error:  # of what users' classes and modules do when they are looked at
            raise Unfingerprintable(
                _name(type(value)), f"looking at what it reaches raised {error!r}; see to it that it does not"
            ) from error
        finally:
            self._definition = None
            self.follows = outside
        self.bytes(self.cut(start))

    def write_order(self) -> None:
        """Have the definition that is being written say the order of the attributes of each class in it: code can tell."""
        if self._definition is not None:
            self._definition.has_order = True

    def _write_order(self, definition: _Definition) -> None:
        from cachegraph.fingerprint.classes import order_of_attributes

        for item, _ in definition.bodies():
            if isinstance(item, type):
                names = order_of_attributes(item)
                self.uint(len(names))
                for name in names:
                    self.text(name)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is written inside has no references to what is outside: its place among others may not matter."""
        definition, self._definition = self._definition, None
        try:
            yield
        finally:
            self._definition = definition

    def enter(self, container: object) -> None:
        """Begin a value that holds others; raises Unfingerprintable inside itself or more than MAX_DEPTH deep."""
        if len(self._open) >= MAX_DEPTH:
            if any(outer is container for outer in self._open):
                raise Unfingerprintable(_name(type(container)), "it contains itself; break the cycle")
            raise Unfingerprintable(_name(type(container)), f"nest values at most {MAX_DEPTH} deep")
        self._open.append(container)

    def leave(self) -> None:
        """End the value begun by the last `enter`."""
        self._open.pop()

    def mark(self) -> int:
        """Return the place that has been reached, for `cut`."""
        return len(self._buffer)

    def cut(self, mark: int) -> builtins.bytes:
        """Take back and return what was written since `mark`, to be written again in another order or frame."""
        content = bytes(self._buffer[mark:])
        del self._buffer[mark:]
        return content


class _Definition:
    """The callables and classes that one definition holds, numbered as they are first referred to."""

    def __init__(self) -> None:
        self.has_order = False
        self._numbers: dict[int, int] = {}
        # Bound methods and the like are made anew whenever they are asked for: an id must not be used twice.
        self._items: list[tuple[Any, Callable[[Encoder, Any], None]]] = []

    def number(self, value: Any, write: Callable[[Encoder, Any], None]) -> int:
        found = self._numbers.get(id(value))
        if found is None:
            found = self._numbers[id(value)] = len(self._items)
            self._items.append((value, write))
        return found

    def bodies(self) -> Iterator[tuple[Any, Callable[[Encoder, Any], None]]]:
        position = 0
        while position < len(self._items):
            yield self._items[position]
            position += 1


_NO_TAGS: Mapping[bytes, Callable[[Reader], Any]] = {}


class Reader:
    """Reads back, from the front, what an Encoder wrote; raises InvalidEncoding on what none can have written.

    `tags` are readers, by tag, of values that another grammar adds to this one; decoder.py calls them.
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
        """Return the next uint; refuses a longer form than the shortest."""
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

    def peek(self, size: int) -> builtins.bytes:
        """Return the next `size` bytes, or as many as there are, and stay where we are."""
        return self._encoding[self._offset : self._offset + size]

    def end(self) -> None:
        """Refuse anything that follows."""
        if self._offset != len(self._encoding):
            raise self.error("the end", f"{len(self._encoding) - self._offset} more bytes")

    def error(self, expected: str, found: str) -> InvalidEncoding:
        """Return the error that says `expected` was due here and `found` came."""
        return InvalidEncoding(self._doing, self._offset, expected, found)

    def take(self, size: int) -> builtins.bytes:
        """Return the next `size` bytes."""
        taken = self._encoding[self._offset : self._offset + size]
        if len(taken) != size:
            raise self.error(f"{size} more bytes", f"{len(taken)}")
        self._offset += size
        return taken


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
