"""The systems on which the packages work. Elsewhere, importing them says what is missing, and what to do.

docs/portability.md lists what is tested where.
"""

from __future__ import annotations

import os
import platform
import sys

PROCESSORS = ("x86_64", "aarch64")
"""The processors for whose code object_code/elf.py has rules."""


def require_posix() -> None:
    """Raise UnsupportedPlatform where files have no owners and modes, on which trust in a cache rests."""
    if os.name != "posix":
        _refuse(
            "importing cachegraph",
            sys.platform,
            "it needs owners, modes and locks of files as POSIX has them; use Linux, WSL 2, or macOS",
        )


def require_linux(doing: str) -> None:
    """Raise UnsupportedPlatform, saying what somebody was `doing`, but for Linux on one of PROCESSORS.

    Compiled code is stored as ELF objects and linked into the process, which is tested there alone.
    """
    if sys.platform != "linux":
        _refuse(
            doing, sys.platform, "compiled code is stored and linked as on Linux; use Linux or a container"
        )
    if platform.machine() not in PROCESSORS:
        _refuse(
            doing, f"Linux on {platform.machine()}", f"code is checked for {' and '.join(PROCESSORS)} only"
        )


def _refuse(doing: str, found: str, why: str) -> None:
    from cachegraph.errors import UnsupportedPlatform

    raise UnsupportedPlatform(doing, found, why)
