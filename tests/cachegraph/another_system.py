"""A process that believes that it runs on another system, without what that system lacks.

    python another_system.py SYSTEM PROGRAM ARGUMENT...

SYSTEM is darwin or win32. /proc does not exist then, and neither do the functions that only Linux has; on
win32 neither do the modules and functions of POSIX.
"""

from __future__ import annotations

import builtins
import importlib.abc
import os
import sys
import time
from typing import Any

LINUX_NAMES = {os: ["sched_getaffinity", "sched_setaffinity"], time: ["CLOCK_BOOTTIME"]}
POSIX_NAMES = (
    "fork getuid geteuid getgid fchmod uname register_at_fork statvfs pread pwrite O_NOFOLLOW O_CLOEXEC"
)
POSIX_MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "_posixsubprocess")


class NoSuchModules(importlib.abc.MetaPathFinder):
    """Refuses to find modules of POSIX."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def become(system: str) -> None:
    """Take away from this process what `system` does not have."""
    import psutil  # it asks at import which system it is on, and here that is Linux

    sys.platform = system
    for owner, names in LINUX_NAMES.items():
        for name in names:
            delattr(owner, name)
    listed = psutil.disk_partitions
    psutil.disk_partitions = lambda all: [mount._replace(opts=f"{mount.opts},local") for mount in listed(all)]
    hide_proc(psutil)
    if system == "win32":
        os.name = "nt"
        for name in POSIX_NAMES.split():
            delattr(os, name)
        for name in POSIX_MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, NoSuchModules())


def hide_proc(psutil: Any) -> None:
    """Make /proc unreadable for everybody but `psutil`."""
    opened = builtins.open

    def open_elsewhere(file: Any, *arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if str(file).startswith("/proc") and not caller.startswith(psutil.__name__):
            raise FileNotFoundError(2, "No such file or directory", str(file))
        return opened(file, *arguments, **options)

    builtins.open = open_elsewhere


if __name__ == "__main__":
    become(sys.argv[1])
    program = sys.argv[2]
    sys.argv[1:] = sys.argv[3:]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
