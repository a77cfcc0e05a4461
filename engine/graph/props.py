"""Equality by declared properties, bit for bit: the base of types and Ops."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any, cast

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode

REMEMBERED = frozenset(("_exact_props", "_exact_hash", "_exact_needs_python"))
"""The attributes that the engine caches on types and Ops."""


_AS_THEY_ARE = frozenset((str, bytes, type(None), type(Ellipsis)))


def exact(value: Any) -> Hashable:
    """Return a hashable that is equal for two property values only if they agree in type and bits.

    `==` alone takes True for 1, 1 for 1.0, 0.0 for -0.0 and a named tuple for a tuple, and a NaN as
    different from itself. Values without a canonical encoding are compared by type and their own `==`.
    Raise TypeError for unhashable values.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return cast(Hashable, value)
    if kind is float:
        return float, struct.pack("<d", value)
    if kind is int or kind is bool:
        return kind, value
    if kind is tuple:
        return (tuple, *[exact(item) for item in value])
    return cast(Hashable, value) if isinstance(value, ByProps) else _exact_other(kind, value)


def exact_or_identity(value: Any) -> Hashable:
    """Return `exact` of a value, or for one that cannot be hashed its identity."""
    try:
        return exact(value)
    except TypeError:
        return id, id(value)


def _exact_other(kind: type, value: Any) -> Hashable:
    if isinstance(value, type | FunctionType):  # equal only to itself
        return value
    if isinstance(value, tuple) and not _state_of(value):
        return (kind, *[exact(item) for item in value])
    if kind is frozenset:
        return kind, frozenset([exact(item) for item in value])
    if kind is slice:
        return kind, exact(value.start), exact(value.stop), exact(value.step)
    hash(value)
    if is_dataclass(value):
        return (kind, *[exact(item) for item in _state_of(value).items()])
    if kind is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if kind.__module__.startswith("engine."):  # an inner graph: no encoder has to be looked for
        return kind, value
    try:
        return kind, encode(value)
    except Unfingerprintable:
        return kind, value


def _state_of(value: Any) -> dict[str, Any]:
    """Return the contents of an instance's dict and of a dataclass's fields, by name."""
    held = (
        {field.name: getattr(value, field.name, None) for field in fields(value)}
        if is_dataclass(value)
        else {}
    )
    return {**held, **getattr(value, "__dict__", {})}


def is_of_engine(item: ByProps) -> bool:
    """Return True if the class of `item` belongs to the engine, whose source every key describes."""
    cls = type(item)
    return cls.__module__.startswith("engine.") and "<locals>" not in cls.__qualname__


class ByProps:
    """Base class of objects with an identity of their class and the attributes named in `__props__`.

    Instances of a class with `__props__ = None` are equal only to themselves. Instances are immutable by
    convention: nothing in `__props__` may change after construction.
    """

    __props__: tuple[str, ...] | None = None

    def props(self) -> tuple[Any, ...]:
        """Return the values of `__props__`, in order; refuse (TypeError) a class that declares none."""
        if self.__props__ is None:
            raise TypeError(
                f"{type(self).__name__} declares no __props__: its instances have no properties to list"
            )
        return tuple(getattr(self, name) for name in self.__props__)

    def props_dict(self) -> dict[str, Any]:
        """Return `__props__` as a dictionary of name to value."""
        return dict(zip(self.__props__ or (), self.props(), strict=True))

    @property
    def exact_props(self) -> Hashable:
        """The hashable that equality compares, computed once per instance."""
        found: Hashable = self.__dict__.get("_exact_props")
        if found is None:
            found = self.__dict__["_exact_props"] = tuple(map(self._exact, self.__props__ or ()))
        return found

    def _exact(self, name: str) -> Hashable:
        try:
            return exact(getattr(self, name))
        except TypeError as error:
            raise TypeError(
                f"Comparing a {type(self).__name__}: its property {name!r} cannot be hashed ({error}); "
                "make it a tuple or a number, or set __props__ to None, and each instance equals itself alone"
            ) from error

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self.__props__ is None:
            return False
        return self.exact_props == other.exact_props

    def __hash__(self) -> int:
        found: int | None = self.__dict__.get("_exact_hash")
        if found is None:
            identity = id(self) if self.__props__ is None else self.exact_props
            found = self.__dict__["_exact_hash"] = hash((type(self), identity))
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without cached ones: hashes differ from process to process."""
        return {name: value for name, value in self.__dict__.items() if name not in REMEMBERED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
