"""Records of source digests: right whatever happens to the source, the record and the clock, or not believed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import cachegraph.fingerprint.source as source
import cachegraph.fingerprint.source_records as source_records
from cachegraph.cache import Artifact, Cache
from cachegraph.errors import SourceError
from cachegraph.fingerprint.source import check_relied_on, imported_source
from cachegraph.fingerprint.source_records import RECORD_SIZE, SETTLED, Listing, listed
from cachegraph.key import CacheKey
from cachegraph.settings import Mode, Settings
from cachegraph.store.filesystem import FileSystem, file_system
from cachegraph.store.local import store as local_store

ROOT = Path(__file__).resolve().parents[3]
SOURCE = {
    "__init__.py": "",
    "a.py": "x = 1\n",
    "b.py": "x = 2\n",
    "sub/b.py": "y = 2\n",
    "sub/deep/c.py": "z = 3\n",
    "sub.d/e.py": "e = 4\n",
    "none/notes.txt": "n",
    "__pycache__/a.py": "compiled",
    "sub/__pycache__/b.cpython-311.pyc": "?",
}
STRANGER = 54321
_KEY = CacheKey.build("function", {"scheme": b"a"})


class Process:
    """What successive processes do with the source in `tree` and the cache in `directory`."""

    def __init__(self, tree: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = tree
        self.directory = directory
        self.reads: list[str] = []
        self.cache = Cache(Settings(directory, "readwrite", "compile"))
        self._patch = monkeypatch
        read = source._read

        def counted(path: str, buffer: memoryview) -> tuple[memoryview | bytes, float]:
            self.reads.append(path)
            return read(path, buffer)

        monkeypatch.setattr(source, "_read", counted)
        self.start()

    def start(self, mode: Mode = "readwrite", began: float | None = None) -> None:
        """Forget what the process before knew; this one begins after all edits, or then."""
        self._patch.setattr(source, "_read_before", {})
        self._patch.setattr(source, "_relied_on", {})
        self._patch.setattr(source, "began", lambda: time.time() + 60 if began is None else began)
        self.reads.clear()
        self.cache = Cache(Settings(self.directory, mode, "compile"))

    def digest(self) -> bytes:
        """Return the digest that keys have."""
        return imported_source(self.tree, self.cache.source_records)

    def store(self) -> bool:
        """Store something, as after a miss."""
        return self.cache.store(_KEY, Artifact(b"built"))

    def record(self) -> Path:
        """Have the source recorded and return the file."""
        self.start()
        self.digest()
        assert self.store()
        (found,) = self.records()
        self.start()
        return found

    def records(self) -> list[Path]:
        """Return the files in the folder of records."""
        return sorted((self.directory / "v1" / "sources").glob("*"))

    def by_reading(self) -> bytes:
        """Return the digest of what lies there now."""
        return source._read_anew(str(self.tree))

    def is_right_by_reading(self) -> bool:
        """Return True if a new process finds the right digest, and not by a record."""
        expected = self.by_reading()
        self.start()
        return self.digest() == expected and len(self.reads) > 0


@pytest.fixture
def process(tmp_path: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """Return a process on the tree SOURCE, whose edits count as settled at once."""
    for path, content in SOURCE.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(content)
    monkeypatch.setattr(source_records, "SETTLED", 0)
    monkeypatch.setattr(local_store, "file_system", lambda path: FileSystem("ext4", True))
    return Process(tmp_path / "tree", cache_directory, monkeypatch)


def test_a_digest_from_a_record_is_that_of_the_contents_of_which_none_is_read(process: Process) -> None:
    expected = process.digest()
    assert len(process.reads) == 6
    assert process.store()
    process.start()
    assert process.digest() == expected
    assert process.reads == []


def test_a_record_is_a_small_file_of_this_user_named_by_a_digest(process: Process) -> None:
    record = process.record()
    assert record.stat().st_size == RECORD_SIZE
    assert record.stat().st_mode & 0o777 == 0o600
    assert len(record.name) == 32


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree: (tree / "a.py").write_text("x = 7\n"),
        lambda tree: (tree / "sub/deep/c.py").write_text("z = 30\n"),
        lambda tree: (tree / "new.py").write_text(""),
        lambda tree: (tree / "none/new.py").write_text(""),
        lambda tree: (tree / "a.py").unlink(),
        lambda tree: (tree / "a.py").rename(tree / "c.py"),
        lambda tree: (tree / "a.py").rename(tree / "b.py"),
        lambda tree: (tree / "sub").rename(tree / "other"),
        lambda tree: shutil.rmtree(tree / "sub"),
    ],
)
def test_every_change_is_seen(edit: Callable[[Path], object], process: Process) -> None:
    process.record()
    before = process.digest()
    edit(process.tree)
    assert process.is_right_by_reading()
    assert process.digest() != before
    process.record()
    assert process.digest() == process.by_reading()


def test_an_edit_of_the_same_size_whose_time_is_set_back_is_seen(process: Process) -> None:
    process.record()
    path = process.tree / "a.py"
    before, digest = path.stat(), process.digest()
    path.write_text("x = 9\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert process.is_right_by_reading()
    assert process.digest() != digest


def test_two_files_that_change_places_are_seen(process: Process) -> None:
    process.record()
    first, second = process.tree / "a.py", process.tree / "b.py"
    first.rename(process.tree / "between")
    second.rename(first)
    (process.tree / "between").rename(second)
    assert process.is_right_by_reading()


def test_another_tree_in_the_place_of_the_first_is_read(process: Process, tmp_path: Path) -> None:
    process.record()
    shutil.copytree(process.tree, tmp_path / "copy")
    (tmp_path / "copy/a.py").write_text("x = 8\n")
    for path in SOURCE:
        status = (process.tree / path).stat()
        os.utime(tmp_path / "copy" / path, ns=(status.st_atime_ns, status.st_mtime_ns))
    process.tree.rename(tmp_path / "first")
    (tmp_path / "copy").rename(process.tree)
    assert process.is_right_by_reading()


def test_a_record_with_any_byte_changed_is_ignored(process: Process) -> None:
    record = process.record()
    content = record.read_bytes()
    for place in range(len(content)):
        record.write_bytes(content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :])
        assert process.is_right_by_reading()
    record.write_bytes(content)
    process.start()
    process.digest()
    assert process.reads == []


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[:-1], lambda c: c + b"\0", lambda c: c[16:] * 2]
)
def test_a_record_of_another_length_is_ignored(damage: Callable[[bytes], bytes], process: Process) -> None:
    record = process.record()
    record.write_bytes(damage(record.read_bytes()))
    assert process.is_right_by_reading()


def test_the_record_of_another_directory_is_ignored(process: Process, tmp_path: Path) -> None:
    record = process.record()
    content = record.read_bytes()
    first, process.tree = process.tree, tmp_path / "other"
    shutil.copytree(first, process.tree)
    process.digest()
    process.store()
    (other,) = set(process.records()) - {record}
    other.write_bytes(content)
    assert process.is_right_by_reading()


def test_a_record_in_place_of_which_something_else_lies_is_ignored(process: Process, tmp_path: Path) -> None:
    record = process.record()
    content = record.read_bytes()
    (tmp_path / "copy").write_bytes(content)
    record.unlink()
    record.symlink_to(tmp_path / "copy")
    assert process.is_right_by_reading()
    record.unlink()
    record.mkdir()
    assert process.is_right_by_reading()
    assert process.store()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_record_that_others_can_write_is_not_believed(mode: int, process: Process) -> None:
    process.record().chmod(mode)
    assert process.is_right_by_reading()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_record_of_another_user_is_not_believed(process: Process) -> None:
    record = process.record()
    os.chown(record, STRANGER, -1)
    assert process.is_right_by_reading()
    os.chown(record, 0, -1)
    os.chown(record.parent, STRANGER, -1)
    assert process.is_right_by_reading()


def test_a_fresh_edit_is_recorded_only_when_it_is_settled(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_records, "SETTLED", SETTLED)
    (process.tree / "a.py").write_text("x = 5\n")
    process.digest()
    assert process.store()
    assert process.records() == []
    now = time.time_ns()
    monkeypatch.setattr(source_records.time, "time_ns", lambda: now + SETTLED)
    assert process.store()
    assert len(process.records()) == 1


def test_what_was_changed_by_a_clock_that_went_ahead_is_not_recorded(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(source_records.time, "time_ns", lambda: now - 3_600_000_000_000)
    process.digest()
    assert process.store()
    assert process.store()
    assert process.records() == []


def test_what_is_changed_while_it_is_read_is_not_recorded(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.digest()
    read = source._read_anew

    def edit_then(directory: str) -> bytes:
        found = read(directory)
        (process.tree / "a.py").write_text("x = 6\n")
        return found

    assert process.cache.source_records is not None
    process.cache.source_records.add(str(process.tree), edit_then)
    assert process.store()
    assert process.records() == []


def test_a_link_in_place_of_a_file_is_followed_and_not_recorded(process: Process, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("w = 1\n")
    (process.tree / "link.py").symlink_to(tmp_path / "elsewhere.py")
    assert listed(str(process.tree)) is None
    before = process.digest()
    assert process.store()
    assert process.records() == []
    (tmp_path / "elsewhere.py").write_text("w = 2\n")
    assert process.is_right_by_reading()
    assert process.digest() != before


def test_a_link_in_place_of_a_directory_is_not_followed(process: Process, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/w.py").write_text("w = 1\n")
    (process.tree / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    process.record()
    found = process.digest()
    assert process.reads == []
    assert found == process.by_reading()


def test_a_directory_named_like_a_file_is_not_recorded(process: Process) -> None:
    (process.tree / "g.py").mkdir()
    (process.tree / "g.py/h.py").write_text("h = 1\n")
    process.digest()
    assert process.store()
    assert process.records() == []


@pytest.mark.parametrize("kind", [("nfs", False), ("squashfs", True), ("vfat", True), ("unknown", False)])
def test_only_a_file_system_that_is_known_to_keep_times_of_change_is_believed(
    kind: tuple[str, bool], process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_store, "file_system", lambda path: FileSystem(*kind))
    process.digest()
    assert process.store()
    assert process.records() == []


def test_times_of_whole_seconds_are_not_believed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    assert Listing(b"", ["a.py"], [1_700_000_000_123_000_000], 0).shows_edits(str(tmp_path))
    assert not Listing(b"", ["a.py"], [1_700_000_000_000_000_000], 0).shows_edits(str(tmp_path))


def test_a_hit_writes_nothing_and_a_store_writes_once(process: Process) -> None:
    process.digest()
    process.cache.lookup(_KEY)
    assert process.records() == []
    record = process.record()
    before = record.stat(), record.parent.stat()
    process.digest()
    process.cache.lookup(_KEY)
    process.store()
    assert (record.stat().st_ino, record.parent.stat().st_mtime_ns) == (
        before[0].st_ino,
        before[1].st_mtime_ns,
    )
    (process.tree / "a.py").write_text("x = 3\n")
    process.start()
    process.digest()
    process.cache.lookup(_KEY)
    assert record.stat().st_ino == before[0].st_ino


@pytest.mark.parametrize("mode", ["readonly", "off"])
def test_where_nothing_is_stored_nothing_is_recorded(mode: Mode, process: Process) -> None:
    process.start(mode)
    process.digest()
    assert not process.store()
    assert process.records() == []


def test_a_cache_that_is_only_read_has_use_of_records(process: Process) -> None:
    process.record()
    process.start("readonly")
    process.digest()
    assert process.reads == []


def test_a_record_that_cannot_be_written_fails_nothing(process: Process) -> None:
    process.digest()
    (process.directory / "v1").mkdir(parents=True, mode=0o700)
    process.directory.chmod(0o700)
    (process.directory / "v1/sources").write_text("in the way")
    assert process.store()
    process.start()
    assert process.is_right_by_reading()


def test_what_another_cache_stores_is_recorded_where_it_was_asked_for(
    process: Process, tmp_path: Path
) -> None:
    process.digest()
    other = Cache(Settings(tmp_path / "other", "readwrite", "compile"))
    assert other.store(_KEY, Artifact(b"built"))
    assert not (tmp_path / "other/v1/sources").exists()
    assert process.records() == []


def test_source_changed_after_the_process_began_is_refused_in_spite_of_a_record(process: Process) -> None:
    process.record()
    changed = (process.tree / "sub.d/e.py").stat().st_ctime
    process.start(began=changed - 1.0)
    with pytest.raises(SourceError, match=r"e\.py, which was changed after this process began"):
        process.digest()
    process.start(began=changed)
    process.digest()


def test_what_keys_rely_on_is_looked_at_again_in_spite_of_a_record(process: Process) -> None:
    process.record()
    process.start(began=(process.tree / "sub.d/e.py").stat().st_ctime)
    process.digest()
    check_relied_on()
    (process.tree / "sub/b.py").write_text("y = 3\n")
    with pytest.raises(SourceError, match=f"{process.tree}/sub/b.py"):
        check_relied_on()
    assert not process.store()
    (process.tree / "sub/b.py").unlink()
    with pytest.raises(SourceError, match="No such file"):
        check_relied_on()


def test_a_directory_that_is_gone_or_has_no_source_is_refused_in_spite_of_a_record(process: Process) -> None:
    process.record()
    shutil.rmtree(process.tree)
    with pytest.raises(SourceError, match="No such file"):
        process.digest()
    process.tree.mkdir()
    process.start()
    with pytest.raises(SourceError, match=r"no \*\.py file"):
        process.digest()


_PROGRAM = """
import cachegraph.fingerprint.source as source

read, paths = source._read, []
source._read = lambda path, buffer: (paths.append(path), read(path, buffer))[1]
import engine
import engine.tensor as pt

x = pt.vector("x")
outcome = engine.function([x], pt.exp(x)).cache_info.outcome
print(outcome, len(paths))
"""


@pytest.mark.skipif(
    not file_system(ROOT).keeps_change_times, reason="the checkout is where nothing is recorded"
)
def test_a_second_process_finds_a_function_of_the_engine_without_reading_its_source() -> None:
    def run() -> list[str]:
        command = [sys.executable, "-c", _PROGRAM]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    outcome, read = run()
    assert (outcome, int(read) > 500) == ("miss", True)
    assert run() == ["hit", "0"]
