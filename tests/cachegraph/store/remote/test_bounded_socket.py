"""Servers that answer one byte after another keep nobody longer than the limit of their URL."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from cachegraph.remote_url import RemoteURL
from cachegraph.store.paths import lease_place
from cachegraph.store.remote.bounded_socket import BoundedSocket
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from cachegraph.store.remote.opening import open_files
from tests.cachegraph.store.remote.servers import Server

NAME = "v1/b/ab/file"
LEASE = f"{lease_place('ab' * 16)}."
LIMIT = 0.5
_PAUSE = 0.1  # far below the limit of one read

VERBS: dict[str, Callable[[RemoteFiles], object]] = {
    "read": lambda files: files.read(NAME, 1000),
    "write": lambda files: files.write(NAME, bytes(300)),
    "create": lambda files: files.create(NAME, bytes(300)),
    "remove": lambda files: files.remove(NAME),
    "listed": lambda files: list(files.listed(LEASE)),
}


class Drip:
    """A way to a server on loopback; what the server answers drips while `is_slow`."""

    def __init__(self, target: int) -> None:
        self.is_slow = False
        self._target = target

    @contextmanager
    def open(self) -> Iterator[int]:
        """Yield the port of the way."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            threading.Thread(target=self._serve, args=(listening,), daemon=True).start()
            yield listening.getsockname()[1]
            listening.shutdown(socket.SHUT_RDWR)

    def _serve(self, listening: socket.socket) -> None:
        with suppress(OSError):  # the way has ended
            while True:
                client = listening.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._target))
                for way in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, may_drip: bool) -> None:
        with suppress(OSError):  # one of both has gone
            while found := source.recv(65536):
                if not (may_drip and self.is_slow):
                    sink.sendall(found)
                    continue
                for byte in found:
                    time.sleep(_PAUSE)
                    sink.sendall(bytes((byte,)))
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def way(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Drip, str]]:
    """Yield a way to the server, and the URL of the server by that way."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL") if server.url.startswith("s3:") else None
    target = urlsplit(endpoint or server.url).port
    assert target is not None
    drip = Drip(target)
    with drip.open() as port:
        if endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        yield drip, f"{server.url.replace(f':{target}/', f':{port}/')}?timeout={LIMIT}"


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_answer_that_drips_is_waited_for_longer_than_the_limit(way: tuple[Drip, str], verb: str) -> None:
    drip, url = way
    files = open_files(RemoteURL.of(url))
    files.write(NAME, bytes(300))
    files.write(f"{LEASE}1", bytes(300))
    list(files.listed(LEASE))
    drip.is_slow = True
    begin = time.monotonic()
    with pytest.raises(RemoteError):
        VERBS[verb](files)
    assert time.monotonic() - begin < 10 * LIMIT
    drip.is_slow = False
    assert list(open_files(RemoteURL.of(url)).listed(LEASE)), "the server still answers others"


def test_what_has_arrived_is_read_although_its_reader_is_late() -> None:
    far, near = socket.socketpair()
    with far, near:
        near.settimeout(0.2)
        bounded = BoundedSocket(near)
        bounded.sendall(b"asked")
        far.sendall(b"answer")
        time.sleep(0.25)
        assert bounded.recv(3) == b"ans"
        assert bounded.makefile().read(3) == b"wer"
        with pytest.raises(TimeoutError):
            bounded.recv(1)
        far.sendall(b"more")
        time.sleep(0.2)
        with pytest.raises(TimeoutError, match="no whole answer"):
            bounded.recv(4)


def test_the_next_request_has_a_time_of_its_own() -> None:
    far, near = socket.socketpair()
    with far, near:
        near.settimeout(0.2)
        bounded = BoundedSocket(near)
        for _ in range(3):
            bounded.sendall(b"asked")
            time.sleep(0.15)
            far.sendall(b"answer")
            assert bounded.recv(6) == b"answer"


def test_a_request_that_is_taken_slowly_is_given_up() -> None:
    """Each piece is sent within the limit, the whole is not."""
    far, near = socket.socketpair()
    with far, near:
        near.settimeout(0.2)
        bounded = BoundedSocket(near)

        def send_pieces() -> None:
            for _ in range(100):
                bounded.sendall(bytes(1 << 10))
                far.recv(1 << 10)
                time.sleep(0.05)

        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="no whole answer"):
            send_pieces()
        assert time.monotonic() - begin < 2
