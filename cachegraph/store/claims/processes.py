"""Which process this is, to others on this machine and elsewhere; and whether one that left its name still lives.

A process number alone says little: it is used again on the same host, and means another process on another one. So a
process is named by its machine, its number and when it began, as the kernel counts that.
"""

from __future__ import annotations

import os
from functools import lru_cache

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NAMESPACE = "/proc/self/ns/pid"
_STATE, _START = 0, 19  # fields of /proc/<pid>/stat after the name, which may hold anything and ends with ")"


def host_name() -> str:
    """Return the name of this host, for people."""
    return os.uname().nodename if hasattr(os, "uname") else ""


def machine() -> str:
    """Return what is equal for two processes only if they see each other's numbers: host, boot, and pid namespace."""
    return f"{host_name()} {_boot()}"


def start_of(pid: int) -> str:
    """Return when the process began, as the kernel writes it; empty where that cannot be had."""
    fields = _fields(pid)
    return fields[_START] if len(fields) > _START else ""


def is_gone(pid: int, start: str) -> bool:
    """Return whether the process of this machine that began at `start` has certainly ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another user's, or there is no telling
        pass
    fields = _fields(pid)
    if len(fields) <= _START:
        return False
    return fields[_STATE] in ("Z", "X") or (bool(start) and fields[_START] != start)


def _fields(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


@lru_cache(maxsize=1)
def _boot() -> str:
    """The same for all processes that number processes alike, until the machine is started anew."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink(_NAMESPACE)}"
    except OSError:
        return ""
