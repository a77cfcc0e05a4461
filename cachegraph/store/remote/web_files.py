"""Files of a web server, read only: a published cache.

What lies below the URL is a shared directory as it is on disk, for example one that a web server
publishes or that was copied into a bucket with public reading.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from http.client import HTTPException
from time import sleep
from typing import Any
from urllib.error import HTTPError

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.remote.files import RemoteError, RemoteFile
from cachegraph.store.remote.web_answers import BoundedRequest, bounded_opener
from cachegraph.version import __version__

_CHUNK = 1 << 18
_HEADERS = {"User-Agent": f"cachegraph/{__version__}"}
_MISSING = frozenset({404, 410})


class WebFiles:
    """The files below `http(s)://HOST/PATH`. Proxies are found as Python's urllib finds them."""

    def __init__(self, url: RemoteURL) -> None:
        self.location = url.location.rstrip("/")
        self.may_write = False
        self._base = url.url.rstrip("/")
        self._timeout = url.timeout
        self._opener = bounded_opener()

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, and Oversized above `most` bytes."""
        request = BoundedRequest(f"{self._base}/{name}", _HEADERS, self._timeout)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return self._content(answer, name, most)
        except HTTPError as error:
            if error.code in _MISSING:
                raise FileNotFoundError(errno.ENOENT, "no such file", f"{self.location}/{name}") from None
            raise RemoteError(self.location, f"status {error.code}") from error
        except (Oversized, RemoteError):
            raise
        except TimeoutError as error:
            raise RemoteError(self.location, f"no whole answer within {self._timeout:g} s") from error
        except (OSError, HTTPException) as error:
            raise RemoteError(self.location, str(error)) from error

    def write(self, name: str, content: bytes) -> None:
        """Raise RemoteError."""
        raise RemoteError(self.location, "it is read only")

    def create(self, name: str, content: bytes) -> bool:
        """Raise RemoteError."""
        raise RemoteError(self.location, "it is read only")

    def remove(self, name: str) -> bool:
        """Raise RemoteError."""
        raise RemoteError(self.location, "it is read only")

    def listed(self, prefix: str) -> Iterator[RemoteFile]:
        """Raise RemoteError: a web server does not list files."""
        raise RemoteError(self.location, "a web server does not list files")

    def wait(self, name: str, seconds: float) -> None:
        """Sleep: a web server tells nobody what changes."""
        sleep(seconds)

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _content(self, answer: Any, name: str, most: int) -> bytes:
        pieces, size = [], 0
        while piece := answer.read1(_CHUNK):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise Oversized(f"{self.location}/{name}", size, most)
        stated = answer.headers.get("Content-Length")
        if stated is not None and stated.isdecimal() and int(stated) != size:
            raise RemoteError(self.location, f"{size} of {stated} bytes came")
        return b"".join(pieces)
