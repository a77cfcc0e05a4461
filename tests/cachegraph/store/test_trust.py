"""Trust: files that others could have written are not read; new files have the right modes."""

from __future__ import annotations

import logging
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachegraph import pickling
from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.caching.counters import Tally
from cachegraph.cli.app import app
from cachegraph.errors import SettingsError
from cachegraph.key import CacheKey
from cachegraph.settings import Settings, current_settings
from cachegraph.store import files
from cachegraph.store.entry import INLINE_LIMIT
from cachegraph.store.filesystem import file_system
from cachegraph.store.local import connections
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.diagnosis import examine
from cachegraph.store.shared import node
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import public_key, public_key_text
from cachegraph.store.tiers import Tier, TieredStore, place
from cachegraph.store.trust import Trust, Untrusted
from tests.cachegraph.store.signers import signing_key

Key = Callable[..., CacheKey]
STRANGER = 54321
"""A user id that the system does not know."""

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another user"
)


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    return SharedStore(tmp_path / "shared")


@pytest.fixture
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create and return the public key of this user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return public_key_text(signing_key())


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make this process appear as another user to cachegraph; it stays root, so it can read everything."""
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER + 1)
    return STRANGER + 1


def paths(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def large(text: bytes) -> Artifact:
    return Artifact(text * (INLINE_LIMIT + 1), {"graph": b"g" + text}, {"compile": 1.0})


def reason(store: Any, key: CacheKey) -> str:
    found = store.get(key)
    return "" if isinstance(found, Hit) else str(found.reason)


def refused(shared: SharedStore, key: CacheKey) -> str:
    """Return why the store refuses the entry, and check that it has read nothing of it."""
    found = shared.get(key)
    assert isinstance(found, Miss)
    assert found.reason == "untrusted"
    return found.detail


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(
    ("trust", "directory_mode", "file_mode"),
    [("private", 0o700, 0o600), ("published", 0o755, 0o644), ("group:{key}", 0o2770, 0o640)],
)
def test_whatever_the_umask_everything_is_made_with_the_modes_of_the_policy(
    tmp_path: Path, key: Key, trust: str, umask: int, directory_mode: int, file_mode: int, own_key: str
) -> None:
    chosen = trust.format(key=own_key)
    settings = Settings(tmp_path / "local", "readwrite", "compile", tmp_path / "shared", trust=chosen)
    before = os.umask(umask)
    try:
        cache = Cache(settings)
        held: list[Path] = []

        def build() -> Artifact:
            held.extend(paths(tmp_path))
            modes = {path: mode(path) for path in held if not path.is_dir()}
            assert {oct(found) for path, found in modes.items() if tmp_path / "shared" in path.parents} == {
                oct(file_mode)
            }
            assert {found for path, found in modes.items() if tmp_path / "local" in path.parents} == {0o600}
            return large(b"a")

        cache.get_or_build(key("a"), build, bytes)
        cache.flush()
    finally:
        os.umask(before)
    assert any(path.parent.parent.name == "l" for path in held)  # the lease
    assert any(path.parent.name == "locks" for path in held)
    for path in paths(tmp_path / "shared"):
        assert oct(mode(path)) == oct(directory_mode if path.is_dir() else file_mode), path
    for path in paths(tmp_path / "local"):
        assert oct(mode(path)) == oct(0o700 if path.is_dir() else 0o600), path
    assert mode(tmp_path / "shared") == directory_mode
    assert isinstance(Cache(settings).lookup(key("a")), Hit)
    assert reason(SharedStore(tmp_path / "shared", trust=Trust.of(chosen)), key("a")) == ""


@pytest.mark.parametrize("bits", [0o020, 0o002])
@pytest.mark.parametrize("policy", ["private", "published", "group:{key}"])
def test_an_entry_that_others_can_write_is_refused(
    tmp_path: Path, key: Key, bits: int, policy: str, own_key: str
) -> None:
    trust = Trust.of(policy.format(key=own_key))
    shared = SharedStore(tmp_path / "shared", trust=trust)
    shared.put(key("a"), Artifact(b"a"))
    entry = shared.layout.entry(key("a").hex)
    entry.chmod(trust.file_mode | bits)
    assert "others can write it; chmod" in refused(shared, key("a"))
    shared.put(key("a"), Artifact(b"a"))  # a new file replaces it
    assert reason(shared, key("a")) == ""


def test_a_blob_that_others_can_write_is_refused_as_a_payload_and_by_itself(
    shared: SharedStore, key: Key, cache_directory: Path
) -> None:
    local = LocalStore(cache_directory)
    for store in (shared, local):
        store.put(key("a"), large(b"a"))
        found = store.get(key("a"))
        assert isinstance(found, Hit)
        blobs = [path for path in paths(store.layout.blobs) if path.is_file()]
        for blob in blobs:
            blob.chmod(0o666)
        assert reason(store, key("a")) == "untrusted"
        assert store.read_blob(found.blobs["graph"]) is None
        store.put(key("a"), large(b"a"))
        assert reason(store, key("a")) == ""
        assert {mode(path) for path in paths(store.layout.blobs) if path.is_file()} == {0o600}


@pytest.mark.parametrize("where", ["", "v1", "v1/e", "v1/e/kk"])
def test_an_entry_below_a_directory_that_everybody_can_write_is_refused(
    shared: SharedStore, key: Key, where: str
) -> None:
    shared.put(key("a"), Artifact(b"a"))
    directory = shared.layout.directory / where.replace("kk", key("a").hex[:2])
    directory.chmod(0o777)
    fresh = SharedStore(shared.layout.directory)
    assert f"{directory}: found mode 0777: others can write in it; chmod 700 it" in refused(fresh, key("a"))
    with pytest.raises(Untrusted, match="others can write in it"):
        fresh.put(key("a"), Artifact(b"b"))
    directory.chmod(0o700)
    assert reason(fresh, key("a")) == ""


def test_the_cache_directory_may_be_one_in_which_everybody_makes_files_of_his_own(
    tmp_path: Path, key: Key
) -> None:
    directory = tmp_path / "like-tmp"
    directory.mkdir()
    directory.chmod(0o1777)
    shared = SharedStore(directory)
    shared.put(key("a"), Artifact(b"a"))
    assert reason(shared, key("a")) == ""
    shared.layout.root.chmod(0o1777)
    assert reason(SharedStore(directory), key("a")) == "untrusted"


@needs_root
def test_a_directory_of_the_owners_that_others_could_move_to_the_store_is_refused(
    tmp_path: Path, key: Key
) -> None:
    """A user who may write to the cache directory can move a directory of another user into it."""
    shared = SharedStore(tmp_path / "shared")
    cloned = SharedStore(tmp_path / "clone")
    cloned.put(key("a"), Artifact(b"evil"))
    shared.layout.directory.mkdir()
    cloned.layout.root.rename(shared.layout.root)
    os.chown(shared.layout.directory, 0, 4321)
    shared.layout.directory.chmod(0o770)
    assert "others can write in it" in refused(SharedStore(shared.layout.directory), key("a"))
    shared.layout.directory.chmod(0o1770)
    assert reason(SharedStore(shared.layout.directory), key("a")) == "", "only its owner can have moved it"
    shared.layout.directory.chmod(0o770)
    os.chown(shared.layout.directory, 0, 0)
    assert reason(SharedStore(shared.layout.directory), key("a")) == "", "the group is its owner's alone"


def test_the_cache_directory_itself_may_be_a_link_and_nothing_below_it(
    shared: SharedStore, key: Key, tmp_path: Path
) -> None:
    shared.put(key("a"), Artifact(b"a"))
    link = tmp_path / "link"
    link.symlink_to(shared.layout.directory)
    assert reason(SharedStore(link), key("a")) == ""
    entry = shared.layout.entry(key("a").hex)
    for path in (entry, entry.parent, shared.layout.entries, shared.layout.root):
        aside = tmp_path / "aside"
        path.rename(aside)
        path.symlink_to(aside)
        assert "a symbolic link; remove it" in refused(SharedStore(shared.layout.directory), key("a"))
        path.unlink()
        aside.rename(path)
    assert reason(shared, key("a")) == ""


@needs_root
@pytest.mark.parametrize("which", ["the entry", "the blob", "a directory"])
def test_what_another_user_owns_is_refused_unless_that_user_is_trusted(
    shared: SharedStore, key: Key, which: str
) -> None:
    shared.put(key("a"), large(b"a"))
    entry = shared.layout.entry(key("a").hex)
    blobs = [path for path in paths(shared.layout.blobs) if path.is_file()]
    for path in {"the entry": [entry], "the blob": blobs, "a directory": [entry.parent]}[which]:
        os.chown(path, STRANGER, -1)
    again = SharedStore(shared.layout.directory)
    said = refused(again, key("a"))
    assert f"uid {STRANGER} as its owner, and trust is private, files of uid 0" in said
    assert f"published:{STRANGER}" in said
    trusting = SharedStore(shared.layout.directory, trust=Trust.of(f"published:{STRANGER}"))
    assert reason(trusting, key("a")) == ""


@needs_root
def test_what_root_owns_is_believed_by_everybody(shared: SharedStore, key: Key, another_user: int) -> None:
    shared.put(key("a"), large(b"a"))
    assert reason(SharedStore(shared.layout.directory), key("a")) == ""
    for path in [shared.layout.directory, *paths(shared.layout.directory)]:
        os.chown(path, STRANGER, -1)
    assert reason(SharedStore(shared.layout.directory), key("a")) == "untrusted"


@needs_root
def test_a_local_index_of_another_user_or_writable_by_others_is_not_opened(
    store: LocalStore, key: Key, cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(key("a"), Artifact(b"a"))
    store.close()
    index = store.layout.index
    opened: list[object] = []
    real = connections.sqlite3.connect
    monkeypatch.setattr(
        connections.sqlite3,
        "connect",
        lambda *a, **k: opened.append(a) or real(*a, **k),  # type: ignore[func-returns-value]
    )

    def check() -> None:
        fresh = LocalStore(cache_directory)
        assert reason(fresh, key("a")) == "untrusted"
        with pytest.raises(Untrusted):
            fresh.put(key("a"), Artifact(b"a"))
        assert opened == []

    os.chown(index, STRANGER, -1)
    check()
    os.chown(index, 0, -1)
    for path, bad, good in (
        (index, 0o660, 0o600),
        (index.parent, 0o770, 0o700),
        (cache_directory, 0o777, 0o700),
    ):
        path.chmod(bad)
        check()
        path.chmod(good)
    aside = index.with_name("aside")
    index.rename(aside)
    index.symlink_to(aside)
    check()
    index.unlink()
    aside.rename(index)
    for companion in ("-wal", "-shm"):
        planted = index.with_name(index.name + companion)
        planted.write_bytes(b"")
        planted.chmod(0o666)
        check()
        planted.unlink()
    fresh = LocalStore(cache_directory)
    assert reason(fresh, key("a")) == ""
    fresh.close()


def test_nothing_is_read_of_what_is_refused(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.put(key("a"), Artifact(b"a"))
    shared.layout.entry(key("a").hex).chmod(0o666)
    monkeypatch.setattr(files, "_read_all", lambda *_: pytest.fail("read what is not trusted"))
    assert reason(shared, key("a")) == "untrusted"
    assert shared.scan() == []


def test_a_refusal_is_counted_and_said_once_with_what_to_do(
    shared: SharedStore,
    key: Key,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tally = Tally()
    monkeypatch.setattr("cachegraph.caching.records.PROCESS", tally)
    for name in "abc":
        shared.put(key(name), Artifact(b"x"))
        shared.layout.entry(key(name).hex).chmod(0o666)
    cache = Cache(Settings(tmp_path / "local", "readwrite", "compile", tmp_path / "shared"))
    for name in "abc":
        assert reason_of(cache.lookup(key(name))) == "untrusted"
    assert tally.snapshot().misses == {"untrusted": 3}
    [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"not using {shared.layout.entry(key('a').hex)}: found mode 0666" in said
    assert "chmod 600 it" in said
    found = cache.get_or_build(key("a"), lambda: Artifact(b"built"), bytes)
    assert (found.value, found.reason) == (b"built", "untrusted")
    assert reason(shared, key("a")) == ""


def reason_of(found: Hit | Miss) -> str:
    return "" if isinstance(found, Hit) else found.reason


class Evil:
    """An object whose pickle calls a function that must never be called."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


def test_a_class_that_an_entry_may_not_load_is_untrusted(cache_directory: Path, key: Key) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    cache.store(key("a"), Artifact(pickle.dumps(Evil(), protocol=5)))
    found = cache.find(key("a"), lambda payload: pickling.loads(payload, ("engine",)))
    assert isinstance(found, Miss)
    assert found.reason == "untrusted"
    assert "posix.system" in found.detail or "nt.system" in found.detail
    built = cache.get_or_build(
        key("a"),
        lambda: Artifact(pickling.dumps((1, 2))),
        lambda payload: pickling.loads(payload, ("engine",)),
    )
    assert (built.value, built.reason) == ((1, 2), "untrusted")


def test_a_shared_policy_makes_a_local_directory_one_of_files_with_a_private_index_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: Key
) -> None:
    monkeypatch.setattr(node, "user_cache_directory", lambda: str(tmp_path / "user"))
    placement = place(tmp_path / "cache", trust="published")
    assert "shared by several users (published, files of uid" in placement.notice
    assert [tier.trust.policy for tier in (placement.local, *placement.shared)] == ["private", "published"]
    store = placement.open()
    assert isinstance(store, TieredStore)
    store.put(key("a"), Artifact(b"a"))
    assert not (tmp_path / "cache" / "v1" / "index.sqlite").exists()
    assert mode(tmp_path / "cache" / "v1" / "e") == 0o755
    assert {mode(path) for path in paths(tmp_path / "user") if path.is_dir()} == {0o700}


def test_the_policy_is_that_of_the_directory_that_is_shared(tmp_path: Path, own_key: str) -> None:
    placement = place(tmp_path / "own", tmp_path / "all", f"group:{own_key}")
    assert placement.notice == ""
    assert placement.local.trust.policy == "private"
    assert placement.shared[0].trust == Trust.of(f"group:{own_key}")


@needs_root
def test_who_only_reads_what_another_publishes_neither_writes_nor_deletes_nor_claims_there(
    tmp_path: Path, key: Key, another_user: int
) -> None:
    shared = tmp_path / "shared"
    publisher = SharedStore(shared, trust=Trust.of(f"published:{STRANGER}"))
    publisher.put(key("a"), Artifact(b"a"))
    for path in [shared, *paths(shared)]:
        os.chown(path, STRANGER, -1)
    before = paths(shared)
    reader = Cache(
        Settings(tmp_path / "local", "readwrite", "compile", shared, trust=f"published:{STRANGER}")
    )
    assert isinstance(reader.lookup(key("a")), Hit)
    assert reader.get_or_build(key("b"), lambda: Artifact(b"b"), bytes).value == b"b"
    assert isinstance(reader.lookup(key("b")), Hit)
    reader.flush()
    reader._store.delete([key("a").digest])
    assert paths(shared) == before


def test_a_blob_that_another_user_of_the_group_wrote_is_written_again_where_it_cannot_be_renewed(
    tmp_path: Path, key: Key, monkeypatch: pytest.MonkeyPatch, own_key: str
) -> None:
    store = SharedStore(tmp_path / "shared", trust=Trust.of(f"group:{own_key}"))
    store.put(key("a"), large(b"a"))
    before = {path: path.stat().st_ino for path in paths(store.layout.blobs) if path.is_file()}

    def refuse(*_: object) -> None:
        raise PermissionError(1, "not the owner")

    monkeypatch.setattr(os, "utime", refuse)
    store.put(key("b"), large(b"a"))
    assert {path for path in before if path.stat().st_ino != before[path]} == set(before)
    assert reason(store, key("b")) == ""


@pytest.mark.parametrize("text", ["", "private", "published", "published:0", "published:70000"])
def test_the_setting_is_a_policy_and_the_number_of_a_user(text: str) -> None:
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_TRUST": text}).trust == (text or "private")
    trust = Trust.of(text or "private")
    assert (trust.owners or set()) >= {0, os.geteuid()}
    assert trust.signers is None


def test_the_setting_is_a_policy_and_the_keys_of_users(own_key: str) -> None:
    others = public_key_text(b"o" * 32)
    text = f"group:{own_key},{others}"
    assert current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_TRUST": text}).trust == text
    trust = Trust.of(text)
    assert (trust.owners, trust.signers, trust.may_write) == (None, {public_key(own_key), b"o" * 32}, True)
    assert not Trust.of(f"group:{others}").may_write


@pytest.mark.parametrize(
    "text",
    [
        "everybody",
        "private:1",
        "published:me",
        "published:1,2",
        "group",
        "group:",
        "group:1,2",
        "group:ed25519:short",
    ],
)
def test_anything_else_is_refused_with_what_may_be_said(text: str) -> None:
    with pytest.raises(SettingsError, match=r"CACHEGRAPH_TRUST: found .* or published:UID, .* group:KEY,KEY"):
        current_settings({"CACHEGRAPH_DIR": "/a", "CACHEGRAPH_TRUST": text})


def test_the_doctor_says_whose_files_are_believed_and_what_is_refused(
    shared: SharedStore, key: Key, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "user_cache_directory", lambda: str(tmp_path / "user"))
    monkeypatch.setenv("CACHEGRAPH_TRUST", f"published:{os.geteuid()}")
    doctor = lambda: CliRunner().invoke(app, ["doctor", "--dir", str(shared.layout.directory)])  # noqa: E731
    SharedStore(shared.layout.directory, trust=Trust.of("published")).put(key("a"), large(b"a"))
    sound = doctor()
    assert f"trust            published, files of uid {os.geteuid()}" in sound.stdout
    assert sound.exit_code == 0, sound.stdout
    for path in paths(shared.layout.entries):
        path.chmod(0o666 if path.is_file() else 0o755)
    ill = doctor()
    assert ill.exit_code == 1
    assert "; 1 refused" in ill.stdout
    assert "others can write it; chmod 644 it" in ill.stdout
    shared.layout.entries.chmod(0o777)
    assert "others can write in it; chmod 755 it" in doctor().stdout


@needs_root
def test_the_doctor_writes_nothing_where_this_user_only_reads(
    shared: SharedStore, key: Key, another_user: int
) -> None:
    shared.put(key("a"), Artifact(b"a"))
    tier = Tier(shared.layout.directory, file_system(shared.layout.directory), Trust.of("published:0"))
    found = {finding.what: finding.found for finding in examine(tier)}
    assert found["writing"] == "left to those who may: this user only reads here"
