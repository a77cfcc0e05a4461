"""The decoder of canonical encodings, for people: values as text, and the first difference of two.

The grammar is in encoder.py, values.py, arrays.py and registry.py. Nothing is imported or
instantiated: a class is read as its name, an array as its dtype, shape and bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import HASH_VERSION, MAX_DEPTH, Reader, digest
from cachegraph.named_tuples import NamedTuple

_SHOWN = 60
_BEFORE = 20
"""Characters before the first difference of long texts that are shown."""
_ORIGINS = {b"p": ("Python", 1), b"r": ("", 2), b"d": ("", 1)}
_SEQUENCES = {b"(": ("(", ")"), b"[": ("[", "]"), b"<": ("{", "}"), b"=": ("frozenset({", "})")}


class Decoded(NamedTuple):
    """A decoded value: its `text`, and its parts (label -> value), if any."""

    text: str
    parts: tuple[tuple[str, Decoded], ...] = ()


class Difference(NamedTuple):
    """The first difference of two values: its `path` (empty for the values themselves) and both texts
    there."""

    path: str
    wanted: str
    stored: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{place}{self.wanted}, stored {self.stored}"


def decode(encoding: bytes) -> Decoded:
    """Return the value whose canonical encoding this is; raises InvalidEncoding."""
    reader = Reader(encoding, "reading an encoding")
    check_version(reader)
    value = decode_value(reader)
    reader.end()
    return value


def check_version(reader: Reader) -> None:
    """Read the version byte; raises InvalidEncoding on another than HASH_VERSION."""
    version = reader.byte()
    if version != HASH_VERSION:
        raise reader.error(f"hash version {HASH_VERSION}", f"version {version}")


def decode_value(reader: Reader) -> Decoded:
    """Return the value that comes next; raises InvalidEncoding."""
    tag = reader.take(1)
    read = _READERS.get(tag) or reader.tags.get(tag)
    if read is None and tag not in _SEQUENCES:
        raise reader.error("the tag of a value", repr(tag))
    try:
        return _sequence(reader, *_SEQUENCES[tag]) if read is None else read(reader)
    except RecursionError:
        raise reader.error(f"values at most {MAX_DEPTH} deep", "deeper ones") from None


def first_difference(wanted: Decoded, stored: Decoded) -> Difference | None:
    """Return the first difference of two values; None if they are equal."""
    if wanted == stored:
        return None
    labels = [label for label, _ in wanted.parts]
    if labels and labels == [label for label, _ in stored.parts]:
        for (label, one), (_, other) in zip(wanted.parts, stored.parts, strict=True):
            inner = first_difference(one, other)
            if inner is not None:
                return inner._replace(path=label + inner.path)
    return Difference("", *_windows(wanted.text, stored.text))


def _windows(wanted: str, stored: str) -> tuple[str, str]:
    """Return two texts, if they are long the piece around their first difference."""
    same = next((n for n, pair in enumerate(zip(wanted, stored, strict=False)) if len(set(pair)) > 1), None)
    start = max(min(len(wanted), len(stored)) if same is None else same, _BEFORE) - _BEFORE
    return _window(wanted, start), _window(stored, start)


def _window(text: str, start: int) -> str:
    if len(text) <= _SHOWN:
        return text
    before = "... " if start else ""
    shown = text[start : start + _SHOWN]
    return f"{before}{shown}{' ...' if start + _SHOWN < len(text) else ''}"


def _sequence(reader: Reader, opening: str, closing: str) -> Decoded:
    items = [decode_value(reader) for _ in range(reader.uint())]
    comma = "," if len(items) == 1 and opening == "(" else ""
    text = f"{opening}{', '.join(item.text for item in items)}{comma}{closing}"
    return Decoded(text, tuple((f"[{index}]", item) for index, item in enumerate(items)))


def _mapping(reader: Reader) -> Decoded:
    items = [(decode_value(reader).text, decode_value(reader)) for _ in range(reader.uint())]
    text = f"{{{', '.join(f'{key}: {value.text}' for key, value in items)}}}"
    return Decoded(text, tuple((f"[{key}]", value) for key, value in items))


def _int(reader: Reader) -> Decoded:
    return Decoded(str(int.from_bytes(reader.bytes(), "little", signed=True)))


def _float(reader: Reader) -> Decoded:
    (value,) = struct.unpack("<d", content := reader.take(8))
    return Decoded(f"nan of bits {content[::-1].hex()}" if value != value else repr(value))


def _complex(reader: Reader) -> Decoded:
    real, imaginary = _float(reader), _float(reader)
    return Decoded(f"complex({real.text}, {imaginary.text})")


def _bytes(reader: Reader) -> Decoded:
    return Decoded(_content(reader.bytes()))


def _content(content: bytes) -> str:
    if len(content) <= 24:
        return repr(content)
    return f"{len(content)} bytes {digest(content).hex()[:12]}"


def _attributes(name: str) -> Callable[[Reader], Decoded]:
    def read(reader: Reader) -> Decoded:
        start, stop, step = (decode_value(reader) for _ in range(3))
        parts = ((".start", start), (".stop", stop), (".step", step))
        return Decoded(f"{name}({start.text}, {stop.text}, {step.text})", parts)

    return read


def _class(reader: Reader) -> Decoded:
    return Decoded(f"{reader.text()}.{reader.text()}")


def _module(reader: Reader) -> Decoded:
    return Decoded(f"module {reader.text()} of {read_origin(reader)}")


def read_origin(reader: Reader) -> str:
    """Return the origin of a module (origin.py) as text; raises InvalidEncoding."""
    tag = reader.take(1)
    if tag not in _ORIGINS:
        raise reader.error("the origin of a module", repr(tag))
    kind, texts = _ORIGINS[tag]
    return " ".join((kind, *[reader.text() for _ in range(texts)])).strip()


def _enum(reader: Reader) -> Decoded:
    cls, name, value = _class(reader), decode_value(reader), decode_value(reader)
    return Decoded(
        f"{cls.text}({value.text})" if name.text == "None" else f"{cls.text}.{name.text}={value.text}"
    )


def _dataclass(reader: Reader) -> Decoded:
    cls = _class(reader)
    fields = tuple((reader.text(), decode_value(reader)) for _ in range(reader.uint()))
    text = f"{cls.text}({', '.join(f'{name}={value.text}' for name, value in fields)})"
    return Decoded(text, tuple((f".{name}", value) for name, value in fields))


def _named_tuple(reader: Reader) -> Decoded:
    cls, items = _class(reader), _sequence(reader, "(", ")")
    return Decoded(cls.text + items.text, items.parts)


def _registered(reader: Reader) -> Decoded:
    return Decoded(f"{_class(reader).text} {_content(reader.bytes())}")


def _scalar(reader: Reader) -> Decoded:
    return Decoded(f"{reader.text()} scalar {_content(reader.bytes())}")


def _array(reader: Reader) -> Decoded:
    return Decoded(f"{_described_array(reader)} {_content(reader.bytes())}")


def _large_array(reader: Reader) -> Decoded:
    return Decoded(f"{_described_array(reader)} of digest {reader.take(32).hex()[:12]}")


def _described_array(reader: Reader) -> str:
    dtype = reader.text()
    return f"{dtype} array of shape {tuple(reader.uint() for _ in range(reader.uint()))}"


_READERS: dict[bytes, Callable[[Reader], Decoded]] = {
    b"N": lambda reader: Decoded("None"),
    b"T": lambda reader: Decoded("True"),
    b"F": lambda reader: Decoded("False"),
    b".": lambda reader: Decoded("..."),
    b"!": lambda reader: Decoded("NotImplemented"),
    b"i": _int,
    b"f": _float,
    b"c": _complex,
    b"s": lambda reader: Decoded(repr(reader.text())),
    b"b": _bytes,
    b"{": _mapping,
    b":": _attributes("slice"),
    b"r": _attributes("range"),
    b"C": _class,
    b"E": _enum,
    b"D": _dataclass,
    b"L": lambda reader: Decoded(f"code {_content(reader.bytes())}"),
    b"M": _module,
    b"P": _named_tuple,
    b"R": _registered,
    b"d": lambda reader: Decoded(f"dtype {reader.text()}"),
    b"n": _scalar,
    b"a": _array,
    b"h": _large_array,
}


def describe_difference(wanted: bytes, stored: bytes) -> str:
    """Return the first difference of two encodings in one line; their digests if they cannot be decoded."""
    try:
        difference = first_difference(decode(wanted), decode(stored))
    except (InvalidEncoding, RecursionError):
        return f"digest {digest(wanted).hex()}, stored {digest(stored).hex()}"
    return str(difference or "none that can be read")
