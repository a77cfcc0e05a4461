"""What builds an artifact: releases of the packages that compile it, and the source of those that describe it.

Nothing here imports the package it is asked about, and the usual case does not import importlib.metadata (10 ms) either.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from cachegraph.digests import strong_digest
from cachegraph.errors import SourceError
from cachegraph.fingerprint.hasher import HASH_VERSION, pack_uint
from cachegraph.releases import package_version

if TYPE_CHECKING:
    from pathlib import Path

COMPILERS = ("numpy", "numba", "llvmlite")


@lru_cache(maxsize=1)
def _toolchain() -> tuple[tuple[str, str], ...]:
    python = f"{sys.implementation.name} {sys.implementation.cache_tag}"
    return ("python", python), *((name, _version_or_absent(name)) for name in COMPILERS)


def toolchain() -> dict[str, str]:
    """Return the implementation of Python with its cache tag, and the version of each compiler ("absent" if it is)."""
    return dict(_toolchain())


def _version_or_absent(name: str) -> str:
    try:
        return package_version(name)
    except ImportError:
        return "absent"


@lru_cache(maxsize=16)
def source_digest(directory: Path) -> bytes:
    """Return the BLAKE2b-256 of every *.py file under `directory`: their relative paths and their bytes.

    Where the directory is, when its files were written and in which order they are listed do not matter. Read once per
    process: the source that counts is the one that was imported. Raises SourceError if there is nothing to read.
    """
    root = os.fspath(directory)
    try:
        files = sorted((path[len(root) + 1 :].replace(os.sep, "/"), path) for path in _source_files(root))
        pieces = [
            piece for name, path in files for piece in (name.encode("utf-8", "surrogateescape"), _read(path))
        ]
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if not pieces:
        raise SourceError("reading the source under", directory, "no *.py file")
    prefixed = (part for piece in pieces for part in (pack_uint(len(piece)), piece))
    return strong_digest(b"".join((bytes((HASH_VERSION,)), *prefixed)))


def check_unchanged(directory: Path, since: float) -> None:
    """Raise SourceError if a *.py file under `directory` was changed after `since` (seconds since 1970).

    An upgrade under a running process: what was imported is no longer what `source_digest` read. The time is that of
    the last change of the inode, which an installer that keeps modification times sets too.
    """
    try:
        changed = [path for path in _source_files(os.fspath(directory)) if os.stat(path).st_ctime > since]
    except OSError as error:
        raise SourceError("reading the source under", directory, str(error)) from error
    if changed:
        found = f"{changed[0]}, which was changed after it was imported; start a new process"
        raise SourceError("describing the source under", directory, found)


def _source_files(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and entry.is_file():
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()
