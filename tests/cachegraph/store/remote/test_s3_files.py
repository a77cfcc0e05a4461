"""Files in S3 where the client itself is slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from cachegraph.remote_url import RemoteURL
from cachegraph.store.files import Oversized
from cachegraph.store.remote.s3_files import S3Files
from tests.cachegraph.store.remote.servers import s3

NAME = "v1/b/ab/file"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteURL]:
    with s3() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        yield RemoteURL.of(f"{server.url}?timeout=1")


def test_importing_the_library_does_not_count_as_waiting_for_the_server(
    url: RemoteURL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that start at once on few processors import it for longer than an answer may take."""
    S3Files(url).write(NAME, b"content")
    connect = S3Files._connect

    def slow(self: S3Files) -> Any:
        time.sleep(1.2)
        return connect(self)

    monkeypatch.setattr(S3Files, "_connect", slow)
    assert S3Files(url).read(NAME, 10) == b"content"


def test_a_file_that_is_longer_than_its_reader_allows_is_refused(url: RemoteURL) -> None:
    files = S3Files(url)
    files.write(NAME, bytes(3 << 20))
    assert files.read(NAME, 3 << 20) == bytes(3 << 20)
    with pytest.raises(Oversized):
        files.read(NAME, (3 << 20) - 1)
