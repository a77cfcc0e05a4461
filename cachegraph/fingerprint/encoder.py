"""The encoder: it collects one canonical encoding, whose grammar the encoders of each kind of value describe.

An encoding is a stream of bytes that is the same for the same value in every process and differs for values that
differ. It is injective because every piece is either of fixed size or preceded by its length.

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

    @abstractmethod
    def value(self, value: Any) -> None:
        """Write `value` with the encoder of its type; raises Unfingerprintable if it, or anything in it, has none."""

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
                for item, _ in self._definition.bodies():
                    if isinstance(item, type):
                        self.write_attribute_order(item)
        except (Unfingerprintable, RecursionError):
            raise
        except Exception as error:  # of what users' classes and modules do when they are looked at
            raise Unfingerprintable(
                class_name(type(value)),
                f"looking at what it reaches raised {error!r}; see to it that it does not",
            ) from error
        finally:
            self._definition = None
            self.follows = outside
        self.bytes(self.cut(start))

    def write_order(self) -> None:
        """Have the definition that is being written say the order of the attributes of each class in it: code can tell."""
        if self._definition is not None:
            self._definition.has_order = True

    @abstractmethod
    def write_attribute_order(self, cls: type) -> None:
        """Write the names of the attributes of `cls` in their order."""

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
                raise Unfingerprintable(class_name(type(container)), "it contains itself; break the cycle")
            raise Unfingerprintable(class_name(type(container)), f"nest values at most {MAX_DEPTH} deep")
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


def class_name(cls: type) -> str:
    """Return the module and the qualified name of `cls`, for messages."""
    return f"{cls.__module__}.{cls.__qualname__}"
