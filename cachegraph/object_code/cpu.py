"""CPU levels: the instruction sets that code can be compiled for, and which of them this machine
supports.

A level is a CPU name of LLVM. It stands for exactly that instruction set, without extras of the
host, so code compiled on one machine runs on any other of the same level.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache

from cachegraph.errors import SettingsError

VARIABLE = "CACHEGRAPH_CPU"

_LEVELS = {"x86_64": ("x86-64", "x86-64-v3", "x86-64-v4"), "aarch64": ("generic",)}
_LEVELS_WITH_FMA = {"x86_64": ("x86-64-v3", "x86-64-v4"), "aarch64": ("generic",), "arm64": ("generic",)}
_VECTOR_BITS = {"x86-64-v3": 256, "x86-64-v4": 512}
_V3_FEATURES = ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
_V4_FEATURES = (*_V3_FEATURES, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_FEATURES: dict[str, tuple[str, ...]] = {"x86-64-v3": _V3_FEATURES, "x86-64-v4": _V4_FEATURES}
"""Features, by Linux's names, that a level needs beside those of every CPU of its architecture."""


def known_levels() -> tuple[str, ...]:
    """Return the levels that there are on this architecture, the weakest first."""
    return _LEVELS.get(platform.machine(), ("generic",))


def has_fma(level: str) -> bool:
    """Return True if code of `level` multiplies and adds in one instruction, with one rounding."""
    return level in _LEVELS_WITH_FMA.get(platform.machine(), ())


def vector_bits(level: str) -> int:
    """Return the bits of a vector register of `level`."""
    return _VECTOR_BITS.get(level, 128)


@cache
def machine_levels() -> tuple[str, ...]:
    """Return those of `known_levels` that this CPU and its system support, the best first."""
    weakest, *better = known_levels()
    found = host_features() if better else frozenset()
    return (*(level for level in better[::-1] if found.issuperset(_FEATURES[level])), weakest)


def levels_up_to(asked: str) -> tuple[str, ...]:
    """Return those of `machine_levels` that are not above the level `asked`; all if it is empty.

    Raises SettingsError for a level that this machine does not support: its code would kill the process.
    """
    levels = machine_levels()
    if not asked:
        return levels
    if asked not in levels:
        raise SettingsError(VARIABLE, asked, levels)
    return levels[levels.index(asked) :]


def host_features() -> frozenset[str]:
    """Return the features, by Linux's names, that this CPU and its system have; none if nobody can tell.

    Linux leaves out those whose registers it does not save. LLVM would have to be opened to say the same.
    """
    with suppress(OSError), open("/proc/cpuinfo", "rb") as listing:
        for line in listing:
            name, _, flags = line.partition(b":")
            if name.strip() == b"flags":
                return frozenset(flags.decode("ascii", "replace").split())
    return frozenset()
