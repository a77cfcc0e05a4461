"""A claim among hosts that share files, where locks may not work and clocks may differ.

    v1/l/kk/<key>.<generation>     kk: first two digits of the key; generation: decimal, from 1
    v1/l/kk/<key>.unkept           a mark: the last build could not be stored, so waiting is useless
    content of a generation := JSON {"host", "machine", "pid", "start", "since", "beat"}, of constant length

The files are in a shared directory (directory_lease_files.py) or on a server (remote/lease_files.py).
The file of the highest generation is the lease. Of all who create it, one succeeds,
even where locks have two winners, and its holder counts `beat` up in it. A waiting process judges the lease
by its own monotonic clock: the holder is dead if the content has not changed for `ttl` seconds, or
if the holder was a process of this machine that has ended. Times of files and of other hosts are
never compared. A dead lease is succeeded, not removed: the process that creates the next generation
has the lease, so no two processes can both believe that they removed the same one. A file left
behind blocks nobody for longer than `ttl`. The content has no version: if it cannot be read, time
alone decides.

Between listing and creating, others may release and begin again with generation 1. So that two
generations never have holders at once, a process that succeeds a dead lease reads it again
and gives up if it changed; a released lease is not succeeded, but the files are listed again; and
files are removed from the lowest generation upwards.

An interrupt may end a call between any two steps: a lease notes each file before it creates it, and
`release`, or dropping the lease, removes it.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from cachegraph.named_tuples import NamedTuple
from cachegraph.processes import host_name, is_gone, machine, start_of
from cachegraph.store.files import Oversized
from cachegraph.store.protocol import Holder, Pauses, Unkept
from cachegraph.store.trust import Untrusted

TTL = 10.0
_BEATS_PER_TTL = 5
_BEAT_DIGITS = 9
_TRIES = 8
_LONGEST_NUMBER = 10
_UNKEPT = "unkept"


class LeaseFiles(Protocol):
    """The files of the lease of one key, by the ends of their names. Methods raise OSError."""

    pauses: Pauses

    def place(self, end: str) -> str:
        """Return the name of a file, for people."""

    def ends(self) -> Collection[str]:
        """Return the ends of the names of the files that exist."""

    def read(self, end: str) -> bytes:
        """Return a file of at most LARGEST_HOLDER bytes. Raises Oversized, Untrusted, FileNotFoundError."""

    def create(self, end: str, content: bytes) -> bool:
        """Create a file; return False if there is one. Of several callers, one creates it."""

    def replace(self, end: str, content: bytes) -> None:
        """Replace a file by one of the same length. Raises FileNotFoundError if it was removed."""

    def remove(self, end: str) -> None:
        """Remove a file. Raises FileNotFoundError if there is none."""

    def wait(self, end: str, seconds: float) -> None:
        """Return when the file is removed, if the files tell, or else after `seconds`."""


class _Released(Exception):
    """A generation was released since it was listed."""


class Host(NamedTuple):
    """The host of a process: its `name`, and the `machine` on which process numbers are unique."""

    name: str
    machine: str

    @classmethod
    def here(cls) -> Host:
        """Return this host."""
        return cls(host_name(), machine())


class Lease:
    """The claim whose generations are in `files`.

    Creating the object accesses no file. `clock` returns monotonic seconds; `host` is the
    host of this process.
    """

    may_be_elsewhere = True

    def __init__(
        self,
        files: LeaseFiles,
        ttl: float = TTL,
        clock: Callable[[], float] = time.monotonic,
        host: Host | None = None,
    ) -> None:
        self.pauses = files.pauses
        self._files = files
        self._ttl = ttl
        self._clock = clock
        self._host = host or Host.here()
        self._seen: tuple[int, bytes, float] | None = None  # generation, content, time of first sight
        self._held: _Generation | None = None

    def acquire(self) -> Holder | None:
        """Take the lease if it is free or its holder dead and return None, else return its holder.

        Raises OSError if the file cannot be created, and Unkept if the mark is present.
        """
        released = shown = 0
        for _ in range(_TRIES):
            last = max(self._last(), shown)
            try:
                holder = self._living(last) if last > shown else None
                if holder is None and self._begin(last + 1):
                    if last == shown or self._is_dead_still(last):
                        return None
                    self._give_up()
                elif holder is None:
                    last += 1
                    holder = self._living(last)
            except _Released:
                # A network client that lists it again shows an old state.
                released, shown = last, last if last == released else shown
                continue
            if holder is not None:
                return holder
        return Holder()

    def wait(self, seconds: float) -> None:
        """Return when the holder that `acquire` saw gives the lease back, or after `seconds`.

        Raises OSError if the files cannot be asked.
        """
        seen = self._seen
        if seen is None:
            time.sleep(seconds)
        else:
            self._files.wait(str(seen[0]), seconds)

    def mark(self, unkept: bool) -> None:
        """Mark whether the last build could not be stored. Never raises OSError."""
        with suppress(OSError):
            if unkept:
                self._files.create(_UNKEPT, b"")
            else:
                self._files.remove(_UNKEPT)

    def release(self) -> None:
        """Remove the lease and those that it succeeded; in a forked child, whose parent holds it, do nothing.

        May be called again after an interrupt.
        """
        held = self._held
        if held is None or held.pid != os.getpid():
            return
        held.pulse.remove(held)
        with suppress(OSError):
            if held.generation > 1:  # the first has succeeded nobody
                self._remove_below(held.generation)
            held.remove()
        self._held = None

    def _give_up(self) -> None:
        """Remove the generation that this process has just created, and no other."""
        held, self._held = self._held, None
        if held is not None:
            held.pulse.remove(held)
            with suppress(OSError):
                held.remove()

    def beat(self) -> None:
        """Count the beat up if this process holds the lease."""
        if self._held is not None:
            self._held.beat()

    @property
    def seconds_between_beats(self) -> float:
        """Return the seconds between two beats of a holder."""
        return self._ttl / _BEATS_PER_TTL

    def _last(self) -> int:
        """Return the highest generation that is listed, or 0. Raises Unkept and OSError."""
        ends = self._files.ends()
        if _UNKEPT in ends:
            raise Unkept(self._files.place(_UNKEPT))
        return max(_generations(ends), default=0)

    def _living(self, generation: int) -> Holder | None:
        """Return the holder of that generation, or None if it is dead. Raises _Released.

        It also counts as dead if no holder can have written it (too large, untrusted).
        """
        try:
            content = self._content(generation)
        except FileNotFoundError as error:
            raise _Released from error
        if content is None:
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

    def _is_dead_still(self, generation: int) -> bool:
        """Return True if that generation, which this process succeeds, is as it was when it was judged."""
        try:
            content = self._content(generation)
        except FileNotFoundError:
            return False
        return content is None or (self._seen is not None and self._seen[:2] == (generation, content))

    def _content(self, generation: int) -> bytes | None:
        """Return the file of a generation, or None if no holder can have written it."""
        try:
            return self._files.read(str(generation))
        except (Oversized, Untrusted):
            return None

    def _remove_below(self, generation: int) -> None:
        """Remove the files of lower generations, if they are there, upwards."""
        for lower in sorted(_generations(self._files.ends())):
            if lower < generation:
                with suppress(FileNotFoundError):
                    self._files.remove(str(lower))

    def _begin(self, generation: int) -> bool:
        """Create that generation; return False if another process was first. Raises OSError."""
        # Noted first: an interrupt may come as soon as the file exists.
        held = self._held = _Generation(self._files, generation, self._host)
        try:
            created = held.make()
        except OSError:
            with suppress(OSError):
                held.remove()
            self._held = None
            raise
        if not created:
            self._held = None
            return False
        held.pulse.add(held, self)
        return True


def _generations(ends: Collection[str]) -> list[int]:
    return [int(end) for end in ends if end.isdecimal() and len(end) < _LONGEST_NUMBER]


class _Generation:
    """The file of a generation that this process creates or holds."""

    def __init__(self, files: LeaseFiles, generation: int, host: Host) -> None:
        self.generation = generation
        self.pid = os.getpid()
        self.pulse = _pulse()
        self._files = files
        self._end = str(generation)
        self._document: dict[str, Any] = {
            "host": host.name,
            "machine": host.machine,
            "pid": self.pid,
            "start": _own_start(self.pid),
            "since": time.time(),
            "beat": "",
        }
        self._beats = 0
        self._removed = False
        self._writing = threading.Lock()  # a beat meanwhile would create the removed file again

    def make(self) -> bool:
        """Create the file; return False if another process was first. Raises OSError."""
        return self._files.create(self._end, self._content())

    def beat(self) -> None:
        """Count the beat up in the file; do nothing if the file was removed meanwhile."""
        with self._writing, suppress(OSError):
            if not self._removed:
                self._beats += 1
                self._files.replace(self._end, self._content())

    def remove(self) -> None:
        """Remove the file if this process wrote it or nobody has written to it yet. Raises OSError."""
        with self._writing:
            self._removed = True
            content = self._files.read(self._end)
            if not content or self._is_own(content):
                self._files.remove(self._end)

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
