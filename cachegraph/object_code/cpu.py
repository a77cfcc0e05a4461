"""CPU levels: the instruction sets that code can be compiled for, and which of them this machine
supports.

A level is a CPU name of LLVM. It stands for exactly that instruction set, without extras of the
host, so code compiled on one machine runs on any other of the same level.
"""

from __future__ import annotations

import platform
from ctypes import c_int
from functools import cache

from cachegraph.errors import SettingsError
from cachegraph.object_code.llvm_library import TEXT_OUT, LLVMFunctions, LLVMLibraryError, with_text

VARIABLE = "CACHEGRAPH_CPU"

LLVM = LLVMFunctions({"LLVMPY_GetHostCPUFeatures": (c_int, TEXT_OUT)})

_LEVELS = {"x86_64": ("x86-64", "x86-64-v3"), "aarch64": ("generic",)}
_LEVELS_WITH_FMA = {"x86_64": "x86-64-v3", "aarch64": "generic", "arm64": "generic"}
_V3_FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


def known_levels() -> tuple[str, ...]:
    """Return the levels that there are on this architecture, the weakest first."""
    return _LEVELS.get(platform.machine(), ("generic",))


def has_fma(level: str) -> bool:
    """Return True if code of `level` multiplies and adds in one instruction, with one rounding."""
    return _LEVELS_WITH_FMA.get(platform.machine()) == level


@cache
def machine_levels() -> tuple[str, ...]:
    """Return those of `known_levels` that this CPU and its system support, the best first."""
    levels = known_levels()
    return levels[::-1] if len(levels) > 1 and _has_v3() else levels[:1]


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


def _has_v3() -> bool:
    """Return True if LLVM finds all features of the level in this CPU and system."""
    try:
        return host_features().issuperset(_V3_FEATURES)
    except (ImportError, LLVMLibraryError):  # the features are unknown
        return False


def host_features() -> frozenset[str]:
    """Return the features, by LLVM's names, that this CPU and its system have; none if LLVM cannot tell.

    Raises ImportError or LLVMLibraryError without a usable llvmlite.
    """
    _, listed = with_text(LLVM.LLVMPY_GetHostCPUFeatures)
    return frozenset(feature[1:] for feature in listed.split(",") if feature.startswith("+"))
