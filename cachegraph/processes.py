"""Identities of processes, on this machine and elsewhere; a test whether one has ended; when this one began.

A process number alone says little: the same host uses it again, and on another host it means
another process. So a process is identified by its machine, its number and its start time as the
kernel counts it.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NAMESPACE = "/proc/self/ns/pid"
_STATE, _START = 0, 19  # fields of /proc/<pid>/stat after the name, which may hold anything and ends with ")"
_IMPORTED = time.time()
_IMPORTER = os.getpid()


def host_name() -> str:
    """Return the name of this host, for people."""
    return os.uname().nodename


def machine() -> str:
    """Return a text that is equal for two processes only if they see each other's numbers.

    It holds the host, the boot and the namespace of process numbers.
    """
    return f"{host_name()} {_boot()}"


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the id of the running kernel, the same in all containers; empty if it is unknown."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def start_of(pid: int) -> str:
    """Return when the process began, as the kernel writes it; empty if that is unknown."""
    fields = _fields(pid)
    return fields[_START] if len(fields) > _START else ""


def is_gone(pid: int, start: str) -> bool:
    """Return True if the process of this machine that began at `start` has certainly ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's process, or no answer
        pass
    fields = _fields(pid)
    if len(fields) <= _START:
        return False
    return fields[_STATE] in ("Z", "X") or (bool(start) and fields[_START] != start)


@lru_cache(maxsize=1)
def began() -> float:
    """Return when this process, or the one it was forked from, began (seconds since 1970).

    The kernel counts starts in clock ticks, of 10 ms; the end of the tick is returned. So a file that was
    written just before the process started is older. One that is written after the first import is younger,
    although a file's time may lag behind the clock by a tick. Where the kernel does not tell, this is when
    the module was imported.
    """
    try:
        start = (int(start_of(_IMPORTER)) + 1) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - start
    except (AttributeError, OSError, ValueError):  # not Linux
        return _IMPORTED
    return min(_IMPORTED, time.time() - age)


def _fields(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return the id of this boot and this pid namespace; empty if they are unknown."""
    try:
        return f"{boot_id()} {os.readlink(_NAMESPACE)}" if boot_id() else ""
    except OSError:
        return ""
