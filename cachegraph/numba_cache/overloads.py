"""A numba dispatcher whose compiled overloads are kept in the store, an entry for each signature.

The key of an overload says all that the code depends on, also what numba's own keys leave out:

    function    what the caller says the computation is: canonical bytes
    signature   the types of the arguments (signatures.py), and of the result if it was asked for
    code        what others have registered with numba (fingerprint/extensions.py)
    options     of the dispatcher, and of numba's configuration
    toolchain   Python, numpy, numba, llvmlite
    target      numba's magic tuple: triple, CPU, features

An overload is one entry, written in one transaction and checked before anything in it is read. Whatever goes wrong is a
miss or a bypass, and numba compiles as if there were no cache.
"""

# mypy: disable-error-code="no-untyped-call,misc,attr-defined"
from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numba.core import caching, config, sigutils

from cachegraph.cache import WRITING, Artifact, Cache, Found, default_cache
from cachegraph.errors import CacheMissError, Unfingerprintable
from cachegraph.fingerprint.extensions import encode_extensions
from cachegraph.fingerprint.hasher import encode
from cachegraph.key import CacheKey
from cachegraph.numba_cache.compiled import NotStorable, pack_overload, unpack_overload
from cachegraph.numba_cache.signatures import encode_types
from cachegraph.toolchain import toolchain

if TYPE_CHECKING:
    from logging import Logger

SCHEME = 1
_CONFIGURATION = (
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DISABLE_INTEL_SVML", "USING_SVML", "BOUNDSCHECK"),
    *(
        "LLVM_REFPRUNE_PASS",
        "LLVM_REFPRUNE_FLAGS",
        "DEBUGINFO_DEFAULT",
        "EXTEND_VARIABLE_LIFETIMES",
        "NRT_STATS",
    ),
    *("PARFOR_MAX_TUPLE_SIZE", "DEBUG_NRT", "DEBUG_JIT"),
)
"""The settings of numba's, besides OPT, that compiled code depends on; one that a release has not is None."""


class StoredOverloads(caching._Cache):
    """numba's cache of one dispatcher, in the store.

    `description` is the canonical encoding of the computation, `options` of the dispatcher's options. `trusted` names
    packages, besides numba, whose types may be part of a signature.
    """

    def __init__(
        self,
        py_func: Any,
        description: bytes,
        options: bytes = b"",
        cache: Cache | None = None,
        trusted: Sequence[str] = (),
    ) -> None:
        self._function = py_func
        self._parts = {
            "scheme": encode(("numba", SCHEME)),
            "function": description,
            "toolchain": encode(toolchain()),
        }
        self._options = options
        self._given = cache
        self._trusted = tuple(trusted)
        self._missed: dict[Any, tuple[CacheKey, float]] = {}
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The directory of the store."""
        return str(self._cache.settings.directory)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled overload for `sig`; None if it is to be compiled.

        Raises CacheMissError where it is not to be compiled: CACHEGRAPH_ON_MISS is "error".
        """
        if not self._enabled:
            return None
        target_context.refresh()
        key = self._key(sig, target_context)
        if key is None:
            self._refuse_if_asked("none", "unfingerprintable")
            return None
        arguments, _ = sigutils.normalize_signature(sig)
        found = self._cache.find(
            key,
            lambda payload: unpack_overload(
                payload, key.hex, target_context, self._function, arguments, self._trusted
            ),
        )
        if isinstance(found, Found):
            return found.value
        self._refuse_if_asked(key.hex, found.reason)
        self._missed[sig] = key, perf_counter()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep `data`, numba's CompileResult for `sig`; never raises. What cannot be kept is counted as a bypass."""
        if not self._enabled or self._cache.settings.mode not in WRITING:
            return
        missed = self._missed.pop(sig, None)
        if missed is None:
            return
        key, began = missed
        try:
            self._store(key, data, perf_counter() - began)
        except NotStorable as reason:
            self._bypass(str(reason), reason.kind)
        except Exception as error:  # it is compiled and works: whatever the cache cannot do is its own affair
            _log().warning("storing %s failed: %s: %s", self, type(error).__name__, error, exc_info=True)

    def enable(self) -> None:
        """Look up and keep overloads, as from the beginning."""
        self._enabled = True

    def disable(self) -> None:
        """Neither look up nor keep any more."""
        self._enabled = False

    def flush(self) -> None:
        """Nothing: what is compiled anew replaces what was stored."""

    def __repr__(self) -> str:
        return f"StoredOverloads({self._function.__qualname__})"

    @property
    def _cache(self) -> Cache:
        return self._given or default_cache()

    def _store(self, key: CacheKey, compiled: Any, seconds: float) -> None:
        payload = pack_overload(compiled, key.hex, self._trusted)
        summary = f"{self._function.__qualname__}{compiled.signature}"
        self._cache.store(key, Artifact(payload, seconds={"compile": seconds}, summary=summary))

    def _key(self, sig: Any, target_context: Any) -> CacheKey | None:
        """The key for `sig`; None, counted as a bypass, if some of what it says has no encoding."""
        arguments, result = sigutils.normalize_signature(sig)
        try:
            signature = encode_types(arguments) + encode_types(() if result is None else (result,))
            code = encode_extensions()
        except Unfingerprintable as error:
            self._bypass(str(error), "unfingerprintable")
            return None
        target = encode(tuple(map(str, target_context.codegen().magic_tuple())))
        options = self._options + encode(_configuration())
        parts = {**self._parts, "signature": signature, "code": code, "options": options, "target": target}
        return CacheKey.build("numba", parts)

    def _bypass(self, reason: str, kind: str) -> None:
        _log().info("%s does without the cache: %s", self, reason)
        self._cache.note_bypass("numba", kind)

    def _refuse_if_asked(self, key: str, reason: str) -> None:
        if self._cache.settings.on_miss == "error":
            raise CacheMissError("numba", key, reason)


def keep_overloads(
    dispatcher: Any, description: bytes, cache: Cache | None = None, trusted: Sequence[str] = ()
) -> None:
    """Have the overloads of `dispatcher`, one of numba.njit's, kept in the store from now on.

    `description` is the canonical encoding of the computation: all that the function does and reads, but for the options
    of the dispatcher. Raises Unfingerprintable for options that have no encoding.
    """
    options = encode(dispatcher.targetoptions)
    dispatcher._cache = StoredOverloads(dispatcher.py_func, description, options, cache, trusted)


def _configuration() -> dict[str, object]:
    found = {name: getattr(config, name, None) for name in _CONFIGURATION}
    level = config.OPT  # a number that may also say that it is the level "max"
    return {**found, "OPT": int(level), "is_opt_max": bool(getattr(level, "is_opt_max", False))}


def _log() -> Logger:
    import logging

    return logging.getLogger("cachegraph")
