"""The toolchain of an artifact: Python and the releases of the packages that compile it.

No package is imported for this, and usually importlib.metadata (10 ms) is not, either.
"""

from __future__ import annotations

import sys
from functools import lru_cache

from cachegraph.fingerprint.releases import package_version

COMPILERS = ("numpy", "numba", "llvmlite")


@lru_cache(maxsize=1)
def _toolchain() -> tuple[tuple[str, str], ...]:
    python = f"{sys.implementation.name} {sys.implementation.cache_tag}"
    return ("python", python), *((name, version_or_absent(name)) for name in COMPILERS)


def toolchain() -> dict[str, str]:
    """Return the Python implementation with its cache tag, and the version of each compiler, or "absent"."""
    return dict(_toolchain())


def version_or_absent(name: str) -> str:
    """Return the release of a package, or "absent"."""
    try:
        return package_version(name)
    except ImportError:
        return "absent"
