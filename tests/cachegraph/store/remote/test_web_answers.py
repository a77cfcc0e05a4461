"""Web servers that answer one byte after another keep nobody longer than the limit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cachegraph.remote_url import RemoteURL
from cachegraph.store.remote.files import RemoteError
from cachegraph.store.remote.opening import open_files

SOUND = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncontent"
_PAUSE = 0.1  # far below the limit of one read


@contextmanager
def dripping(first: bytes, rest: bytes) -> Iterator[str]:
    """Answer every request with `first` at once and `rest` byte by byte; yield the URL of the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    asked, _ = listening.accept()
                except OSError:  # the server has ended
                    return
                threading.Thread(target=answer, args=(asked,), daemon=True).start()

        def answer(asked: socket.socket) -> None:
            with asked:
                asked.recv(65536)
                asked.sendall(first)
                for byte in rest:
                    time.sleep(_PAUSE)
                    try:
                        asked.sendall(bytes((byte,)))
                    except OSError:  # the reader has gone
                        return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (b"", b"HTTP/1.1 200 OK" + b" " * 100),
        (b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"a" * 100),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"a" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 20),
    ],
    ids=["status", "headers", "content", "chunks"],
)
def test_an_answer_that_drips_is_given_up_in_time(first: bytes, rest: bytes) -> None:
    with dripping(first, rest) as url:
        files = open_files(RemoteURL.of(f"{url}?timeout=0.5"))
        begin = time.monotonic()
        with pytest.raises(RemoteError, match="no whole answer within"):
            files.read("v1/e/00/key", 10**6)
        assert time.monotonic() - begin < 5


def test_an_answer_within_the_time_is_whole() -> None:
    with dripping(SOUND[:-3], SOUND[-3:]) as url:
        assert open_files(RemoteURL.of(url)).read("v1/e/00/key", 100) == b"content"


def test_redirects_share_one_time() -> None:
    """Each answer comes within the time, and the whole chain does not."""
    with dripping(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /again\r\n", b"\r\n") as url:
        files = open_files(RemoteURL.of(f"{url}?timeout=0.5"))
        begin = time.monotonic()
        with pytest.raises(RemoteError, match="no whole answer within"):
            files.read("v1/e/00/key", 10**6)
        assert time.monotonic() - begin < 0.9


def test_the_content_of_a_redirect_is_not_read() -> None:
    """urllib reads all of it, however long; this one never ends."""
    with (
        dripping(SOUND, b"") as target,
        dripping(f"HTTP/1.1 302 Found\r\nLocation: {target}/there\r\n\r\n".encode(), b"x" * 100) as url,
    ):
        files = open_files(RemoteURL.of(f"{url}?timeout=2"))
        assert files.read("v1/e/00/key", 100) == b"content"


@pytest.mark.parametrize("elsewhere", ["ftp://127.0.0.1:1/file", "file:///etc/passwd", "data:,text"])
def test_a_redirect_leads_to_web_servers_only(elsewhere: str) -> None:
    answer = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\n\r\n".encode()
    with dripping(answer, b"") as url, pytest.raises(RemoteError, match="status 302"):
        open_files(RemoteURL.of(url)).read("v1/e/00/key", 100)
