"""What this process can run: its triple, and which of the CPU levels that kernels are compiled for.

A level is a name LLVM knows as a CPU; it stands for exactly that instruction set, never for the host's extras, so
what one machine compiled another of the same level runs.
"""

from __future__ import annotations

import platform
from functools import cache

_LEVELS = {
    "x86_64": ("x86-64", "x86-64-v3"),
    "amd64": ("x86-64", "x86-64-v3"),
    "arm64": ("generic",),
    "aarch64": ("generic",),
}
_V3_FEATURES = ("AVX", "AVX2", "BMI", "BMI2", "F16C", "FMA3", "LZCNT", "MOVBE")


def compiled_levels() -> tuple[str, ...]:
    """Return the levels to compile for on this architecture, the weakest first."""
    return _LEVELS.get(platform.machine().lower(), ("generic",))


@cache
def runnable_levels() -> tuple[str, ...]:
    """Return those of `compiled_levels` that this CPU has, the best first; never empty."""
    from numpy._core._multiarray_umath import __cpu_features__ as features  # type: ignore[import-not-found]

    return tuple(level for level in reversed(compiled_levels()) if _is_runnable(level, features))


def _is_runnable(level: str, features: dict[str, bool]) -> bool:
    if level != "x86-64-v3":
        return True
    if "X86_V3" in features:
        return features["X86_V3"]
    return all(features.get(name, False) for name in _V3_FEATURES)


@cache
def process_triple() -> str:
    """Return LLVM's name of this process's architecture, system and object format."""
    import llvmlite.binding as llvm

    triple: str = llvm.get_process_triple()
    return triple
