"""Answers of web servers that come within a time, or fail.

The limit of a socket is for each of its reads. A server that sends its headers one byte after another could
keep a client for as long as it likes, so the reads of one answer share their time.
"""

from __future__ import annotations

import io
import socket
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, Request, build_opener


def bounded_opener() -> OpenerDirector:
    """Return an opener like that of `urlopen`, whose timeout is for a whole answer."""
    return build_opener(_Web, _SecureWeb)


class _Shared(io.RawIOBase):
    """The reads of `raw`, a file on a socket, which take no longer together than the socket's limit."""

    def __init__(self, raw: io.RawIOBase, connected: socket.socket) -> None:
        limit = connected.gettimeout()
        self._raw = raw
        self._socket = connected
        self._deadline = None if limit is None else monotonic() + limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - monotonic()
            if left <= 0:
                raise TimeoutError("no whole answer in time")
            self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(HTTPResponse):
    def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        self.fp = io.BufferedReader(_Shared(self.fp.detach(), sock))


class _Connection(HTTPConnection):
    response_class = _Answer


class _SecureConnection(HTTPSConnection):
    response_class = _Answer


class _Web(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _SecureWeb(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req)
