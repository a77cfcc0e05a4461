"""Attacks on servers, and revocation there: what is not proven, or was taken back, is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph.cache import Cache
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.paths import REVOCATIONS, entry_place, revocation_place
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.remote.redis_files import RedisFiles
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.revocation.list_file import Revoked, write_list
from cachegraph.store.shared.entry_file import this_writer
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import public_key_text
from cachegraph.store.trust import Trust
from cachegraph.version import __version__
from tests.cachegraph.store.remote.servers import Server, web
from tests.cachegraph.store.signers import User

Key = Callable[..., CacheKey]
OpenRemote = Callable[..., RemoteFiles]
LONG = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)
MOST = 10**7


class Users:
    """A publisher, and a reader who trusts his key."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.publisher, self.reader = (User(directory / name, patch) for name in ("publisher", "reader"))
        self.trust = f"signed:{public_key_text(self.publisher.key)}"

    def put(self, files: RemoteFiles, key: CacheKey, payload: bytes = b"payload") -> None:
        self.publisher.do(
            lambda: RemoteStore(files, Trust.on_servers(self.trust)).put(key, Artifact(payload, {"b": LONG}))
        )

    def get(self, files: RemoteFiles, key: CacheKey) -> Hit | Miss:
        return self.reader.do(lambda: RemoteStore(files, Trust.on_servers(self.trust)).get(key))

    def refusal(self, files: RemoteFiles, key: CacheKey) -> str:
        found = self.get(files, key)
        assert isinstance(found, Miss)
        assert found.reason == "untrusted", found
        return found.detail

    def revoke(self, *options: str, code: int = 0) -> Any:
        arguments = ["key", "revoke", *options, "--json"]
        result = self.publisher.do(lambda: CliRunner().invoke(app, arguments))
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.stderr


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    return Users(tmp_path, monkeypatch)


def test_a_record_under_the_name_of_another_key_is_refused_and_an_older_one_of_its_key_is_not(
    open_remote: OpenRemote, users: Users, key: Key
) -> None:
    """Its signer published the older one for this key: it is a result of the same computation."""
    files = open_remote()
    users.put(files, key("a"), b"older")
    older = files.read(entry_place(key("a").hex), MOST)
    users.put(files, key("a"), b"newer")
    users.put(files, key("b"))
    files.write(entry_place(key("b").hex), older)
    assert "did not publish here" in users.refusal(files, key("b"))
    files.write(entry_place(key("a").hex), older)
    found = users.get(files, key("a"))
    assert isinstance(found, Hit)
    assert found.payload == b"older"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["signer", "writer", "release", "entry"])
def test_what_is_revoked_is_refused_and_leaves_the_copies(
    server: Server, open_remote: OpenRemote, users: Users, key: Key, kind: str, tmp_path: Path
) -> None:
    files = open_remote()
    users.put(files, key("a"))

    def process() -> Hit | Miss:
        remotes = (RemoteURL.of(server.url),)
        settings = Settings(tmp_path / "node", "readwrite", "compile", remotes=remotes, trust=users.trust)
        cache = Cache(settings)
        found = cache.lookup(key("a"))
        cache.flush()
        return found

    assert isinstance(users.reader.do(process), Hit)
    local = LocalStore(tmp_path / "node")
    assert isinstance(local.get(key("a")), Hit)
    given = {
        "signer": public_key_text(users.publisher.key),
        "writer": this_writer(),
        "release": __version__,
        "entry": key("a").hex,
    }
    assert users.revoke(f"--{kind}", given[kind], "--remote", server.url)["number"] == 1
    assert "revoked" in users.refusal(files, key("a"))
    local.layout.revocations.unlink()  # an hour passes
    assert isinstance(users.reader.do(process), Hit), "the copy; then the process hears of it"
    assert isinstance(local.get(key("a")), Miss)
    assert isinstance(users.reader.do(process), Miss)


def test_lists_grow_and_an_older_one_that_is_put_back_takes_nothing_back(
    server: Server, open_remote: OpenRemote, users: Users, key: Key
) -> None:
    files = open_remote()
    users.put(files, key("a"))
    users.revoke("--writer", "somebody@else", "--remote", server.url)
    place = revocation_place(users.publisher.key)
    first = files.read(place, MOST)
    assert isinstance(users.get(files, key("a")), Hit)
    assert users.revoke("--entry", key("a").hex, "--remote", server.url)["number"] == 2
    assert "revoked" in users.refusal(files, key("a"))
    files.write(place, first)
    assert "revoked" in users.refusal(files, key("a"))
    files.remove(place)
    assert "revoked" in users.refusal(files, key("a"))


def test_while_a_list_is_damaged_or_of_another_its_signer_is_not_believed(
    open_remote: OpenRemote, users: Users, key: Key
) -> None:
    files = open_remote()
    users.put(files, key("a"))
    place = revocation_place(users.publisher.key)
    whole = users.publisher.do(lambda: write_list(1, Revoked()))
    of_reader = users.reader.do(lambda: write_list(1, Revoked()))
    for content in (whole[:-1], b"", of_reader, whole[:50] + b"x" + whole[51:]):
        files.write(place, content)
        assert "whose revocation list" in users.refusal(files, key("a"))
    files.write(place, whole)
    assert isinstance(users.get(files, key("a")), Hit)


@pytest.mark.slow
def test_a_server_that_is_stopped_while_its_lists_are_read_is_a_miss(
    server: Server, users: Users, key: Key, open_remote: OpenRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = open_remote("?timeout=0.3")
    users.put(files, key("a"))
    read = files.read

    def stopped(name: str, most: int) -> bytes:
        if name.startswith(REVOCATIONS):
            server.pause()
        return read(name, most)

    monkeypatch.setattr(files, "read", stopped)
    try:
        found = users.get(files, key("a"))
    finally:
        server.resume()
    assert isinstance(found, Miss)
    assert "cannot be read" in found.detail
    monkeypatch.undo()
    assert isinstance(users.get(files, key("a")), Hit)


def test_lists_in_redis_outlive_its_entries(server: Server, open_remote: OpenRemote) -> None:
    files = open_remote("?ttl=100s") if server.url.startswith("redis") else None
    if not isinstance(files, RedisFiles):
        pytest.skip("only Redis lets files vanish")
    files.write("v1/r/list", b"list")
    files.write("v1/e/entry", b"entry")
    client = files._client.get()
    assert client.ttl("cachegraph:v1/r/list") == -1
    assert 0 < client.ttl("cachegraph:v1/e/entry") <= 100


def test_a_web_server_publishes_lists_too(users: Users, key: Key, tmp_path: Path) -> None:
    shared = tmp_path / "public"

    def publish() -> None:
        SharedStore(shared, trust=Trust.of(users.trust)).put(key("a"), Artifact(b"payload"))

    users.publisher.do(publish)
    with web(shared) as server:
        cache = lambda: Cache(  # noqa: E731
            Settings(tmp_path / "node", "readonly", "compile", None, trust=users.trust)._replace(
                remotes=(RemoteURL.of(server.url),)
            )
        )
        assert isinstance(users.reader.do(lambda: cache().lookup(key("a"))), Hit)
        (shared / REVOCATIONS).mkdir()
        place = shared / revocation_place(users.publisher.key)
        revoked = Revoked(writers=frozenset((this_writer(),)))
        place.write_bytes(users.publisher.do(lambda: write_list(1, revoked)))
        found = users.reader.do(lambda: cache().lookup(key("a")))
        assert isinstance(found, Miss)
        assert "a writer that was revoked" in found.detail
        told = users.revoke("--writer", "w", "--remote", server.url, code=2)
        assert "is only read" in told
