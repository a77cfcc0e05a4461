"""The key of a kernel: what it computes, what compiles it, and for which machines."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from cachegraph.errors import SourceError
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.source import source_digest
from cachegraph.key import CacheKey
from cachegraph.toolchain import toolchain
from engine.runtime.container import ABI
from engine.runtime.target import compiled_levels, process_triple

KERNEL_VERSION = 1


def kernel_key(encoding: bytes) -> CacheKey:
    """The key of the kernel with this canonical encoding."""
    parts = {
        "scheme": encode(("kernel", KERNEL_VERSION)),
        "kernel": encoding,
        "code": _code_or_none(),
        "toolchain": encode_toolchain(),
        "target": _target(),
    }
    return CacheKey.build("kernel", parts)


def machine_key() -> CacheKey:
    """The key of the machine that runs programs in this process: its source follows from Python and numpy."""
    from engine.runtime.instructions import MACHINE_VERSION
    from engine.runtime.machine_source import machine_source

    return kernel_key(encode(("machine", MACHINE_VERSION, machine_source())))


@cache
def encode_toolchain() -> bytes:
    """The canonical encoding of the releases of what compiles."""
    return encode(toolchain())


@cache
def kernel_code() -> bytes:
    """Return the digests of the source that kernels are made and run by; raises SourceError if it cannot be read."""
    engine = Path(os.path.abspath(__file__)).parents[1]
    return b"".join(source_digest(engine / room) for room in ("lowering", "codegen", "runtime"))


def _code_or_none() -> bytes:
    """Without source nothing is looked up or kept (compiler.py), but kernels still need names."""
    try:
        return kernel_code()
    except SourceError:
        return b""


@cache
def _target() -> bytes:
    return encode((process_triple(), compiled_levels(), ABI))
