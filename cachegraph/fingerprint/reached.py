"""Encoders of values that code reaches, for differences that code can tell although the values are equal.

reached := 'O' value(class) value          of a class described by more than its name: its code or release;
                                               a named tuple is written as a plain one
         | '%' uint(n) (value value)*n     a dict: its items in their order
         | 'A' array uint(n) (bytes(stride))*n flag   an array that is not C-contiguous, or read-only
         | instance                        classes.py
         | value                           all others
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from cachegraph.fingerprint import callables, classes, values

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder


def encoder_for(
    cls: type, described: Collection[str], registered: bool
) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` that code reaches; None if it is the usual one.

    `registered` is True if an encoder was registered for the class.
    """
    if cls is dict:
        return _encode_dict
    if cls in values.ENCODERS or issubclass(cls, type):
        return None
    if registered:
        return _encode_with_class
    if callables.encoder_for(cls) is not None:
        return None
    if classes.has_own_code(cls, described):
        return classes.encode_instance
    if cls.__module__ == "numpy":
        return _encode_array if cls.__qualname__ == "ndarray" else None
    if tuple in cls.__bases__ and "_fields" in vars(cls):
        return _encode_named_tuple
    return _encode_stateless if classes.keeps_only_attributes(cls) else _encode_with_class


def _encode_dict(encoder: Encoder, value: dict[object, object]) -> None:
    encoder.tag(b"%")
    encoder.enter(value)
    encoder.uint(len(value))
    for key, item in value.items():
        values.encode_key(encoder, key)
        values.encode_item(encoder, key, item)
    encoder.leave()


def _encode_named_tuple(encoder: Encoder, value: tuple[object, ...]) -> None:
    encoder.tag(b"O")
    encoder.value(type(value))
    encoder.value(tuple(value))


def _encode_stateless(encoder: Encoder, value: Any) -> None:
    """Write an object of a release; one without state, such as a sentinel, as an instance of its class."""
    if classes.has_state(value):
        _encode_with_class(encoder, value)
    else:
        classes.encode_instance(encoder, value)


def _encode_with_class(encoder: Encoder, value: Any) -> None:
    from cachegraph.fingerprint.registry import find_encoder

    write = find_encoder(type(value))
    encoder.tag(b"O")
    encoder.value(type(value))
    write(encoder, value)


def _encode_array(encoder: Encoder, value: Any) -> None:
    from cachegraph.fingerprint.registry import find_encoder

    plain = value.flags.c_contiguous and value.flags.writeable
    if not plain:
        encoder.tag(b"A")
    find_encoder(type(value))(encoder, value)
    if not plain:
        encoder.uint(value.ndim)
        for stride in value.strides:
            encoder.bytes(stride.to_bytes(8, "little", signed=True))
        encoder.tag(b"w" if value.flags.writeable else b"r")
