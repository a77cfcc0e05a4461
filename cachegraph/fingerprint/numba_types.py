"""Encoders of numba's types and dispatchers, recognized by the names of their classes; numba is not
imported.

    type       := 'w' text("numba type") typed
    typed   := 'N' text(class) text(name)   numbers, None, text and the like: the name is all
                | 'A' typed(dtype) uint(ndim) text(layout) value((mutable, aligned))
                | 'L' text(class) value(the value)   a literal, or an argument that was left out
                | 'T' text(kind) value(class, if named tuple) uint(n) typed*n   tuples, lists, pointers, ...
                | 'O' value   a type of others, whose class has a registered encoder
    dispatcher := 'w' text("numba") value(function) value(options) value(types of local variables)
                  value(signatures) value(pipeline) value(names of local variables) ('+' extensions | '-')

Only known types have an encoding, since the text that numba shows for a type is ambiguous (two
classes of one name). Signatures are those that a dispatcher was declared for, if it takes no
others. Names of local variables are written if types of some are given. If the function calls a
Python function, all registrations with numba follow (registrations.py), because these decide what
is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.bytecode import look_up, reads
from cachegraph.fingerprint.origin import is_known_by_name
from cachegraph.fingerprint.registrations import write_extensions

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_MODULES = ("numba.core.types.", "numba.np.types.")
_BY_NAME = frozenset(
    (
        *("Integer", "Float", "Complex", "Boolean", "NoneType", "UnicodeType", "SliceType", "EllipsisType"),
        *("NPDatetime", "NPTimedelta", "CharSeq", "UnicodeCharSeq"),
        *("NumPyRandomGeneratorType", "NumPyRandomBitGeneratorType", "RawPointer"),
    )
)
_LITERALS: dict[str, str] = {
    **dict.fromkeys(("IntegerLiteral", "BooleanLiteral", "StringLiteral"), "literal_value"),
    "Omitted": "value",
}
_PARTS: dict[str, tuple[str, Callable[[Any], Sequence[Any]]]] = {
    "UniTuple": ("tuple", lambda of: of.types),
    "Tuple": ("tuple", lambda of: of.types),
    "StarArgUniTuple": ("rest", lambda of: of.types),
    "StarArgTuple": ("rest", lambda of: of.types),
    "NamedTuple": ("named", lambda of: of.types),
    "NamedUniTuple": ("named", lambda of: of.types),
    "List": ("reflected list", lambda of: (of.dtype,)),
    "ListType": ("list", lambda of: (of.item_type,)),
    "DictType": ("dict", lambda of: (of.key_type, of.value_type)),
    "Optional": ("optional", lambda of: (of.type,)),
    "CPointer": ("pointer", lambda of: (of.dtype,)),
}


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` if they are numba types or dispatchers, else None."""
    if cls.__module__.startswith(_MODULES):
        return _encode_type
    is_dispatcher = any(
        (base.__module__, base.__qualname__) == ("numba.core.dispatcher", "Dispatcher")
        for base in cls.__mro__
    )
    return _encode_dispatcher if is_dispatcher else None


def _encode_type(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text("numba type")
    _write(encoder, value)


def _write(encoder: Encoder, of: Any) -> None:
    """Write one type by its exact class: a subclass may mean something else."""
    name = type(of).__name__ if type(of).__module__.startswith(_MODULES) else ""
    if name in _BY_NAME:
        encoder.tag(b"N")
        encoder.text(name)
        encoder.text(of.name)
    elif name == "Array":
        encoder.tag(b"A")
        _write(encoder, of.dtype)
        encoder.uint(of.ndim)
        encoder.text(of.layout)
        encoder.value((of.mutable, of.aligned))
    elif name in _LITERALS:
        encoder.tag(b"L")
        encoder.text(name)
        encoder.value(getattr(of, _LITERALS[name]))
    else:
        _write_compound(encoder, of, name)


def _write_compound(encoder: Encoder, of: Any, name: str) -> None:
    if not type(of).__module__.startswith(_MODULES):
        encoder.tag(b"O")
        encoder.value(of)
        return
    is_told_by_parts = getattr(of, "initial_value", None) is None and getattr(of, "addrspace", None) is None
    if name not in _PARTS or not is_told_by_parts or _is_own_list(of, name):
        found = f"the numba type {of} ({type(of).__module__}.{type(of).__qualname__})"
        raise Unfingerprintable(found, "use numbers, arrays, text, tuples, typed lists or typed dicts")
    kind, parts_of = _PARTS[name]
    parts = parts_of(of)
    encoder.tag(b"T")
    encoder.text(kind)
    encoder.value(of.instance_class if kind == "named" else None)
    encoder.uint(len(parts))
    for part in parts:
        _write(encoder, part)


def _is_own_list(of: Any, name: str) -> bool:
    """Return True for a list made in compiled code; only Python lists are arguments of a call from Python."""
    return name == "List" and not of.reflected


def _encode_dispatcher(encoder: Encoder, value: Any) -> None:
    encoder.definition(value, _write_dispatcher)


def _write_dispatcher(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text("numba")
    signatures = [] if value._can_compile else value.nopython_signatures
    declared = [(signature.args, signature.return_type) for signature in signatures]
    function = value.py_func
    for label, item in (
        ("py_func", function),
        ("targetoptions", options_in_force(value.targetoptions)),
        ("locals", value.locals),
        ("signatures", declared),
        ("pipeline_class", value._compiler.pipeline_class),
        ("names of locals", function.__code__.co_varnames if value.locals else None),
    ):
        try:
            encoder.value(item)
        except Unfingerprintable as error:
            error.inside(f".{label}")
            raise
    if _calls_python(encoder, function):
        encoder.tag(b"+")
        write_extensions(encoder)
    else:
        encoder.tag(b"-")


def options_in_force(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a dispatcher as numba's BOUNDSCHECK changes them: 0 disables all checks."""
    settings: Any = sys.modules.get("numba.core.config")
    if options.get("boundscheck") and settings is not None and settings.BOUNDSCHECK == 0:
        return {**options, "boundscheck": None}
    return options


def _calls_python(encoder: Encoder, function: FunctionType) -> bool:
    """Return True if `function` calls a Python function, which a registration may replace."""
    space = function.__globals__
    called = (look_up(space, read)[0] for read in reads(function.__code__) if read.name in space)
    return any(
        isinstance(item, FunctionType) and not is_known_by_name(item, encoder.described) for item in called
    )
