"""The canonical encoding of numba's types: what a dispatcher is compiled for.

    types := uint(n) type*n
    type  := 'N' text(name)                                          numbers, None, text and the like: the name is all
           | 'A' type(dtype) uint(ndim) text(layout) value((mutable, aligned))
           | 'T' text("tuple") types | 'T' text("named") value(class) types
           | 'T' text("list" | "dict" | "optional") types
           | 'L' text(kind) value(the value)                         a literal, or an argument that was left out
           | 'O' value                                               any other, by an encoder registered for its class

What numba shows of a type does not tell it from others (two classes of one name), so only known types have an encoding.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from cachegraph.fingerprint.hasher import Encoder

_BY_NAME = (
    *(types.Integer, types.Float, types.Complex, types.Boolean, types.NoneType, types.UnicodeType),
    *(types.SliceType, types.EllipsisType, types.NPDatetime, types.NPTimedelta, types.CharSeq),
    *(types.UnicodeCharSeq, types.NumPyRandomGeneratorType, types.NumPyRandomBitGeneratorType),
)
_LITERALS = (types.IntegerLiteral, types.BooleanLiteral, types.StringLiteral)


def encode_types(arguments: Sequence[Any]) -> bytes:
    """Return the canonical encoding of the types of `arguments`; raises Unfingerprintable for a type that has none."""
    encoder = Encoder()
    _write_all(encoder, arguments)
    return encoder.encoding


def _write_all(encoder: Encoder, of: Sequence[Any]) -> None:
    encoder.uint(len(of))
    for item in of:
        _write(encoder, item)


def _write(encoder: Encoder, of: Any) -> None:
    """Write one type, by its exact class: a subclass may mean something else."""
    cls = type(of)
    if cls in _BY_NAME:
        encoder.tag(b"N")
        encoder.text(of.name)
    elif cls is types.Array:
        encoder.tag(b"A")
        _write(encoder, of.dtype)
        encoder.uint(of.ndim)
        encoder.text(of.layout)
        encoder.value((of.mutable, of.aligned))
    elif cls in _LITERALS or cls is types.Omitted:
        encoder.tag(b"L")
        encoder.text(cls.__name__)
        encoder.value(of.value if cls is types.Omitted else of.literal_value)
    else:
        _write_compound(encoder, of)


def _write_compound(encoder: Encoder, of: Any) -> None:
    cls = type(of)
    if cls not in _PARTS or getattr(of, "initial_value", None) is not None:
        encoder.tag(b"O")
        encoder.value(of)
        return
    kind, parts = _PARTS[cls]
    encoder.tag(b"T")
    encoder.text(kind)
    if kind == "named":
        encoder.value(of.instance_class)
    _write_all(encoder, parts(of))


_PARTS: dict[type, tuple[str, Any]] = {
    types.UniTuple: ("tuple", lambda of: of.types),
    types.Tuple: ("tuple", lambda of: of.types),
    types.NamedTuple: ("named", lambda of: of.types),
    types.NamedUniTuple: ("named", lambda of: of.types),
    types.ListType: ("list", lambda of: (of.item_type,)),
    types.DictType: ("dict", lambda of: (of.key_type, of.value_type)),
    types.Optional: ("optional", lambda of: (of.type,)),
}
