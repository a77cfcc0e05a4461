"""The registry of encoders: by the exact type of a value, then by the kind of its class.

A subclass does not inherit the encoder of its base: it may hold state, or a meaning, that the
encoder does not write. So bool is not int, and a subclass of dict has no encoding until one is
registered.

    registered := 'R' text(module) text(qualname) bytes(what the registered encoder writes)

The frame keeps the whole encoding injective if the registered encoder alone writes different bytes
for different values of its class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint import values
from cachegraph.fingerprint.origin import importable_name, is_followed, is_importable, write_origin

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

EncodeFunction = Callable[["Encoder", Any], None]

ENCODERS: dict[type, EncodeFunction] = dict(values.ENCODERS)

_REGISTERED: set[type] = set()


def is_registered(cls: type) -> bool:
    """Return True if an encoder was registered for `cls`."""
    return cls in _REGISTERED


def register_encoder(cls: type, encoder: EncodeFunction) -> None:
    """Register `encoder(encoder, value)` for values of exactly `cls`; it is framed with the name of the
    class.

    Raises ValueError if `cls` has an encoder already: with two, keys would depend on the order of imports;
    and TypeError for something else than a class and a function.
    """
    _check_kinds(cls, encoder)
    if cls in ENCODERS:
        raise ValueError(
            f"registering an encoder for {cls!r}: it has one already; register right after the class"
        )
    ENCODERS[cls] = _framed(cls, encoder)
    _REGISTERED.add(cls)


def _check_kinds(cls: object, encoder: object) -> None:
    if not isinstance(cls, type):
        raise TypeError(
            f"registering an encoder for {cls!r:.80}: it is no class; values are found by their class"
        )
    if not callable(encoder):
        raise TypeError(f"registering an encoder for {cls!r}: found {encoder!r:.80}; give a function")


def register_record(cls: type, names: tuple[str, ...]) -> None:
    """Register for values of exactly `cls` the encoding of a dataclass whose fields are `names`.

    The caller makes sure that nothing else of a value matters. Raises Unfingerprintable for a class that
    its name does not import.
    """
    ENCODERS[cls] = values.record_encoder(cls, names)


def _framed(cls: type, encoder: EncodeFunction) -> EncodeFunction:
    def encode_registered(target: Encoder, value: Any) -> None:
        module, qualname = importable_name(cls)
        target.enter(value)
        target.tag(b"R")
        target.text(module)
        target.text(qualname)
        mark = target.mark()
        encoder(target, value)
        target.bytes(target.cut(mark))
        target.leave()

    return encode_registered


def find_encoder(cls: type) -> EncodeFunction:
    """Return the encoder for values of exactly `cls`; raises Unfingerprintable if there is none."""
    encoder = ENCODERS.get(cls) or _encoder_for_kind(cls)
    if encoder is None:
        raise Unfingerprintable(
            f"{cls.__module__}.{cls.__qualname__}",
            "pass plain values, numpy arrays, enums or dataclasses, or register_encoder() for this type",
        )
    ENCODERS[cls] = encoder
    return encoder


def _encoder_for_kind(cls: type) -> EncodeFunction | None:
    found = values.encoder_for_kind(cls)
    if found is None and cls.__module__.partition(".")[0] == "numpy":
        found = _array_encoder(cls)  # asked first, since asking for code imports ten modules
    return found or _code_encoder(cls) or _array_encoder(cls) or _scipy_encoder(cls)


def _code_encoder(cls: type) -> EncodeFunction | None:
    if issubclass(cls, type):
        return _encode_class
    from cachegraph.fingerprint.callables import encoder_for

    return encoder_for(cls)


def _encode_class(encoder: Encoder, value: type) -> None:
    """Write a class: by its code if it is followed, else by its name, and within a definition by its origin
    (classes.py)."""
    if not is_importable(value) or is_followed(value, encoder.described):
        from cachegraph.fingerprint.classes import write_class  # many keys name classes, most hold no code

        encoder.definition(value, write_class)
        return
    module, qualname = importable_name(value)
    encoder.tag(b"C")
    encoder.text(module)
    encoder.text(qualname)
    if encoder.follows:
        write_origin(encoder, module, encoder.described)


def _array_encoder(cls: type) -> EncodeFunction | None:
    if "numpy" not in sys.modules:  # no value can be numpy's then, and the command line need not import it
        return None
    from cachegraph.fingerprint.arrays import encoder_for

    return encoder_for(cls)


def _scipy_encoder(cls: type) -> EncodeFunction | None:
    if not cls.__module__.startswith("scipy."):
        return None
    from cachegraph.fingerprint.scipy_objects import encoder_for

    encoder = encoder_for(cls)
    return None if encoder is None else _framed(cls, encoder)
