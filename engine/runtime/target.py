"""The target of this process: its triple, the CPU levels that it runs (cachegraph/object_code/cpu.py), and
how many threads."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache

from cachegraph.environment import settings_in_force, warn_once
from cachegraph.errors import SettingsError
from cachegraph.object_code.cpu import has_fma as has_fma
from cachegraph.object_code.cpu import levels_up_to, machine_levels
from cachegraph.object_code.cpu import vector_bits as vector_bits
from cachegraph.processes import is_worker_process


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
    """Return LLVM's name of this architecture, system and C library, x86_64-unknown-linux-gnu."""
    named = getattr(sys.implementation, "_multiarch", "")  # x86_64-linux-gnu; some builds have none
    return f"{platform.machine()}-unknown-linux-{named.rpartition('-')[2] or 'gnu'}"


def process_threads() -> int:
    """Return the most threads that one call uses: what CACHEGRAPH_NUM_THREADS says, else OMP_NUM_THREADS.

    If neither says it, that is one per processor that this process may use, but one in a worker process of
    multiprocessing, beside which others work.
    """
    settings, _ = settings_in_force()
    if settings.threads:
        return settings.threads
    common = os.environ.get("OMP_NUM_THREADS", "")
    if common.isdecimal() and int(common) > 0:
        return int(common)
    return 1 if is_worker_process() else _processors()


def _processors() -> int:
    """Return how many processors this process may use, or how many there are where nobody restricts it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
