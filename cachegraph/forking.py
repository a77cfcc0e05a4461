"""Forks: a child process inherits the parent's locks as they were, but only the thread that forked.

A lock that another thread held stays locked in the child forever, and the data it guarded stays half
changed. So:

- Locks held while foreign code works (numba's compiler, LLVM, SQLite) are paused before a fork: the fork
  waits until that work ends, and no more begins. Parent and child then go on with consistent data. Pauses
  are taken in the order of `Rank`, which is the order in which one thread takes several of the locks, so
  there is no deadlock.
- The fork waits for modules that other threads are importing, since a child could not finish these imports.
  If it waited too long for one, the child forgets the module and imports it again.
- A lock for short work on a table is free in every child: `momentary_lock`.
- A child lets go of its copies of what only its parent holds: `leave_to_parent`.

A fork waits at most PATIENCE seconds; locks that it did not get by then are reset in the child. A process
with one thread does not wait.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from typing import Protocol

    class Pausable(Protocol):
        """Work that must not be going on while the process forks."""

        def pause(self, seconds: float) -> None:
            """Wait until no other thread is at work, and let none begin; give up after `seconds`."""

        def resume(self, in_child: bool) -> None:
            """Let threads work again, in the parent or in a child; also called after a pause that failed."""

    class Inherited(Protocol):
        """A resource of the parent that a child has a copy of, such as a locked open file."""

        def leave_to_parent(self) -> None:
            """Let go of the copy, in a forked child, so that the parent alone holds the resource."""


PATIENCE = 20.0
_PAUSE = 0.005
_GUARDED_PACKAGES = sys.stdlib_module_names | frozenset(
    {"cachegraph", "cryptography", "engine", "llvmlite", "numba", "platformdirs", "scipy", "sqlalchemy"}
)
"""Packages that cachegraph and engine import on first use, while other threads may fork."""

_WITH_HANDLERS = {"concurrent": "concurrent.futures.thread", "logging": "logging"}
"""Standard modules whose own fork handlers take locks, and which numba imports: package -> module."""
_THEIR_LOCKS = {"concurrent.futures.thread": "_global_shutdown_lock", "logging": "_lock"}
"""The locks that these handlers take before a fork and release in the parent."""


class Rank(IntEnum):
    """The order in which pauses are taken: the one in which a working thread takes several of the locks."""

    COMPILER = 0
    LINKER = 1
    LLVM = 2
    INDEX = 3


class PausableLock:
    """A reentrant lock that threads hold while they work."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._is_paused = False

    def pause(self, seconds: float) -> None:
        self._is_paused = self._lock.acquire(timeout=max(seconds, 0.0))

    def resume(self, in_child: bool) -> None:
        paused, self._is_paused = self._is_paused, False
        if paused:
            self._lock.release()
        elif in_child:
            _reset(self._lock)


_COMPILERS_LOCKS = {
    Rank.COMPILER: ("numba.core.compiler_lock", "global_compiler_lock._lock"),
    Rank.LLVM: ("llvmlite.binding.ffi", "lib._lock._lock"),
}
"""The lock that each thread working in numba or llvmlite holds: its module and attribute path."""

_pausable: dict[Rank, WeakSet[Pausable]] = {rank: WeakSet() for rank in Rank}
_inherited: WeakSet[Inherited] = WeakSet()
_momentary: WeakSet[threading.RLock] = WeakSet()
_paused: list[Pausable] = []
_is_hooked = False
_is_first = False


def pause_at_forks(work: Pausable, rank: Rank) -> None:
    """Pause `work` around every fork from now on, as long as another reference to it exists."""
    _hook()
    _pausable[rank].add(work)


def guard_builds() -> None:
    """Let forks wait for imports that other threads need to build something; call this before each build.

    Fork handlers run in the reverse order of their registration. If logging's own handler took logging's lock
    first, the fork would wait in vain for an import that logs. So modules with such handlers are imported
    before ours is registered.
    """
    global _is_first
    if _is_first:
        return
    for name in _WITH_HANDLERS.values():
        importlib.import_module(name)
    _register()
    _is_first = True


def guard_imports() -> None:
    """Have every fork from now on wait for the modules of these packages that other threads are importing."""
    _hook()


def leave_to_parent(what: Inherited) -> None:
    """Let every child that is forked from now on let go of its copy of `what`."""
    _hook()
    _inherited.add(what)


def momentary_lock() -> threading.RLock:
    """Return a lock for short work that leaves consistent data at every step; it is free in a forked child.

    It is reentrant: a signal handler may enter the same work while it is under way.
    """
    _hook()
    lock = threading.RLock()
    _momentary.add(lock)
    return lock


def _hook() -> None:
    global _is_hooked
    if not _is_hooked:
        _is_hooked = True
        _register()


def _register() -> None:
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    """Pause all work, at a moment when no other thread is importing a guarded module."""
    if _paused:  # registered twice
        return
    absent = [name for name in _THEIR_LOCKS if name not in sys.modules]
    deadline = time.monotonic() + PATIENCE
    _pause_all(deadline)
    while _imports_elsewhere() and time.monotonic() < deadline:
        _resume_all(in_child=False)  # the import may need paused work
        time.sleep(_PAUSE)
        _pause_all(deadline)
    _take_locks_of(absent, deadline)


def _take_locks_of(modules: list[str], deadline: float) -> None:
    """Take the locks of those of the modules that other threads have imported since this fork began.

    Their handlers were registered too late to take them before the fork, and release them behind it.
    """
    for name in modules:
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            getattr(module, _THEIR_LOCKS[name]).acquire(timeout=max(deadline - time.monotonic(), 0.0))


def _in_parent() -> None:
    _resume_all(in_child=False)


def _in_child() -> None:
    _resume_all(in_child=True)
    _forget_begun_imports()
    for lock in list(_momentary):
        _reset(lock)
    for what in list(_inherited):
        what.leave_to_parent()


def _pause_all(deadline: float) -> None:
    for rank in Rank:
        for work in [*_pausable[rank], *_compilers_locks(rank)]:
            # Noted first: an interrupt may come at any point, and every pause taken is given back.
            _paused.append(work)
            work.pause(deadline - time.monotonic())


def _compilers_locks(rank: Rank) -> Iterator[PausableLock]:
    """Yield the lock of that rank of a compiler that is imported, whoever uses it."""
    module, path = _COMPILERS_LOCKS.get(rank, ("", ""))
    if module in sys.modules:
        with suppress(AttributeError):  # its import has just begun, and is waited for
            yield PausableLock(attrgetter(path)(sys.modules[module]))


def _resume_all(in_child: bool) -> None:
    while _paused:
        _paused.pop().resume(in_child)


def _imports_elsewhere() -> bool:
    """Return True if another thread is importing a module worth waiting for.

    A module with fork handlers of its own is not: this fork may hold the lock that its import needs.
    """
    return any(name.partition(".")[0] not in _WITH_HANDLERS for name in _imported_elsewhere())


def _imported_elsewhere() -> list[str]:
    """Return the guarded modules that other threads are importing.

    A thread holds a lock of the module's name from before it searches for the module; only importlib knows of
    these locks.
    """
    return [
        name
        for name, reference in list(_module_locks().items())
        if name.partition(".")[0] in _GUARDED_PACKAGES
        and getattr(reference(), "owner", None) not in (None, threading.get_ident())
    ]


def _forget_begun_imports() -> None:
    """Forget, in a child, the modules that other threads of the parent had begun to import: they are imported
    again."""
    for name in _imported_elsewhere():
        _module_locks().pop(name, None)
        sys.modules.pop(name, None)


def _module_locks() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    return found


def _reset(lock: threading.RLock) -> None:
    """Free `lock`, as Python's own modules do in a child; there is no public name for it."""
    lock._at_fork_reinit()  # type: ignore[attr-defined]
