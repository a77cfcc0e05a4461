"""Identities of processes, on this machine and elsewhere; a test whether one has ended; when this one began.

A process number alone says little: the same host uses it again, and on another host it means
another process. So a process is identified by its machine, its number and its start time as the
system tells it: Linux in /proc, without any import, other systems through psutil.
"""

from __future__ import annotations

import os
import sys
import time
from functools import lru_cache

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_NAMESPACE = "/proc/self/ns/pid"
_STATE, _START = 0, 19  # fields of /proc/<pid>/stat after the name, which may hold anything and ends with ")"
_IS_LINUX = sys.platform == "linux"
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


def is_worker_process() -> bool:
    """Return True in a process that multiprocessing started."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


def start_of(pid: int) -> str:
    """Return when the process began, as the system tells it; empty if that is unknown."""
    if not _IS_LINUX:
        return _Elsewhere.start_of(pid)
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
    if not _IS_LINUX:
        return _Elsewhere.is_gone(pid, start)
    fields = _fields(pid)
    if len(fields) <= _START:
        return False
    return fields[_STATE] in ("Z", "X") or (bool(start) and fields[_START] != start)


@lru_cache(maxsize=1)
def began() -> float:
    """Return when this process, or the one it was forked from, began (seconds since 1970).

    Linux counts starts in clock ticks, of 10 ms; the end of the tick is returned. So a file that was
    written just before the process started is older. One that is written after the first import is younger,
    although a file's time may lag behind the clock by a tick. Where nobody tells, this is when the module was
    imported.
    """
    try:
        if not _IS_LINUX:
            return min(_IMPORTED, float(start_of(_IMPORTER)))
        start = (int(start_of(_IMPORTER)) + 1) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - start
    except (AttributeError, OSError, ValueError):  # no /proc, or no psutil
        return _IMPORTED
    return min(_IMPORTED, time.time() - age)


class _Elsewhere:
    """Processes of systems without /proc, as psutil finds them; without psutil nothing is known."""

    @staticmethod
    def start_of(pid: int) -> str:
        try:
            from psutil import Error, Process
        except ImportError:
            return ""
        try:
            return repr(float(Process(pid).create_time()))
        except (Error, ValueError, OverflowError):
            return ""

    @staticmethod
    def is_gone(pid: int, start: str) -> bool:
        try:
            from psutil import STATUS_ZOMBIE, Error, NoSuchProcess, Process
        except ImportError:
            return False
        try:
            process = Process(pid)
            return process.status() == STATUS_ZOMBIE or (
                bool(start) and repr(float(process.create_time())) != start
            )
        except NoSuchProcess:
            return True
        except (Error, ValueError, OverflowError):
            return False


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
