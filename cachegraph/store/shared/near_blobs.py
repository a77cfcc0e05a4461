"""Blobs of shared stores, read from the network once a node: kept among the local store's when somebody first needs them.

Of the processes of a node that need one at once, one reads it and the others wait, a bounded time; where there is no lock
to be had, each reads for itself. What is inline in an entry is small, and copied when counts are written (tiers.py).
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
"""Seconds that one process waits for another that reads the same blob; then it reads for itself."""
_PAUSE = 0.01


class NearBlobs:
    """Blobs on this node, in the directory of `local`. Making one touches nothing."""

    def __init__(self, local: LocalStore) -> None:
        self._local = local

    def fetch(self, digest_hex: str, read: Callable[[str], bytes | None]) -> bytes | None:
        """Return what the blob holds: as it is kept here, else as `read` finds it farther away, and kept from then on.

        Raises what `read` raises. A failure to lock or to keep is none to the reader.
        """
        found = self._local.read_blob(digest_hex)
        if found is not None:
            return found
        from cachegraph.store.claims.node_lock import NodeLock  # only what is not here yet needs it

        lock = NodeLock(self._local.layout.lock(digest_hex), self._local.guard)
        found = self._awaited(digest_hex, lock)
        if found is not None:
            return found
        try:
            return self._brought(digest_hex, read)
        finally:
            lock.release()

    def _awaited(self, digest_hex: str, lock: NodeLock) -> bytes | None:
        """What somebody else keeps here meanwhile; None with the lock, without one to be had, or after LONGEST_WAIT."""
        deadline = time.monotonic() + LONGEST_WAIT
        while _is_held(lock) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            found = self._local.read_blob(digest_hex)
            if found is not None:
                lock.release()
                return found
        return None

    def _brought(self, digest_hex: str, read: Callable[[str], bytes | None]) -> bytes | None:
        found = self._local.read_blob(digest_hex)  # by who held the lock before
        if found is None:
            found = read(digest_hex)
            if found is not None:
                # a disk that is full, or read-only, keeps nothing: what was read is used
                with suppress(Exception):
                    self._local.blobs.write(found)
        return found


def _is_held(lock: NodeLock) -> bool:
    try:
        return lock.acquire() is not None
    except Exception:  # whatever keeps it from being locked, each reads for itself
        return False
