"""The encoding of numba's surroundings, for keys: others' registrations, and the setting that checks bounds.

Bounds are checked everywhere or as decorators say. numba_types.py covers the setting that disables all
checks.

    surroundings := HASH_VERSION(1 byte) extensions value(bounds are checked everywhere)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import Any

from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import ValueEncoder
from cachegraph.fingerprint.registrations import write_extensions

_SETTINGS = ".numba_config.yaml"
"""The file in the current directory from which numba reads settings that the environment does not give."""


def encode_extensions(described: Collection[str] = ()) -> bytes:
    """Return the canonical encoding of numba's registrations and settings.

    Raises Unfingerprintable if a registration has none, or if numba has yet to read its settings from a file.
    `described` names the packages whose source another part of the key describes.
    """
    encoder = ValueEncoder(described)
    write_extensions(encoder)
    encoder.value(bool(_checks_bounds()))
    return encoder.encoding


def _checks_bounds() -> int | None:
    """Return numba's setting, now or once numba is loaded: 1 everywhere, 0 nowhere, None as decorators
    say."""
    settings: Any = sys.modules.get("numba.core.config")
    if settings is not None:
        found: int | None = settings.BOUNDSCHECK
        return found
    if os.path.exists(_SETTINGS):
        raise Unfingerprintable(
            f"{_SETTINGS}, which numba will read", "import numba first, or set the environment instead"
        )
    try:
        return int(os.environ["NUMBA_BOUNDSCHECK"])
    except (KeyError, ValueError):  # numba then uses its default, too
        return None
