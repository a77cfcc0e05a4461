"""Files of every server: whole or missing, created once, within a size and a time, also after a fork."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from cachegraph.store.files import Oversized
from cachegraph.store.remote.files import RemoteError, RemoteFiles
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing

OpenRemote = Callable[..., RemoteFiles]
NAME = "v1/b/ab/file"


def test_a_file_is_read_as_it_was_written_last(open_remote: OpenRemote) -> None:
    files = open_remote()
    with pytest.raises(FileNotFoundError):
        files.read(NAME, 10)
    for content in (b"first", b"", bytes(range(256)) * 4000):
        files.write(NAME, content)
        assert open_remote().read(NAME, len(content)) == content


def test_a_file_that_is_longer_than_its_reader_allows_is_refused(open_remote: OpenRemote) -> None:
    files = open_remote()
    files.write(NAME, bytes(1001))
    with pytest.raises(Oversized):
        files.read(NAME, 1000)


def test_of_many_creators_one_creates_the_file(open_remote: OpenRemote) -> None:
    files = open_remote()
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda n: files.create(NAME, bytes((n,))), range(8)))
    assert created.count(True) == 1
    assert files.read(NAME, 1) == bytes((created.index(True),))


def test_files_are_listed_by_the_beginning_of_their_names(open_remote: OpenRemote) -> None:
    files = open_remote()
    for name in ("v1/e/aa/one", "v1/e/ab/two", "v1/b/aa/[*]"):
        files.write(name, b"xyz")
    assert {file.name for file in files.listed("v1/e/")} == {"v1/e/aa/one", "v1/e/ab/two"}
    [found] = files.listed("v1/b/aa/[*")
    assert found.size == 3
    assert abs(found.written - time.time()) < 60


def test_a_removed_file_is_missing(open_remote: OpenRemote) -> None:
    files = open_remote()
    files.write(NAME, b"content")
    assert files.remove(NAME)
    assert not files.remove(NAME)
    with pytest.raises(FileNotFoundError):
        files.read(NAME, 10)


def test_a_forked_child_and_its_parent_read_each_for_itself(open_remote: OpenRemote) -> None:
    files = open_remote()
    files.write(NAME, b"content")
    child = os.fork()
    if child == 0:
        try:
            right = files.read(NAME, 7) == b"content"
            files.close()
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert files.read(NAME, 7) == b"content"


def test_a_paused_server_is_waited_for_no_longer_than_its_url_says(
    open_remote: OpenRemote, server: Server
) -> None:
    files = open_remote("?timeout=0.5")
    files.write(NAME, b"content")
    server.pause()
    try:
        begin = time.monotonic()
        with pytest.raises(RemoteError, match=r"^asking "):
            files.read(NAME, 10)
        assert time.monotonic() - begin < 5
    finally:
        server.resume()
    files.close()
    assert open_remote().read(NAME, 10) == b"content"


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_a_killed_server_is_an_error_that_names_it_without_its_password(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegraph.remote_url import RemoteURL
    from cachegraph.store.remote.opening import open_files

    if missing(name):
        pytest.skip(f"{missing(name)} is not installed")
    with SERVERS[name]() as server:
        for variable, value in server.variables.items():
            monkeypatch.setenv(variable, value)
        url = server.url.replace("postgres@", "postgres:secret@")
        files = open_files(RemoteURL.of(f"{url}?timeout=2"))
        files.write(NAME, b"content")
        server.kill()
        for action in (lambda: files.read(NAME, 10), lambda: files.write(NAME, b"")):
            with pytest.raises(RemoteError) as raised:
                action()
            assert "secret" not in str(raised.value)
            assert raised.value.location in str(raised.value)
