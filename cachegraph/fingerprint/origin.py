"""The origin of the code of a module, which describes it, and names that import an object.

    origin := 'p' text(version)                Python's own, and which release of it
            | 'r' text(name) text(version)   an installed distribution: its package and release, with the
                                               digest of its file list if it came from no index
            | 'd' text(name) text(version) bytes(digest)   a package described by the caller: its release, or
                                               if it was not installed, the digest of its source
            | 'x' uint(n) (text(name) bytes(digest))*n     extension files, and what is in them

Code from anywhere else, such as a script or a checkout, is *followed*: each function is described
by its code and what it reads. So are files that shadow a module of Python, and parts of namespaces
that releases share.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import FunctionType
from typing import TYPE_CHECKING, Literal

from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.fingerprint.primitives import strong_digest
from cachegraph.fingerprint.releases import package_version, recorded_files
from cachegraph.fingerprint.source import imported_source

if TYPE_CHECKING:
    from cachegraph.fingerprint.encoder import Encoder

Origin = Literal["python", "release", "described", "followed"]
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set on every class made by a class statement
_PYTHON = frozenset(sys.stdlib_module_names) | frozenset(sys.builtin_module_names)


def origin_of(module: str, described: Collection[str]) -> Origin:
    """Return the origin of the module of that name; "followed" if nothing else describes it."""
    package = _package(module)
    if package in described:
        return "described"
    if package in _PYTHON and _is_of_python(_file(package)):
        return "python"
    return "release" if release_of(package) and _is_installed(module) else "followed"


def write_origin(encoder: Encoder, module: str, described: Collection[str]) -> None:
    """Write the description of a module that is not followed."""
    package = _package(module)
    kind = origin_of(module, described)
    if kind == "python":
        encoder.tag(b"p")
        encoder.text(sys.version.partition(" ")[0])
        return
    encoder.tag(b"d" if kind == "described" else b"r")
    encoder.text(package)
    release = release_of(package)
    encoder.text(release)
    if kind == "described":
        encoder.bytes(b"" if release else _source_of(package))


def write_code_origin(encoder: Encoder, module: str, home: object, described: Collection[str]) -> None:
    """Write the origin of the code of a function of `module`, if its code is in `home`, a module of another
    package."""
    if (
        not isinstance(home, str)
        or origin_of(home, described) == "followed"
        or _package(home) == _package(module)
    ):
        encoder.tag(b"-")
    else:
        write_origin(encoder, home, described)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _source_of(package: str) -> bytes:
    from pathlib import Path

    file = _file(package)
    try:
        return imported_source(Path(os.path.dirname(os.path.abspath(file or package))))
    except SourceError as error:
        raise Unfingerprintable(f"code of {package}", f"its source does not describe it: {error}") from error


def write_extension(encoder: Encoder, module: str) -> None:
    """Write the digests of the extension files behind a native function of `module`.

    These are the module's own file or, for a Python module, all in its package. Raises Unfingerprintable if
    there is none, or one cannot be read.
    """
    files = _extension_files(module)
    if not files:
        raise Unfingerprintable(
            f"a native function of {module}", "no extension file is known that it comes from"
        )
    encoder.tag(b"x")
    encoder.uint(len(files))
    for name, path in files:
        encoder.text(name)
        encoder.bytes(_content_digest(path))


def _is_installed(module: str) -> bool:
    """Return True if the module itself lies among installed releases; a package may extend beyond them."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return not isinstance(file, str) or _is_in_site(file)


def release_of(package: str) -> str:
    """Return the version of the distribution that installed `package`; empty if it was not installed as
    files."""
    file = _file(package)
    return _release_at(package, file) if file is not None and _is_in_site(file) else ""


@lru_cache(maxsize=256)
def _release_at(package: str, file: str) -> str:
    try:
        names = [package]
        version = package_version(package)
    except ImportError:
        from importlib import metadata

        names = sorted(set(metadata.packages_distributions().get(package, ())))
        version = " and ".join(f"{name} {metadata.version(name)}" for name in names)
    return version + "".join(f" {recorded}" for name in names if (recorded := recorded_files(name)))


@lru_cache(maxsize=1)
def _site_directories() -> tuple[str, ...]:
    import site  # it reads the environment, and only followed code needs it

    paths = _paths_of_python()
    return _real((paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()))


@lru_cache(maxsize=1)
def _directories_of_python() -> tuple[str, ...]:
    paths = _paths_of_python()
    return _real((paths["stdlib"], paths["platstdlib"]))


@lru_cache(maxsize=1)
def _paths_of_python() -> dict[str, str]:
    import sysconfig

    return sysconfig.get_paths()


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({os.path.realpath(path) + os.sep for path in paths}))


_SOURCE_OR_EXTENSION = (".py", *EXTENSION_SUFFIXES)


@lru_cache(maxsize=1024)
def _is_in_site(file: str) -> bool:
    directory, name = os.path.split(file)
    if os.path.islink(file) or not name.endswith(_SOURCE_OR_EXTENSION):
        return os.path.realpath(file).startswith(_site_directories())
    return os.path.join(_real_directory(directory), name).startswith(_site_directories())


@lru_cache(maxsize=1024)
def _real_directory(directory: str) -> str:
    """Return os.path.realpath(directory), which asks the system for each part of each path."""
    parent, name = os.path.split(directory)
    if name in ("", ".", "..") or os.path.islink(directory):
        return os.path.realpath(directory)
    return os.path.join(_real_directory(parent), name)


@lru_cache(maxsize=1024)
def _is_of_python(file: str | None) -> bool:
    """Return True if a module named like one of Python's is that one: a script may shadow it."""
    if file is None:
        return True
    return os.path.realpath(file).startswith(_directories_of_python()) and not _is_in_site(file)


def _file(module: str) -> str | None:
    """Return the file of a module, loaded or not; for a package without one, its first directory."""
    found = sys.modules.get(module)
    if found is None and "." not in module:  # finding a submodule would import its package
        spec = _spec(module)
        return spec.origin if spec is not None and spec.has_location else None
    file = getattr(found, "__file__", None)
    if isinstance(file, str):
        return file
    return next((path for path in getattr(found, "__path__", ()) if isinstance(path, str)), None)


def _spec(package: str) -> ModuleSpec | None:
    from importlib.util import find_spec

    try:
        return find_spec(package)
    except (ImportError, ValueError):
        return None


def _extension_files(module: str) -> list[tuple[str, str]]:
    """Return (name, path) of the extension files behind `module`, sorted by names that are independent of the
    location."""
    file = _file(module)
    while file is None and "." in module:  # a submodule inside an extension has no file of its own
        module = module.rpartition(".")[0]
        file = _file(module)
    if file is None:
        return []
    if file.endswith(tuple(EXTENSION_SUFFIXES)):
        return [(module, file)]
    beside = f"{module.rpartition('.')[0]}._{module.rpartition('.')[2]}".lstrip(".")  # SWIG's name for it
    if (_file(beside) or "").endswith(tuple(EXTENSION_SUFFIXES)):
        return _extension_files(beside)
    package = sys.modules.get(_package(module))
    if not hasattr(package, "__path__"):
        return []
    return _extensions_below(os.path.dirname(_file(_package(module)) or file))


def _extensions_below(root: str) -> list[tuple[str, str]]:
    found = []
    for directory, _, names in os.walk(root):
        for name in names:
            if name.endswith(tuple(EXTENSION_SUFFIXES)):
                path = os.path.join(directory, name)
                found.append((os.path.relpath(path, root).replace(os.sep, "/"), path))
    return sorted(found)


def _content_digest(path: str) -> bytes:
    try:
        status = os.stat(path)
        return _digest_of(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise Unfingerprintable(
            f"the extension file {path}", f"it cannot be read: {error.strerror}"
        ) from error


@lru_cache(maxsize=256)
def _digest_of(path: str, size: int, changed: int) -> bytes:
    """Return the BLAKE2b-256 of a file, read again only if its size or modification time has changed."""
    with open(path, "rb") as file:
        return strong_digest(file.read())


SCRIPTS = ("__main__", "__mp_main__")
"""Modules that differ in every process."""


def imported(module: object, qualname: object) -> object:
    """Return the object `qualname` of the loaded module `module`, or None."""
    space = sys.modules.get(module) if isinstance(module, str) else None
    if space is None or not isinstance(qualname, str):
        return None
    first, *others = qualname.split(".")
    found = vars(space).get(first)  # not getattr: `__getattr__` of a module may make objects up
    for name in others:
        found = getattr(found, name, None)
    return found


def is_importable(value: object) -> bool:
    """Return True if importing `value`, or the method whose function it is, by name gives the same object."""
    module = getattr(value, "__module__", None)
    if module in SCRIPTS:
        return False
    found = imported(module, getattr(value, "__qualname__", None))
    return found is value or (found is not None and getattr(found, "__func__", None) is value)


def is_known_by_name(value: FunctionType, described: Collection[str]) -> bool:
    """Return True if the name of a function describes it.

    Its name imports it, and neither its module nor the module of its code is followed. A function that
    somebody put in the place of another, under its name, fails this.
    """
    module, home = value.__module__, value.__globals__.get("__name__")
    if not isinstance(module, str) or not is_importable(value) or origin_of(module, described) == "followed":
        return False
    return not isinstance(home, str) or home == module or origin_of(home, described) != "followed"


def importable_name(cls: type) -> tuple[str, str]:
    """Return the module and qualified name that import `cls`; raises Unfingerprintable if they do not."""
    module, qualname = cls.__module__, cls.__qualname__
    if module in SCRIPTS:
        raise Unfingerprintable(
            f"class {module}.{qualname}", "another script's __main__ differs; move it to a module"
        )
    if imported(module, qualname) is not cls:
        raise Unfingerprintable(
            f"class {module}.{qualname}",
            "that name does not import it; define it at the top level of a module",
        )
    return module, qualname


def is_followed(cls: type, described: Collection[str]) -> bool:
    """Return True if only its own code describes `cls`."""
    return bool(cls.__flags__ & HEAP_TYPE) and origin_of(cls.__module__, described) == "followed"
