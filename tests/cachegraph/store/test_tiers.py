"""Tiers: chosen by the file system; written, read and copied."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachegraph import cache as cache_module
from cachegraph.cache import Artifact, Cache, Hit, Miss
from cachegraph.cli.app import app
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store import filesystem, tiers
from cachegraph.store.filesystem import FileSystem, file_system
from cachegraph.store.local.statistics import totals
from cachegraph.store.local.store import LocalStore
from cachegraph.store.shared import node
from cachegraph.store.shared.node import node_directory
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.tiers import TieredStore, place

Key = Callable[..., CacheKey]
Run = Callable[..., str]


@pytest.fixture
def tiered(tmp_path: Path) -> Callable[[str], Cache]:
    """Return a function that makes the cache of a node: its own local directory, and one for all."""
    return lambda name: Cache(Settings(tmp_path / name, "readwrite", "compile", tmp_path / "shared"))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a directory that appears to be on NFS, as nothing else does."""

    def of(path: Path) -> FileSystem:
        return FileSystem("nfs", False) if path.is_relative_to(tmp_path / "nfs") else FileSystem("ext4", True)

    monkeypatch.setattr(tiers, "file_system", of)
    monkeypatch.setattr(node, "file_system", of)
    monkeypatch.setattr(node, "user_cache_directory", lambda: str(tmp_path / "user"))
    monkeypatch.setattr(cache_module, "_noticed", set())
    return tmp_path / "nfs"


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.is_file()}


def test_what_one_node_built_another_finds(tiered: Callable[[str], Cache], key: Key) -> None:
    assert tiered("one").store(key("a"), Artifact(b"a", {"graph": b"g"}, {"compile": 1.0}))
    other = tiered("two")
    found = other.lookup(key("a"))
    assert isinstance(found, Hit)
    assert (found.payload, other.read_blob(found.blobs["graph"])) == (b"a", b"g")


def test_a_hit_is_copied_nearer_when_the_counts_are_written(
    tiered: Callable[[str], Cache], key: Key, tmp_path: Path
) -> None:
    tiered("one").store(key("a"), Artifact(b"a", {"graph": b"g"}, {"compile": 1.0}))
    two = tiered("two")
    two.lookup(key("a"))
    assert not (tmp_path / "two").exists()
    two.flush()
    local = LocalStore(tmp_path / "two")
    found = local.get(key("a"))
    assert isinstance(found, Hit)
    assert (found.payload, found.seconds, local.read_blob(found.blobs["graph"])) == (
        b"a",
        {"compile": 1.0},
        b"g",
    )
    assert totals(local.database).levels["kernel"].hits == 1


def test_a_hit_with_a_damaged_blob_is_not_copied_without_it(
    tiered: Callable[[str], Cache], key: Key, tmp_path: Path
) -> None:
    tiered("one").store(key("a"), Artifact(b"a", {"graph": b"g" * 9}))
    [blob] = (tmp_path / "shared").glob("v1/b/*/*")
    blob.write_bytes(b"damaged")
    two = tiered("two")
    two.lookup(key("a"))
    two.flush()
    assert isinstance(LocalStore(tmp_path / "two").get(key("a")), Miss)
    tiered("one").store(key("a"), Artifact(b"a", {"graph": b"g" * 9}))
    healed = two.lookup(key("a"))
    assert isinstance(healed, Hit)
    assert two.read_blob(healed.blobs["graph"]) == b"g" * 9


def test_many_keys_are_found_wherever_each_of_them_is(tiered: Callable[[str], Cache], key: Key) -> None:
    one, other = tiered("one"), tiered("two")
    assert one.store(key("shared"), Artifact(b"shared"))
    assert other.store(key("near"), Artifact(b"near"))
    found = other.lookup_many([key("shared"), key("unknown"), key("near")])
    assert [getattr(answer, "payload", None) for answer in found] == [b"shared", None, b"near"]
    other.flush()
    assert isinstance(LocalStore(other.settings.directory).get(key("shared")), Hit)  # copied, as by `lookup`


def test_readonly_copies_nothing(tiered: Callable[[str], Cache], key: Key, tmp_path: Path) -> None:
    tiered("one").store(key("a"), Artifact(b"a"))
    reader = Cache(Settings(tmp_path / "two", "readonly", "compile", tmp_path / "shared"))
    assert isinstance(reader.lookup(key("a")), Hit)
    reader.flush()
    assert not (tmp_path / "two").exists()


def test_damage_in_one_tier_is_made_good_by_the_other(tmp_path: Path, key: Key) -> None:
    store = TieredStore(LocalStore(tmp_path / "local"), [SharedStore(tmp_path / "shared")])
    store.put(key("a"), Artifact(b"a"))
    store.shared[0].layout.entry(key("a").hex).write_bytes(b"")
    assert store.get(key("a")) == Hit(b"a", {}, {})
    store.local.delete([key("a").digest])
    assert store.get(key("a")) == Miss("damaged", "the entry is cut short")
    store.put(key("a"), Artifact(b"a"))
    store.local.delete([key("a").digest])
    assert store.get(key("a")) == Hit(b"a", {}, {}, str(tmp_path / "shared"))
    assert store.delete([key("a").digest]) == 1
    assert store.get(key("a")).reason == "evicted"  # type: ignore[union-attr]


def test_a_tier_that_fails_does_not_keep_the_other_from_an_entry(tmp_path: Path, key: Key) -> None:
    (tmp_path / "shared").write_text("a file in the way")
    store = TieredStore(LocalStore(tmp_path / "local"), [SharedStore(tmp_path / "shared")])
    with pytest.raises(OSError, match=r"."):
        store.put(key("a"), Artifact(b"a"))
    assert isinstance(store.get(key("a")), Hit)


def test_a_directory_on_a_network_holds_files_and_its_index_is_on_the_node(
    network: Path, key: Key, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "cachegraph"):
        for _ in range(2):
            cache = Cache(Settings(network / "cache", "readwrite", "compile"))
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{network / 'cache'} is on nfs, which is not known to be local")
    assert cache.store(key("a"), Artifact(b"a"))
    assert files(network) == {key("a").hex}
    assert any(name.startswith("index.sqlite") for name in files(tmp_path / "user" / "nodes"))
    assert isinstance(Cache(Settings(network / "cache", "readwrite", "compile")).lookup(key("a")), Hit)


def test_a_shared_directory_behind_one_on_a_network_is_a_third_tier(network: Path, tmp_path: Path) -> None:
    placement = place(network / "cache", tmp_path / "site")
    assert [tier.directory for tier in placement.shared] == [network / "cache", tmp_path / "site"]
    assert place(tmp_path / "a", tmp_path / "a").shared == ()
    assert isinstance(place(tmp_path / "a").open(), LocalStore)


def test_the_index_goes_to_a_temporary_directory_that_is_ours_or_to_a_new_one(
    network: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "user_cache_directory", lambda: str(network / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = tmp_path / f"cachegraph-{os.geteuid()}"
    assert node_directory(network).parent == ours
    assert ours.stat().st_mode & 0o777 == 0o700
    ours.chmod(0o777)
    monkeypatch.setattr(node, "_PLACES", ())
    assert not node_directory(network).is_relative_to(ours)
    ours.rmdir()
    ours.symlink_to(network)
    assert not node_directory(network).is_relative_to(ours)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0xEF53, FileSystem("ext4", True)),
        (0x6969, FileSystem("nfs", False)),
        (0x65735546, FileSystem("fuse", False)),
        (0x12345, FileSystem("type 0x12345", False)),
    ],
)
def test_a_type_that_is_not_known_is_not_taken_for_local(
    number: int, expected: FileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(filesystem, "_statfs_type", lambda _: number)
    assert file_system(tmp_path) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (FileSystem("ext4", True), True),
        (FileSystem("tmpfs", True), True),
        (FileSystem("squashfs", True), False),
        (FileSystem("exfat", True), False),
        (FileSystem("nfs", False), False),
        (FileSystem("apfs", False), False),
    ],
)
def test_times_of_change_are_kept_where_a_disk_is_written_to(found: FileSystem, expected: bool) -> None:
    assert found.keeps_change_times is expected


def test_the_file_system_of_a_path_to_be_made_is_that_of_its_nearest_parent(tmp_path: Path) -> None:
    assert file_system(tmp_path / "not" / "yet") == file_system(tmp_path)
    assert file_system(Path("/proc/self/none")) == FileSystem("proc", True)


def test_clear_removes_the_files_on_the_network_and_the_index_on_the_node(
    network: Path, key: Key, tmp_path: Path
) -> None:
    settings = Settings(network / "cache", "readwrite", "compile")
    assert Cache(settings).store(key("a"), Artifact(b"a"))
    done = CliRunner().invoke(app, ["clear", "--yes", "--dir", str(network / "cache")])
    assert (done.exit_code, done.stdout[:8]) == (0, "removed ")
    assert files(network) == files(tmp_path / "user") == set()
    assert isinstance(Cache(settings).lookup(key("a")), Miss)


def test_the_doctor_says_what_it_finds_and_what_to_change(tmp_path: Path, key: Key) -> None:
    directory = tmp_path / "cache"
    doctor = lambda *more: CliRunner().invoke(app, ["doctor", "--dir", str(directory), *more])  # noqa: E731
    fresh = doctor()
    assert (fresh.exit_code, "not made yet" in fresh.stdout) == (0, True)
    LocalStore(directory).put(key("a"), Artifact(b"a"))
    sound = doctor()
    assert sound.exit_code == 0, sound.stdout
    for what in (
        "file system",
        "owner",
        "mode",
        "clock",
        "free space",
        "temporary files  0",
        "index            1 entry",
        "sqlite",
        "cpu",
    ):
        assert what in sound.stdout
    left = directory / "v1" / ".tmp-killed"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    directory.chmod(0o777)
    ill = doctor()
    assert ill.exit_code == 1
    assert "its group and everybody: chmod 700" in ill.stdout
    assert "1 of them were left by killed processes" in ill.stdout
    assert '"advice"' in doctor("--json").stdout


@pytest.mark.parametrize(
    ("break_index", "said"),
    [
        (
            lambda index: index.write_bytes(b"x" * 5000),
            "file is not a database\n.* nothing is found here: cachegraph verify repairs",
        ),
        (
            lambda index: (index.unlink(), index.mkdir()),
            "not a regular file.*\n.* make it readable, or move it away",
        ),
    ],
    ids=["damaged", "a directory"],
)
def test_the_doctor_finds_an_index_that_is_of_no_use(
    break_index: Callable[[Path], object], said: str, tmp_path: Path, key: Key
) -> None:
    store = LocalStore(tmp_path / "cache")
    store.put(key("a"), Artifact(b"a"))
    store.close()
    for path in tmp_path.glob("cache/v1/index.sqlite-*"):
        path.unlink()
    break_index(store.layout.index)
    done = CliRunner().invoke(app, ["doctor", "--dir", str(tmp_path / "cache")])
    assert done.exit_code == 1, done.output
    assert re.search(f"index +.*{said}", done.stdout)


def test_a_local_hit_before_a_shared_directory_imports_no_sqlalchemy(
    tiered: Callable[[str], Cache], key: Key, run_python: Run, tmp_path: Path
) -> None:
    tiered("one").store(key("a"), Artifact(b"a"))
    program = (
        "import sys\nfrom pathlib import Path\nfrom cachegraph.cache import Cache\n"
        "from cachegraph.key import CacheKey\nfrom cachegraph.settings import Settings\n"
        "cache = Cache(Settings(Path(sys.argv[1]), 'readwrite', 'compile', Path(sys.argv[2])))\n"
        "found = cache.lookup(CacheKey.build('kernel', {'scheme': b'test', 'graph': b'a'}))\n"
        "print(found.payload, sorted(set(sys.modules) & {'sqlalchemy', 'tempfile', 'json', 'logging'}))"
    )
    assert run_python(program, tmp_path / "one", tmp_path / "shared").strip() == "b'a' []"
