"""The target of this process: its triple, and the CPU levels that it runs
(cachegraph/object_code/cpu.py)."""

from __future__ import annotations

from functools import cache

from cachegraph.environment import settings_in_force, warn_once
from cachegraph.errors import SettingsError
from cachegraph.object_code.cpu import levels_up_to, machine_levels
from cachegraph.object_code.llvm_library import TEXT_OUT, LLVMFunctions, with_text

LLVM = LLVMFunctions({"LLVMPY_GetProcessTriple": (None, TEXT_OUT)})


def runnable_levels() -> tuple[str, ...]:
    """Return the CPU levels to run code of, the best first: never empty, and none that the machine does
    not support."""
    settings, _ = settings_in_force()
    try:
        return levels_up_to(settings.cpu)
    except SettingsError as error:
        warn_once(f"the CPU level that is asked for is not used: {error}")
        return machine_levels()


def process_level() -> str:
    """Return the CPU level that this process compiles for: the best that it runs. It may differ between
    calls, because the settings may."""
    return runnable_levels()[0]


@cache
def process_triple() -> str:
    """Return LLVM's triple of this process: architecture, system and object format."""
    _, triple = with_text(LLVM.LLVMPY_GetProcessTriple)
    return triple
