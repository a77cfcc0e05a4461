"""How much room a cache directory takes."""

from __future__ import annotations

import os
from contextlib import suppress

from cachegraph.store.paths import Layout, SharedLayout


def bytes_on_disk(layout: Layout | SharedLayout) -> int:
    """Return the sizes of all files of the store added up; 0 where there is none. Reads no file."""
    total = 0
    for directory, _, names in os.walk(layout.root):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total
