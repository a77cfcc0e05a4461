"""The cache: look an entry up by its key, or build and store it. Errors of the cache itself never reach the
caller."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from cachegraph.caching.lookup import EntryLookup
from cachegraph.caching.outcome import Correction, Found, Verify
from cachegraph.caching.records import WRITING, CacheRecords
from cachegraph.caching.writing import EntryWriter
from cachegraph.environment import settings_in_force, warn_of_environment
from cachegraph.errors import CacheMissError, Unfingerprintable
from cachegraph.fingerprint.source_records import SourceRecords
from cachegraph.forking import momentary_lock
from cachegraph.key import CacheKey, check_word
from cachegraph.logger import logger
from cachegraph.settings import Settings
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.tiers import TieredStore, place

__all__ = ["WRITING", "Artifact", "Cache", "Correction", "Found", "Hit", "Miss", "default_cache"]

if TYPE_CHECKING:
    from cachegraph.caching.building import BuildMany, EntryBuilder
    from cachegraph.explanation import Explanation
    from cachegraph.store.protocol import Store

T = TypeVar("T")

_OFF = Miss("disabled", "CACHEGRAPH_MODE is off")


class Cache:
    """A cache of compiled code: in the directory `where`, or where the user's settings say if it is None.

    Everything else is as the environment and the settings files say, unless `where` is Settings.
    An application gives its `namespace`: its entries, and their statistics, are then its own.
    In the mode off, or with `absent`, the cache is empty and stores nothing; `absent` is then the result of
    every look-up, and None otherwise. Creating a Cache touches nothing on disk, but for the parent of an
    index that must lie on this node. Raises ValueError for a namespace that is no word (key.py).
    """

    def __init__(
        self,
        where: Settings | str | bytes | os.PathLike[str] | None = None,
        absent: Miss | None = None,
        *,
        namespace: str = "",
    ) -> None:
        if isinstance(where, Settings):
            settings = where
        else:
            settings, absent = settings_in_force(where)
            warn_of_environment(absent)
        self.namespace = check_word(namespace) if namespace else ""
        self.settings = settings
        self.absent = absent or (_OFF if settings.mode == "off" else None)
        self._store = _open(settings) if self.absent is None else _no_store(self.absent)
        self._records = CacheRecords(settings, self._store)
        local = _local(self._store)
        self.source_records = None if local is None else SourceRecords(local)
        self._writer = EntryWriter(settings, self._store, self._records, self.source_records, local)
        self._lookup = EntryLookup(settings, self._store, self._records, self._writer)
        self._made_builder: EntryBuilder | None = None
        self._making_builder = momentary_lock()

    def lookup(self, key: CacheKey) -> Hit | Miss:
        """Return the stored entry of `key`, or the miss with its reason; never raises."""
        found = self._lookup.get(key)
        self._records.answer(key, found)
        return found

    def lookup_many(self, keys: Sequence[CacheKey]) -> list[Hit | Miss]:
        """Return what `lookup` returns for each of `keys`, in their order, found together; never raises."""
        found = self._lookup.get_many(keys)
        for key, answer in zip(keys, found, strict=True):
            self._records.answer(key, answer)
        return found

    def find(self, key: CacheKey, load: Callable[[bytes], T]) -> Found[T] | Miss:
        """Return the entry of `key` as `load` makes it, or the miss with its reason; never raises.

        An exception of `load` is logged and is a miss: "untrusted" for UntrustedPickle, "unreadable" for any
        other.
        """
        found = self._lookup.load(key, lambda _, payload: load(payload))
        if isinstance(found, Miss):
            self._records.miss(key, found)
        return found

    def key(self, parts: Mapping[str, object], level: str = "entry") -> CacheKey:
        """Return the key of what `parts` describe, in the namespace of this cache, whatever their order.

        The parts must say everything that the result depends on: inputs, options, releases. Raises
        Unfingerprintable for a value without a canonical encoding, ValueError without a namespace, and
        TypeError for parts without names.
        """
        _check_names(parts)
        if not self.namespace:
            raise ValueError(
                "making a key of parts: the cache has no namespace; give it one: Cache(namespace=...)"
            )
        encoded = {name: _encoded(name, parts[name]) for name in sorted(parts)}
        return CacheKey.build(f"{self.namespace}/{check_word(level)}", encoded)

    def get_or_build(
        self,
        key: CacheKey | Mapping[str, object],
        build: Callable[[], Artifact | bytes],
        load: Callable[[bytes], T],
        verify: Callable[[Found[T]], Correction[T] | None] | None = None,
    ) -> Found[T]:
        """Return the loaded entry of `key`, or of the parts that describe it (see the method `key`); build
        and store it first if no entry loads.

        Parts without a key are a bypass: the result is built, loaded and not stored. In the mode verify,
        `verify` compares some of the hits with a new build; a correction that it returns is used instead of
        the entry.

        Raises CacheMissError instead of building if settings.on_miss is "error"; what `build` raises; what
        `load` raises on a new artifact, which is then not stored; and TypeError if what was built, or a blob
        of it, is not bytes, or what describes it no seconds and text.
        """
        if not isinstance(key, CacheKey):
            try:
                key = self.key(key)
            except Unfingerprintable as error:
                self.bypass(f"{self.namespace}/entry", "unfingerprintable", str(error))
                return self._built(build, load, str(error))
        many = None if verify is None else lambda _, found: verify(found)
        found = self.get_or_build_many(
            [key], lambda _: [_artifact(build())], lambda _, payload: load(payload), many
        )
        return found[key]

    def get_or_build_many(
        self,
        keys: Iterable[CacheKey],
        build: BuildMany,
        load: Callable[[CacheKey, bytes], T],
        verify: Verify[T] | None = None,
    ) -> dict[CacheKey, Found[T]]:
        """Return the loaded entries of `keys`; the missing ones are built together, one artifact per key.

        If another thread or process is building a key, its entry is waited for (single_flight.py); if none
        arrives, the key is built by a call of its own. Verifies and raises as get_or_build does.
        """
        found, missing = self._lookup.load_all(keys, load, verify)
        if missing:
            found.update(self._builder().build_missing(missing, build, load))
        return found

    def store(self, key: CacheKey, artifact: Artifact) -> bool:
        """Store `artifact` under `key`, replacing an older entry; return True if it is stored. Never raises.

        In the modes readonly and off it does nothing. Failures are counted; the first is logged as a warning.
        """
        return self._writer.keep(key, artifact)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return the checked content of a blob that a hit named, or None if it cannot be read. Never
        raises."""
        held = None if self._made_builder is None else self._made_builder.held.get(digest_hex)
        return self._store.read_blob(digest_hex) if held is None else held

    def holding(self, blobs: Mapping[str, bytes]) -> AbstractContextManager[None]:
        """Let `read_blob` find, in this thread, the blobs of a new artifact, which may not be stored, or not
        yet."""
        return self._builder().held.holding(blobs)

    def _builder(self) -> EntryBuilder:
        """Return what builds missing entries; hits do without it and its modules."""
        with self._making_builder:
            if self._made_builder is None:
                from cachegraph.caching.building import EntryBuilder
                from cachegraph.single_flight import SingleFlight

                store = self._store
                flights = SingleFlight(store.claims, store.recorded_cost, _is_stored_in(store))
                self._made_builder = EntryBuilder(
                    self.settings, self._lookup, self._writer, self._records, flights
                )
            return self._made_builder

    def samples_hit(self) -> bool:
        """Return True if this hit is to be compared with a new build: in the mode verify, a random share of
        them is."""
        return self._lookup.samples_hit()

    def correct(self, key: CacheKey, payload: bytes, artifact: Artifact, difference: str) -> None:
        """Store the newly built `artifact` in place of the entry that held `payload`, which is quarantined.

        Logged as an error and counted as a miss with the reason "mismatch". Never raises.
        """
        self._writer.correct(key, payload, artifact, difference)

    def replace_suspect(self, key: CacheKey, artifact: Artifact, difference: str) -> None:
        """Do as `correct` does, without its log line, if the entry of `key` holds other bytes than
        `artifact`.

        For entries that another entry, found to be wrong, was made of. Never raises.
        """
        self._writer.replace_suspect(key, artifact, difference)

    def bypass(self, level: str, kind: str, reason: str) -> None:
        """Count, as `kind`, that something is built at `level` without the cache, for that `reason`.

        Raises CacheMissError if settings.on_miss is "error".
        """
        if self.settings.on_miss == "error":
            raise CacheMissError(level, "none", reason)
        self.note_bypass(level, kind, reason)

    def note_bypass(self, level: str, reason: str, detail: str = "") -> None:
        """Count a compilation at `level` that did not use the cache, with the reason; `detail` is logged."""
        self._records.bypass(level, reason, detail)

    def flush(self) -> None:
        """Write the counts of this process into the index in one transaction; counts that cannot be written
        are lost.

        Called at exit, and when the cache is dropped.
        """
        self._records.flush()

    def _built(
        self, build: Callable[[], Artifact | bytes], load: Callable[[bytes], T], reason: str
    ) -> Found[T]:
        """Return what is built without the cache."""
        artifact = _artifact(build())
        with self.holding(artifact.blobs):
            return Found(load(artifact.payload), "bypass", reason, artifact.seconds, 0.0, {})

    def explain(self, key: CacheKey) -> Explanation:
        """Return why `key` is not found now, by the nearest stored key; takes milliseconds.

        For a key that is found, return how it differs from its nearest. Raises sqlite3.Error and OSError.
        """
        from cachegraph.explanation import explain

        found = self._lookup.get(key)
        return explain(self._store, key, found if isinstance(found, Miss) else Miss("found", "it is stored"))


def _check_names(parts: object) -> None:
    """Raise TypeError if `parts` is no mapping of names."""
    if not isinstance(parts, Mapping):
        found = type(parts).__name__
    elif not all(isinstance(name, str) for name in parts):
        found = f"a name that is {next(type(name).__name__ for name in parts if not isinstance(name, str))}"
    else:
        return
    raise TypeError(f"making a key of parts: found {found}; give a dict of values by their names")


def _artifact(built: object) -> Artifact:
    """Return what an application built; raises TypeError for content that cannot be stored."""
    artifact = built if isinstance(built, Artifact) else Artifact(built)  # type: ignore[arg-type]
    for content in (artifact.payload, *artifact.blobs.values()):
        if not isinstance(content, bytes):
            raise TypeError(
                f"storing what build returned: found {type(content).__name__}; return bytes, "
                "or an Artifact whose payload and blobs are bytes"
            )
    _check_description(artifact.seconds, artifact.summary)
    return artifact


def _check_description(seconds: object, summary: object) -> None:
    """Raise TypeError if an application gave other things than seconds by the names of steps, and a text."""
    if not isinstance(summary, str):
        raise TypeError(f"storing what build returned: found the summary {summary!r:.80}; give a text")
    items = seconds.items() if isinstance(seconds, Mapping) else [(None, seconds)]
    for step, cost in items:
        if not (isinstance(step, str) and isinstance(cost, int | float) and isfinite(cost)):
            raise TypeError(
                f"storing what build returned: found the seconds {step!r:.80}: {cost!r:.80}; "
                "give numbers by the names of steps"
            )


def _encoded(name: str, value: object) -> bytes:
    from cachegraph.fingerprint.encoding import encode  # the engine encodes its graphs itself

    try:
        return encode(value)
    except Unfingerprintable as error:
        error.inside(f"part {name!r}")
        raise


def _is_stored_in(store: Store) -> Callable[[CacheKey, bool], bool]:
    """Return a predicate of stored keys that does not hold the cache, which is flushed when nobody holds
    it."""
    near = store.local if isinstance(store, TieredStore) else store
    return lambda key, anywhere: isinstance((store if anywhere else near).get(key), Hit)


def _local(store: Store) -> LocalStore | None:
    """Return the local tier, which belongs to this user alone."""
    local = store.local if isinstance(store, TieredStore) else store
    return local if isinstance(local, LocalStore) else None


_noticed: set[str] = set()


def _open(settings: Settings) -> Store:
    if settings.directory is None:
        return _no_store(Miss("no-directory", "the settings name none"))
    placement = place(settings.directory, settings.shared_directory, settings.trust, settings.remotes)
    if placement.notice and placement.notice not in _noticed:
        _noticed.add(placement.notice)
        logger("cachegraph").info("%s", placement.notice)
    return placement.open(settings.max_size, keeps=settings.mode != "readonly")


def _no_store(why: Miss) -> Store:
    from cachegraph.store.protocol import NoStore  # only without a cache

    return NoStore(why)


_default: tuple[Settings, Miss | None, int, Cache] | None = None


def default_cache() -> Cache:
    """Return the process's cache for the settings in force now; never raises.

    Mistakes in the environment are logged once. A cache that they leave without a directory is empty.
    """
    global _default
    settings, absent = settings_in_force()
    current = settings, absent, os.getpid()
    if _default is None or _default[:3] != current:
        warn_of_environment(absent)
        _default = (*current, Cache(settings, absent))
    return _default[3]
