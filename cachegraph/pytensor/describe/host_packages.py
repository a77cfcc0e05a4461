"""The identity of PyTensor and PyMC in this process: a release, or a checkout described by its source.

A release with a file that was written after its installation, by somebody who edits installed files,
counts as a checkout. Source that was changed after the process began is refused: it is not what was
imported.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from cachegraph.cache import default_cache
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.origin import origin_of, release_of
from cachegraph.fingerprint.releases import metadata_in, package_version
from cachegraph.fingerprint.source import imported_source

HOST_PACKAGES = ("pytensor", "pymc")
"""The packages whose classes are described by their release, or by a digest of their whole source."""

_ADAPTER = "cachegraph.pytensor"
_INSTALLING = 60.0
"""Seconds in which an installation, or a copy of one that keeps no times, writes its files."""


def host_checkouts() -> tuple[str, ...]:
    """Return the loaded host packages that are no release; the key has a digest of their source."""
    return tuple(name for name in HOST_PACKAGES if name in sys.modules and _is_checkout(name))


def encode_host_code() -> bytes:
    """Return the encoding of PyTensor's, PyMC's and this adapter's versions or sources; any edit is a miss.

    Raises SourceError for a source that cannot be read, or was edited.
    """
    digests = [(name, _source_digest_of(name)) for name in (*host_checkouts(), _ADAPTER)]
    return encode((_version("pytensor"), digests))


def encode_package(name: str) -> bytes:
    """Return the encoding of the release of an imported package; of its source, if it is none or was edited.

    Raises SourceError as encode_host_code does.
    """
    return encode((release_of(name), _source_digest_of(name) if _is_checkout(name) else b""))


def _version(name: str) -> str:
    try:
        return package_version(name)
    except ImportError:  # a checkout without an installation
        return "absent"


@cache
def _is_checkout(name: str) -> bool:
    return origin_of(name, ()) == "followed" or is_edited(os.path.dirname(sys.modules[name].__file__ or ""))


def is_edited(package: str) -> bool:
    """Return True if a source file of an installed package is younger than its installer's last record."""
    site, name = os.path.split(package)
    records = [os.path.join(site, entry, "RECORD") for entry, _ in metadata_in(site).get(name, ())]
    try:
        installed = max(os.stat(record).st_mtime for record in records)
    except (OSError, ValueError):  # no record of the installation
        return False
    return _has_younger(os.open(package, _DIRECTORY), installed + _INSTALLING)


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def _has_younger(directory: int, time: float) -> bool:
    """Return True if a source file below an open directory, which is closed, is younger than `time`.

    The system looks up names there faster than whole paths, of which a process has five hundred.
    """
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    found = entry.stat().st_mtime > time
                elif "." in name or name == "__pycache__" or not entry.is_dir():
                    continue
                else:
                    found = _has_younger(os.open(name, _DIRECTORY, dir_fd=directory), time)
                if found:
                    return True
    finally:
        os.close(directory)
    return False


@cache
def _source_digest_of(name: str) -> bytes:
    from pathlib import Path

    directory = Path(os.path.dirname(os.path.abspath(sys.modules[name].__file__ or "")))
    return imported_source(directory, default_cache().source_records)
