"""What builds an artifact: releases of the packages that compile it.

Nothing here imports the package it is asked about, and the usual case does not import importlib.metadata (10 ms) either.
"""

from __future__ import annotations

import sys
from functools import lru_cache

from cachegraph.fingerprint.releases import package_version

COMPILERS = ("numpy", "numba", "llvmlite")


@lru_cache(maxsize=1)
def _toolchain() -> tuple[tuple[str, str], ...]:
    python = f"{sys.implementation.name} {sys.implementation.cache_tag}"
    return ("python", python), *((name, _version_or_absent(name)) for name in COMPILERS)


def toolchain() -> dict[str, str]:
    """Return the Python implementation with its cache tag, and the version of each compiler, or "absent"."""
    return dict(_toolchain())


def _version_or_absent(name: str) -> str:
    try:
        return package_version(name)
    except ImportError:
        return "absent"
