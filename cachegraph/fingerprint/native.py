"""Native functions: those of C, C++, Cython or Fortran, known by a name that imports them and by the file behind it.

    native := 'x' text(module) text(qualname) origin (extension)     the file, unless the module is Python's own

The name is the function's own where that imports the identical object. Where a binding generator gives it none, or a
wrong one (static methods of pybind11 and nanobind, ufuncs, f2py), it is looked for in the module it claims, then in
the extension modules that are loaded, in the order of their names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.names import imported
from cachegraph.fingerprint.origin import origin_of, write_extension, write_origin

if TYPE_CHECKING:
    from cachegraph.fingerprint.hasher import Encoder

_HOMES_OF_UFUNCS = ("numpy", "scipy.special")


def write_native(encoder: Encoder, value: Any) -> None:
    """Write the native function `value`; raises Unfingerprintable if no name imports it."""
    module, qualname = native_name(value)
    encoder.tag(b"x")
    encoder.text(module)
    encoder.text(qualname)
    origin = origin_of(module, encoder.described)
    if origin != "followed":
        write_origin(encoder, module, encoder.described)
    if origin == "followed" or (origin == "release" and _is_extension(module)):
        write_extension(encoder, module)


def native_name(value: Any) -> tuple[str, str]:
    """Return the module and the qualified name that import the identical object.

    Raises Unfingerprintable if there is none: what a C++ lambda made, say, or what sits in a module that cannot be
    imported.
    """
    for module, qualname in _claimed(value):
        if imported(module, qualname) is value:
            return module, qualname
    for home in _likely_homes(value):
        place = _place_in(sys.modules[home], value)
        if place is not None:
            return home, place
    raise Unfingerprintable(
        f"{type(value).__name__} {getattr(value, '__name__', '')} of {getattr(value, '__module__', None)}",
        "no name imports it; call it through a Python function, or make it an attribute of its module",
    )


def _claimed(value: Any) -> Iterator[tuple[str, str]]:
    """The names that `value` gives itself."""
    owner = getattr(value, "__objclass__", None)
    if owner is not None:
        yield owner.__module__, f"{owner.__qualname__}.{value.__name__}"
    home = getattr(value, "__self__", None)
    modules = (home.__name__ if isinstance(home, ModuleType) else None, getattr(value, "__module__", None))
    for module in modules:
        for name in (getattr(value, "__qualname__", None), getattr(value, "__name__", None)):
            if isinstance(module, str) and isinstance(name, str):
                yield module, name


def _likely_homes(value: Any) -> list[str]:
    claimed = getattr(value, "__module__", None)
    first = [name for name in (claimed, *_HOMES_OF_UFUNCS) if name in sys.modules]
    return [*first, *sorted(name for name in list(sys.modules) if _is_extension(name))]


def _place_in(module: ModuleType, value: Any) -> str | None:
    """Where `value` is among the attributes of `module` and of the classes that it defines."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and getattr(module, name, None) is value:
        return name
    classes = [cls for cls in vars(module).values() if _is_defined_in(cls, module.__name__)]
    while classes and isinstance(name, str):
        cls = classes.pop(0)
        if getattr(cls, name, None) is value:
            return f"{cls.__qualname__}.{name}"
        classes.extend(inner for inner in vars(cls).values() if _is_defined_in(inner, module.__name__))
    return None


def _is_defined_in(value: object, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _is_extension(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    return isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES))
