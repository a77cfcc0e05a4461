"""Blobs of shared stores: the first reader on a node copies a blob to the local store.

If several processes of a node need a blob at once, one reads it and the others wait for a bounded
time; without a working lock, each reads for itself. Inline payloads are small; they are copied when
counts are flushed (tiers.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachegraph.store.claims.node_lock import NodeLock
    from cachegraph.store.local.store import LocalStore

LONGEST_WAIT = 10.0
"""Seconds that a process waits for another that reads the same blob; then it reads for itself."""
_PAUSE = 0.01


class NearBlobs:
    """Copies of blobs on this node, in the directory of `local`. Creating it opens nothing."""

    def __init__(self, local: LocalStore) -> None:
        self._local = local

    def fetch(self, digest_hex: str, read: Callable[[str], bytes | None]) -> bytes | None:
        """Return the local copy of the blob, or else what `read` returns, and keep a copy of that.

        Raises what `read` raises. Failures to lock or to copy are ignored.
        """
        found = self._local.read_blob(digest_hex)
        if found is not None:
            return found
        from cachegraph.store.claims.node_lock import NodeLock  # only a missing copy needs it

        lock = NodeLock(self._local.layout.lock(digest_hex), self._local.guard)
        found = self._wait_for_copy(digest_hex, lock)
        if found is not None:
            return found
        try:
            return self._read_and_copy(digest_hex, read)
        finally:
            lock.release()

    def _wait_for_copy(self, digest_hex: str, lock: NodeLock) -> bytes | None:
        """Return the copy that another process makes, or None if this process must read for itself."""
        deadline = time.monotonic() + LONGEST_WAIT
        while _is_held(lock) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            found = self._local.read_blob(digest_hex)
            if found is not None:
                lock.release()
                return found
        return None

    def _read_and_copy(self, digest_hex: str, read: Callable[[str], bytes | None]) -> bytes | None:
        found = self._local.read_blob(digest_hex)  # the last holder of the lock may have copied it
        if found is None:
            found = read(digest_hex)
            if found is not None:
                with suppress(Exception):  # a full or read-only disk: use the blob without a copy
                    self._local.blobs.write(found)
        return found


def _is_held(lock: NodeLock) -> bool:
    try:
        return lock.acquire() is not None
    except Exception:  # without a working lock, each process reads for itself
        return False
