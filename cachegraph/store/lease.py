"""The claim among hosts that share a directory and nothing else: neither locks that work, nor clocks that agree.

    <directory>/v1/l/kk/<key>.<generation>     kk: the first two digits of the key; generation: decimal, 1 first
    content := JSON {"host", "machine", "pid", "start", "since", "beat"}, of one length while its holder lives

The file of the highest generation is the lease. It is made with O_EXCL, which has one winner also where locks have two,
and its holder counts `beat` up in it. Whoever waits judges it by its own monotonic clock: a lease in which nothing
changed for `ttl` seconds is dead, as is one of a process of this machine that is gone; times of files and of other
hosts are never compared. The dead are succeeded, not removed: who makes the next generation has the lease, so no two
can both believe to have removed the same one. What is left behind blocks nobody for longer than `ttl`.
The content has no version: what cannot be read as it is judged by time alone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cachegraph.store.claims import MOST_SAID, Holder
from cachegraph.store.files import Oversized, read_file, set_mode
from cachegraph.store.processes import host_name, is_gone, machine, start_of
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
        self._own = 0
        self._content: dict[str, Any] = {}
        self._beat = 0
        self._pid = 0
        self._pulse: _Pulse | None = None

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
        """Remove the lease and those that it succeeded; in a forked child, whose parent holds it, do nothing."""
        if not self._own or self._pid != os.getpid():
            return
        if self._pulse is not None:
            self._pulse.remove(self)
        with suppress(OSError):
            os.unlink(self._file(self._own))
            for generation in self._generations():
                if generation < self._own:
                    os.unlink(self._file(generation))
        self._own = 0

    def beat(self) -> None:
        """Show that the holder lives. A lease that was cleared away meanwhile is let go of."""
        self._beat += 1
        with suppress(OSError):
            _write(os.open(self._file(self._own), _UPDATE), self._encoded())

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
        pid = os.getpid()
        name, where = self._host
        self._content = {
            "host": name,
            "machine": where,
            "pid": pid,
            "start": _own_start(pid),
            "since": time.time(),
        }
        path = self._file(generation)
        self._guard.make_directory(path.parent)
        mode = self._guard.trust.file_mode
        try:
            descriptor = os.open(path, _CREATE, mode)
        except FileExistsError:
            return False
        try:
            set_mode(descriptor, mode)
            _write(descriptor, self._encoded())
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise
        self._own, self._pid, self._pulse = generation, pid, _pulse()
        self._pulse.add(self)
        return True

    def _encoded(self) -> bytes:
        return json.dumps({**self._content, "beat": f"{self._beat:0{_BEAT_DIGITS}}"}).encode()

    def _file(self, generation: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{generation}")


class _Pulse:
    """One thread that beats for every lease of this process, while there are any."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._changed = threading.Condition()
        self._leases: list[Lease] = []
        self._running = False

    def add(self, lease: Lease) -> None:
        with self._changed:
            self._leases.append(lease)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="cachegraph-leases", daemon=True).start()

    def remove(self, lease: Lease) -> None:
        with self._changed:
            self._leases.remove(lease)
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._leases:
                pause = min(lease.seconds_between_beats for lease in self._leases)
                self._changed.wait_for(lambda: not self._leases, pause)
                for lease in self._leases:
                    lease.beat()
            self._running = False


_own_start = lru_cache(maxsize=1)(start_of)
_current: _Pulse | None = None


def _pulse() -> _Pulse:
    """This process's; a forked child has none of its parent's threads, nor its leases."""
    global _current
    if _current is None or _current.pid != os.getpid():
        _current = _Pulse()  # two threads may make two, and each lease stays with its own
    return _current


def _write(descriptor: int, content: bytes) -> None:
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
