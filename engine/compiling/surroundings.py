"""The surroundings of a graph in keys: rewrites, engine source, tools, target; and keys without a graph.

No part of the language is imported for this: a program that is found needs none.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

from cachegraph.cache import default_cache
from cachegraph.errors import SourceError, Unfingerprintable
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.source import imported_source, source_digest
from cachegraph.key import CacheKey
from cachegraph.toolchain import toolchain, version_or_absent
from engine.compiling.mode import is_rewriter
from engine.runtime.container import ABI
from engine.runtime.target import process_level, process_triple

ENGINE_VERSION = 1
KERNEL_VERSION = 1
_ENGINE = Path(os.path.abspath(__file__)).parents[1]


def program_key(description: bytes, rewrites: object, options: object) -> CacheKey:
    """Return the key of a program that runs compiled functions, one after the other, and other code between
    them: `description` describes all that it was made from.

    Raises SourceError if the engine's source cannot be read, or changed since this process began.
    """
    parts = {
        "scheme": encode(("staged program", ENGINE_VERSION)),
        "description": description,
        "rewrites": encode(rewrites),
        "code": engine_code(),
        "options": encode(options),
        "toolchain": encode_tools(),
        "target": program_target(),
    }
    return CacheKey.build("function", parts)


def kernel_key(encoding: bytes, level: str) -> CacheKey:
    """Return the key of the kernel with this canonical encoding, compiled for the CPU level `level`."""
    parts = {
        "scheme": encode(("kernel", KERNEL_VERSION)),
        "kernel": encoding,
        "code": _kernel_code_or_none(),
        "toolchain": encode(toolchain()),
        "target": _kernel_target(level),
    }
    return CacheKey.build("kernel", parts)


def describe_rewrites(query: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names that choose the rewrites; which rewrites have them follows from the engine's source.

    Raises Unfingerprintable for a rewriter instead of a query, and if somebody else registered rewrites: no
    key describes their source.
    """
    if is_rewriter(query):
        advice = "no key describes a rewriter; give a query as optimizer to have functions cached"
        raise Unfingerprintable(f"rewriter {query}", advice, ("rewrites", "optimizer"))
    # Before anything imports the pipeline nobody can have registered a rewrite.
    optdb = getattr(sys.modules.get("engine.rewriting.pipeline"), "optdb", None)
    foreign = optdb.foreign() if optdb is not None else []
    if foreign:
        advice = "no key describes rewrites that others register; register none to have functions cached"
        raise Unfingerprintable(f"rewrite {foreign[0]}", advice, ("rewrites", "optdb"))
    tags = [tuple(sorted(chosen)) for chosen in (query.include, query.require, query.exclude)]
    return (*tags, (str(query.position_cutoff),))


@cache
def engine_code() -> bytes:
    """Return the digest of the engine's source: editing an implementation is a miss.

    Raises SourceError if it cannot be read, or was changed since this process began.
    """
    return imported_source(_ENGINE, default_cache().source_records)


@cache
def kernel_code() -> bytes:
    """Return the digests of the source that makes and runs kernels; raises SourceError if unreadable."""
    return b"".join(source_digest(_ENGINE / room) for room in ("lowering", "codegen", "runtime"))


@cache
def encode_tools() -> bytes:
    """Return the releases of what compiles and of what computes constants: the toolchain has numpy, but
    not SciPy."""
    return encode({**toolchain(), "scipy": version_or_absent("scipy")})


def _kernel_code_or_none() -> bytes:
    """Return kernel_code(), or nothing: without source the cache is off (lookup.py), but kernels still
    need names."""
    try:
        return kernel_code()
    except SourceError:
        return b""


def program_target() -> bytes:
    """Return what a program depends on: it runs on any CPU, but names kernels of one system and CPU level."""
    return encode((sys.platform, platform.machine(), process_level()))


@cache
def _kernel_target(level: str) -> bytes:
    return encode((process_triple(), level, ABI))
