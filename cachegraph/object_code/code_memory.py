"""Memory of this process for code and its data: mapped, filled once, then protected.

    mapping := segment for each of SEGMENTS, each beginning at a page; an empty one takes no page

No page can be written and executed at once.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import finalize

from cachegraph.errors import ObjectLinkError

CODE, CONSTANTS, DATA = SEGMENTS = range(3)
_PROTECTIONS = (mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)


class CodeMemory:
    """A mapping with segments of these sizes, at the addresses `starts`. It is freed with this object."""

    __slots__ = ("__weakref__", "_sizes", "starts")

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = [-(-size // mmap.PAGESIZE) * mmap.PAGESIZE for size in sizes]
        total = max(sum(self._sizes), mmap.PAGESIZE)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        start = _libc().mmap(None, total, writable, flags, -1, 0)
        if start == ctypes.c_void_p(-1).value:
            raise _refused("mapping", total)
        # At the end of the process the system frees the memory.
        finalize(self, _libc().munmap, start, total).atexit = False
        self.starts = [start + sum(self._sizes[:segment]) for segment in SEGMENTS]

    def fill(self, contents: Sequence[bytes | bytearray]) -> None:
        """Write the segments, and protect them: code can be executed then, and data alone be changed."""
        for segment, content in enumerate(contents):
            start, size = self.starts[segment], self._sizes[segment]
            ctypes.memmove(start, bytes(content), len(content))
            if size and _libc().mprotect(start, size, _PROTECTIONS[segment]):
                raise _refused("protecting", size)


def _refused(doing: str, size: int) -> ObjectLinkError:
    found = f"{os.strerror(ctypes.get_errno())}; allow this process to have executable memory"
    return ObjectLinkError(doing, f"{size} bytes for code", found)


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    size, flags = ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, size, flags, flags, flags, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, size]
    library.mprotect.argtypes = [ctypes.c_void_p, size, flags]
    return library
