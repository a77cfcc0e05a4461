"""Bundles as a tier: what was exported is found, and nothing that was changed since."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from cachegraph.cache import Cache
from cachegraph.key import CacheKey
from cachegraph.remote_url import RemoteURL
from cachegraph.settings import Settings
from cachegraph.store.entry import INLINE_LIMIT, Artifact, Hit, Miss
from cachegraph.store.files import Oversized
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance.directory import CacheDirectory
from cachegraph.store.maintenance.exporting import export
from cachegraph.store.paths import blob_place, entry_place
from cachegraph.store.remote import bundle_format
from cachegraph.store.remote.bundle_files import BundleFiles
from cachegraph.store.remote.bundle_format import BundleWriter
from cachegraph.store.remote.files import RemoteError
from cachegraph.store.remote.store import RemoteStore
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.signing import public_key_text
from cachegraph.store.tiers import place
from cachegraph.store.trust import Trust
from tests.cachegraph.store.signers import signing_key
from tests.cachegraph.store.state_machine import KEYS, Crash, StoreAgainstDict, keys

Key = Callable[..., CacheKey]
LONG = bytes(range(256)) * (INLINE_LIMIT // 256 + 1)
ARTIFACT = Artifact(b"payload", {"code": LONG}, {"compile": 1.0}, "what it is")


def files_of(path: Path) -> BundleFiles:
    return BundleFiles(RemoteURL.of(f"bundle:{path}"))


def mounted(path: Path, trust: str = "private") -> RemoteStore:
    return RemoteStore(files_of(path), Trust.on_servers(trust))


def exported(store: LocalStore, path: Path) -> Path:
    """Export all entries of `store`."""
    export(CacheDirectory(place(store.layout.directory)), {entry.digest for entry in store.scan()}, str(path))
    return path


@pytest.fixture
def bundle(store: LocalStore, key: Key, tmp_path: Path) -> Path:
    """Return a bundle of two entries that share a blob."""
    store.put(key("a"), ARTIFACT)
    store.put(key("b"), Artifact(LONG, {"code": LONG}, references=(key("a").digest,)))
    return exported(store, tmp_path / "bundle")


def test_what_was_exported_is_found_and_nothing_else(bundle: Path, key: Key) -> None:
    store = mounted(bundle)
    found = store.get(key("a"))
    assert isinstance(found, Hit)
    assert (found.payload, dict(found.seconds)) == (b"payload", {"compile": 1.0})
    assert store.read_blob(found.blobs["code"]) == LONG
    assert isinstance(longer := store.get(key("b")), Hit)
    assert longer.payload == LONG
    assert isinstance(missing := store.get(key("c")), Miss)
    assert missing.reason == "never-seen"
    described = {file.entry.digest: file for file in store.stored()}
    assert described[key("a").digest].entry.summary == "what it is"
    assert described[key("b").digest].references == (key("a").digest,)
    assert bundle.stat().st_size < 2 * len(LONG), "equal contents are there once"


def test_a_hit_reads_its_own_files_and_no_others(
    bundle: Path, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = mounted(bundle)
    store.get(key("c"))  # reads the index
    read: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, start: read.append(n) or pread(fd, n, start))
    assert isinstance(store.get(key("a")), Hit)
    assert sum(read) < 2000


def test_equal_entries_make_equal_bundles(store: LocalStore, bundle: Path, tmp_path: Path) -> None:
    cache = Cache(Settings(store.layout.directory, "readwrite", "compile"))
    cache.get_or_build(KEYS[0], lambda: ARTIFACT, bytes)
    first = exported(store, tmp_path / "first").read_bytes()
    cache.get_or_build(KEYS[0], lambda: ARTIFACT, bytes)
    cache.flush()
    assert exported(store, tmp_path / "second").read_bytes() == first


def test_a_bundle_is_only_read(bundle: Path) -> None:
    files = files_of(bundle)
    for change in (
        lambda: files.write("v1/e/aa/x", b""),
        lambda: files.create("v1/e/aa/x", b""),
        lambda: files.remove("v1/e/aa/x"),
    ):
        with pytest.raises(RemoteError, match="a bundle is only read"):
            change()
    assert not mounted(bundle).may_write


def test_a_file_that_is_longer_than_its_reader_allows_is_refused(bundle: Path, key: Key) -> None:
    with pytest.raises(Oversized):
        files_of(bundle).read(entry_place(key("a").hex), 10)


def test_a_bundle_that_is_cut_short_anywhere_is_a_miss_with_a_reason(bundle: Path, key: Key) -> None:
    whole = bundle.read_bytes()
    for length in (0, 3, 4, 40, 1000, len(whole) // 2, len(whole) - 41, len(whole) - 1):
        bundle.write_bytes(whole[:length])
        found = mounted(bundle).get(key("a"))
        assert isinstance(found, Miss)
        assert (found.reason, str(bundle) in found.detail) == ("unreadable", True)
        with pytest.raises(RemoteError):
            list(files_of(bundle).listed(""))


def test_no_flipped_bit_gives_another_entry(bundle: Path, key: Key) -> None:
    whole = bundle.read_bytes()
    extent = bundle_format.BundleIndex.read(os.open(bundle, os.O_RDONLY), len(whole)).entry(key("a").hex)
    assert extent is not None
    near_end = range(len(whole) - 200, len(whole), 7)
    for place_of in (0, 3, *range(extent.start, extent.start + extent.length, 41), *near_end):
        bundle.write_bytes(whole[:place_of] + bytes((whole[place_of] ^ 1,)) + whole[place_of + 1 :])
        found = mounted(bundle).get(key("a"))
        assert isinstance(found, Miss)
        assert found.reason in ("damaged", "untrusted", "unreadable", "foreign-format")


def test_another_version_is_a_miss_that_names_it(bundle: Path, key: Key) -> None:
    content = bundle.read_bytes()
    bundle.write_bytes(content[:3] + b"\3" + content[4:-1] + b"\3")
    found = mounted(bundle).get(key("a"))
    assert isinstance(found, Miss)
    assert "it has version 3, and this release reads version 2" in found.detail


def test_a_missing_bundle_and_a_directory_are_misses_with_a_reason(tmp_path: Path, key: Key) -> None:
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "no regular file")):
        found = mounted(path).get(key("a"))
        assert isinstance(found, Miss)
        assert (found.reason, why in found.detail) == ("unreadable", True)


def test_a_tampered_blob_is_not_read(bundle: Path, key: Key) -> None:
    hit = mounted(bundle).get(key("a"))
    assert isinstance(hit, Hit)
    content = bundle.read_bytes()
    bundle.write_bytes(content.replace(LONG, LONG[:-1] + b"x"))
    assert mounted(bundle).read_blob(hit.blobs["code"]) is None
    assert isinstance(mounted(bundle).get(key("b")), Miss), "its payload is that blob"


def test_an_unsigned_a_moved_and_a_strangers_entry_are_refused(
    bundle: Path, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsigned = SharedStore(tmp_path / "unsigned")
    unsigned.put(key("unsigned"), ARTIFACT)
    with BundleWriter(str(tmp_path / "forged")) as writer:
        writer.add_entry(key("unsigned").hex, unsigned.layout.entry(key("unsigned").hex).read_bytes())
        writer.add_entry(key("moved").hex, files_of(bundle).read(entry_place(key("a").hex), 10**6))
    for name, why in (("unsigned", "nobody signed"), ("moved", "did not publish here")):
        found = mounted(tmp_path / "forged").get(key(name))
        assert isinstance(found, Miss)
        assert (found.reason, why in found.detail) == ("untrusted", True)
    writer_key = public_key_text(signing_key())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found = mounted(bundle).get(key("a"))
    assert isinstance(found, Miss)
    assert (found.reason, "who is not listed" in found.detail) == ("untrusted", True)
    assert isinstance(mounted(bundle, f"signed:{writer_key}").get(key("a")), Hit)


def test_a_bundle_is_replaced_while_a_program_reads_it(bundle: Path, store: LocalStore, key: Key) -> None:
    reader = mounted(bundle)
    assert isinstance(reader.get(key("new")), Miss)
    store.put(key("new"), ARTIFACT)
    exported(store, bundle)
    assert isinstance(reader.get(key("new")), Hit)
    assert isinstance(reader.get(key("a")), Hit)


def test_files_have_the_places_of_a_shared_directory(bundle: Path, key: Key) -> None:
    files = files_of(bundle)
    names = [file.name for file in files.listed("")]
    assert names[:2] == sorted(entry_place(key(name).hex) for name in "ab")
    assert [file.name for file in files.listed("v1/b/")] == names[2:]
    assert all(len(files.read(file.name, file.size)) == file.size for file in files.listed(""))
    for wrong in ("v1/e/00/" + key("a").hex, "v1/l/00/x", "", blob_place(names[2][-80:])[3:]):
        with pytest.raises(FileNotFoundError):
            files.read(wrong, 10**6)


def test_any_sequence_of_verbs_and_exports_gives_the_cache_of_the_last_export(tmp_path: Path) -> None:
    class ExportedStore(StoreAgainstDict):
        """A local store that is exported in between; the bundle stays as its last whole export was."""

        def __init__(self) -> None:
            super().__init__()
            self.in_bundle: dict[CacheKey, Artifact] = {}
            self.bundle = self.directory / "bundle"
            self.reader = mounted(self.bundle)

        def open(self) -> LocalStore:
            return LocalStore(self.directory)

        @rule(which=st.integers(0, 1))
        def export(self, which: int) -> None:
            exported(self.stores[which], self.bundle)
            self.in_bundle = dict(self.held)

        @rule(which=st.integers(0, 1))
        def crash_while_exporting(self, which: int) -> None:
            def crash(*_: Any) -> None:
                raise Crash

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(BundleWriter, "_write_index", crash)
                with pytest.raises(Crash):
                    exported(self.stores[which], self.bundle)

        @precondition(lambda self: self.bundle.exists())
        @rule(key=keys)
        def get_from_the_bundle(self, key: CacheKey) -> None:
            found = self.reader.get(key)
            if key not in self.in_bundle:
                assert isinstance(found, Miss)
                assert found.reason == "never-seen"
                return
            expected = self.in_bundle[key]
            assert isinstance(found, Hit)
            blobs = {name: self.reader.read_blob(blob) for name, blob in found.blobs.items()}
            assert (found.payload, found.seconds, blobs) == (
                expected.payload,
                expected.seconds,
                expected.blobs,
            )

    run_state_machine_as_test(
        ExportedStore, settings=settings(max_examples=5, stateful_step_count=20, database=None)
    )
