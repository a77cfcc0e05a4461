"""The entries of one function's overloads: their keys, what they store, and how they are read.

The key describes everything that the code depends on, including what numba's own keys leave out:

    function    what the caller says the computation is: canonical bytes
    signature   the types of the arguments, and of the result if it was asked for (fingerprint/numba_types.py)
    code        what others have registered with numba (fingerprint/extensions.py)
    options     of the dispatcher, and of numba's configuration
    toolchain   Python, numpy, numba, llvmlite
    target      numba's magic tuple: triple, CPU, features

An overload is one entry, written in one transaction and checked before it is read. If numba cannot
cache a function, the reason is stored as an entry, so that other processes do not wait to find it
out again.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from numba.core import config, sigutils

from cachegraph.cache import Artifact, Cache, Found, default_cache
from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.extensions import encode_extensions
from cachegraph.key import CacheKey
from cachegraph.logger import logger
from cachegraph.numba_cache.compiled import (
    CythonFunction,
    NotStorable,
    Stored,
    pack_overload,
    rebuild_overload,
    unpack_refusal,
)
from cachegraph.toolchain import toolchain

SCHEME = 1
_CONFIGURATION = (
    *("LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DISABLE_INTEL_SVML", "USING_SVML", "BOUNDSCHECK"),
    *("LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS", "DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES"),
    *("NRT_STATS", "PARFOR_MAX_TUPLE_SIZE", "DEBUG_NRT", "DEBUG_JIT"),
)
"""The settings of numba, besides OPT, that compiled code depends on; None where a release lacks one."""
_BITCODE = "bitcode"


class OverloadEntries:
    """The entries of the overloads of one function.

    `description` is the canonical encoding of the computation, `options` that of the dispatcher's options.
    Signatures may have types of numba and of the `trusted` packages; the description covers the source of the
    `described` ones. `address_of` maps global variables of the code to the C functions whose addresses they
    hold (pack_overload). `by_python` is False for functions that only compiled functions call.
    """

    def __init__(
        self,
        description: bytes,
        options: bytes = b"",
        cache: Cache | None = None,
        trusted: Sequence[str] = (),
        described: Collection[str] = (),
        address_of: Callable[[str], CythonFunction | None] | None = None,
        *,
        by_python: bool = True,
    ) -> None:
        self._parts = {
            "scheme": encode(("numba", SCHEME)),
            "function": description,
            "toolchain": encode(toolchain()),
        }
        self._options = options
        self._given = cache
        self._trusted = tuple(trusted)
        self._described = described
        self._address_of = address_of
        self._by_python = by_python

    @property
    def cache(self) -> Cache:
        """The cache that holds the entries."""
        return self._given or default_cache()

    def key(self, sig: Any, codegen: Any) -> CacheKey | None:
        """Return the key for `sig`; None, counted as a bypass, if part of it has no encoding."""
        arguments, result = sigutils.normalize_signature(sig)
        try:
            signature = encode((tuple(arguments), result))
            code = encode_extensions(self._described)
        except Unfingerprintable as error:
            self.bypass(str(error), "unfingerprintable")
            return None
        target = encode(tuple(map(str, codegen.magic_tuple())))
        options = encode((self._options, configuration()))
        parts = {**self._parts, "signature": signature, "code": code, "options": options, "target": target}
        return CacheKey.build("numba", parts)

    def artifact(self, key: CacheKey, compiled: Any, seconds: float, name: str) -> Artifact:
        """Return the artifact of `compiled`, a CompileResult that took `seconds`; raises NotStorable."""
        payload, bitcode = pack_overload(
            compiled, key.confirmation.hex(), self._trusted, self._address_of, by_python=self._by_python
        )
        blobs = {_BITCODE: bitcode} if bitcode else {}
        return Artifact(payload, blobs, {"compile": seconds}, f"{name}{compiled.signature}")

    def read(self, payload: bytes, sig: Any) -> Stored | NotStorable:
        """Return the overload in an entry for `sig`, or the refusal stored instead; raises as Stored.read
        does."""
        arguments, _ = sigutils.normalize_signature(sig)
        return unpack_refusal(payload) or Stored.read(payload, arguments, self._trusted)

    def read_for_numba(self, payload: bytes, sig: Any) -> Stored | NotStorable:
        """Return what `read` does; also raises OverloadFormatError for code that needs what this process
        lacks."""
        found = self.read(payload, sig)
        if isinstance(found, Stored):
            found.refuse_unresolved()
        return found

    def rebuild(self, key: CacheKey, found: Found[Any], stored: Stored, target: Any, globals_: Any) -> Any:
        """Return the CompileResult that numba would load; None, logged, if that fails."""
        bitcode = stored.bitcode or self.cache.read_blob(found.blobs.get(_BITCODE, ""))
        try:
            if bitcode is None:
                raise LookupError("its bitcode is not there")
            return rebuild_overload(stored, bitcode, key.confirmation.hex(), target, globals_)
        except Exception as error:
            logger("cachegraph").warning(
                "the numba entry %s cannot be used: %s; it is compiled again", key.hex, error
            )
            return None

    def bypass(self, reason: str, kind: str) -> None:
        """Count and log a compilation by numba without the cache."""
        logger("cachegraph").info("numba compiles without the cache: %s", reason)
        self.cache.note_bypass("numba", kind)


def configuration() -> dict[str, object]:
    """Return the current settings of numba that compiled code depends on."""
    found = {name: getattr(config, name, None) for name in _CONFIGURATION}
    level = config.OPT  # a number that may also be marked as the level "max"
    found["BOUNDSCHECK"] = bool(config.BOUNDSCHECK)  # the options in force show a value of 0
    return {**found, "OPT": int(level), "is_opt_max": bool(getattr(level, "is_opt_max", False))}
