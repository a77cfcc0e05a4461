"""Copies in a local store count only while their signers are trusted, if the user names whom to trust."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.entry import Artifact, Hit, Miss
from cachegraph.store.local.store import LocalStore
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import public_key_text
from cachegraph.store.tiers import place
from cachegraph.store.trust import Trust
from cachegraph.store.trusted_signers import TrustedSigner, trust_list_path, trust_signer
from tests.cachegraph.store.older_release import OlderRelease
from tests.cachegraph.store.signers import User

Key = Callable[..., CacheKey]
KEY = CacheKey.build("kernel", {"graph": b"g"})


class Reader:
    """A user whose node has copied what a publisher signed, and whose trust list has that publisher."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.publisher, self.user = (User(directory / name, patch) for name in ("publisher", "reader"))
        self.user.do(lambda: trust_signer(TrustedSigner(self.publisher.key, "publisher")))
        self.publish(self.publisher, b"copied")
        assert self.lookup(directory / "shared") == "copied"

    def publish(self, by: User, payload: bytes, key: CacheKey = KEY) -> None:
        trust = f"signed:{public_key_text(by.key)}"
        by.do(
            lambda: SharedStore(self.directory / "shared", trust=Trust.of(trust)).put(key, Artifact(payload))
        )

    def lookup(self, shared: Path | None = None, trust: str = "signed", key: CacheKey = KEY) -> str:
        """Return the payload that a process of the reader finds, or the reason for its miss."""

        def process() -> str:
            cache = Cache(Settings(self.directory / "node", "readwrite", "compile", shared, trust=trust))
            found = cache.lookup(key)
            cache.flush()
            return found.payload.decode() if isinstance(found, Hit) else f"{found.reason}: {found.detail}"

        return self.user.do(process)

    def forget(self) -> None:
        """Remove the publisher from the trust list."""
        self.user.do(trust_list_path).write_text("# nobody\n")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(tmp_path, monkeypatch)


def test_a_copy_counts_no_more_when_its_signer_leaves_the_trust_list(reader: Reader) -> None:
    assert reader.lookup() == "copied", "no tier but the local one"
    reader.forget()
    for shared in (None, reader.directory / "shared"):
        refused = reader.lookup(shared)
        assert refused.startswith("untrusted: ")
        assert public_key_text(reader.publisher.key) in refused
    reader.user.do(lambda: trust_signer(TrustedSigner(reader.publisher.key, "")))
    assert reader.lookup() == "copied", "it was not removed"


def test_keys_in_the_setting_decide_about_copies_as_the_list_does(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = User(reader.directory / "other", monkeypatch)
    empty = reader.directory / "empty"
    for policy in ("signed", "group"):
        assert reader.lookup(empty, f"{policy}:{public_key_text(reader.publisher.key)}") == "copied"
        assert reader.lookup(empty, f"{policy}:{public_key_text(other.key)}").startswith("untrusted: ")
    reader.publish(other, b"theirs")
    trust = f"signed:{public_key_text(other.key)}"
    assert reader.lookup(reader.directory / "shared", trust) == "theirs"
    assert reader.lookup(None, trust) == "theirs", "the copy was replaced"


def test_who_names_no_signers_keeps_the_copies_and_imports_that_he_made(reader: Reader) -> None:
    reader.forget()
    for policy in ("private", "published"):
        assert reader.lookup(reader.directory / "empty", policy) == "copied"


def test_what_was_built_here_needs_no_signer(reader: Reader) -> None:
    reader.forget()
    LocalStore(reader.directory / "node").put(KEY, Artifact(b"built"))
    assert reader.lookup() == "built"
    reader.user.do(trust_list_path).unlink()
    assert reader.lookup() == "built"


def test_of_many_keys_only_the_copies_of_strangers_are_misses(reader: Reader, key: Key) -> None:
    local = LocalStore(reader.directory / "node")
    keys = [key(number) for number in range(1200)]
    for number in (0, 600, 1199):
        local.put(keys[number], Artifact(b"built"))
    reader.forget()
    store = reader.user.do(lambda: place(reader.directory / "node", None, "signed").open())
    found = store.get_many([*keys, KEY])
    assert [number for number, one in enumerate(found) if isinstance(one, Hit)] == [0, 600, 1199]
    refused = found[-1]
    assert isinstance(refused, Miss)
    assert refused.reason == "untrusted"


PROCESS = """
from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import current_settings
key = CacheKey.build("kernel", {"graph": b"g"})
found = Cache(current_settings()).get_or_build(key, lambda: Artifact(b"built"), bytes)
print(found.outcome, found.value.decode())
"""


def test_another_process_builds_what_it_may_not_run(reader: Reader) -> None:
    variables = {
        "CACHEGRAPH_DIR": str(reader.directory / "node"),
        "CACHEGRAPH_TRUST": "signed",
        "XDG_CONFIG_HOME": str(reader.directory / "reader"),
    }

    def process() -> str:
        command = [sys.executable, "-c", PROCESS]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert process() == "hit copied"
    reader.forget()
    assert [process(), process()] == ["miss built", "hit built"]


def test_an_index_of_a_release_that_knew_no_signers_is_read(tmp_path: Path, key: Key) -> None:
    older = OlderRelease(tmp_path, schema=5)
    older.put(key("a"), b"a", {}, {})
    older.close()
    store = LocalStore(tmp_path, signers=())
    found = store.get(key("a"))
    assert isinstance(found, Miss)
    assert found.reason == "foreign-format", "its record was read"
    store.put(key("a"), Artifact(b"new"))
    assert isinstance(store.get(key("a")), Hit)
