"""Where the code of a module comes from, and so what describes it.

    origin := 'p' text(version)                Python's own, and which release of it
            | 'r' text(name) text(version)     an installed distribution: the name of its package, and which release it is
            | 'd' text(name)                   a package whose whole source is another part of the key, as the caller says
            | 'x' uint(n) (text(name) bytes(digest))*n     extension files, and what is in them

Code from anywhere else, a script or a checkout, is *followed*: function by function, and what each of them reads.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Collection
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Literal

import xxhash

from cachegraph.errors import Unfingerprintable
from cachegraph.releases import package_version

if TYPE_CHECKING:
    from cachegraph.fingerprint.hasher import Encoder

Origin = Literal["python", "release", "described", "followed"]
_PYTHON = frozenset(sys.stdlib_module_names) | frozenset(sys.builtin_module_names)


def origin_of(module: str, described: Collection[str]) -> Origin:
    """Where the code of the module of that name comes from; "followed" where nothing else is known of it."""
    package = module.partition(".")[0]
    if package in described:
        return "described"
    if package in _PYTHON:
        return "python"
    return "release" if release_of(package) else "followed"


def write_origin(encoder: Encoder, module: str, described: Collection[str]) -> None:
    """Write what describes a module that is not followed."""
    package = module.partition(".")[0]
    kind = origin_of(module, described)
    if kind == "python":
        encoder.tag(b"p")
        encoder.text(sys.version.partition(" ")[0])
        return
    encoder.tag(b"d" if kind == "described" else b"r")
    encoder.text(package)
    if kind == "release":
        encoder.text(release_of(package))


def write_extension(encoder: Encoder, module: str) -> None:
    """Write what the extension files are that a native function of `module` comes from.

    These are the module's own file; or, if it is written in Python, all that lie in its package. Raises
    Unfingerprintable if there is none, or it cannot be read.
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


@lru_cache(maxsize=256)
def release_of(package: str) -> str:
    """The version of the installed distribution that `package` is of; empty if it was not installed as files."""
    file = _file(package)
    if file is None or not _is_in_site(file):
        return ""
    try:
        return package_version(package)
    except ImportError:
        return _version_by_content(package)


def _version_by_content(package: str) -> str:
    """The version of the distribution whose import package has another name."""
    from importlib import metadata

    names = sorted(set(metadata.packages_distributions().get(package, ())))
    return " and ".join(f"{name} {metadata.version(name)}" for name in names)


@lru_cache(maxsize=1)
def _site_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()}
    return tuple(sorted(os.path.realpath(path) + os.sep for path in found))


def _is_in_site(file: str) -> bool:
    return os.path.realpath(file).startswith(_site_directories())


def _file(module: str) -> str | None:
    """The file that the loaded module came from; for a package without one, its first directory."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if isinstance(file, str):
        return file
    return next((path for path in getattr(found, "__path__", ()) if isinstance(path, str)), None)


def _extension_files(module: str) -> list[tuple[str, str]]:
    """(name, path) of the extension files behind `module`, sorted by names that do not say where they lie."""
    file = _file(module)
    while file is None and "." in module:  # what an extension calls a submodule has no file of its own
        module = module.rpartition(".")[0]
        file = _file(module)
    if file is None:
        return []
    if file.endswith(tuple(EXTENSION_SUFFIXES)):
        return [(module, file)]
    beside = f"{module.rpartition('.')[0]}._{module.rpartition('.')[2]}".lstrip(".")  # as SWIG names it
    if (_file(beside) or "").endswith(tuple(EXTENSION_SUFFIXES)):
        return _extension_files(beside)
    package = sys.modules.get(module.partition(".")[0])
    if not hasattr(package, "__path__"):
        return []
    return _extensions_below(os.path.dirname(_file(module.partition(".")[0]) or file))


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
    """The digest of a file, read again only when its size or its time of change is another."""
    with open(path, "rb") as file:
        return xxhash.xxh3_128_digest(file.read())
