"""Opening the index while other processes open it, and after a fork."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cachegraph.store.local import connections
from cachegraph.store.local.connections import open_for_reading, open_for_update, open_for_writing


def test_the_switch_to_the_write_ahead_log_waits_for_another_that_is_switching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own timeout does not cover every case, so it is off here."""
    path = tmp_path / "index.sqlite"
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.0)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE a (b)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        open_for_writing(path)
    ours = sqlite3.connect(path, 0.0, isolation_level=None)
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 10.0)
    release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
    release.start()
    begin = time.monotonic()
    connections._enter_wal_mode(ours, path)
    release.join()
    assert time.monotonic() - begin > 0.1
    assert ours.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    open_for_writing(path).close()
    reader = open_for_reading(path)
    assert reader is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM entry")
    reader.close()


def test_a_missing_index_opens_for_writing_only(tmp_path: Path) -> None:
    path = tmp_path / "v1" / "index.sqlite"
    assert open_for_reading(path) is None
    assert open_for_update(path, 0.1) is None
    assert not path.parent.exists()
    open_for_writing(path).close()
    for opened in (open_for_reading(path), open_for_update(path, 0.1)):
        assert opened is not None
        opened.close()


def test_an_index_that_is_not_set_up_yet_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.touch()
    assert open_for_reading(path) is None
    assert open_for_update(path, 0.1) is None
    assert path.stat().st_size == 0


def test_a_writer_is_durable_against_a_crash_of_the_process_and_keeps_references(tmp_path: Path) -> None:
    connection = open_for_writing(tmp_path / "index.sqlite")
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "auto_vacuum", "mmap_size")
    values = [connection.execute(f"PRAGMA {name}").fetchone() for name in pragmas]
    assert values == [("wal",), (1,), (1,), (2,), (0,)]
    connection.close()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can mount")
def test_without_inodes_for_its_companions_an_index_is_read_as_it_is(tmp_path: Path) -> None:
    origin = tmp_path / "origin" / "index.sqlite"
    open_for_writing(origin).close()
    volume = tmp_path / "volume"
    volume.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "nr_inodes=3,mode=0700", "cachegraph-test", volume],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        shutil.copy(origin, volume)
        (volume / "last").touch()
        reader = open_for_reading(volume / "index.sqlite")
        assert reader is not None
        assert connections.is_immutable(reader)
        assert reader.execute("SELECT count(*) FROM entry").fetchone() == (0,)
        reader.close()
    finally:
        subprocess.run(["umount", volume], check=True)


@pytest.mark.parametrize("companion", ["", "-wal", "-shm"])
def test_a_directory_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, companion: str) -> None:
    """SQLite tries for ten seconds to share an index whose -shm it cannot open."""
    index = tmp_path / "v1" / "index.sqlite"
    connections.open_for_writing(index).close()
    file = Path(f"{index}{companion}")
    file.unlink(missing_ok=True)
    file.mkdir()
    if companion == "-shm":
        Path(f"{index}-wal").write_bytes(b"no log")
    for opens in (connections.open_for_reading, connections.open_for_writing):
        with pytest.raises(OSError, match="not a regular file"):
            opens(index)
