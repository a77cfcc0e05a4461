"""Native functions, of C, C++, Cython or Fortran: described by an importable name and the file that contains
them.

    native := 'x' text(module) text(place) uint(n) text*n origin (extension)   no file for Python's own
    place  := name ("." name)* ("[" types "]")   the types: of one specialization of a fused function

A function's own name is used if it imports the identical object. Some binding generators give none
or a wrong one (static methods of pybind11 and SWIG, ufuncs, f2py). Then the object is searched for
in the module it claims, in the loaded extension modules in the order of their names, and in all
others. A followed Python module that holds the object says little about it: then the names that a
function gives itself are written, too, and native objects and ufuncs are refused. Ufuncs that call
a Python function are always refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import SCRIPTS, imported, origin_of, write_extension, write_origin

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

NATIVE_TYPES: tuple[type, ...] = (
    BuiltinFunctionType,
    MethodWrapperType,
    MethodDescriptorType,
    WrapperDescriptorType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
"""The types that Python itself gives to functions and attributes written in C."""

# The function types that binding generators make: nanobind's, pybind11's, Cython's and f2py's.
_OF_BINDINGS = (
    *("nb_func", "nb_method", "nb_bound_method", "instancemethod"),
    *("cython_function_or_method", "fused_cython_function", "fortran"),
)
_HOMES_OF_UFUNCS = ("numpy", "scipy.special")


def is_native_type(cls: type) -> bool:
    """Return True if instances of `cls` are native functions or methods."""
    if cls.__module__ == "numpy" and cls.__qualname__ in ("ufunc", "_ArrayFunctionDispatcher"):
        return True
    return cls in NATIVE_TYPES or cls.__name__ in _OF_BINDINGS


def write_native_object(encoder: Encoder, value: Any) -> None:
    """Write the native object `value` of an extension or a release; raises Unfingerprintable if no name
    imports it."""
    module, place = native_name(value)
    _refuse_made_in_python(module, place)
    write_native_name(encoder, value, module, place)


def write_native_name(encoder: Encoder, value: Any, module: str, place: str) -> None:
    """Write the name of a native function or object, and the file that contains it."""
    if _is_ufunc(value):
        _refuse_made_in_python(module, place)
    encoder.tag(b"x")
    encoder.text(module)
    encoder.text(place)
    own = _own_names(value) if _is_followed_python(module) else []
    encoder.uint(len(own))
    for name in own:
        encoder.text(name)
    origin = origin_of(module, encoder.described)
    if origin != "followed":
        write_origin(encoder, module, encoder.described)
    if origin == "followed" or (origin == "release" and _is_extension(module)):
        write_extension(encoder, module)


def _is_ufunc(value: object) -> bool:
    return (type(value).__module__, type(value).__qualname__) == ("numpy", "ufunc")


def _refuse_made_in_python(module: str, place: str) -> None:
    if _is_followed_python(module):
        raise Unfingerprintable(
            f"the native object {place} of {module}",
            "what it holds cannot be seen; make it in an extension module, or in a function that is called",
        )


def native_name(value: Any) -> tuple[str, str]:
    """Return the module and the place in it that import the identical object.

    Raises Unfingerprintable if there is none, as for a C++ lambda or a module that cannot be imported.
    """
    if _is_ufunc(value) and value.__name__.endswith(" (vectorized)"):
        raise Unfingerprintable(
            f"ufunc {value.__name__}", "numpy.frompyfunc hides what it calls; use numpy.vectorize"
        )
    of_python = []
    for name in native_names(value):
        if not _is_followed_python(name[0]):
            return name
        of_python.append(name)
    if of_python and isinstance(getattr(value, "__self__", None), ModuleType | None):
        return of_python[0]
    raise Unfingerprintable(
        f"{type(value).__name__} {getattr(value, '__name__', '')} of {getattr(value, '__module__', None)}",
        "no name imports it; call it through a Python function, or make it an attribute of its module",
    )


def native_names(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each module and place at which the identical object is found, the best first."""
    for module, place in _claimed(value):
        if find_native(module, place) is value:
            yield module, place
    if hasattr(value, "__objclass__"):  # no module holds it under another name then
        return
    for home in _likely_homes(value):
        found = _place_in(sys.modules[home], value)
        if found is not None:
            yield home, found


def find_native(module: str, place: str) -> object:
    """Return the object at `place` in the loaded `module`, or None."""
    name, is_specialized, types = place.partition("[")
    found = imported(module, name)
    if not is_specialized:
        return found
    return getattr(found, "__signatures__", {}).get(types.removesuffix("]"))


def is_of_extension(value: object) -> bool:
    """Return True if an extension module made the class of `value`."""
    return _is_extension(type(value).__module__)


def _claimed(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the names that `value` claims for itself."""
    owner = getattr(value, "__objclass__", None)
    if owner is not None:
        yield owner.__module__, f"{owner.__qualname__}.{value.__name__}"
    home = getattr(value, "__self__", None)
    modules = (home.__name__ if isinstance(home, ModuleType) else None, getattr(value, "__module__", None))
    for module in modules:
        for name in _own_names(value):
            if isinstance(module, str):
                yield module, name


def _own_names(value: Any) -> list[str]:
    names = (getattr(value, "__qualname__", None), getattr(value, "__name__", None))
    return [name for name in names if isinstance(name, str)]


def _likely_homes(value: Any) -> Iterable[str]:
    loaded = sorted(sys.modules)
    claimed = (getattr(value, "__module__", None), type(value).__module__, *_HOMES_OF_UFUNCS)
    first = [name for name in claimed if isinstance(name, str)]
    ordered = dict.fromkeys([*first, *filter(_is_extension, loaded), *loaded])
    return [name for name in ordered if name not in SCRIPTS and isinstance(sys.modules.get(name), ModuleType)]


def _is_followed_python(module: str) -> bool:
    has_file = getattr(sys.modules.get(module), "__file__", None) is not None
    return has_file and not _is_extension(module) and origin_of(module, ()) == "followed"


def _place_in(module: ModuleType, value: Any) -> str | None:
    """Return the place of `value` in `module`, its classes, and modules that only it has; or None."""
    for name in _own_names(value):
        if find_native(module.__name__, name) is value:
            return name
    spaces: list[tuple[str, Any]] = [("", module)]
    seen: set[int] = set()
    while spaces:
        prefix, space = spaces.pop(0)
        seen.add(id(space))
        attributes = sorted((name, item) for name, item in vars(space).items() if isinstance(name, str))
        for name, item in attributes:
            if item is value or (_is_wrapper(item) and item.__func__ is value):
                return prefix + name
            if _is_space_of(item, module) and id(item) not in seen:
                spaces.append((f"{prefix}{name}.", item))
    return None


# Modules may hold proxies that run code on any access, even to `__class__`: only `type()` is safe.


def _is_wrapper(item: object) -> bool:
    return type(item).__name__ in ("staticmethod", "classmethod", "instancemethod", "method")


def _is_space_of(item: Any, module: ModuleType) -> bool:
    """Return True if `item` is a class of `module`, or a module inside its extension that is not in
    sys.modules."""
    if issubclass(type(item), type):
        return bool(getattr(item, "__module__", None) == module.__name__)  # classes of C may have none
    if issubclass(type(item), ModuleType):
        return item.__name__ not in sys.modules and _is_extension(module.__name__)
    return type(item).__name__ == "fortran" and hasattr(item, "__dict__")  # f2py's modules of Fortran 90


def _is_extension(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    return isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES))
