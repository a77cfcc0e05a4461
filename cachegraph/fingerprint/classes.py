"""Encoders of classes, and of instances of followed classes.

    class    := 'C' text(module) text(qualname)                                                by its name
              | 'C' text(module) text(qualname) origin   within a definition
              | a definition (callables.py) of
                'c' text(name) text(qualified name) value(metaclass) value(bases)
                uint(n) (text(name) attribute)*n
                                                                                               by its code
    attribute := value | '-' | '#' uint   '-' a slot of the class itself; '#' a field of a named tuple
    instance := a definition of 'I' value(class) value(state)   state: slots, by class, and dict

Attributes are sorted by name. "members" of an enum, "fields" of a dataclass, "registered" of an
abstract base class and "annotated" of a protocol stand for what their decorators and metaclasses
store. A followed class (origin.py), or one without an importable name, is written by its
attributes, all others by name. An instance of a followed class is written like this where code
reaches it; elsewhere it is a plain value or has no encoding.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from dataclasses import MISSING, Field
from enum import Enum
from struct import calcsize
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import HEAP_TYPE, is_followed
from cachegraph.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from cachegraph.fingerprint.encoder import Encoder

# Attributes that Python or a standard decorator derives from the rest, or that only serve readers.
_NOT_IDENTITY = frozenset(
    (
        "__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__",
        "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
        "__annotations_dict__", "_abc_impl", "__abstractmethods__", "__dataclass_fields__",
        "__dataclass_params__", "__orig_bases__", "__parameters__", "__type_params__", "__classdictcell__",
        "__slotnames__",
    )
)  # fmt: skip
_OF_ENUMS = frozenset(
    (
        "__new__", "_new_member_", "_generate_next_value_", "_member_names_", "_member_map_",
        "_value2member_map_", "_unhashable_values_", "_unhashable_values_map_", "_hashable_values_",
        "_member_type_", "_value_repr_", "_use_args_", "_flag_mask_", "_singles_mask_", "_all_bits_",
        "_inverted_",
    )
)  # fmt: skip
_OF_MEMBERS = ("_name_", "_value_", "_sort_order_", "__objclass__", "_inverted_")
_OF_FIELDS = ("name", "default", "default_factory", "init", "repr", "hash", "compare", "kw_only", "metadata")
_POINTER = calcsize("P")


class _Named(NamedTuple):
    field: object


_FieldOfTuple = type(vars(_Named)["field"])


def write_class(encoder: Encoder, value: type) -> None:
    """Write a class by its code; raises Unfingerprintable for an attribute that has no encoding."""
    if not value.__flags__ & HEAP_TYPE:
        raise Unfingerprintable(f"class {value.__qualname__}", "it is a native class that no name imports")
    encoder.tag(b"c")
    encoder.text(value.__name__)
    encoder.text(value.__qualname__)
    attributes = _attributes(value)
    try:
        encoder.value(type(value))
        encoder.value(value.__bases__)
        encoder.uint(len(attributes))
        for name in sorted(attributes):
            encoder.text(name)
            _write_attribute(encoder, value, name, attributes[name])
    except Unfingerprintable as error:
        error.inside(f"class {value.__qualname__}")
        raise


def _attributes(cls: type) -> dict[str, object]:
    """Return the attributes that make up `cls`, without what Python, decorators and metaclasses derive from
    them."""
    found = {name: vars(cls)[name] for name in order_of_attributes(cls)}
    if issubclass(cls, Enum):
        found = {name: item for name, item in found.items() if name not in (*_OF_ENUMS, *cls.__members__)}
        found["members"] = [(name, _state(member)) for name, member in cls.__members__.items()]
    if "__dataclass_fields__" in vars(cls):
        found["fields"] = [_described_field(field) for field in vars(cls)["__dataclass_fields__"].values()]
    if isinstance(cls, ABCMeta):
        found["registered"] = _registered(cls)
    if getattr(cls, "_is_protocol", False):
        found["annotated"] = list(cls.__annotations__)
    return found


def order_of_attributes(cls: type) -> list[str]:
    """Return the names of the attributes that make up `cls`, in the order of their creation."""
    return [
        name
        for name, item in vars(cls).items()
        if name not in _NOT_IDENTITY and not _is_of_every_class(name, item)
    ]


def _is_of_every_class(name: str, item: object) -> bool:
    return name in ("__dict__", "__weakref__") and isinstance(item, GetSetDescriptorType)


def _described_field(field: Field[Any]) -> dict[str, object]:
    """Return what a dataclass stores of a field."""
    parts = {name: getattr(field, name) for name in _OF_FIELDS}
    parts["metadata"] = dict(field.metadata)
    parts["type"] = _written_type(field.type)
    parts["kind"] = str(field._field_type.name)  # type: ignore[attr-defined]
    # a class pickled by value has a copy of the sentinel
    return {name: item for name, item in parts.items() if type(item) is not type(MISSING)}


def _written_type(annotation: Any) -> object:
    """Return the texts and the names of classes in an annotation; the classes are described where code
    reaches them."""
    if annotation is None or isinstance(annotation, str):
        return annotation
    parts = getattr(annotation, "__args__", ())
    name = getattr(annotation, "__qualname__", None) or type(annotation).__qualname__
    return str(name), [_written_type(part) for part in parts] if isinstance(parts, tuple) else []


def _registered(cls: ABCMeta) -> frozenset[type]:
    """Return the virtual subclasses of an abstract base class."""
    from _abc import _get_dump  # type: ignore[import-not-found]

    return frozenset(found for reference in _get_dump(cls)[0] if (found := reference()) is not None)


def _write_attribute(encoder: Encoder, cls: type, name: str, value: Any) -> None:
    try:
        if isinstance(value, MemberDescriptorType) and value.__objclass__ is cls and value.__name__ == name:
            encoder.tag(b"-")  # `__slots__`, which is written, says as much
        elif isinstance(value, _FieldOfTuple):
            encoder.tag(b"#")
            encoder.uint(value.__reduce__()[1][0])
        else:
            encoder.value(value)
    except Unfingerprintable as error:
        error.inside(f"attribute {name!r}")
        raise


def has_own_code(cls: type, described: Collection[str]) -> bool:
    """Return True if instances of `cls` are described by its code and their attributes.

    That is so for followed classes that are no metaclasses and keep no state that only native code sees.
    """
    if issubclass(cls, type) or not is_followed(cls, described):
        return False
    return issubclass(cls, Enum) or keeps_only_attributes(cls)


def keeps_only_attributes(cls: type) -> bool:
    """Return True if slots and `__dict__` hold all the state of instances of `cls`."""
    return cls is not object and all(map(_adds_only_attributes, cls.__mro__[:-1]))


def _adds_only_attributes(cls: type) -> bool:
    """Return True if `cls` adds no memory to its base's but for slots, `__dict__` and weak references."""
    if not cls.__flags__ & HEAP_TYPE:
        return False
    pointers = sum(1 for _ in _slots(cls)) + sum(
        name in vars(cls) and offset > 0
        for name, offset in (("__dict__", cls.__dictoffset__), ("__weakref__", cls.__weakrefoffset__))
    )
    base = cls.__base__ or object
    return cls.__basicsize__ - base.__basicsize__ == pointers * _POINTER


def has_state(value: object) -> bool:
    """Return True if an instance, of a class that keeps only attributes, has any."""
    return bool(getattr(value, "__dict__", None)) or next(_filled_slots(value), None) is not None


def encode_instance(encoder: Encoder, value: Any) -> None:
    """Write an instance of a followed class: the class and the attributes."""
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
        others = {name: item for name, item in vars(value).items() if name not in _OF_MEMBERS}
        return {"name": value._name_, "value": value._value_, "others": others}
    return {"slots": list(_filled_slots(value)), "attributes": getattr(value, "__dict__", {})}


def _filled_slots(value: Any) -> Iterator[tuple[int, str, object]]:
    """Yield (position of the class in the MRO, name, content) of each filled slot."""
    for position, base in enumerate(type(value).__mro__):
        for slot in _slots(base):
            try:
                content = slot.__get__(value)
            except AttributeError:  # an empty slot
                continue
            yield position, slot.__name__, content


def _slots(cls: type) -> Iterator[MemberDescriptorType]:
    """Yield the slots that a class statement made; native classes may hide state behind theirs."""
    for name, item in sorted(vars(cls).items()):
        if isinstance(item, MemberDescriptorType) and item.__name__ == name and "__slots__" in vars(cls):
            yield item
