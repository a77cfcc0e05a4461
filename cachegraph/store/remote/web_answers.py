"""Answers of web servers that come within a time, with all that they redirect to, or fail."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import IO
from urllib.parse import urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from cachegraph.store.remote.bounded_socket import BoundedSocket


def bounded_opener() -> OpenerDirector:
    """Return an opener like that of `urlopen`, for `BoundedRequest`s."""
    return build_opener(_Web, _SecureWeb, _Redirects)


class BoundedRequest(Request):
    """A request of `url` whose answer comes within `seconds`, redirects included."""

    def __init__(self, url: str, headers: dict[str, str], seconds: float) -> None:
        super().__init__(url, headers=headers)
        self.deadline = monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left. Raises TimeoutError if none is."""
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("no whole answer in time")
        return left


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the request that follows; None unless it is for a web server. Raises TimeoutError."""
        fp.close()  # or all of it is read, however long
        if urlsplit(newurl).scheme not in ("http", "https"):
            return None
        assert isinstance(req, BoundedRequest)
        req.timeout = req.left()  # is taken for the next
        return BoundedRequest(newurl, dict(req.header_items()), req.timeout)


class _WebConnection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.sock = BoundedSocket(self.sock)


class _SecureWebConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        self.sock = BoundedSocket(self.sock)


class _Web(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_WebConnection, req)


class _SecureWeb(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureWebConnection, req)
