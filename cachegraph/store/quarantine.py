"""The quarantine: damaged content, kept for inspection until pruning removes it.

    <directory>/v1/damaged/<level>-<key>-<unique>       a payload that differs from a fresh build
    <directory>/v1/damaged/<kind>-<digest>-<unique>     a damaged entry or blob (`cachegraph verify`)

It holds the latest MOST_KEPT files. Nothing reads them again, and they may be deleted at any time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cachegraph.key import CacheKey
from cachegraph.store.files import publish_file, read_file
from cachegraph.store.paths import unique_name
from cachegraph.store.trust import Guard

MOST_KEPT = 100
LARGEST_KEPT = 256 * 2**20
"""Bytes; a damaged file can have any size."""


def quarantine_payload(root: Path, key: CacheKey, payload: bytes, guard: Guard) -> Path | None:
    """Write `payload` of `key` to a new file in the quarantine below `root`; return its path, or None."""
    return quarantine_content(root, f"{key.level}-{key.hex}", payload, guard)


def quarantine_content(root: Path, name: str, content: bytes, guard: Guard) -> Path | None:
    """Write `content` to a new file, beginning with `name`; return its path, or None."""
    path = root / "damaged" / unique_name(f"{name}-")
    try:
        _make_room(path.parent)
        publish_file(path, content, guard)
    except OSError:
        return None
    return path


def quarantine_file(root: Path, name: str, path: Path, guard: Guard) -> Path | None:
    """Copy the file at `path` into the quarantine, unless it is larger than LARGEST_KEPT."""
    try:
        content = read_file(path, guard, LARGEST_KEPT)
    except OSError:
        return None
    return quarantine_content(root, name, content, guard)


def _make_room(directory: Path) -> None:
    """Remove the oldest files, so that one more makes MOST_KEPT."""
    with suppress(FileNotFoundError):
        kept = sorted(directory.iterdir(), key=lambda path: path.lstat().st_mtime)
        for path in kept[: len(kept) + 1 - MOST_KEPT]:
            os.unlink(path)
