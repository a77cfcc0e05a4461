"""What was found wrong is kept aside, for somebody to look at.

    <directory>/v1/damaged/<level>-<key>-<unique>     what the payload of an entry was that building does not give

Nothing reads it again, and it may be deleted at any time.
"""

from __future__ import annotations

from pathlib import Path

from cachegraph.key import CacheKey
from cachegraph.store.files import publish_file
from cachegraph.store.paths import unique_name
from cachegraph.store.trust import Guard


def keep_aside(root: Path, key: CacheKey, payload: bytes, guard: Guard) -> Path | None:
    """Write `payload` of `key` below `root` and return where; None if it cannot be written."""
    path = root / "damaged" / unique_name(f"{key.level}-{key.hex}-")
    try:
        publish_file(path, payload, guard)
    except OSError:
        return None
    return path
