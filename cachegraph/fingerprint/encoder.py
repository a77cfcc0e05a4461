"""The encoder: it collects one canonical encoding, whose grammar the encoders of each kind of value
describe.

An encoding is a stream of bytes that is the same for the same value in every process and differs for
values that differ. It is injective because every piece is either of fixed size or preceded by its length.

    encoding := HASH_VERSION(1 byte) value        uint, bytes and text: primitives.py
    value    := one tag byte, then what the encoder of the tag writes: values.py, arrays.py, registry.py,
                callables.py, wrappers.py, classes.py, reached.py
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.primitives import HASH_VERSION, MAX_DEPTH, pack_uint, strong_digest


class Encoder(ABC):
    """The collector of one canonical encoding, which starts with HASH_VERSION.

    A caller with a layout of its own uses `tag`, `uint`, `bytes` and `text`, and `value` for the values
    inside. After an exception the encoding is incomplete: discard the encoder.
    """

    __slots__ = ("_buffer", "_definition", "_open", "described", "follows")

    def __init__(self, described: Collection[str] = ()) -> None:
        """Begin an encoding; another part of the key describes the source of the `described` packages, whose
        code is not followed."""
        self._buffer = bytearray((HASH_VERSION,))
        self._open: list[object] = []
        self._definition: _Definition | None = None
        self.described = described
        # True while writing what code reaches: it is described by its own code
        self.follows = False

    @property
    def encoding(self) -> builtins.bytes:
        """A copy of the bytes written so far."""
        return bytes(self._buffer)

    def tag(self, tag: builtins.bytes) -> None:
        """Write `tag` as it is. What follows one tag must not be confusable with what follows another."""
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
        """Write the strong digest of `content`, for content that is too large to store with every key."""
        self._buffer += strong_digest(content)

    @abstractmethod
    def value(self, value: Any) -> None:
        """Write `value` with the encoder of its type; raises Unfingerprintable if it, or anything in it, has
        none."""

    def definition(self, value: Any, write: Callable[[Encoder, Any], None]) -> None:
        """Write `value`, whose body `write` writes, and everything that it refers to by definitions, cycles
        included.

        Within another definition, write a reference; the body follows once, after the current one.
        """
        if self._definition is not None:
            self.tag(b"@")
            self.uint(self._definition.number(value, write))
            return
        self._definition = _Definition()
        self._definition.number(value, write)
        before, self.follows = self.follows, True
        self.tag(b"L")
        start = self.mark()
        try:
            for item, write_body in self._definition.bodies():
                mark = self.mark()
                write_body(self, item)
                self.bytes(self.cut(mark))
            if self._definition.has_order:
                for item, _ in self._definition.bodies():
                    if isinstance(item, type):
                        self.write_attribute_order(item)
        except (Unfingerprintable, RecursionError):
            raise
        except Exception as error:  # user classes and modules may raise anything when they are inspected
            raise Unfingerprintable(
                class_name(type(value)),
                f"looking at what it reaches raised {error!r}; see to it that it does not",
            ) from error
        finally:
            self._definition = None
            self.follows = before
        self.bytes(self.cut(start))

    def write_order(self) -> None:
        """Describe the order of class attributes in the current definition, because its code can tell it."""
        if self._definition is not None:
            self._definition.has_order = True

    @abstractmethod
    def write_attribute_order(self, cls: type) -> None:
        """Write the names of the attributes of `cls` in their order."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Write without references to what is outside, so that the order of the pieces may not matter."""
        definition, self._definition = self._definition, None
        try:
            yield
        finally:
            self._definition = definition

    def enter(self, container: object) -> None:
        """Begin a container; raises Unfingerprintable if it is nested in itself or over MAX_DEPTH deep."""
        if len(self._open) >= MAX_DEPTH:
            if any(outer is container for outer in self._open):
                raise Unfingerprintable(class_name(type(container)), "it contains itself; break the cycle")
            raise Unfingerprintable(class_name(type(container)), f"nest values at most {MAX_DEPTH} deep")
        self._open.append(container)

    def leave(self) -> None:
        """End the container begun by the last `enter`."""
        self._open.pop()

    def mark(self) -> int:
        """Return the current position, for `cut`."""
        return len(self._buffer)

    def cut(self, mark: int) -> builtins.bytes:
        """Take back and return everything written since `mark`, to be written in another order or frame."""
        content = bytes(self._buffer[mark:])
        del self._buffer[mark:]
        return content


class _Definition:
    """The callables and classes of one definition, numbered by first reference."""

    def __init__(self) -> None:
        self.has_order = False
        self._numbers: dict[int, int] = {}
        # Kept alive: bound methods are created on each access, and an id must not be used twice.
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


def class_name(cls: type) -> str:
    """Return the module and the qualified name of `cls`, for messages."""
    return f"{cls.__module__}.{cls.__qualname__}"
