"""What was found wrong is kept aside, for somebody to look at: the latest MOST_KEPT things, until they are pruned.

    <directory>/v1/damaged/<level>-<key>-<unique>     what the payload of an entry was that building does not give
    <directory>/v1/damaged/<what>-<digest>-<unique>   what `cachegraph verify` found damaged: an entry, a blob

Nothing reads it again, and it may be deleted at any time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cachegraph.key import CacheKey
from cachegraph.store.paths import unique_name
from cachegraph.store.shared.files import publish_file, read_file
from cachegraph.store.trust import Guard

MOST_KEPT = 100
LARGEST_KEPT = 256 * 2**20
"""Bytes: what was damaged may be of any size."""


def keep_aside(root: Path, key: CacheKey, payload: bytes, guard: Guard) -> Path | None:
    """Write `payload` of `key` below `root` and return where; None if it cannot be written."""
    return keep_damaged(root, f"{key.level}-{key.hex}", payload, guard)


def keep_damaged(root: Path, name: str, content: bytes, guard: Guard) -> Path | None:
    """Write `content` below `root` under a name that begins with `name` and return where; None if that fails."""
    path = root / "damaged" / unique_name(f"{name}-")
    try:
        _make_room(path.parent)
        publish_file(path, content, guard)
    except OSError:
        return None
    return path


def keep_file(root: Path, name: str, path: Path, guard: Guard) -> Path | None:
    """Do the same with what the file at `path` holds; None also if it is larger than LARGEST_KEPT, or no file of ours."""
    try:
        content = read_file(path, guard, LARGEST_KEPT)
    except OSError:
        return None
    return keep_damaged(root, name, content, guard)


def _make_room(directory: Path) -> None:
    """Remove the oldest of what is kept, so that one more makes MOST_KEPT."""
    with suppress(FileNotFoundError):
        kept = sorted(directory.iterdir(), key=lambda path: path.lstat().st_mtime)
        for path in kept[: len(kept) + 1 - MOST_KEPT]:
            os.unlink(path)
