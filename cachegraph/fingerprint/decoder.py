"""The decoder of canonical encodings, for people: values as text.

The grammar is in encoder.py, values.py, arrays.py and registry.py, that of code in callables.py, classes.py,
bytecode.py and reached.py. Nothing is imported or made: a class is read as its name, an array as its dtype,
shape and bytes. Of a definition, functions and classes are read; other bodies are told by their digests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.primitives import HASH_VERSION, MAX_DEPTH, Reader, digest
from cachegraph.named_tuples import NamedTuple

_ORIGINS = {b"p": ("Python", 1), b"r": ("", 2), b"d": ("", 1)}
_SEQUENCES = {b"(": ("(", ")"), b"[": ("[", "]"), b"<": ("{", "}"), b"=": ("frozenset({", "})")}


class Decoded(NamedTuple):
    """A decoded value: its `text`, and its parts (label -> value), if any."""

    text: str
    parts: tuple[tuple[str, Decoded], ...] = ()


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
    read = reader.tags.get(tag) or _READERS.get(tag)
    if read is None and tag not in _SEQUENCES:
        raise reader.error("the tag of a value", repr(tag))
    try:
        return _sequence(reader, *_SEQUENCES[tag]) if read is None else read(reader)
    except RecursionError:
        raise reader.error(f"values at most {MAX_DEPTH} deep", "deeper ones") from None


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
    return _digested(content)


def _digested(content: bytes) -> str:
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


def _definition(reader: Reader) -> Decoded:
    """Read a definition: its root, and everything that the root reaches."""
    content = reader.bytes()
    outer, bodies = Reader(content, "reading a definition", reader.tags), []
    while outer.peek(1):
        bodies.append(outer.bytes())
    names = [_name_of(body) for body in bodies]
    root, *reached = [(name, _body(body, names)) for name, body in zip(names, bodies, strict=True)]
    rest = Decoded(f"it reaches {', '.join(filter(None, names[1:]))}", tuple(reached))
    return Decoded(f"code {_content(content)}", (root, ("", rest)))


def _name_of(body: bytes) -> str:
    """Return the name of the function or class that a body describes; empty for anything else."""
    reader = Reader(body, "reading a definition")
    tag = reader.take(1)
    try:
        if tag in b"nx":
            return f"{reader.text()}.{reader.text()}"
        return (reader.text(), reader.text())[1] if tag in b"fc" else ""
    except InvalidEncoding:
        return ""


def _body(body: bytes, names: Sequence[str]) -> Decoded:
    tags = {**_IN_DEFINITIONS, b"@": lambda reader: _referred(reader.uint(), names)}
    reader = Reader(body, "reading a definition", tags)
    try:
        found = {b"f": _function, b"c": _class_body}.get(reader.peek(1), decode_value)(reader)
        reader.end()
    except InvalidEncoding:  # a wrapper, something native, or another grammar's
        return Decoded(_digested(body))
    return found


def _referred(number: int, names: Sequence[str]) -> Decoded:
    return Decoded((names[number] if number < len(names) else "") or f"definition {number}")


def _function(reader: Reader) -> Decoded:
    _, _, _ = reader.take(1), reader.text(), reader.text()
    code, free = _code(reader)
    parts = [("", code)]
    parts += [(f" {what}", decode_value(reader)) for what in ("defaults", "keyword defaults", "attributes")]
    parts += [(f" variable {name}", _found(reader)) for name in free]
    parts.append(_named_parts("reads", [_read(reader) for _ in range(reader.uint())]))
    imported = [part for _ in range(reader.uint()) for part in _imported(reader)]
    parts.append(_named_parts("imports", imported))
    parts += [(" registered with numba", decode_value(reader)) for _ in range(reader.uint())]
    return Decoded("a function", tuple(parts))


def _named_parts(what: str, parts: Sequence[tuple[str, Decoded]]) -> tuple[str, Decoded]:
    return "", Decoded(f"it {what} {', '.join(label.split()[-1] for label, _ in parts)}", tuple(parts))


def _read(reader: Reader) -> tuple[str, Decoded]:
    name, taken = reader.text(), [reader.text() for _ in range(reader.uint())]
    return f" global {'.'.join((name, *taken))}", _found(reader)


def _found(reader: Reader) -> Decoded:
    return Decoded("nothing") if reader.take(1) == b"-" else decode_value(reader)


def _imported(reader: Reader) -> Iterator[tuple[str, Decoded]]:
    module = reader.text()
    if reader.peek(1) == b"M":
        yield f" import {module}", decode_value(reader)
    for _ in range(reader.uint()):
        yield f" import {module}.{reader.text()}", decode_value(reader)


def _code(reader: Reader) -> tuple[Decoded, list[str]]:
    """Return the instructions of a code object, and the names of its free variables."""
    magic, _, _ = reader.bytes(), reader.text(), reader.text()
    shape = [reader.uint() for _ in range(4)]
    arguments, cells, free = ([reader.text() for _ in range(reader.uint())] for _ in range(3))
    lines = [f"{reader.text()} {_argument(reader)}".strip() for _ in range(reader.uint())]
    handlers = [reader.uint() for _ in range(5 * reader.uint())]
    parts = [(" bytecode", Decoded(magic.hex())), (" arguments", Decoded(f"{arguments} {shape}"))]
    parts += [(f" instruction {number}", Decoded(line)) for number, line in enumerate(lines)]
    parts += [(" other variables", Decoded(f"{cells} {free}")), (" try blocks", Decoded(str(handlers)))]
    return Decoded(f"code of {len(lines)} instructions", tuple(parts)), free


def _class_body(reader: Reader) -> Decoded:
    _, _, _ = reader.take(1), reader.text(), reader.text()
    parts = [(f" {what}", decode_value(reader)) for what in ("metaclass", "bases")]
    parts += [(f".{reader.text()}", _attribute(reader)) for _ in range(reader.uint())]
    return Decoded("a class", tuple(parts))


def _attribute(reader: Reader) -> Decoded:
    tag = reader.peek(1)
    if tag not in (b"-", b"#"):
        return decode_value(reader)
    reader.take(1)
    return Decoded("a slot" if tag == b"-" else f"field {reader.uint()}")


def _instance(reader: Reader) -> Decoded:
    cls, state = decode_value(reader), decode_value(reader)
    return Decoded(f"{cls.text} {state.text}", ((" class", cls), ("", state)))


def _strided(reader: Reader) -> Decoded:
    array = decode_value(reader)
    strides = [int.from_bytes(reader.bytes(), "little", signed=True) for _ in range(reader.uint())]
    writing = "" if reader.take(1) == b"w" else ", read-only"
    return Decoded(f"{array.text} with the strides {strides}{writing}")


def _argument(reader: Reader) -> str:
    tag = reader.take(1)
    if tag == b"-":
        return ""
    if tag == b"n":
        return f"{reader.text()} {reader.uint() or ''}".rstrip()
    if tag in b"ij":
        return f"{'to ' if tag == b'j' else ''}{reader.uint()}"
    if reader.peek(1) != b"o":
        return decode_value(reader).text
    reader.take(1)
    inner, _ = _code(reader)
    return f"{inner.text}: {'; '.join(part.text for _, part in inner.parts)}"


_IN_DEFINITIONS: dict[bytes, Callable[[Reader], Decoded]] = {
    b"%": _mapping,
    b"O": lambda reader: Decoded(f"{decode_value(reader).text} {decode_value(reader).text}"),
    b"C": lambda reader: Decoded(f"{_class(reader).text} of {read_origin(reader)}"),
    b"I": _instance,
    b"A": _strided,
}
"""Within a definition: a dict in its order, a value with the code of its class, a class with its origin, an
instance, and an array that is not contiguous or read-only."""

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
    b"L": lambda reader: _definition(reader),
    b"M": _module,
    b"P": _named_tuple,
    b"R": _registered,
    b"d": lambda reader: Decoded(f"dtype {reader.text()}"),
    b"n": _scalar,
    b"a": _array,
    b"h": _large_array,
}
