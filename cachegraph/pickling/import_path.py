"""Import paths: the module and the place in it from which any process can import a function.

    place := name ("." name)* ("[" types "]")   the types: of one specialization of a fused function of Cython

Native functions are found as in cachegraph/fingerprint/native.py, Python functions by their own
name, and methods bound to an object in a module through that object. A path is given only if it
leads to the identical object here (for a bound method: the same method of the identical object),
and if the import system finds the module, since other processes lack modules that were put into
`sys.modules` by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.native import find_native, is_native_type, is_of_extension, native_names
from cachegraph.fingerprint.origin import SCRIPTS, importable_name, imported
from cachegraph.named_tuples import NamedTuple
from cachegraph.pickling.errors import UnresolvedFunction


class ImportPath(NamedTuple):
    """The name of a module, and the place of an object in it."""

    module: str
    place: str


def is_function(value: object) -> bool:
    """Return True if pickles name `value` by its import path: a Python function, native function, ufunc or
    method."""
    return isinstance(value, FunctionType | MethodType) or is_native_type(type(value))


def path_of(value: Any) -> ImportPath | None:
    """Return the import path of a function, or None if no other process can import it."""
    return next((path for path in _paths(value) if _is_found(path.module)), None)


def resolve(path: ImportPath) -> object:
    """Return the object at `path`, importing its module if necessary; raises UnresolvedFunction."""
    try:
        import_module(path.module)
    except Exception as error:  # importing a module may raise anything
        raise UnresolvedFunction(
            *path, f"importing its module raised {type(error).__name__}: {error}"
        ) from error
    found = find_native(path.module, path.place)
    if found is None:
        raise UnresolvedFunction(*path, "its module has no such place")
    return found


def _paths(value: Any) -> Iterator[ImportPath]:
    if isinstance(value, FunctionType):
        if imported(value.__module__, value.__qualname__) is value:
            yield ImportPath(value.__module__, value.__qualname__)
        return
    owner = getattr(value, "__self__", None)
    if isinstance(value, MethodType) and not isinstance(owner, type) and not _is_native_object(owner):
        return  # its object has state that no import restores
    for name in native_names(value):
        if find_native(*name) is value:  # not the object that a class's descriptor makes on access
            yield ImportPath(*name)
    for module, owner in _owners(value):
        place = f"{owner}.{value.__name__}"
        if _is_same_method(find_native(module, place), value):
            yield ImportPath(module, place)


def _owners(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the import paths of the object or class that a method is bound to."""
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):
        try:
            yield importable_name(owner)
        except Unfingerprintable:
            return
    elif _is_native_object(owner):
        yield from native_names(owner)


def _is_native_object(owner: object) -> bool:
    """Return True if `owner` is native, an instance of an extension's class, or SWIG's proxy of a C++
    object."""
    return (
        is_of_extension(owner)
        or is_native_type(type(owner))
        or type(getattr(owner, "this", None)).__name__ == "SwigPyObject"
    )


def _is_same_method(found: Any, value: Any) -> bool:
    if type(found) is not type(value) or found.__self__ is not value.__self__:
        return False
    function = getattr(found, "__func__", None)
    return bool(found == value) if function is None else function is value.__func__


def _is_found(name: str) -> bool:
    """Return True if the import system finds the loaded module, or importing a parent creates it."""
    if name in SCRIPTS:
        return False
    module = sys.modules[name]
    parent, _, last = name.rpartition(".")
    spec = getattr(module, "__spec__", None)
    if spec is None:  # an extension made it, beside its own module
        return getattr(sys.modules.get(parent), last, None) is module and _is_found(parent)
    if parent and not hasattr(sys.modules.get(parent), "__path__"):
        return False
    path = sys.modules[parent].__path__ if parent else None
    found = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    first = next((spec for spec in found if spec is not None), None)
    return first is not None and first.origin == spec.origin
