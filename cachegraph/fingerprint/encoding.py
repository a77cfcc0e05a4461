"""The canonical encoding of any value, and its digest, the fingerprint."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.aliases import Alias, aliases, is_mutable
from cachegraph.fingerprint.encoder import Encoder, class_name
from cachegraph.fingerprint.primitives import digest
from cachegraph.fingerprint.registry import ENCODERS, find_encoder, is_registered


def encode(value: object, described: Collection[str] = ()) -> bytes:
    """Return the canonical encoding of `value`; raises Unfingerprintable if it, or anything in it, has none.

    `described` names the packages whose source another part of the key describes: their code is not followed.
    """
    encoder = ValueEncoder(described)
    encoder.value(value)
    return encoder.encoding


def encode_call(
    function: object, arguments: object, described: Collection[str] = ()
) -> tuple[bytes, bytes, tuple[Alias, ...]]:
    """Return the canonical encodings of a function and of the arguments of a call, and the aliases among what
    both reach (aliases.py).

    The arguments are encoded with all that code which gets them can tell: the order of a dict, the
    strides of an array, the code of an object's class. Raises Unfingerprintable as `encode` does.
    """
    code, given = ValueEncoder(described), ValueEncoder(described)
    code.value(function)
    given.definition(arguments, lambda target, item: target.value(item))
    return code.encoding, given.encoding, aliases((*code.mutable, *given.mutable))


def fingerprint(value: object) -> bytes:
    """Return the digest of the canonical encoding of `value`: 16 bytes; raises Unfingerprintable."""
    return digest(encode(value))


class ValueEncoder(Encoder):
    """An encoder that finds the encoder of each value by its type."""

    __slots__ = ("mutable",)

    def __init__(self, described: Collection[str] = ()) -> None:
        super().__init__(described)
        self.mutable: list[object] = []
        """The values that code reaches and can change, in the order of the encoding."""

    def value(self, value: Any) -> None:
        """Write `value` with the encoder of its type; raises Unfingerprintable if it, or anything in it, has
        none."""
        cls = type(value)
        try:
            if self.follows:
                self._value_reached_by_code(cls, value)
            else:
                (ENCODERS.get(cls) or find_encoder(cls))(self, value)
        except RecursionError:
            raise Unfingerprintable(
                class_name(cls), "the Python stack ran out; nest the value less deeply"
            ) from None

    def _value_reached_by_code(self, cls: type, value: Any) -> None:
        from cachegraph.fingerprint.reached import encoder_for  # most keys hold no code

        if is_mutable(cls):
            self.mutable.append(value)
        write = encoder_for(cls, self.described, is_registered(cls))
        (write or ENCODERS.get(cls) or find_encoder(cls))(self, value)

    def write_attribute_order(self, cls: type) -> None:
        """Write the names of the attributes of `cls` in their order."""
        from cachegraph.fingerprint.classes import order_of_attributes

        names = order_of_attributes(cls)
        self.uint(len(names))
        for name in names:
            self.text(name)
