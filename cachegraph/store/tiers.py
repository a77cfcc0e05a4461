"""Tiers: a local store before shared ones. Shared hits are copied to the local store.

Writes go to every tier that this user may write. Small entries are copied when the process flushes
its counts, so that no hit waits for it; blobs are copied at once, when they are first read on a
node (near_blobs.py). The settings and the file system of CACHEGRAPH_DIR decide which tiers there
are:

    local file system       a local store in CACHEGRAPH_DIR
    network file system     an index on this node (node.py), and a shared store in CACHEGRAPH_DIR
    either                  then the shared store in CACHEGRAPH_SHARED_DIR, if that is set
                            then each server of CACHEGRAPH_REMOTE, in that order (remote/)

CACHEGRAPH_TRUST applies to shared stores, and its keys to what was copied from them; a local store
always belongs to this user alone. So if several users share CACHEGRAPH_DIR itself, it is treated as if
it were on a network file system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cachegraph.forking import momentary_lock
from cachegraph.key import CacheKey
from cachegraph.named_tuples import NamedTuple
from cachegraph.store.activity import Batch
from cachegraph.store.entry import Artifact, Entry, Hit, Miss, NearKey, Origin
from cachegraph.store.filesystem import FileSystem, file_system
from cachegraph.store.local.store import LocalStore
from cachegraph.store.trust import PRIVATE, Trust

if TYPE_CHECKING:
    from cachegraph.remote_url import RemoteURL
    from cachegraph.store.protocol import Claim, Store
    from cachegraph.store.remote.store import RemoteStore
    from cachegraph.store.revocation.reading import Revocations
    from cachegraph.store.shared.near_blobs import NearBlobs
    from cachegraph.store.shared.store import SharedStore


class TieredStore:
    """The store `local`, and behind it each of `shared` in turn.

    Methods raise sqlite3.Error and OSError unless they say otherwise.
    """

    def __init__(self, local: LocalStore, shared: Sequence[SharedStore | RemoteStore]) -> None:
        self.local = local
        self.shared = tuple(shared)
        self._all: tuple[Store, ...] = (local, *shared)
        self._written: tuple[Store, ...] = (
            local,
            *(store for store in shared if store.may_write),
        )
        self._lock = momentary_lock()
        self._to_copy: dict[CacheKey, Hit] = {}

    def get(self, key: CacheKey) -> Hit | Miss:
        """Return the checked entry of `key` from the first tier that has it, or the reason for the miss."""
        return self._beyond(key, self.local.get(key))

    def get_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `get` returns for each of `keys`, in order; the local tier finds its keys together."""
        return [self._beyond(key, found) for key, found in zip(keys, self.local.get_many(keys), strict=True)]

    def _beyond(self, key: CacheKey, found: Hit | Miss) -> Hit | Miss:
        """Return `found`, the answer of the local tier, or what the shared ones know better."""
        if isinstance(found, Hit):
            return found
        for store in self.shared:
            shared = store.get(key)
            if isinstance(shared, Hit):
                hit = shared._replace(tier=store.location)
                with self._lock:
                    self._to_copy[key] = hit
                return hit._replace(file=None)
            # Damage says more than absence; of two absences the index says more: it remembers evictions.
            found = found if shared.reason == "never-seen" else shared
        return found

    def put(
        self, key: CacheKey, artifact: Artifact, load_seconds: float = 0.0, origin: Origin | None = None
    ) -> None:
        """Publish `artifact` in every tier that this user may write, even if some of them fail.

        Raises the error of the last tier that failed.
        """
        failure: Exception | None = None
        for store in self._written:
            try:
                store.put(key, artifact, load_seconds, origin)
            except Exception as error:  # the next tier is on another disk
                failure = error
        if failure is not None:
            raise failure

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return a blob from the first tier that has it undamaged, or None. Never raises."""
        found = (store.read_blob(digest_hex) for store in self._all)
        return next((content for content in found if content is not None), None)

    def scan(self) -> list[Entry]:
        """Return every entry of the local tier."""
        return self.local.scan()

    def delete(self, digests: Iterable[bytes], why: str = "deleted") -> int:
        """Remove entries from every tier that this user may write; return the largest number removed."""
        chosen = set(digests)
        return max(store.delete(chosen, why) for store in self._written)

    def claims(self, key: CacheKey) -> tuple[Claim, ...]:
        """Return the claims of every tier, the local one first: one process per node asks the others."""
        return tuple(claim for store in self._written for claim in store.claims(key))

    def recorded_cost(self, key: CacheKey) -> float | None:
        """Estimate the seconds that building `key` takes; None if nothing is recorded. Never raises."""
        return self.local.recorded_cost(key)

    def summary(self, key: CacheKey) -> str:
        """Return what the entry of `key` in the local tier says of itself, if it is there. Never raises."""
        return self.local.summary(key)

    def nearest_keys(self, key: CacheKey, before: float, most: int) -> Sequence[NearKey]:
        """Return the nearest keys of the local tier."""
        return self.local.nearest_keys(key, before, most)

    def add_counts(self, batch: Batch) -> bool:
        """Copy shared hits to the local tier, then add counts to every tier, even if some of them fail.

        Raises the error of the last tier that failed.
        """
        with self._lock:
            hits, self._to_copy = self._to_copy, {}
        checks = [store.check for store in self.shared if store.check is not None]
        if hits:
            for check in checks:  # what was revoked since it was read is not copied
                check.refresh()
        for key, hit in hits.items():
            if not isinstance(self.local.get(key), Hit):  # else another process of this node was first
                self._copy(key, hit)
        for check in checks:
            check.settle()
        return self._add_to_all(batch)

    def _add_to_all(self, batch: Batch) -> bool:
        recorded, failure = False, None
        for store in self._written:  # the local log first: remotes are sent what is in it
            try:
                recorded |= store.add_counts(batch)
            except Exception as error:  # the next tier is on another disk
                failure = error
        if failure is not None:
            raise failure
        return recorded

    def quarantine(self, key: CacheKey, payload: bytes) -> Path | None:
        """Keep `payload`, which differs from a fresh build, on this node; return its path, or None."""
        return self.local.quarantine(key, payload)

    def close(self) -> None:
        """Close the connections of this process; the next use opens them again."""
        self.local.close()

    def _copy(self, key: CacheKey, hit: Hit) -> None:
        found = (store.renew(key, hit.file) for store in self.shared if store.location == hit.tier)
        file = next(found, None)
        if file is None or not file.holds(hit):  # it is gone, was revoked, or was exchanged
            return
        blobs = {name: self.read_blob(digest) for name, digest in hit.blobs.items()}
        sound = {name: content for name, content in blobs.items() if content is not None}
        if len(sound) < len(blobs):  # a copy would lack forever what somebody may write again
            return
        copy = Artifact(hit.payload, sound, hit.seconds, file.entry.summary, file.references)
        self.local.put(key, copy, origin=file.origin)


class Tier(NamedTuple):
    """One directory of a cache, its file system, and the users whose files are trusted there."""

    directory: Path
    file_system: FileSystem
    trust: Trust


class Placement(NamedTuple):
    """The tiers of a cache; `notice` is logged once, unless empty: the index is elsewhere.

    `remotes` come last; `signed` says whose entries are believed there. With `signers`, copies of entries of
    others do not count either: their user has named whom to believe.
    """

    local: Tier
    shared: tuple[Tier, ...]
    notice: str
    remotes: tuple[RemoteURL, ...] = ()
    signed: Trust | None = None
    signers: frozenset[bytes] | None = None

    @property
    def given(self) -> Path:
        """Return the directory that the user named."""
        return (self.shared[0] if self.on_node else self.local).directory

    @property
    def on_node(self) -> bool:
        """Return True if the given directory is a shared tier, with an index elsewhere on this node."""
        return bool(self.notice)

    def open(self, max_size: int = 0, keeps: bool = True) -> Store:
        """Return the store of these tiers; the local one holds at most `max_size` bytes (0: no limit).

        With `keeps`, shared blobs are copied to this node when they are first read. Does not access the disk.
        """
        local = LocalStore(self.local.directory, max_size, self.signers)
        if not self.shared and not self.remotes:
            return local
        from cachegraph.store.shared.near_blobs import NearBlobs  # most caches have no shared tier
        from cachegraph.store.shared.store import SharedStore

        near, revocations = NearBlobs(local) if keeps else None, self._revocations(local, keeps)
        shared = [
            SharedStore(tier.directory, not tier.file_system.local, tier.trust, near, revocations)
            for tier in self.shared
        ]
        return TieredStore(local, (*shared, *self._remote_stores(local, near, revocations)))

    def _revocations(self, local: LocalStore, keeps: bool) -> Revocations | None:
        """Return what the trusted signers have revoked, for all tiers whose entries are signed."""
        signed = self.signed or next(
            (tier.trust for tier in self.shared if tier.trust.signers is not None), None
        )
        if signed is None or signed.signers is None:
            return None
        from cachegraph.store.revocation.reading import Revocations  # most caches have no signed tier

        return Revocations(signed.signers, local.revocations() if keeps else None, keeps)

    def _remote_stores(
        self, local: LocalStore, near: NearBlobs | None, revocations: Revocations | None
    ) -> Iterator[RemoteStore]:
        for url in self.remotes:
            assert self.signed is not None
            from cachegraph.store.remote.breaker import Breaker  # most caches have no remote
            from cachegraph.store.remote.opening import open_files
            from cachegraph.store.remote.store import RemoteStore

            yield RemoteStore(Breaker(open_files(url)), self.signed, near, local.use_log, revocations)


def place(
    directory: Path,
    shared_directory: Path | None = None,
    trust: str = PRIVATE,
    remotes: tuple[RemoteURL, ...] = (),
) -> Placement:
    """Return the tiers for these settings. Never raises."""
    found = _place(directory, shared_directory, trust)._replace(signers=Trust.of(trust).signers)
    if not remotes:
        return found
    return found._replace(remotes=remotes, signed=Trust.on_servers(trust))


def _place(directory: Path, shared_directory: Path | None, trust: str) -> Placement:
    has_other = shared_directory not in (None, directory)
    is_private = has_other or (shared_directory is None and trust.partition(":")[0] == "signed")
    given = Tier(directory, file_system(directory), Trust.of(PRIVATE if is_private else trust))
    others = () if shared_directory is None or not has_other else (_tier(shared_directory, trust),)
    if given.file_system.local and not given.trust.shared:
        return Placement(given, others, "")
    from cachegraph.store.shared.node import node_directory  # only this case needs its imports

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
