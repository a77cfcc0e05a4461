"""Sockets whose answers come within a time, or fail.

The limit of a socket is for each of its reads. A server that sends one byte after another could keep a client
for as long as it likes, so all that is sent and read for one request shares its time.
"""

from __future__ import annotations

import io
from time import monotonic
from typing import Any

_ARRIVED = 0.001
"""Seconds for a read of what has arrived already."""


class BoundedSocket:
    """A connected socket on which a request and its answer take no longer than the socket's limit.

    A request begins with what is sent after an answer. A process that is late itself may still read what has
    arrived, until the limit has passed twice. All else is as on `connected`.
    """

    def __init__(self, connected: Any) -> None:
        self._connected = connected
        self._limit: float | None = connected.gettimeout()
        self._deadline: float | None = None
        self._has_read = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connected, name)

    def settimeout(self, seconds: float | None) -> None:
        """Set the limit of this request and of the next ones."""
        self._limit = seconds
        self._connected.settimeout(seconds)

    def gettimeout(self) -> float | None:
        """Return the limit."""
        return self._limit

    def send(self, data: Any, *flags: int) -> int:
        """Send some of `data`."""
        self._begin()
        sent: int = self._connected.send(data, *flags)
        return sent

    def sendall(self, data: Any, *flags: int) -> None:
        """Send all of `data`."""
        self._begin()
        self._connected.sendall(data, *flags)

    def recv(self, size: int, *flags: int) -> bytes:
        """Read at most `size` bytes."""
        self.share()
        found: bytes = self._connected.recv(size, *flags)
        return found

    def recv_into(self, buffer: Any, *given: int) -> int:
        """Read into `buffer`."""
        self.share()
        size: int = self._connected.recv_into(buffer, *given)
        return size

    def makefile(self, mode: str = "rb", buffering: int = -1, **_: Any) -> Any:
        """Return a file for reading bytes."""
        raw = _BoundedFile(self, self._connected.makefile(mode, 0))
        return raw if buffering == 0 else io.BufferedReader(raw)

    def share(self) -> None:
        """Leave the next read the time that is left. Raises TimeoutError if none is."""
        self._has_read = True
        self._leave()

    def _begin(self) -> None:
        if self._has_read:
            self._has_read = False
            self._deadline = monotonic() + self._limit if self._limit else None
        self._leave()

    def _leave(self) -> None:
        if self._deadline is None or not self._limit:  # not to be bounded, or asked only for what is there
            return
        left = self._deadline - monotonic()
        if left < -self._limit:
            raise TimeoutError("no whole answer in time")
        self._connected.settimeout(min(self._limit, max(left, _ARRIVED)))


class _BoundedFile(io.RawIOBase):
    """The reads of `raw`, an unbuffered file on a bounded socket."""

    def __init__(self, bounded: BoundedSocket, raw: io.RawIOBase) -> None:
        self._bounded = bounded
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._bounded.share()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
