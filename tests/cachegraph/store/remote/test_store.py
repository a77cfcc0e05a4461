"""The store on a server: a dict for its users, closed to strangers, and never an error of a compile."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from cachegraph.cache import Cache
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.paths import blob_place, entry_place
from cachegraph.store.remote.breaker import Breaker
from cachegraph.store.remote.files import RemoteFiles
from cachegraph.store.remote.opening import open_files
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import key_path, public_key_text
from cachegraph.store.trust import Trust
from tests.cachegraph.store.remote.servers import Server, web
from tests.cachegraph.store.signers import signing_key
from tests.cachegraph.store.state_machine import Crash, StoreAgainstDict, artifacts, keys

Key = Callable[..., CacheKey]
OpenRemote = Callable[..., RemoteFiles]
LONG = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)
ARTIFACT = Artifact(b"payload", {"code": LONG}, {"compile": 1.0}, "what it is")


@pytest.fixture
def remote(open_remote: OpenRemote) -> RemoteStore:
    """Return the store on the server, as this user sees it."""
    return RemoteStore(open_remote(), Trust.on_servers("private"))


@pytest.mark.slow
def test_any_sequence_of_verbs_behaves_like_a_dict(open_remote: OpenRemote) -> None:
    class RemoteAgainstDict(StoreAgainstDict):
        remembers_deletions = False
        keeps_index = False
        quarantines = False

        def open(self) -> RemoteStore:
            return RemoteStore(open_remote(), Trust.on_servers("private"))

        def teardown(self) -> None:
            for file in list(self.stores[0].files.listed("")):
                self.stores[0].files.remove(file.name)
            super().teardown()

        @rule(which=st.integers(0, 1), key=keys, artifact=artifacts, point=st.integers(0, 2))
        def crash_while_putting(self, which: int, key: CacheKey, artifact: Artifact, point: int) -> None:
            """The process ends before it sends its file number `point`; blobs are first, the entry is last."""
            with ending_before(self.stores[which].files, point), suppress(Crash):
                self.stores[which].put(key, artifact)
                self.held[key] = artifact
            self.stores[which] = self.open()

        @precondition(lambda self: self.held)
        @rule(which=st.integers(0, 1), key=keys, place=st.integers(0, 10**6), bit=st.integers(0, 7))
        def damage_is_met_and_healed(self, which: int, key: CacheKey, place: int, bit: int) -> None:
            if key not in self.held:
                return
            name, files = entry_place(key.hex), self.stores[which].files
            content = bytearray(files.read(name, 10**6))
            content[place % len(content)] ^= 1 << bit
            files.write(name, bytes(content))
            assert isinstance(self.stores[1 - which].get(key), Miss)
            self.stores[which].put(key, self.held[key])

    run_state_machine_as_test(
        RemoteAgainstDict, settings=settings(max_examples=4, stateful_step_count=16, database=None)
    )


@contextmanager
def ending_before(files: RemoteFiles, point: int) -> Iterator[None]:
    """Raise Crash before the call number `point` that would send a file."""
    sent = itertools.count()

    def sending(verb: Callable[[str, bytes], Any]) -> Callable[[str, bytes], Any]:
        def send(name: str, content: bytes) -> Any:
            if next(sent) == point:
                raise Crash
            return verb(name, content)

        return send

    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "create"):
            patch.setattr(files, name, sending(getattr(files, name)))
        yield


def test_a_web_server_shows_what_any_sequence_of_verbs_leaves(
    tmp_path: Path, own_key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It publishes the directories of the machine, which are temporary ones."""
    trust = f"signed:{public_key_text(own_key)}"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with web(tmp_path) as server:

        class PublishedAgainstDict(StoreAgainstDict):
            remembers_deletions = False
            keeps_index = False

            def open(self) -> SharedStore:
                return SharedStore(self.directory, trust=Trust.of(trust))

            @rule(key=keys)
            def get_from_the_web(self, key: CacheKey) -> None:
                files = open_files(RemoteURL.of(f"{server.url}/{self.directory.name}"))
                reader = RemoteStore(files, Trust.on_servers(trust))
                found, expected = reader.get(key), self.held.get(key)
                if expected is None:
                    assert isinstance(found, Miss)
                    assert found.reason == "never-seen"
                    return
                assert isinstance(found, Hit)
                blobs = {name: reader.read_blob(blob) for name, blob in found.blobs.items()}
                assert found.payload == expected.payload
                assert (found.seconds, blobs) == (expected.seconds, expected.blobs)

        run_state_machine_as_test(
            PublishedAgainstDict, settings=settings(max_examples=5, stateful_step_count=20, database=None)
        )


def test_an_unsigned_entry_is_refused_before_it_is_read(
    remote: RemoteStore, key: Key, tmp_path: Path
) -> None:
    unsigned = SharedStore(tmp_path)
    unsigned.put(key("a"), ARTIFACT)
    remote.files.write(entry_place(key("a").hex), unsigned.layout.entry(key("a").hex).read_bytes())
    found = remote.get(key("a"))
    assert isinstance(found, Miss)
    assert (found.reason, "nobody signed" in found.detail) == ("untrusted", True)


def test_a_moved_entry_is_refused(remote: RemoteStore, key: Key) -> None:
    remote.put(key("a"), ARTIFACT)
    remote.files.write(entry_place(key("b").hex), remote.files.read(entry_place(key("a").hex), 10**6))
    found = remote.get(key("b"))
    assert isinstance(found, Miss)
    assert (found.reason, "did not publish here" in found.detail) == ("untrusted", True)


def test_a_tampered_entry_and_a_tampered_blob_are_refused(remote: RemoteStore, key: Key) -> None:
    remote.put(key("a"), ARTIFACT)
    found = remote.get(key("a"))
    assert isinstance(found, Hit)
    remote.files.write(blob_place(found.blobs["code"]), LONG[:-1] + b"x")
    assert remote.read_blob(found.blobs["code"]) is None
    content = remote.files.read(entry_place(key("a").hex), 10**6)
    for place in range(0, len(content), len(content) // 12):
        changed = bytes((content[place] ^ 1,))
        remote.files.write(entry_place(key("a").hex), content[:place] + changed + content[place + 1 :])
        assert isinstance(remote.get(key("a")), Miss)
    remote.put(key("a"), ARTIFACT)
    assert remote.read_blob(found.blobs["code"]) == LONG


def test_entries_of_others_are_believed_if_their_keys_are_listed(
    remote: RemoteStore, open_remote: OpenRemote, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.put(key("a"), ARTIFACT)
    writer = public_key_text(signing_key())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keyless = RemoteStore(open_remote(), Trust.on_servers("private"))
    assert not keyless.may_write
    found = keyless.get(key("a"))
    assert isinstance(found, Miss)
    assert (found.reason, "who is not listed" in found.detail) == ("untrusted", True)
    assert isinstance(RemoteStore(open_remote(), Trust.on_servers(f"signed:{writer}")).get(key("a")), Hit)
    assert tmp_path in key_path().parents


def cache(directory: Path, url: str, **given: Any) -> Cache:
    return Cache(Settings(directory, "readwrite", "compile", remotes=(RemoteURL.of(url),), **given))


def test_two_machines_share_what_one_of_them_compiled(server: Server, key: Key, tmp_path: Path) -> None:
    first, second = cache(tmp_path / "1", server.url), cache(tmp_path / "2", server.url)
    assert first.store(key("shared"), ARTIFACT)
    found = second.lookup(key("shared"))
    assert isinstance(found, Hit)
    assert second.read_blob(found.blobs["code"]) == LONG
    second.flush()
    alone = Cache(Settings(tmp_path / "2", "readwrite", "compile")).lookup(key("shared"))
    assert isinstance(alone, Hit), "the hit was copied to the local store"


def test_a_hit_is_copied_without_asking_the_server_a_second_time(
    server: Server, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache(tmp_path / "1", server.url).store(key("asked once"), ARTIFACT)
    asked, read = [], Breaker.read

    def noted(breaker: Breaker, name: str, most: int) -> bytes:
        asked.append(name)
        return read(breaker, name, most)

    monkeypatch.setattr(Breaker, "read", noted)
    node = cache(tmp_path / "2", server.url)
    assert isinstance(node.lookup(key("asked once")), Hit)
    node.flush()
    assert asked.count(entry_place(key("asked once").hex)) == 1
    alone = Cache(Settings(tmp_path / "2", "readwrite", "compile")).lookup(key("asked once"))
    assert isinstance(alone, Hit)


@pytest.mark.slow
def test_uses_are_reported_once_a_node_and_shown_by_stats(
    server: Server, key: Key, tmp_path: Path, open_remote: Callable[..., RemoteFiles]
) -> None:
    for file in list(open_remote().listed("")):  # of the tests before
        open_remote().remove(file.name)
    for _ in range(3):
        node = cache(tmp_path, server.url)
        node.lookup(key("a"))
        node.store(key("a"), ARTIFACT)
        node.flush()
    reader = cache(tmp_path / "2", f"{server.url}?write=no")
    reader.lookup(key("a"))
    reader.flush()
    assert len(list(open_remote().listed("v1/u/"))) == 1
    result = CliRunner().invoke(app, ["stats", "--remote", server.url, "--json"])
    assert result.exit_code == 0, result.output
    seen = json.loads(result.stdout)
    assert (seen["entries"], seen["blobs"], seen["bytes"] > len(LONG)) == (1, 1, True)
    assert seen["levels"]["kernel"]["misses"] == 1
    assert "it holds 1 entry and 1 blob" in CliRunner().invoke(app, ["stats", "--remote", server.url]).stdout


def test_a_server_that_is_gone_costs_one_wait_and_one_warning(
    server: Server, key: Key, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tried = cache(tmp_path, f"{server.url}?timeout=0.3")
    tried.lookup(key("a"))
    server.pause()
    try:
        found = [tried.lookup(key(n)) for n in range(50)]
        assert tried.store(key("a"), ARTIFACT) is False
    finally:
        server.resume()
    assert all(isinstance(miss, Miss) and miss.reason == "unreadable" for miss in found)
    assert (
        sum("is left alone" in record.message for record in caplog.records if record.levelname == "WARNING")
        == 1
    )
    assert isinstance(Cache(Settings(tmp_path, "readwrite", "compile")).lookup(key("a")), Hit)


def test_a_url_with_write_no_is_only_read(server: Server, key: Key, tmp_path: Path) -> None:
    writer, reader = cache(tmp_path / "1", server.url), cache(tmp_path / "2", f"{server.url}?write=no")
    assert reader.store(key("mine"), ARTIFACT)
    assert isinstance(cache(tmp_path / "3", server.url).lookup(key("mine")), Miss)
    assert writer.store(key("theirs"), ARTIFACT)
    assert isinstance(reader.lookup(key("theirs")), Hit)


def test_a_web_server_publishes_a_shared_directory(key: Key, tmp_path: Path, own_key: bytes) -> None:
    trust = Trust.of(f"signed:{public_key_text(own_key)}")
    SharedStore(tmp_path / "public", trust=trust).put(key("a"), ARTIFACT)
    with web(tmp_path / "public") as server:
        reader = cache(tmp_path / "local", server.url)
        found = reader.lookup(key("a"))
        assert isinstance(found, Hit)
        assert reader.read_blob(found.blobs["code"]) == LONG
        assert isinstance(missing := reader.lookup(key("b")), Miss)
        assert missing.reason == "never-seen"


def test_files_of_a_server_outlive_a_fork_while_it_is_asked(server: Server, key: Key, tmp_path: Path) -> None:
    shared = cache(tmp_path, server.url)
    shared.store(key("a"), ARTIFACT)
    child = os.fork()
    if child == 0:
        try:
            fresh = RemoteStore(open_files(RemoteURL.of(server.url)), Trust.on_servers("private"))
            right = isinstance(fresh.get(key("a")), Hit) and shared.store(key("child"), ARTIFACT)
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(cache(tmp_path / "2", server.url).lookup(key("child")), Hit)
