"""Others' registrations with numba: overloads, templates and implementations.

numba finds a registration by what a function calls, so following what the function reads does not
reach it. A registration for a followed Python function belongs to the definition of that function
(callables.py). A release's registrations for its own functions and types belong to the release.
Code that calls either reaches both. All other registrations, for functions and types of Python,
numpy, numba and others, are described here.

    extensions := uint(n) (text(package) text(version))*n  uint(m) bytes(definition)*m        each sorted

Releases are named, including installed extensions of numba (its entry points) that numba has not
loaded yet. Everything else is followed. numba is not imported: without it nothing is registered.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from operator import le
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.origin import origin_of, release_of
from cachegraph.named_tuples import NamedTuple

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

_ENTRY_POINTS = "numba_extensions"
_WRITTEN = ("_overload_func", "_definition_func", "generic")
"""The attributes in which numba's templates keep the function they were made from."""


def write_extensions(encoder: Encoder) -> None:
    """Write the current registrations; raises Unfingerprintable if one has no encoding."""
    releases = set(_installed())
    followed: dict[int, Any] = {}
    for _, key, function in _registered():
        module = _module_of(function)
        origin = origin_of(module, encoder.described)
        if _is_reached_by_name(key, module, origin, encoder.described):
            continue
        if origin == "followed":
            followed[id(function)] = function
        elif origin == "release":
            package = module.partition(".")[0]
            releases.add((package, release_of(package)))
    encoder.uint(len(releases))
    for package, version in sorted(releases):
        encoder.text(package)
        encoder.text(version)
    encoder.uint(len(followed))
    for definition in sorted(_definition(encoder, function) for function in followed.values()):
        encoder.bytes(definition)


def registered_for(function: FunctionType) -> list[Any]:
    """Return the functions that others registered with numba for a Python function, in order."""
    found = {id(made): made for _, key, made in _registered() if key is function}
    return list(found.values())


def _is_reached_by_name(key: Any, module: str, origin: str, described: Collection[str]) -> bool:
    """Return True if only code that reads `key`, or calls the release that registered it, reaches the
    registration."""
    key = getattr(key, "_defn", key)  # an intrinsic is called by its own name
    home = getattr(key, "__module__", None)
    if not isinstance(home, str) or (isinstance(key, type) and origin == "followed"):
        return False
    if isinstance(key, FunctionType) and origin_of(home, described) == "followed":
        return True
    return origin == "release" and home.partition(".")[0] == module.partition(".")[0]


def _definition(encoder: Encoder, function: Any) -> bytes:
    mark = encoder.mark()
    try:
        with encoder.apart():
            encoder.value(function)
    except Unfingerprintable as error:
        error.inside("what is registered with numba")
        raise
    return encoder.cut(mark)


@lru_cache(maxsize=1)
def _installed() -> tuple[tuple[str, str], ...]:
    """Return (name, version) of the distributions that numba loads as extensions, loaded yet or not."""
    if not any(_ENTRY_POINTS.encode() in content for content in _declarations()):
        return ()
    from importlib.metadata import entry_points  # 10 to 40 ms, needed only if one is installed

    found = {
        (point.dist.name, point.dist.version) for point in entry_points(group=_ENTRY_POINTS) if point.dist
    }
    return tuple(sorted(found))


def _declarations() -> Iterator[bytes]:
    """Yield the entry point files of the installed distributions."""
    for directory in dict.fromkeys(sys.path):
        try:
            names = os.listdir(directory or ".")
        except OSError:  # an archive, or missing
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield _content(os.path.join(directory, name, "entry_points.txt"))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # most declare none
        return b""


def registered_templates() -> Iterator[tuple[Any, FunctionType]]:
    """Yield others' templates in numba, each with the Python function it was made from."""
    for item, _, function in _registered():
        if isinstance(item, type) and isinstance(function, FunctionType):
            yield item, function


def _registered() -> tuple[tuple[Any, Any, Any], ...]:
    """Return others' registrations: (function or template class, what it is for or None, the function it was
    made from)."""
    templates, implementations = map(sys.modules.get, ("numba.core.typing.templates", "numba.core.imputils"))
    if templates is None or implementations is None:
        return ()
    typing, lowering = templates.builtin_registry, implementations.builtin_registry
    typed = (typing.functions, typing.attributes, typing.globals)
    lowered = (lowering.functions, lowering.getattrs, lowering.setattrs, lowering.casts, lowering.constants)
    global _scanned
    known, tables = _scanned, (*typed, *lowered)
    sizes = tuple(map(len, tables))
    if known.sizes != sizes:
        known = _scanned = _grown(known, tables, sizes)
    return known.found


_Row = tuple[Any, Any]
"""A registration and what it is for."""
_TABLES = 8


class _Scanned(NamedTuple):
    """The state of the last scan of numba's tables: their sizes, the rows of others, and the result."""

    sizes: tuple[int, ...] = (0,) * _TABLES
    rows: tuple[tuple[_Row, ...], ...] = ((),) * _TABLES
    found: tuple[tuple[Any, Any, Any], ...] = ()


_scanned = _Scanned()


def _grown(known: _Scanned, tables: Sequence[Any], sizes: tuple[int, ...]) -> _Scanned:
    """Return `known` extended by the rows added to `tables`: numba never removes any."""
    if not all(map(le, known.sizes, sizes)):
        known = _Scanned()
    new = [table[begin:end] for table, begin, end in zip(tables, known.sizes, sizes, strict=True)]
    more = map(_of_others, _rows(new[:3], new[3:]))
    rows = tuple((*before, *after) for before, after in zip(known.rows, more, strict=True))
    found = tuple((item, key, _function_of(item)) for table in rows for item, key in table)
    return _Scanned(sizes, rows, found)


def _rows(typed: Sequence[Any], lowered: Sequence[Any]) -> Iterator[list[_Row]]:
    """Yield a list of the rows of each of numba's tables."""
    functions, attributes, named = typed
    templates = [template for _, of in named for template in getattr(of, "templates", ())]
    for known in (functions, attributes, templates):
        yield [(item, getattr(item, "key", None)) for item in known]
    yield [(item, key) for item, key, _ in lowered[0]]
    for kind in lowered[1:]:
        yield [(row[0], None) for row in kind]


def _of_others(rows: Sequence[_Row]) -> Iterator[_Row]:
    return (row for row in rows if _module_of(_function_of(row[0])).partition(".")[0] != "numba")


def _function_of(item: Any) -> Any:
    """Return the function that a template was made from, else `item` itself."""
    return next((getattr(item, name) for name in _WRITTEN if hasattr(item, name)), item)


def _module_of(function: Any) -> str:
    """Return the module of the code: a function made elsewhere may claim another one, or none."""
    if isinstance(function, FunctionType):
        return str(function.__globals__.get("__name__"))
    return str(function.__module__)
