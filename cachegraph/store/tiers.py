"""Tiers: a store on this node before those that nodes share. What is found farther away is copied nearer.

Writes go to all that this user may write. Copies are made when the process flushes its counts, not while somebody waits for
a hit; but for blobs, which are large and read from farther away once a node (near_blobs.py). Which tiers there are follows from the settings and from the kind of file system that CACHEGRAPH_DIR is on:

    local       the local store in it; then the shared store in CACHEGRAPH_SHARED_DIR, if that is set
    a network   an index on this node (node.py); then the shared store in it; then that in CACHEGRAPH_SHARED_DIR

CACHEGRAPH_TRUST is about what is shared; a local store is always this user's alone. So where several users share
CACHEGRAPH_DIR itself, it is treated as a network's whatever it is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachegraph.forking import momentary_lock
from cachegraph.key import CacheKey
from cachegraph.store.claims.claims import Claim
from cachegraph.store.entry import Artifact, Entry, Hit, Miss
from cachegraph.store.filesystem import FileSystem, file_system
from cachegraph.store.local.activity import Batch
from cachegraph.store.local.store import LocalStore
from cachegraph.store.trust import PRIVATE, Trust

if TYPE_CHECKING:
    from cachegraph.store.protocol import Store
    from cachegraph.store.shared.store import SharedStore


class TieredStore:
    """`local` before each of `shared` in turn."""

    def __init__(self, local: LocalStore, shared: Sequence[SharedStore]) -> None:
        self.local = local
        self.shared = tuple(shared)
        self.layout = local.layout
        self._all: tuple[Store, ...] = (local, *shared)
        self._written: tuple[Store, ...] = (
            local,
            *(store for store in shared if store.guard.trust.may_write),
        )
        self._lock = momentary_lock()
        self._to_copy: dict[CacheKey, Hit] = {}

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key` from the first tier that has it, checked; never raises."""
        found = self.local.get(key)
        if isinstance(found, Hit):
            return found
        for store in self.shared:
            farther = store.get(key)
            if isinstance(farther, Hit):
                with self._lock:
                    self._to_copy[key] = farther
                return farther
            # Damage says more than absence; of two absences the index's says more, for it remembers.
            found = found if farther.reason == "never-seen" else farther
        return found

    def put(self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0) -> None:
        """Publish `artifact` in every tier that this user may write; one that fails does not keep the others from it.

        Raises what the last one that failed raises.
        """
        failure: Exception | None = None
        for store in self._written:
            try:
                store.put(key, artifact, load_seconds)
            except Exception as error:  # of whatever kind: the next tier is another disk
                failure = error
        if failure is not None:
            raise failure

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return a blob from the first tier that has it sound; never raises."""
        found = (store.read_blob(digest_hex) for store in self._all)
        return next((content for content in found if content is not None), None)

    def scan(self) -> list[Entry]:
        """Return every entry of the local tier; raises sqlite3.Error and OSError."""
        return self.local.scan()

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove entries from every tier that this user may write and return how many the fullest had.

        Raises sqlite3.Error and OSError.
        """
        chosen = set(digests)
        return max(store.delete(chosen, why) for store in self._written)

    def add_counts(self, batch: Batch) -> bool:
        """Copy what was found farther away into the local tier, then add counts; raises sqlite3.Error and OSError."""
        with self._lock:
            hits, self._to_copy = self._to_copy, {}
        for key, hit in hits.items():
            if not isinstance(self.local.get(key), Hit):  # else another process of this node was first
                self._copy(key, hit)
        return self.local.add_counts(batch)

    def set_aside(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which is not what building `key` gives, on this node; return where, None if that fails."""
        return self.local.set_aside(key, payload)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return what to acquire in every tier, the nearest first: one process of a node asks farther away."""
        return tuple(claim for store in self._written for claim in store.claims(key))

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Return about how many seconds building `key` takes, None where nothing is known; never raises."""
        return self.local.recorded_cost(key)

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.local.close()

    def _copy(self, key: CacheKey, hit: Hit) -> None:
        described = next((file for store in self.shared if (file := store.renew(key)) is not None), None)
        blobs = {name: self.read_blob(digest) for name, digest in hit.blobs.items()}
        sound = {name: content for name, content in blobs.items() if content is not None}
        if len(sound) < len(blobs):  # the copy would lack for good what may be written anew
            return
        summary, references = (
            ("", ()) if described is None else (described.entry.summary, described.references)
        )
        self.local.put(key, Artifact(hit.payload, sound, hit.seconds, summary, references))


class Tier(NamedTuple):
    """One directory that a cache is kept in, the file system it is on, and whose files are believed there."""

    directory: Path
    file_system: FileSystem
    trust: Trust


class Placement(NamedTuple):
    """The tiers of a cache. `notice` is what its user should know once; empty where all is as expected."""

    local: Tier
    shared: tuple[Tier, ...]
    notice: str

    @property
    def given(self) -> Path:
        """The directory that its user named."""
        return (self.shared[0] if self.on_node else self.local).directory

    @property
    def on_node(self) -> bool:
        """Whether the given directory is the first shared tier, and the local one is elsewhere for its sake."""
        return bool(self.notice)

    def open(self, max_size: int = 0, keeps: bool = True) -> LocalStore | TieredStore:
        """Return the store that these tiers make, of which the local one holds at most `max_size` bytes (0: no limit).

        With `keeps`, what is large and farther away is kept on this node when it is first read. Touches nothing on the
        disk.
        """
        local = LocalStore(self.local.directory, max_size)
        if not self.shared:
            return local
        from cachegraph.store.shared.near_blobs import NearBlobs  # most caches have none farther away
        from cachegraph.store.shared.store import SharedStore

        near = NearBlobs(local) if keeps else None
        shared = [
            SharedStore(tier.directory, not tier.file_system.local, tier.trust, near) for tier in self.shared
        ]
        return TieredStore(local, shared)


def place(directory: Path, shared_directory: Path | None = None, trust: str = PRIVATE) -> Placement:
    """Return where the tiers go; `trust` is the setting of that name. Never raises."""
    farther = shared_directory not in (None, directory)
    given = Tier(directory, file_system(directory), Trust.of(PRIVATE if farther else trust))
    others = () if shared_directory is None or not farther else (_tier(shared_directory, trust),)
    if given.file_system.local and not given.trust.shared:
        return Placement(given, others, "")
    from cachegraph.store.shared.node import node_directory  # what it imports is not needed elsewhere

    local = _tier(node_directory(directory), PRIVATE)
    return Placement(local, (given, *others), _notice(given, local))


def _notice(given: Tier, local: Tier) -> str:
    why = f"on {given.file_system.name}, which is not known to be local to this node"
    if given.file_system.local:
        why = f"shared by several users ({given.trust})"
    return (
        f"{given.directory} is {why}: entries are kept there as files, and their index in {local.directory}"
    )


def _tier(directory: Path, trust: str) -> Tier:
    return Tier(directory, file_system(directory), Trust.of(trust))
