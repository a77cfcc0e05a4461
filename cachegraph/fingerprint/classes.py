"""Encoders of classes, and of instances of those that are followed.

    class    := 'C' text(module) text(qualname)                                                by its name
              | 'C' text(module) text(qualname) origin                                         within a definition
              | a definition (callables.py) of
                'c' text(name) value(metaclass) value(bases) uint(n) (text(name) value)*n      by its code
    instance := a definition of 'I' value(class) value(state)                                  state: attributes by name

A class that is followed (origin.py) is what its attributes are; so is one without an importable name. All others are
their names. An instance of a followed class is described so where code reaches it; elsewhere it is a plain value, or has
no encoding.
"""

from __future__ import annotations

from collections import namedtuple
from enum import Enum
from struct import calcsize
from types import FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.names import importable_name, is_importable
from cachegraph.fingerprint.origin import origin_of, write_origin

if TYPE_CHECKING:
    from collections.abc import Collection

    from cachegraph.fingerprint.hasher import Encoder

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set on every class made by a class statement
# What Python or a standard decorator keeps in a class about the class: names, places and texts for readers, or what
# follows from the rest.
_NOT_IDENTITY = frozenset(
    (
        "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__",
        "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__annotations_dict__",
        "_abc_impl", "__abstractmethods__", "__dataclass_fields__", "__dataclass_params__", "__match_args__",
        "__orig_bases__", "__parameters__", "__type_params__", "__classdictcell__",
    )
)  # fmt: skip
_POINTER = calcsize("P")
_FUNCTIONS = (FunctionType, property, staticmethod, classmethod)
_MADE_BY_THE_CLASS = (MemberDescriptorType, type(vars(namedtuple("_", "field"))["field"]))
_OF_ENUMS = ("__new__", "__new_member__", "_new_member_", "_generate_next_value_")


def encode_class(encoder: Encoder, value: type) -> None:
    """Write a class: by its code where it is followed, else by its name."""
    if is_importable(value) and not _is_followed(value, encoder.described):
        module, qualname = importable_name(value)
        encoder.tag(b"C")
        encoder.text(module)
        encoder.text(qualname)
        if encoder.follows:
            write_origin(encoder, module, encoder.described)
        return
    encoder.definition(value, write_class)


def write_class(encoder: Encoder, value: type) -> None:
    """Write a class by its code; raises Unfingerprintable for an attribute that has no encoding."""
    if not value.__flags__ & _HEAP_TYPE:
        raise Unfingerprintable(f"class {value.__qualname__}", "it is a native class that no name imports")
    encoder.tag(b"c")
    encoder.text(value.__name__)
    attributes = _attributes(value)
    try:
        encoder.value(type(value))
        encoder.value(value.__bases__)
        encoder.uint(len(attributes))
        for name in sorted(attributes):
            encoder.text(name)
            _write_attribute(encoder, name, attributes[name])
    except Unfingerprintable as error:
        error.inside(f"class {value.__qualname__}")
        raise


def _attributes(cls: type) -> dict[str, object]:
    """What makes `cls` what it is: of an enum its members' values and its functions, not what the metaclass keeps."""
    found = {name: item for name, item in vars(cls).items() if name not in _NOT_IDENTITY}
    if not issubclass(cls, Enum):
        return found
    own = {
        name: item for name, item in found.items() if isinstance(item, _FUNCTIONS) and name not in _OF_ENUMS
    }
    return {**own, **{name: member._value_ for name, member in cls.__members__.items()}}


def _write_attribute(encoder: Encoder, name: str, value: object) -> None:
    try:
        if isinstance(value, _MADE_BY_THE_CLASS):
            encoder.tag(b"-")  # __slots__ and _fields, which say as much, are written
        else:
            encoder.value(value)
    except Unfingerprintable as error:
        error.inside(f"attribute {name!r}")
        raise


def has_own_code(cls: type, described: Collection[str]) -> bool:
    """Whether instances of `cls` are described by its code and their attributes: it is followed, and no metaclass, and
    keeps nothing where only native code sees it."""
    if issubclass(cls, type) or not _is_followed(cls, described):
        return False
    return issubclass(cls, Enum) or all(map(_keeps_only_attributes, cls.__mro__[:-1]))


def _is_followed(cls: type, described: Collection[str]) -> bool:
    """Whether the code of `cls` is described by nothing but itself."""
    return bool(cls.__flags__ & _HEAP_TYPE) and origin_of(cls.__module__, described) == "followed"


def _keeps_only_attributes(cls: type) -> bool:
    """Whether instances of `cls` have no more memory than its slots, its dict and its weak references need."""
    if not cls.__flags__ & _HEAP_TYPE:
        return False
    pointers = len(_slots(cls)) + sum(
        name in vars(cls) and offset > 0
        for name, offset in (("__dict__", cls.__dictoffset__), ("__weakref__", cls.__weakrefoffset__))
    )
    base = cls.__base__ or object
    return cls.__basicsize__ - base.__basicsize__ == pointers * _POINTER


def encode_instance(encoder: Encoder, value: Any) -> None:
    """Write an instance of a class that has its own code: the class and the attributes."""
    encoder.definition(value, _write_instance)


def _write_instance(encoder: Encoder, value: Any) -> None:
    cls = type(value)
    encoder.tag(b"I")
    encoder.value(cls)
    try:
        encoder.value(_state(value))
    except Unfingerprintable as error:
        error.inside(f"an instance of {cls.__qualname__}")
        raise


def _state(value: Any) -> dict[str, object]:
    if isinstance(value, Enum):
        return {"name": value._name_, "value": value._value_}
    slots = [name for base in type(value).__mro__ for name in _slots(base)]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
