"""The claim among hosts that share a directory and nothing else: neither locks that work, nor clocks that agree.

    <directory>/v1/l/kk/<key>.<generation>     kk: the first two digits of the key; generation: decimal, 1 first
    content := JSON {"host", "machine", "pid", "start", "since", "beat"}, of one length while its holder lives

The file of the highest generation is the lease. It is made with O_EXCL, which has one winner also where locks have two,
and its holder counts `beat` up in it. Whoever waits judges it by its own monotonic clock: a lease in which nothing
changed for `ttl` seconds is dead, as is one of a process of this machine that is gone; times of files and of other
hosts are never compared. The dead are succeeded, not removed: who makes the next generation has the lease, so no two
can both believe to have removed the same one. What is left behind blocks nobody for longer than `ttl`.
The content has no version: what cannot be read as it is judged by time alone. An interrupt may end a call between any two
steps: what a lease is about to make is noted first, and removed by `release`, or when the lease is dropped.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from cachegraph.store.claims.claims import MOST_SAID, Holder
from cachegraph.store.claims.processes import host_name, is_gone, machine, start_of
from cachegraph.store.shared.files import Oversized, read_file, set_mode
from cachegraph.store.trust import Guard, Untrusted
from cachegraph.store.unkept import SUFFIX, UnkeptMark

TTL = 10.0
_BEATS_PER_TTL = 5
_BEAT_DIGITS = 9
_GENERATIONS_TRIED = 4
_LONGEST_NUMBER = 10
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_UPDATE = os.O_WRONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class Host(NamedTuple):
    """How a process is named in a lease: the `name` of its host, and the `machine` on which its number means it."""

    name: str
    machine: str

    @classmethod
    def here(cls) -> Host:
        """Return this host."""
        return cls(host_name(), machine())


class Lease:
    """The claim whose generations are `path` with a number behind, in the directory of `guard`. Making one touches nothing.

    `clock` gives seconds that only go forward; `host` is where this process runs.
    """

    def __init__(
        self,
        path: Path,
        guard: Guard,
        ttl: float = TTL,
        clock: Callable[[], float] = time.monotonic,
        host: Host | None = None,
    ) -> None:
        self._path = path
        self._guard = guard
        self._mark = UnkeptMark(path.with_name(f"{path.name}{SUFFIX}"), guard)
        self._ttl = ttl
        self._clock = clock
        self._host = host or Host.here()
        self._seen: tuple[int, bytes, float] | None = None  # generation, content, when that was first seen
        self._held: _Generation | None = None

    def acquire(self) -> Holder | None:
        """Take the lease if it is free or its holder dead, else return who has it; raises OSError, and Unkept."""
        self._mark.check()
        generation = max(self._generations(), default=0)
        holder = self._living(generation) if generation else None
        for _ in range(_GENERATIONS_TRIED):
            if holder is not None:
                return holder
            generation += 1
            if self._begin(generation):
                return None
            holder = self._living(generation)
        return Holder()

    def mark(self, unkept: bool) -> None:
        """Have the mark beside the lease say whether what was built could not be kept; never raises OSError."""
        self._mark.put(unkept)

    def release(self) -> None:
        """Remove the lease and those that it succeeded; in a forked child, whose parent holds it, do nothing.

        May be called again after it was interrupted.
        """
        held = self._held
        if held is None or held.pid != os.getpid():
            return
        held.pulse.remove(held)
        with suppress(OSError):
            held.remove()
            for generation in self._generations():
                if generation < held.generation:
                    os.unlink(self._file(generation))
        self._held = None

    def beat(self) -> None:
        """Show that the holder lives, if this lease is held."""
        if self._held is not None:
            self._held.beat()

    @property
    def seconds_between_beats(self) -> float:
        """How often a holder shows that it lives."""
        return self._ttl / _BEATS_PER_TTL

    def _generations(self) -> list[int]:
        """The generations there are. Listing makes a network's client ask the server."""
        prefix = f"{self._path.name}."
        try:
            names = os.listdir(self._path.parent)
        except FileNotFoundError:
            return []
        numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return [int(number) for number in numbers if number.isdecimal() and len(number) < _LONGEST_NUMBER]

    def _living(self, generation: int) -> Holder | None:
        """The holder of that generation; None if it is dead, or gone although a client goes on showing its name.

        What a holder has not written, or may not have, is nobody's: it is succeeded as the dead are.
        """
        try:
            content = read_file(self._file(generation), self._guard, MOST_SAID)
        except (FileNotFoundError, Oversized, Untrusted):
            return None
        now = self._clock()
        if self._seen is None or self._seen[:2] != (generation, content):
            self._seen = generation, content, now
        if now - self._seen[2] > self._ttl:
            return None
        try:
            said = json.loads(content)
            gone = said["machine"] == self._host.machine and is_gone(said["pid"], said["start"])
            return None if gone else Holder.from_document(said)
        except (
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
        ):  # half written: time will tell
            return Holder()

    def _begin(self, generation: int) -> bool:
        """Make that generation, and return whether this process did; raises OSError."""
        path = self._file(generation)
        self._guard.make_directory(path.parent)
        # Noted first: an interrupt may come as soon as it is made.
        held = self._held = _Generation(path, generation, self._host)
        try:
            held.make(self._guard.trust.file_mode)
        except FileExistsError:
            self._held = None
            return False
        except OSError:
            with suppress(OSError):
                held.remove()
            self._held = None
            raise
        held.pulse.add(held, self)
        return True

    def _file(self, generation: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{generation}")


class _Generation:
    """A generation that this process makes, or holds: its file, and what that says."""

    def __init__(self, path: Path, generation: int, host: Host) -> None:
        self.generation = generation
        self.pid = os.getpid()
        self.pulse = _pulse()
        self._path = path
        self._said: dict[str, Any] = {
            "host": host.name,
            "machine": host.machine,
            "pid": self.pid,
            "start": _own_start(self.pid),
            "since": time.time(),
            "beat": "",
        }
        self._beats = 0

    def make(self, mode: int) -> None:
        """Make the file; raises FileExistsError if another was first, and OSError."""
        descriptor = os.open(self._path, _CREATE, mode)
        try:
            set_mode(descriptor, mode)
            os.write(descriptor, self._content())
        finally:
            os.close(descriptor)

    def beat(self) -> None:
        """Count up in the file. A lease that was cleared away meanwhile is let go of."""
        self._beats += 1
        with suppress(OSError):
            descriptor = os.open(self._path, _UPDATE)
            try:
                os.write(descriptor, self._content())
            finally:
                os.close(descriptor)

    def remove(self) -> None:
        """Remove the file, if it is this process's or has not yet said whose it is; raises OSError."""
        content = read_file(self._path, None, MOST_SAID)
        if not content or self._is_own(content):
            os.unlink(self._path)

    def _is_own(self, content: bytes) -> bool:
        with suppress(ValueError, RecursionError):
            said = json.loads(content)
            return isinstance(said, dict) and {**said, "beat": ""} == self._said
        return False

    def _content(self) -> bytes:
        return json.dumps({**self._said, "beat": f"{self._beats:0{_BEAT_DIGITS}}"}).encode()


class _Pulse:
    """One thread that beats for every lease of this process, while there are any.

    Signal handlers run in the main thread alone, so this one is never interrupted. A lease that was dropped without
    `release`, as when an interrupt ended that, is removed here.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._leases: dict[_Generation, weakref.ref[Lease]] = {}
        self._changed: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, held: _Generation, lease: Lease) -> None:
        with self._lock:
            self._leases[held] = weakref.ref(lease)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="cachegraph-leases", daemon=True)
                self._thread.start()

    def remove(self, held: _Generation) -> None:
        self._leases.pop(held, None)
        self._changed.put(None)

    def _run(self) -> None:
        while (pause := self._pause()) is not None:
            with suppress(Empty):
                self._changed.get(timeout=pause)
            for held, lease in list(self._leases.items()):
                if lease() is None:
                    self._leases.pop(held, None)
                    with suppress(OSError):
                        held.remove()
                elif held in self._leases:
                    held.beat()

    def _pause(self) -> float | None:
        """Seconds until the next beat; None when there is nothing to beat for, and this thread ends."""
        with self._lock:
            alive = [lease for ref in self._leases.values() if (lease := ref()) is not None]
            if not self._leases:
                self._thread = None
                return None
            return min((lease.seconds_between_beats for lease in alive), default=0.0)


_own_start = lru_cache(maxsize=1)(start_of)
_current: _Pulse | None = None


def _pulse() -> _Pulse:
    """This process's; a forked child has none of its parent's threads, nor its leases."""
    global _current
    if _current is None or _current.pid != os.getpid():
        _current = _Pulse()  # two threads may make two, and each lease stays with its own
    return _current
