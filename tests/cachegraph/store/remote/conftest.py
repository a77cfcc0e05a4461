"""Servers for the tests of remotes, each started once for a module, with a key for their entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cachegraph.remote_url import RemoteURL
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.remote.opening import open_files
from tests.cachegraph.store.remote.servers import SERVERS, Server, missing
from tests.cachegraph.store.signers import signing_key


@pytest.fixture(autouse=True, scope="session")
def own_key(unreachable_user_cache: object) -> bytes:
    """Return the public key with which the tests' entries are signed."""
    return signing_key()


@pytest.fixture(scope="module", params=sorted(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each kind of server that files are written to."""
    lacking = missing(request.param)
    if lacking:
        pytest.skip(f"{lacking} is not installed")
    with SERVERS[request.param]() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture
def open_remote(server: Server) -> Iterator[Callable[..., RemoteFiles]]:
    """Return a function that opens the server's files; they are removed after the test."""

    def open_with(options: str = "") -> RemoteFiles:
        return open_files(RemoteURL.of(f"{server.url}{options}"))

    yield open_with
    files = open_with()
    for file in list(files.listed("")):
        files.remove(file.name)
    files.close()
