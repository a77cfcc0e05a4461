"""A numba dispatcher whose compiled overloads are stored, one entry per signature (entries.py).

Any failure is a miss or a bypass: numba then compiles as if there were no cache.
"""

# mypy: disable-error-code="no-untyped-call,misc,attr-defined"
from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from numba.core import caching, sigutils

from cachegraph.cache import WRITING, Artifact, Cache, Found
from cachegraph.errors import CacheMissError
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.numba_types import options_in_force
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.numba_cache.compiled import NotStorable, Stored, pack_refusal
from cachegraph.numba_cache.entries import OverloadEntries, configuration
from cachegraph.numba_cache.frame_chunk import in_one_frame_chunk
from cachegraph.numba_cache.fresh_compilation import fresh_compilation


class StoredOverloads(caching._Cache):
    """numba's cache of one dispatcher, the one of the Python function `py_func`, in the store."""

    def __init__(self, py_func: Any, entries: OverloadEntries) -> None:
        self._function = py_func
        self._entries = entries
        self._missed: dict[Any, tuple[CacheKey, float, object]] = {}
        self._ready: dict[Any, Any] = {}
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The directory of the store."""
        return str(self._entries.cache.settings.directory)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled overload for `sig`; None if numba is to compile it.

        Raises CacheMissError if CACHEGRAPH_ON_MISS forbids compiling.
        """
        if not self._enabled:
            return None
        if sig in self._ready:
            return self._ready.pop(sig)
        target_context.refresh()
        key = self._entries.key(sig, target_context.codegen())
        if key is None:
            self._refuse_if_asked("none", "unfingerprintable")
            return None
        found = self._entries.cache.find(key, lambda payload: self._entries.read_for_numba(payload, sig))
        if isinstance(found, Found) and isinstance(found.value, Stored):
            space = self._function.__globals__
            rebuilt = self._entries.rebuild(key, found, found.value, target_context, space)
            if rebuilt is not None:
                return rebuilt
        self._refuse_if_asked(key.hex, found.reason or "unreadable")
        self._missed[sig] = key, perf_counter(), configuration()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store `data`, numba's CompileResult for `sig`. Never raises; what cannot be stored is counted as a
        bypass."""
        if not self._enabled or self._entries.cache.settings.mode not in WRITING:
            return
        missed = self._missed.pop(sig, None)
        if missed is None or missed[2] != configuration():  # compiled under other settings than the key says
            return
        key, began, _ = missed
        artifact = self._artifact(key, data, began)
        if artifact is not None:
            self._entries.cache.store(key, artifact)

    def _artifact(self, key: CacheKey, data: Any, began: float) -> Artifact | None:
        try:
            return self._entries.artifact(key, data, perf_counter() - began, self._function.__qualname__)
        except NotStorable as reason:
            self._entries.bypass(str(reason), reason.kind)
        except Exception as error:  # the overload works; a failure of the cache must not hide it
            logger("cachegraph").warning(
                "storing %s failed: %s: %s", self, type(error).__name__, error, exc_info=True
            )
        return None

    def replace_suspect(self, sig: Any, data: Any, difference: str) -> None:
        """Store `data`, compiled again for `sig`, in place of the entry, which is quarantined
        (Cache.replace_suspect).

        Never raises. If `data` cannot be stored, that is counted as a bypass, and the entry stays.
        """
        key = self._entries.key(sig, data.target_context.codegen())
        artifact = None if key is None else self._artifact(key, data, perf_counter())
        if key is not None and artifact is not None:
            self._entries.cache.replace_suspect(key, artifact, difference)

    def get_or_compile(self, dispatcher: Any, sig: Any) -> None:
        """Find or compile and store the overload of `dispatcher` for `sig`; of several processes, one
        compiles.

        `dispatcher` is the one whose cache this is. Raises as load_overload does, and what numba raises.
        """
        dispatcher.targetctx.refresh()
        key = self._entries.key(sig, dispatcher.targetctx.codegen())
        if key is None:
            self._refuse_if_asked("none", "unfingerprintable")
            self._compile(dispatcher, sig)
            return
        try:
            found = self._entries.cache.get_or_build(
                key,
                lambda: self._built(dispatcher, sig, key),
                lambda payload: self._entries.read_for_numba(payload, sig),
            )
        except Exception as error:
            if not _is_compiled(dispatcher, sig):
                raise
            logger("cachegraph").warning(
                "storing %s failed: %s: %s", self, type(error).__name__, error, exc_info=True
            )
            return
        if found.outcome == "hit":
            self._use(dispatcher, sig, key, found)

    def _use(self, dispatcher: Any, sig: Any, key: CacheKey, found: Found[Any]) -> None:
        """Give the found overload to `dispatcher`; compile if numba cannot use it, or if it is a stored
        refusal."""
        if not isinstance(found.value, Stored):
            self._compile(dispatcher, sig)
            return
        target, space = dispatcher.targetctx, self._function.__globals__
        rebuilt = self._entries.rebuild(key, found, found.value, target, space)
        if rebuilt is None:
            self._entries.cache.store(key, self._built(dispatcher, sig, key))
            return
        self._ready[sig] = rebuilt
        dispatcher.compile(sig)

    def _built(self, dispatcher: Any, sig: Any, key: CacheKey) -> Artifact:
        begin = perf_counter()
        compiled = self._compile(dispatcher, sig)
        try:
            return self._entries.artifact(key, compiled, perf_counter() - begin, self._function.__qualname__)
        except NotStorable as reason:
            self._entries.bypass(str(reason), reason.kind)
            return Artifact(pack_refusal(reason))

    def _compile(self, dispatcher: Any, sig: Any) -> Any:
        """Return the overload that numba compiles for `sig` without this cache."""
        self.disable()
        try:
            with fresh_compilation():
                in_one_frame_chunk(dispatcher.compile, sig)
        finally:
            self.enable()
        arguments, _ = sigutils.normalize_signature(sig)
        return dispatcher.overloads[tuple(arguments)]

    def enable(self) -> None:
        """Look up and store overloads, as after creation."""
        self._enabled = True

    def disable(self) -> None:
        """Neither look up nor store overloads."""
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: a new overload replaces the stored one."""

    def __repr__(self) -> str:
        return f"StoredOverloads({self._function.__qualname__})"

    def _refuse_if_asked(self, key: str, reason: str) -> None:
        if self._entries.cache.settings.on_miss == "error":
            raise CacheMissError("numba", key, reason)


def _is_compiled(dispatcher: Any, sig: Any) -> bool:
    arguments, _ = sigutils.normalize_signature(sig)
    return tuple(arguments) in dispatcher.overloads


def keep_overloads(
    dispatcher: Any, description: bytes, cache: Cache | None = None, trusted: Sequence[str] = ()
) -> None:
    """Store the overloads of `dispatcher`, made by numba.njit, from now on.

    `description` is the canonical encoding of the computation: everything that the function does and reads,
    except the options of the dispatcher. It must not call functions decorated with `cache=True`: when Python
    calls `dispatcher`, numba may load these from its own files, although what they call has changed (numba
    #8851). Raises Unfingerprintable for options that have no encoding.
    """
    entries = OverloadEntries(description, encode(options_in_force(dispatcher.targetoptions)), cache, trusted)
    dispatcher._cache = StoredOverloads(dispatcher.py_func, entries)
