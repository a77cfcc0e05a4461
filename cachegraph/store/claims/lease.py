"""A claim among hosts that share a directory, where locks may not work and clocks may differ.

    <directory>/v1/l/kk/<key>.<generation>     kk: first two digits of the key; generation: decimal, from 1
    content := JSON {"host", "machine", "pid", "start", "since", "beat"}, of constant length

The file of the highest generation is the lease. It is created with O_EXCL, which has one winner
even where locks have two, and its holder counts `beat` up in it. A waiting process judges the lease
by its own monotonic clock: the holder is dead if the content has not changed for `ttl` seconds, or
if the holder was a process of this machine that has ended. Times of files and of other hosts are
never compared. A dead lease is succeeded, not removed: the process that creates the next generation
has the lease, so no two processes can both believe that they removed the same one. A file left
behind blocks nobody for longer than `ttl`. The content has no version: if it cannot be read, time
alone decides.

An interrupt may end a call between any two steps: a lease notes each file before it creates it, and
`release`, or dropping the lease, removes it.
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
from typing import Any

from cachegraph.named_tuples import NamedTuple
from cachegraph.processes import host_name, is_gone, machine, start_of
from cachegraph.store.claims.unkept import SUFFIX, UnkeptMark
from cachegraph.store.files import Oversized, read_file
from cachegraph.store.protocol import LARGEST_HOLDER, Holder
from cachegraph.store.trust import Guard, Untrusted

TTL = 10.0
_BEATS_PER_TTL = 5
_BEAT_DIGITS = 9
_GENERATIONS_TRIED = 4
_LONGEST_NUMBER = 10
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_UPDATE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class Host(NamedTuple):
    """The host of a process: its `name`, and the `machine` on which process numbers are unique."""

    name: str
    machine: str

    @classmethod
    def here(cls) -> Host:
        """Return this host."""
        return cls(host_name(), machine())


class Lease:
    """The claim whose generations are the files `path`.1, `path`.2 and so on, in the directory of `guard`.

    Creating the object does not access the disk. `clock` returns monotonic seconds; `host` is the
    host of this process.
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
        self._seen: tuple[int, bytes, float] | None = None  # generation, content, time of first sight
        self._held: _Generation | None = None

    def acquire(self) -> Holder | None:
        """Take the lease if it is free or its holder dead and return None, else return its holder.

        Raises OSError if the file cannot be created, and Unkept if the mark is present.
        """
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
        """Mark whether the last build could not be stored. Never raises OSError."""
        self._mark.put(unkept)

    def release(self) -> None:
        """Remove the lease and those that it succeeded; in a forked child, whose parent holds it, do nothing.

        May be called again after an interrupt.
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
        """Count the beat up if this process holds the lease."""
        if self._held is not None:
            self._held.beat()

    @property
    def seconds_between_beats(self) -> float:
        """Return the seconds between two beats of a holder."""
        return self._ttl / _BEATS_PER_TTL

    def _generations(self) -> list[int]:
        """Return the existing generations. Listing a directory makes a network client ask the server."""
        prefix = f"{self._path.name}."
        try:
            names = os.listdir(self._path.parent)
        except FileNotFoundError:
            return []
        numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        return [int(number) for number in numbers if number.isdecimal() and len(number) < _LONGEST_NUMBER]

    def _living(self, generation: int) -> Holder | None:
        """Return the holder of that generation, or None if it is dead.

        It also counts as dead if the file was removed although the client still lists it, or if no
        holder can have written it (too large, untrusted).
        """
        try:
            content = read_file(self._file(generation), self._guard, LARGEST_HOLDER)
        except (FileNotFoundError, Oversized, Untrusted):
            return None
        now = self._clock()
        if self._seen is None or self._seen[:2] != (generation, content):
            self._seen = generation, content, now
        if now - self._seen[2] > self._ttl:
            return None
        try:
            document = json.loads(content)
            gone = document["machine"] == self._host.machine and is_gone(document["pid"], document["start"])
            return None if gone else Holder.from_document(document)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):  # half written: wait for ttl
            return Holder()

    def _begin(self, generation: int) -> bool:
        """Create that generation; return False if another process was first. Raises OSError."""
        path = self._file(generation)
        self._guard.make_directory(path.parent)
        # Noted first: an interrupt may come as soon as the file exists.
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
    """The file of a generation that this process creates or holds."""

    def __init__(self, path: Path, generation: int, host: Host) -> None:
        self.generation = generation
        self.pid = os.getpid()
        self.pulse = _pulse()
        self._path = path
        self._document: dict[str, Any] = {
            "host": host.name,
            "machine": host.machine,
            "pid": self.pid,
            "start": _own_start(self.pid),
            "since": time.time(),
            "beat": "",
        }
        self._beats = 0

    def make(self, mode: int) -> None:
        """Create the file. Raises FileExistsError if another process was first, and OSError."""
        descriptor = os.open(self._path, _CREATE, mode)
        try:
            os.fchmod(descriptor, mode)
            os.write(descriptor, self._content())
        finally:
            os.close(descriptor)

    def beat(self) -> None:
        """Count the beat up in the file; do nothing if the file was removed meanwhile."""
        self._beats += 1
        with suppress(OSError):
            descriptor = os.open(self._path, _UPDATE)
            try:
                os.write(descriptor, self._content())
            finally:
                os.close(descriptor)

    def remove(self) -> None:
        """Remove the file if this process wrote it or nobody has written to it yet. Raises OSError."""
        content = read_file(self._path, None, LARGEST_HOLDER)
        if not content or self._is_own(content):
            os.unlink(self._path)

    def _is_own(self, content: bytes) -> bool:
        with suppress(ValueError, RecursionError):
            document = json.loads(content)
            return isinstance(document, dict) and {**document, "beat": ""} == self._document
        return False

    def _content(self) -> bytes:
        return json.dumps({**self._document, "beat": f"{self._beats:0{_BEAT_DIGITS}}"}).encode()


class _Pulse:
    """A thread that beats for all leases of this process as long as there are any.

    Signal handlers run only in the main thread, so nothing interrupts this one. It also removes a
    lease that was dropped without `release`, for example after an interrupt.
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
        """Return the seconds until the next beat; None if no lease is left, and the thread ends."""
        with self._lock:
            alive = [lease for ref in self._leases.values() if (lease := ref()) is not None]
            if not self._leases:
                self._thread = None
                return None
            return min((lease.seconds_between_beats for lease in alive), default=0.0)


_own_start = lru_cache(maxsize=1)(start_of)
_current: _Pulse | None = None


def _pulse() -> _Pulse:
    """Return the pulse of this process; a forked child inherits neither threads nor leases."""
    global _current
    if _current is None or _current.pid != os.getpid():
        _current = _Pulse()  # two threads may create two; each lease keeps its own
    return _current
