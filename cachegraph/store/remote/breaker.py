"""A circuit breaker: a server that failed is left alone for a while, so that no compile waits for it twice.

The pause begins with FIRST_PAUSE and doubles from failure to failure, up to LONGEST_PAUSE; an answer
ends it. Every process counts for itself. A file that is missing or too long is an answer. One that the
server refuses to write is one, too: until the pause is over, nothing more is written there, but it is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from cachegraph.logger import logger
from cachegraph.store.files import Oversized
from cachegraph.store.remote.files import RemoteError, RemoteFile, RemoteFiles, WriteRefused

FIRST_PAUSE = 30.0
LONGEST_PAUSE = 600.0

T = TypeVar("T")

_ANSWERS = (FileNotFoundError, Oversized)


class LeftAlone(RemoteError):
    """An error for a server that is left alone for `seconds` more, because of an earlier failure."""

    def __init__(self, location: str, seconds: float, why: str) -> None:
        super().__init__(location, f"left alone for {seconds:.0f} s more, because it {why}")


class _Circuit:
    """A way to the server at `location` that is cut after a failure (`failed` says which), for a pause.

    `clock` returns monotonic seconds.
    """

    def __init__(self, location: str, failed: str, then: str, clock: Callable[[], float]) -> None:
        self._location = location
        self._failed = failed
        self._then = then
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._closed_until = 0.0
        self._why = ""

    def check(self) -> None:
        """Raise LeftAlone until the pause is over."""
        left = self._closed_until - self._clock()
        if left > 0:
            raise LeftAlone(self._location, left, f"{self._failed} ({self._why})")

    def mend(self) -> None:
        """Begin with the first pause again."""
        self._pause = FIRST_PAUSE

    def cut(self, error: Exception) -> None:
        """Begin a pause, and log the first one."""
        write = logger("cachegraph").debug if self._why else logger("cachegraph").warning
        self._why = error.what if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
        self._closed_until = self._clock() + self._pause
        write(
            "%s %s (%s); it is %s for %.0f s. Logged once.",
            self._location,
            self._failed,
            self._why,
            self._then,
            self._pause,
        )
        self._pause = min(self._pause * 2, LONGEST_PAUSE)


class Breaker:
    """`files`, until a call fails; then every call raises LeftAlone until the pause is over.

    After a refusal, only calls that write do. `clock` returns monotonic seconds.
    """

    def __init__(self, files: RemoteFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self.location = files.location
        self.may_write = files.may_write
        self._files = files
        self._asking = _Circuit(files.location, "failed", "left alone", clock)
        self._writing = _Circuit(files.location, "refused to write", "only read", clock)

    def read(self, name: str, most: int) -> bytes:
        """Read as the files do, or raise LeftAlone."""
        return self._answer(lambda: self._files.read(name, most))

    def write(self, name: str, content: bytes) -> None:
        """Write as the files do, or raise LeftAlone."""
        self._change(lambda: self._files.write(name, content))

    def create(self, name: str, content: bytes) -> bool:
        """Create as the files do, or raise LeftAlone."""
        return self._change(lambda: self._files.create(name, content))

    def remove(self, name: str) -> bool:
        """Remove as the files do, or raise LeftAlone."""
        return self._change(lambda: self._files.remove(name))

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """List as the files do, or raise LeftAlone."""
        files = self._answer(lambda: iter(self._files.listed(prefix)))
        while (found := self._answer(lambda: next(files, None))) is not None:
            yield found

    def wait(self, name: str, seconds: float) -> None:
        """Wait as the files do, or raise LeftAlone."""
        self._answer(lambda: self._files.wait(name, seconds))

    def close(self) -> None:
        """Close the connections of the files."""
        self._files.close()

    def _change(self, ask: Callable[[], T]) -> T:
        """Return what `ask`, which writes, returns."""
        self._writing.check()
        try:
            found = self._answer(ask, (*_ANSWERS, WriteRefused))
        except WriteRefused as error:
            self._writing.cut(error)
            raise
        self._writing.mend()
        return found

    def _answer(self, ask: Callable[[], T], answers: tuple[type[OSError], ...] = _ANSWERS) -> T:
        """Return what `ask` returns. Raises what it raises; a pause begins unless that is of `answers`."""
        self._asking.check()
        try:
            found = ask()
        except answers:
            self._asking.mend()
            raise
        except Exception as error:
            self._asking.cut(error)
            raise
        self._asking.mend()
        return found
