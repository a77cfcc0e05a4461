"""Encoders of the wrappers that Python and numpy put around callables.

    partial  := 'p' value(function) value(arguments) value(keywords)
    method   := 'm' value(self) value(function)                                 of a class in Python
    wrapper  := 'w' text(kind) value*                                           what it wraps, and its options

The kinds are property, staticmethod, classmethod, cached_property, lru_cache, singledispatch,
itemgetter, attrgetter, methodcaller, vectorize (numpy's), and logger, of which only the kind is
written, since logging computes nothing.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.bytecode import undescribed

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]


# attributes that functools.wraps copies, and whose names are written elsewhere
_NOT_IDENTITY = (
    "__module__",
    "__name__",
    "__qualname__",
    "__doc__",
    "__annotations__",
    "__annotate__",
    "__type_params__",
)
# attributes that functools gives its wrappers; the last one is written with them
_OF_FUNCTOOLS = ("registry", "dispatch", "register", "_clear_cache", "cache_parameters", "__wrapped__")


def own_attributes(value: object) -> dict[str, object]:
    """Return the attributes that were set on a function or wrapper, by name."""
    return {name: item for name, item in vars(value).items() if name not in _NOT_IDENTITY}


def refuse_undescribed(names: Iterable[str]) -> None:
    """Refuse (Unfingerprintable) attributes that no definition describes."""
    for name in undescribed(names):
        raise Unfingerprintable(
            f"code that reads an attribute {name!r}", "no key holds what that is; pass what it needs instead"
        )


def write_inside(encoder: Encoder, value: object, label: str) -> None:
    """Write `value`; an error that it raises names `label` in its path."""
    try:
        encoder.value(value)
    except Unfingerprintable as error:
        error.inside(label)
        raise


def dispatched(value: FunctionType) -> dict[type, Any] | None:
    """Return the implementations, by class, of a functools.singledispatch function; None for any other."""
    registry = getattr(value, "registry", None)
    return dict(registry) if value.__code__ is _DISPATCH and isinstance(registry, MappingProxyType) else None


def write_dispatched(encoder: Encoder, value: FunctionType, implementations: dict[type, Any]) -> None:
    """Write a function made by functools.singledispatch."""
    encoder.tag(b"w")
    encoder.text("singledispatch")
    write_inside(encoder, implementations, ".registry")
    _write_made_by_functools(encoder, value)


def _write_made_by_functools(encoder: Encoder, value: Any) -> None:
    """Write the names and attributes of a wrapper that were set on it."""
    encoder.value((value.__name__, value.__qualname__))
    given = {name: item for name, item in own_attributes(value).items() if name not in _OF_FUNCTOOLS}
    write_inside(encoder, given, "attributes")


def write_method(encoder: Encoder, value: MethodType) -> None:
    """Write a bound method of a Python class: the object and the function."""
    encoder.tag(b"m")
    write_inside(encoder, value.__self__, ".__self__")
    encoder.value(value.__func__)


def encode_partial(encoder: Encoder, value: functools.partial[Any]) -> None:
    """Write a partial by its parts; raises Unfingerprintable if it has attributes of its own."""
    if vars(value):
        raise Unfingerprintable("functools.partial with attributes", "set none on it")
    encoder.definition(value, _write_partial)


def _write_partial(encoder: Encoder, value: functools.partial[Any]) -> None:
    encoder.tag(b"p")
    for label in ("func", "args", "keywords"):
        write_inside(encoder, getattr(value, label), f".{label}")


def _wrapper(kind: str, inner: str, *options: str) -> Callable[[Encoder, Any], None]:
    """Return the encoder for objects that wrap a callable in the attribute `inner`, with plain `options`."""

    def write(encoder: Encoder, value: Any) -> None:
        encoder.tag(b"w")
        encoder.text(kind)
        write_inside(encoder, getattr(value, inner), f".{inner}")
        encoder.value({name: getattr(value, name) for name in options})

    return _defined_by(write)


def _defined_by(write: Callable[[Encoder, Any], None]) -> Callable[[Encoder, Any], None]:
    return lambda encoder, value: encoder.definition(value, write)


def _write_property(encoder: Encoder, value: property) -> None:
    encoder.tag(b"w")
    encoder.text("property")
    encoder.value((value.fget, value.fset, value.fdel))


def _write_lru_cache(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text("lru_cache")  # cached results are not identity: calling the function would give them
    write_inside(encoder, value.__wrapped__, ".__wrapped__")
    encoder.value(value.cache_parameters())
    _write_made_by_functools(encoder, value)


def _write_getter(encoder: Encoder, value: Any) -> None:
    parts = tuple(value.__reduce__())
    if type(value) is not operator.itemgetter:
        refuse_undescribed(name for path in parts[1] if isinstance(path, str) for name in path.split("."))
    encoder.tag(b"w")
    encoder.text(type(value).__qualname__)
    encoder.value(parts)


def _write_unbound(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text(type(value).__qualname__)
    write_inside(encoder, value.__func__, ".__func__")
    write_inside(encoder, own_attributes(value), "attributes")


def _write_logger(encoder: Encoder, value: Any) -> None:
    encoder.tag(b"w")
    encoder.text("logger")


ENCODERS: dict[type, Callable[[Encoder, Any], None]] = {
    functools.partial: encode_partial,
    functools.cached_property: _wrapper("cached_property", "func", "attrname"),
    type(functools.lru_cache(len)): _defined_by(_write_lru_cache),
    staticmethod: _defined_by(_write_unbound),
    classmethod: _defined_by(_write_unbound),
    property: _defined_by(_write_property),
    operator.itemgetter: _defined_by(_write_getter),
    operator.attrgetter: _defined_by(_write_getter),
    operator.methodcaller: _defined_by(_write_getter),
}
_VECTORIZE = _wrapper("vectorize", "pyfunc", "otypes", "excluded", "signature", "cache")


def encoder_for(cls: type) -> Callable[[Encoder, Any], None] | None:
    """Return the encoder for instances of `cls` if they wrap a callable or are loggers, else None."""
    if cls in ENCODERS:
        return ENCODERS[cls]
    if cls.__module__ == "numpy" and cls.__qualname__ == "vectorize":
        return _VECTORIZE
    if cls.__module__ == "logging" and cls.__qualname__ in ("Logger", "RootLogger"):
        return _write_logger
    return None
