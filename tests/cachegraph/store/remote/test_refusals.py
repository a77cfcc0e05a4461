"""Servers that do not write, for lack of a right or of space, are read all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from threading import Thread
from typing import Any

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings
from cachegraph.store.entry import Artifact, Hit
from cachegraph.store.remote.files import RemoteError, WriteRefused
from cachegraph.store.remote.opening import open_files
from tests.cachegraph.store.remote.servers import S3_VARIABLES, SERVERS, missing

NAME = "v1/b/ab/file"
KEYS = [CacheKey.build("kernel", {"scheme": b"refusal", "graph": bytes((n,))}) for n in range(3)]


@contextmanager
def only_read() -> Iterator[tuple[str, str]]:
    """Yield URLs of a database: of a user who may write, and of one who may only read."""
    import psycopg

    with SERVERS["postgresql"]() as server:
        open_files(RemoteURL.of(server.url)).write(NAME, b"creates the table")
        with psycopg.connect(server.url, autocommit=True) as owner:
            owner.execute("CREATE ROLE reader LOGIN")
            owner.execute("GRANT SELECT ON cachegraph_file TO reader")
        yield server.url, server.url.replace("postgres@", "reader@")


@contextmanager
def on_standby() -> Iterator[tuple[str, str]]:
    """Yield URLs of a database: one as it is, and one whose transactions only read, as on a standby."""
    with SERVERS["postgresql"]() as server:
        open_files(RemoteURL.of(server.url)).write(NAME, b"creates the table")
        import psycopg

        with psycopg.connect(server.url, autocommit=True) as owner:
            owner.execute("CREATE ROLE reader SUPERUSER LOGIN")
            owner.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        yield server.url, server.url.replace("postgres@", "reader@")


@contextmanager
def without_a_right() -> Iterator[tuple[str, str]]:
    """Yield URLs of Redis: of a user who may all, and of one who may only read."""
    import redis

    with SERVERS["redis"]() as server:
        rights = ["+@read", "+@connection", "+@transaction"]
        redis.Redis.from_url(server.url).execute_command(
            "ACL", "SETUSER", "reader", "on", ">word", "~*", *rights
        )
        yield server.url, server.url.replace("redis://", "redis://reader:word@")


REFUSING = {"postgresql": (only_read, on_standby), "redis": (without_a_right,)}


@pytest.mark.parametrize(
    ("kind", "refusing"), [(kind, way) for kind, ways in REFUSING.items() for way in ways]
)
def test_whoever_may_only_read_reads_on_after_a_refusal(kind: str, refusing: Any, tmp_path: Path) -> None:
    if missing(kind):
        pytest.skip(f"{missing(kind)} is not installed")
    with refusing() as (url, reading):
        for change in ("write", "create"):
            with pytest.raises(WriteRefused):
                getattr(open_files(RemoteURL.of(reading)), change)(NAME, b"content")
        writer, reader = cache(tmp_path / "1", url), cache(tmp_path / "2", reading)
        for key in KEYS[:2]:
            assert writer.store(key, Artifact(b"stored"))
        assert isinstance(reader.lookup(KEYS[0]), Hit)
        built = reader.get_or_build(KEYS[2], lambda: Artifact(b"built"), lambda payload: payload)
        assert built.value == b"built"
        assert isinstance(reader.lookup(KEYS[1]), Hit)


def test_a_redis_that_is_full_is_read(tmp_path: Path) -> None:
    if missing("redis"):
        pytest.skip("redis is not installed")
    import redis

    with SERVERS["redis"]() as server:
        full = cache(tmp_path / "1", server.url)
        assert full.store(KEYS[0], Artifact(b"stored"))
        redis.Redis.from_url(server.url).config_set("maxmemory", "1mb")
        full.store(KEYS[1], Artifact(b"not stored"))
        assert isinstance(cache(tmp_path / "2", server.url).lookup(KEYS[0]), Hit)
        reader = cache(tmp_path / "3", server.url)
        reader.store(KEYS[2], Artifact(b"not stored"))
        assert isinstance(reader.lookup(KEYS[0]), Hit)


@pytest.mark.slow
@pytest.mark.parametrize(("status", "is_refusal"), [(403, True), (507, True), (503, False), (500, False)])
def test_a_status_tells_a_refusal_of_s3_from_a_failure(
    status: int, is_refusal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with TCPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for name, value in S3_VARIABLES.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(RemoteError) as raised:
            open_files(RemoteURL.of("s3://bucket/prefix")).write(NAME, b"content")
        assert isinstance(raised.value, WriteRefused) == is_refusal
        server.shutdown()


def cache(directory: Path, url: str) -> Cache:
    return Cache(Settings(directory, "readwrite", "compile", remotes=(RemoteURL.of(url),)))
