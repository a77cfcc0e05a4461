"""What PyTensor and PyMC are in this process: a release, or a checkout whose whole source is read, as the adapter's own is.

Source that was edited after the process began is refused: what was imported is no longer what is read.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache

from cachegraph.fingerprint.hasher import encode
from cachegraph.fingerprint.origin import origin_of
from cachegraph.releases import package_version
from cachegraph.source import check_unchanged, source_digest
from cachegraph.store.processes import start_of

HOSTS = ("pytensor", "pymc")
"""The packages whose classes are described by their release, or by a digest of their whole source."""

_IMPORTED = time.time()


def hosts_described() -> tuple[str, ...]:
    """The loaded hosts that are no release but a checkout: a digest of their whole source is in the key instead."""
    return tuple(name for name in HOSTS if name in sys.modules and _is_checkout(name))


def encode_host_code() -> bytes:
    """The encoding of what PyTensor, PyMC and this adapter are, whose every edit is a miss.

    Raises SourceError for a source that cannot be read, or was edited.
    """
    digests = [(name, _source_digest_of(name)) for name in (*hosts_described(), __package__)]
    return encode((_version("pytensor"), digests))


def _version(name: str) -> str:
    try:
        return package_version(name)
    except ImportError:  # a checkout that was not installed
        return "absent"


@cache
def _is_checkout(name: str) -> bool:
    return origin_of(name, ()) == "followed"


@cache
def _source_digest_of(name: str) -> bytes:
    from pathlib import Path

    root = Path(os.path.dirname(os.path.abspath(sys.modules[name].__file__ or "")))
    found = source_digest(root)
    check_unchanged(root, _began())
    return found


def _began() -> float:
    """When this process, or the one it was forked from, began to import (seconds since 1970)."""
    try:
        with open("/proc/uptime", encoding="ascii") as file:
            age = float(file.read().split()[0]) - int(start_of(os.getpid())) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):  # no Linux: then an edit before the adapter was imported is not seen
        return _IMPORTED
    return min(_IMPORTED, time.time() - age)
