"""Encoders of Python's own values.

    none, true, false  := 'N' | 'T' | 'F'
    int   := 'i' bytes(two's complement, little-endian, the fewest bytes that hold number and sign)
    float, complex   := 'f' 8 bytes | 'c' 16 bytes   IEEE 754 binary64 by bits, little-endian: -0.0 is not 0.0
    str, bytes         := 's' text | 'b' bytes
    tuple, list        := '(' uint(n) value*n | '[' uint(n) value*n
    set, frozenset     := '<' uint(n) value*n | '=' uint(n) value*n       sorted by their encodings
    dict               := '{' uint(n) (value value)*n                     items sorted by their encodings
    slice, range       := ':' value value value | 'r' value value value   start, stop, step
    ellipsis           := '.'
    NotImplemented     := '!'
    enum member        := 'E' text(module) text(qualname) value(name, None for a flag) value(its value)
    dataclass   := 'D' text(module) text(qualname) uint(n) (text(field) value)*n   in the order of definition
    named tuple        := 'P' text(module) text(qualname) uint(n) value*n

Equal containers have one encoding, whatever the order they were built in and however they share
objects. An instance of an enum, a dataclass or a named tuple names its class. A class that
`register_record` was called for is written as a dataclass. Refused are instances
of classes that their names do not import (defined in a function or in `__main__`, or replaced
since), and dataclass instances with state outside their fields.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterable
from enum import Enum, Flag
from functools import cached_property
from operator import itemgetter
from types import EllipsisType, NotImplementedType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import importable_name
from cachegraph.fingerprint.primitives import pack_text, pack_uint

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set on every class made by a class statement
_pack_float = struct.Struct("<d").pack
_pack_complex = struct.Struct("<dd").pack


class NeverSet:
    """A placeholder for an attribute that was never set. It has no encoder, so its holder is refused."""


_NEVER_SET = NeverSet()


def _encode_none(encoder: Encoder, value: None) -> None:
    encoder.tag(b"N")


def _encode_ellipsis(encoder: Encoder, value: EllipsisType) -> None:
    encoder.tag(b".")


def _encode_not_implemented(encoder: Encoder, value: NotImplementedType) -> None:
    encoder.tag(b"!")


def _encode_bool(encoder: Encoder, value: bool) -> None:
    encoder.tag(b"T" if value else b"F")


def _encode_int(encoder: Encoder, value: int) -> None:
    encoder.tag(b"i")
    encoder.bytes(value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "little", signed=True))


def _encode_float(encoder: Encoder, value: float) -> None:
    encoder.tag(b"f" + _pack_float(value))


def _encode_complex(encoder: Encoder, value: complex) -> None:
    encoder.tag(b"c" + _pack_complex(value.real, value.imag))


def _encode_str(encoder: Encoder, value: str) -> None:
    encoder.tag(b"s")
    encoder.text(value)


def _encode_bytes(encoder: Encoder, value: bytes) -> None:
    encoder.tag(b"b")
    encoder.bytes(value)


def _encode_tuple(encoder: Encoder, value: tuple[object, ...]) -> None:
    encoder.tag(b"(")
    _encode_items(encoder, value)


def _encode_list(encoder: Encoder, value: list[object]) -> None:
    encoder.tag(b"[")
    _encode_items(encoder, value)


def _encode_items(encoder: Encoder, value: tuple[object, ...] | list[object]) -> None:
    encoder.enter(value)
    encoder.uint(len(value))
    index = 0
    try:
        for index, item in enumerate(value):
            encoder.value(item)
    except Unfingerprintable as error:
        error.inside(f"[{index}]")
        raise
    encoder.leave()


def _encode_set(encoder: Encoder, value: set[object]) -> None:
    encoder.tag(b"<")
    _encode_elements(encoder, value)


def _encode_frozenset(encoder: Encoder, value: frozenset[object]) -> None:
    encoder.tag(b"=")
    _encode_elements(encoder, value)


def _encode_elements(encoder: Encoder, value: set[object] | frozenset[object]) -> None:
    encoder.enter(value)
    try:
        pieces = [_encoded_apart(encoder, element) for element in value]
    except Unfingerprintable as error:
        error.inside("an element of the set")
        raise
    _write_sorted(encoder, pieces)
    encoder.leave()


def _encode_dict(encoder: Encoder, value: dict[object, object]) -> None:
    encoder.tag(b"{")
    encoder.enter(value)
    keys = [_encoded_key(encoder, key) for key in value]
    if len(set(keys)) == len(keys):
        encoder.uint(len(keys))
        for encoded, item in sorted(zip(keys, value.items(), strict=True), key=itemgetter(0)):
            encoder.tag(encoded)
            encode_item(encoder, *item)
    else:  # for example NaNs with the same bits
        items = zip(keys, value.items(), strict=True)
        _write_sorted(encoder, [_encoded_item(encoder, encoded, *item) for encoded, item in items])
    encoder.leave()


def _encoded_key(encoder: Encoder, key: object) -> bytes:
    mark = encoder.mark()
    with encoder.apart():
        encode_key(encoder, key)
    return encoder.cut(mark)


def encode_key(encoder: Encoder, key: object) -> None:
    """Write `key` of a dict."""
    try:
        encoder.value(key)
    except Unfingerprintable as error:
        error.inside("a key of the dict")
        raise


def _encoded_item(encoder: Encoder, encoded_key: bytes, key: object, item: object) -> bytes:
    mark = encoder.mark()
    with encoder.apart():
        encode_item(encoder, key, item)
    return encoded_key + encoder.cut(mark)


def encode_item(encoder: Encoder, key: object, item: object) -> None:
    """Write `item`, the value of `key` in a dict."""
    try:
        encoder.value(item)
    except Unfingerprintable as error:
        error.inside(f"[{key!r}]" if type(key) is str else "a value of the dict")
        raise


def _encoded_apart(encoder: Encoder, value: object) -> bytes:
    mark = encoder.mark()
    with encoder.apart():
        encoder.value(value)
    return encoder.cut(mark)


def _write_sorted(encoder: Encoder, pieces: list[bytes]) -> None:
    # Different pieces never compare equal, so the order does not depend on how the container was built.
    # Sorting by digest would leave the order of two that collide to chance.
    pieces.sort()
    encoder.uint(len(pieces))
    encoder.tag(b"".join(pieces))


def _encode_slice(encoder: Encoder, value: slice) -> None:
    encoder.enter(value)
    encoder.tag(b":")
    _encode_attributes(encoder, value, ("start", "stop", "step"))
    encoder.leave()


def _encode_range(encoder: Encoder, value: range) -> None:
    encoder.tag(b"r")
    _encode_attributes(encoder, value, ("start", "stop", "step"))


def _encode_attributes(encoder: Encoder, value: object, names: Iterable[str]) -> None:
    name = ""
    try:
        for name in names:
            encoder.value(getattr(value, name, _NEVER_SET))
    except Unfingerprintable as error:
        error.inside(f".{name}")
        raise


def encoder_for_kind(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` if it is an enum, a dataclass or a named tuple, else None.

    Raises Unfingerprintable if it is one that its name does not import.
    """
    if issubclass(cls, Enum):
        return _enum_encoder(cls)
    if "__dataclass_params__" in vars(cls):
        return _dataclass_encoder(cls)
    if tuple in cls.__bases__ and "_fields" in vars(cls):
        return _named_tuple_encoder(cls)
    return None


def _enum_encoder(cls: type[Enum]) -> Callable[[Encoder, Any], None]:
    module, qualname = importable_name(cls)
    # The name of a combination of flags differs between releases of Python.
    named = not issubclass(cls, Flag)

    def encode_member(encoder: Encoder, value: Enum) -> None:
        encoder.enter(value)
        encoder.tag(b"E")
        encoder.text(module)
        encoder.text(qualname)
        encoder.value(value._name_ if named else None)
        _encode_attributes(encoder, value, ("_value_",))
        encoder.leave()

    return encode_member


def _dataclass_encoder(cls: type) -> Callable[[Encoder, Any], None]:
    names = tuple(field.name for field in dataclasses.fields(cls))
    _refuse_hidden_state(cls, names)
    write = record_encoder(cls, names)

    def encode_dataclass(encoder: Encoder, value: Any) -> None:
        _refuse_extra_attributes(value, names)
        write(encoder, value)

    return encode_dataclass


def record_encoder(cls: type, names: tuple[str, ...]) -> Callable[[Encoder, Any], None]:
    """Return the encoder for instances of `cls` that writes them as a dataclass with the fields `names`.

    Raises Unfingerprintable for a class that its name does not import.
    """
    head = b"D" + b"".join(map(pack_text, importable_name(cls))) + pack_uint(len(names))
    fields = [(pack_text(name), name) for name in names]

    def encode_record(encoder: Encoder, value: Any) -> None:
        encoder.enter(value)
        encoder.tag(head)
        name = ""
        try:
            for label, name in fields:
                encoder.tag(label)
                encoder.value(getattr(value, name, _NEVER_SET))
        except Unfingerprintable as error:
            error.inside(f".{name}")
            raise
        encoder.leave()

    return encode_record


def _refuse_hidden_state(cls: type, names: tuple[str, ...]) -> None:
    """Refuse a dataclass whose bases keep state outside its fields, in a built-in type or in slots of their
    own."""
    for base in cls.__mro__[:-1]:
        slots = vars(base).get("__slots__", ())
        hidden = {slots} if isinstance(slots, str) else set(slots)
        hidden -= {*names, "__dict__", "__weakref__"}
        if hidden or not base.__flags__ & _HEAP_TYPE:
            raise Unfingerprintable(
                f"dataclass {cls.__module__}.{cls.__qualname__}",
                f"its base {base.__qualname__} has state that is no field; register_encoder() for it",
            )


def _refuse_extra_attributes(value: Any, names: tuple[str, ...]) -> None:
    cls = type(value)
    for name in getattr(value, "__dict__", {}).keys() - names:
        if not isinstance(getattr(cls, name, None), cached_property):
            raise Unfingerprintable(
                f"dataclass {cls.__module__}.{cls.__qualname__}",
                f"its attribute {name!r} is no field; make it one, or register_encoder() for it",
            )


def _named_tuple_encoder(cls: type) -> Callable[[Encoder, Any], None]:
    module, qualname = importable_name(cls)

    def encode_named_tuple(encoder: Encoder, value: tuple[object, ...]) -> None:
        encoder.tag(b"P")
        encoder.text(module)
        encoder.text(qualname)
        _encode_items(encoder, value)

    return encode_named_tuple


ENCODERS: dict[type, Callable[[Encoder, Any], None]] = {
    type(None): _encode_none,
    EllipsisType: _encode_ellipsis,
    NotImplementedType: _encode_not_implemented,
    bool: _encode_bool,
    int: _encode_int,
    float: _encode_float,
    complex: _encode_complex,
    str: _encode_str,
    bytes: _encode_bytes,
    tuple: _encode_tuple,
    list: _encode_list,
    set: _encode_set,
    frozenset: _encode_frozenset,
    dict: _encode_dict,
    slice: _encode_slice,
    range: _encode_range,
}
