"""The cache: find an entry by its key, or build and keep it. An error of the cache itself never reaches the caller."""

from __future__ import annotations

import os
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from cachegraph.caching.counters import PROCESS
from cachegraph.caching.outcome import MISMATCH, UNVERIFIED, Correction, Found, Verify
from cachegraph.environment import say_what_is_wrong, settings_in_force
from cachegraph.errors import CacheMissError
from cachegraph.fingerprint.primitives import content_name
from cachegraph.fingerprint.source import check_relied_on
from cachegraph.forking import guard_builds
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.single_flight import SingleFlight
from cachegraph.store.absent import NoStore
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.failures import load_failure, store_failure_reason
from cachegraph.store.local.activity import Activity
from cachegraph.store.local.store import LocalStore
from cachegraph.store.tiers import TieredStore, place

__all__ = ["Artifact", "Cache", "Correction", "Found", "Hit", "Miss", "default_cache"]

if TYPE_CHECKING:
    from logging import Logger
    from pathlib import Path

    from cachegraph.explanation import Explanation

T = TypeVar("T")

WRITING = ("readwrite", "verify")
"""The modes in which what is built is kept."""

_OFF = Miss("disabled", "CACHEGRAPH_MODE is off")


class Cache:
    """A cache in the directory and the mode that `settings` name; in the mode off, or with `absent`, there is none.

    Making one touches nothing on the disk, but for the parent of an index that must lie on this node. `absent` is what
    each look-up then says, and None where there is a cache.
    """

    def __init__(self, settings: Settings, absent: Miss | None = None) -> None:
        self.settings = settings
        self.absent = absent or (_OFF if settings.mode == "off" else None)
        self._store = _open(settings) if self.absent is None else NoStore(self.absent)
        self._flights = SingleFlight(self._store.claims, self._store.recorded_cost, _looks_in(self._store))
        self._activity = Activity()
        self._flush_at_exit: object = None
        self._warned = False
        self._refused = False
        self._unloadable: set[bytes] = set()
        self._unverified: dict[bytes, Miss] = {}
        self._held = threading.local()

    def find(self, key: CacheKey, load: Callable[[bytes], T]) -> Found[T] | Miss:
        """Return the loaded entry of `key` or the reason there is none; never raises.

        What `load` raises is logged, and a reason: untrusted for UntrustedPickle, unreadable for anything else.
        """
        found = self._find_and_load(key, lambda _, payload: load(payload))
        if isinstance(found, Miss):
            self._note_miss(key, found, 0.0)
        return found

    def lookup(self, key: CacheKey) -> Hit | Miss:
        """Return the entry of `key` or the reason there is none; never raises."""
        found = self._find(key)
        if isinstance(found, Hit):
            self._note_hit(key, found, None)
        else:
            self._note_miss(key, found, 0.0)
        return found

    def store(self, key: CacheKey, artifact: Artifact) -> bool:
        """Keep `artifact` under `key`, replacing what is there; return whether it is kept. Never raises.

        In the modes readonly and off it does nothing. A failure is counted, and the first is logged as a warning.
        """
        return self._keep(key, artifact, 0.0)

    def read_blob(self, digest_hex: str) -> bytes | None:
        """Return a blob that a hit named, checked; None when it cannot be had. Never raises."""
        held: bytes | None = getattr(self._held, "blobs", {}).get(digest_hex)
        if held is not None:
            return held
        return self._store.read_blob(digest_hex)

    @contextmanager
    def holding(self, blobs: Mapping[str, bytes]) -> Iterator[None]:
        """Have `read_blob` give, to this thread, these of an artifact that was built: it may not be kept, or not yet."""
        before = getattr(self._held, "blobs", {})
        self._held.blobs = {**before, **{content_name(content): content for content in blobs.values()}}
        try:
            yield
        finally:
            self._held.blobs = before

    def get_or_build(
        self,
        key: CacheKey,
        build: Callable[[], Artifact],
        load: Callable[[bytes], T],
        verify: Callable[[Found[T]], Correction[T] | None] | None = None,
    ) -> Found[T]:
        """Return the loaded entry of `key`, built and kept first when there is none that loads.

        In the mode verify, `verify` builds what some of the hits are to be compared with; what it returns is used instead.

        Raises CacheMissError instead of building when settings.on_miss is "error"; what `build` raises; and what
        `load` raises on what was just built, which is then not kept.
        """
        many = None if verify is None else lambda _, found: verify(found)
        return self.get_or_build_many([key], lambda _: [build()], lambda _, payload: load(payload), many)[key]

    def get_or_build_many(
        self,
        keys: Iterable[CacheKey],
        build: Callable[[Sequence[CacheKey]], Sequence[Artifact]],
        load: Callable[[CacheKey, bytes], T],
        verify: Verify[T] | None = None,
    ) -> dict[CacheKey, Found[T]]:
        """Return the loaded entries of `keys`. Those that there are none for are built together, an artifact a key.

        What another thread or process is building is waited for (single_flight.py); where that brings no entry it is
        built afterwards, by a call of its own. Verifies and raises as get_or_build does.
        """
        found, missing = self._find_all(keys, load, verify)
        if missing:
            self._refuse_if_asked(missing)
            found.update(self._build_in_turn(missing, build, load))
        return found

    def explain(self, key: CacheKey) -> Explanation:
        """Return why `key` is not found now, by the nearest stored key; takes milliseconds, so nothing calls it unasked.

        Of a key that is found it says how it differs from its nearest. Raises sqlite3.Error and OSError.
        """
        from cachegraph.explanation import Explanation, explain

        found = self._find(key)
        if isinstance(self._store, NoStore):
            return Explanation(key.hex, key.level, self._store.why.reason, self._store.why.detail)
        local = self._store.local if isinstance(self._store, TieredStore) else self._store
        return explain(local, key, found if isinstance(found, Miss) else Miss("found", "it is stored"))

    def samples_hit(self) -> bool:
        """Return whether a hit is to be built anew and compared: in the mode verify, a share of them is."""
        return self.settings.mode == "verify" and random.random() < self.settings.verify_rate

    def correct(self, key: CacheKey, payload: bytes, artifact: Artifact, difference: str) -> None:
        """Keep `artifact`, which was built, instead of the entry that held `payload`, which goes aside for a look.

        Logged as an error and counted as a miss of the reason "mismatch". Never raises.
        """
        aside = self._displace(key, payload, artifact, difference)
        _log().error(
            "the %s entry %s is not what building it gives: %s; the built one is used and kept, and the entry is set "
            "aside in %s",
            key.level,
            key.hex,
            difference,
            aside or "no place: that failed, too",
        )

    def replace_suspect(self, key: CacheKey, artifact: Artifact, difference: str) -> None:
        """Do what `correct` does with the entry of `key`, by which another may have gone wrong, unless it holds the same bytes.

        Nothing is logged: of the other one it was. Never raises.
        """
        hit = self._store.get(key)
        if isinstance(hit, Hit) and hit.payload != artifact.payload:
            self._displace(key, hit.payload, artifact, difference)

    def note_bypass(self, level: str, reason: str) -> None:
        """Count a compilation at `level` that did without the cache, and why."""
        PROCESS.bypass(reason)
        self._begin_counting()
        self._activity.bypass(level, reason)

    def flush(self) -> None:
        """Write the counts of this process into the index in one transaction; what cannot be written is lost.

        Happens by itself when the process ends, or when nobody holds the cache any more.
        """
        _flush(self._store, self._activity, self.settings.mode)

    def _displace(self, key: CacheKey, payload: bytes, artifact: Artifact, difference: str) -> Path | None:
        """Set what held `payload` aside, keep `artifact` instead, count it; where the old one lies, if that was possible."""
        aside = self._store.set_aside(key, payload)
        self._note_miss(key, Miss(MISMATCH, difference), sum(artifact.seconds.values()))
        self._keep(key, artifact, 0.0)
        return aside

    def _find(self, key: CacheKey) -> Hit | Miss:
        found = self._store.get(key)
        if isinstance(found, Miss) and found.reason == "untrusted":
            self._note_refusal(found.detail)
        return found

    def _find_all(
        self,
        keys: Iterable[CacheKey],
        load: Callable[[CacheKey, bytes], T],
        verify: Verify[T] | None = None,
    ) -> tuple[dict[CacheKey, Found[T]], dict[CacheKey, Miss]]:
        found: dict[CacheKey, Found[T]] = {}
        missing: dict[CacheKey, Miss] = {}
        for key in dict.fromkeys(keys):
            loaded = self._find_and_load(key, load, verify)
            if isinstance(loaded, Found):
                found[key] = loaded
            else:
                missing[key] = loaded
        return found, missing

    def _find_and_load(
        self, key: CacheKey, load: Callable[[CacheKey, bytes], T], verify: Verify[T] | None = None
    ) -> Found[T] | Miss:
        hit = self._unverified.get(key.digest) or self._find(key)
        if isinstance(hit, Miss):
            return hit
        begin = perf_counter()
        try:
            value = load(key, hit.payload)
        except Exception as error:
            self._note_load_failure(key)
            return load_failure(error)
        load_seconds = perf_counter() - begin
        found = Found(value, "hit", "", hit.seconds, load_seconds, hit.blobs)
        try:
            correction = verify(key, found) if verify is not None and self.samples_hit() else None
        except Exception as error:
            return self._note_unverified(key, error)
        if correction is not None:
            self.correct(key, hit.payload, correction.artifact, correction.difference)
            return Found(correction.value, "miss", MISMATCH, correction.artifact.seconds, load_seconds, {})
        self._note_hit(key, hit, load_seconds)
        return found

    def _refuse_if_asked(self, missing: Mapping[CacheKey, Miss]) -> None:
        """Raise CacheMissError if settings.on_miss is "error"."""
        if self.settings.on_miss != "error":
            return
        for key, miss in missing.items():
            self._note_miss(key, miss, 0.0)
        key, miss = next(iter(missing.items()))
        raise CacheMissError(key.level, key.hex, miss.reason)

    def _build_in_turn(
        self,
        missing: Mapping[CacheKey, Miss],
        build: Callable[[Sequence[CacheKey]], Sequence[Artifact]],
        load: Callable[[CacheKey, bytes], T],
    ) -> dict[CacheKey, Found[T]]:
        """Build what is missing when it is its turn, unless somebody else has built it by then."""
        guard_builds()
        if self.settings.mode not in WRITING:  # what is built is for this process alone
            return dict(self._build_and_keep(missing, build, load, set()))
        built: dict[CacheKey, Found[T]] = {}
        unkept: set[CacheKey] = set()
        with closing(self._flights.turns(missing, unkept)) as turns:
            for turn in turns:
                found, still = self._find_all(turn, load)
                built.update(found)
                if still:
                    built.update(
                        self._build_and_keep({key: missing[key] for key in still}, build, load, unkept)
                    )
        return built

    def _build_and_keep(
        self,
        missing: Mapping[CacheKey, Miss],
        build: Callable[[Sequence[CacheKey]], Sequence[Artifact]],
        load: Callable[[CacheKey, bytes], T],
        unkept: set[CacheKey],
    ) -> Iterator[tuple[CacheKey, Found[T]]]:
        """Yield what is built of `missing`; what cannot be kept is put into `unkept`."""
        begin = perf_counter()
        artifacts = build(list(missing))
        each = (perf_counter() - begin) / len(missing)
        for (key, miss), artifact in zip(missing.items(), artifacts, strict=True):
            _log().debug("%s entry %s: miss, %s: %s", key.level, key.hex, miss.reason, miss.detail)
            if not artifact.seconds:
                artifact = replace(artifact, seconds={"build": each})
            built = perf_counter()
            with self.holding(artifact.blobs):
                value = load(key, artifact.payload)
            load_seconds = perf_counter() - built
            self._note_miss(key, miss, sum(artifact.seconds.values()))
            if not self._keep(key, artifact, load_seconds):
                unkept.add(key)
            yield key, Found(value, "miss", miss.reason, artifact.seconds, load_seconds, {})

    def _keep(self, key: CacheKey, artifact: Artifact, load_seconds: float) -> bool:
        if self.settings.mode not in WRITING:
            return False
        try:
            check_relied_on()
            self._store.put(key, artifact, load_seconds)
        except Exception as error:  # the artifact is in memory: whatever went wrong, the compilation has not
            self._note_store_failure(key, error)
            return False
        self._unverified.pop(key.digest, None)
        return True

    def _note_hit(self, key: CacheKey, hit: Hit, load_seconds: float | None) -> None:
        saved = sum(hit.seconds.values()) - (load_seconds or 0.0)
        PROCESS.hit(key.level, saved)
        self._begin_counting()
        self._activity.hit(key.level, key.digest, load_seconds, saved)

    def _note_miss(self, key: CacheKey, miss: Miss, seconds_spent: float) -> None:
        PROCESS.miss(key.level, miss.reason, seconds_spent)
        self._begin_counting()
        self._activity.miss(key, miss, seconds_spent)

    def _note_refusal(self, detail: str) -> None:
        log = _log().debug if self._refused else _log().warning
        self._refused = True
        log("%s. Said once; every miss of this kind is counted.", detail)

    def _note_load_failure(self, key: CacheKey) -> None:
        log = _log().debug if key.digest in self._unloadable else _log().warning
        self._unloadable.add(key.digest)
        log("loading the %s entry %s failed, so it is built anew", key.level, key.hex, exc_info=True)

    def _note_unverified(self, key: CacheKey, error: Exception) -> Miss:
        """Have no hit under `key` from now on, until it is stored anew: what building raises, the caller is to see."""
        _log().error(
            "the %s entry %s is not used: building it anew, to compare, failed",
            key.level,
            key.hex,
            exc_info=error,
        )
        miss = Miss(UNVERIFIED, f"building it anew to compare failed: {type(error).__name__}: {error}")
        return self._unverified.setdefault(key.digest, miss)

    def _note_store_failure(self, key: CacheKey, error: Exception) -> None:
        reason = store_failure_reason(error)
        PROCESS.store_failure(reason)
        log = _log().debug if self._warned else _log().warning
        self._warned = True
        log(
            "storing the %s entry %s in %s failed (%s: %s: %s); the result is used, but not kept. Said once.",
            key.level,
            key.hex,
            self.settings.directory,
            reason,
            type(error).__name__,
            error,
        )

    def _begin_counting(self) -> None:
        if self._flush_at_exit is None and self.settings.mode in WRITING:
            self._flush_at_exit = weakref.finalize(
                self, _flush, self._store, self._activity, self.settings.mode
            )


def _looks_in(store: LocalStore | TieredStore | NoStore) -> Callable[[CacheKey], bool]:
    """What says whether a key is stored; it does not hold the cache, which is flushed when nobody does."""
    return lambda key: isinstance(store.get(key), Hit)


_noticed: set[str] = set()


def _open(settings: Settings) -> LocalStore | TieredStore | NoStore:
    if settings.directory is None:
        return NoStore(Miss("no-directory", "the settings name none"))
    placement = place(settings.directory, settings.shared_directory, settings.trust)
    if placement.notice and placement.notice not in _noticed:
        _noticed.add(placement.notice)
        _log().info("%s", placement.notice)
    return placement.open(settings.max_size, keeps=settings.mode != "readonly")


def _flush(store: LocalStore | TieredStore | NoStore, activity: Activity, mode: str) -> None:
    batch = activity.take()
    if mode not in WRITING or not batch.totals:  # every hit that is to be copied nearer is counted, too
        return
    try:
        store.add_counts(batch)
    except Exception as error:  # counts may be lost; the end of a process may not fail because of them
        _log().debug("writing counts failed: %s: %s", type(error).__name__, error)


def _log() -> Logger:
    import logging  # 7 ms, which a warm start does not need

    return logging.getLogger("cachegraph")


_default: tuple[Settings, Miss | None, int, Cache] | None = None


def default_cache() -> Cache:
    """Return the process's cache for the settings in force now; never raises.

    What is wrong with the environment is logged once. Then there is a cache that has nothing and keeps nothing.
    """
    global _default
    settings, absent = settings_in_force()
    current = settings, absent, os.getpid()
    if _default is None or _default[:3] != current:
        say_what_is_wrong(absent)
        _default = (*current, Cache(settings, absent))
    return _default[3]
