"""Blobs: immutable, self-checking, never half written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cachegraph.store.blobs import Blobs
from cachegraph.store.paths import Layout
from cachegraph.store.trust import Guard, Trust


@pytest.fixture
def layout(cache_directory: Path) -> Layout:
    return Layout(cache_directory)


@pytest.fixture
def blobs(layout: Layout) -> Blobs:
    return Blobs(layout, Guard(layout.directory, Trust.of("private")))


@pytest.mark.parametrize("content", [b"", b"x", b"0123456789" * 100_000])
def test_what_is_written_is_read(content: bytes, blobs: Blobs) -> None:
    assert blobs.read(blobs.write(content)) == content


def test_a_blob_and_its_directories_belong_to_the_owner_alone(layout: Layout, blobs: Blobs) -> None:
    path = layout.blob(blobs.write(b"private"))
    assert path.stat().st_mode & 0o777 == 0o600
    for directory in (path.parent, layout.blobs, layout.root, layout.directory):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_was_there_keeps_its_mode(layout: Layout, blobs: Blobs) -> None:
    layout.directory.mkdir(mode=0o755)
    layout.directory.chmod(0o755)
    blobs.write(b"x")
    assert layout.directory.stat().st_mode & 0o777 == 0o755


def test_a_flipped_bit_is_seen(layout: Layout, blobs: Blobs) -> None:
    digest = blobs.write(b"content")
    layout.blob(digest).write_bytes(b"c\x6entent")
    assert blobs.read(digest) is None


def test_writing_a_damaged_blob_again_heals_it(layout: Layout, blobs: Blobs) -> None:
    digest = blobs.write(b"content")
    layout.blob(digest).write_bytes(b"contenT")
    assert blobs.write(b"content") == digest
    assert blobs.read(digest) == b"content"


def test_writing_a_sound_blob_again_only_renews_it(layout: Layout, blobs: Blobs) -> None:
    path = layout.blob(blobs.write(b"content"))
    os.utime(path, (1, 1))
    before = path.stat()
    blobs.write(b"content")
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime > 1


def test_a_missing_blob_raises(blobs: Blobs) -> None:
    with pytest.raises(FileNotFoundError):
        blobs.read("00" * 40)


@pytest.mark.parametrize("digest", ["", "../../../etc/passwd", "AB" * 40, "ab" * 41, "ab" * 16])
def test_what_is_no_name_of_a_blob_is_not_read(digest: str, blobs: Blobs) -> None:
    with pytest.raises(ValueError, match="80 hexadecimal digits"):
        blobs.read(digest)


def test_a_symbolic_link_is_not_followed(tmp_path: Path, layout: Layout, blobs: Blobs) -> None:
    digest = blobs.write(b"content")
    elsewhere = tmp_path / "elsewhere"
    layout.blob(digest).rename(elsewhere)
    layout.blob(digest).symlink_to(elsewhere)
    with pytest.raises(OSError, match="found a symbolic link"):
        blobs.read(digest)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_write_that_fails_leaves_nothing(
    call: str, code: int, layout: Layout, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=os.strerror(code)):
        blobs.write(b"content")
    assert [path for path in layout.blobs.rglob("*") if path.is_file()] == []


def test_files_lists_blobs_and_what_killed_writers_left(layout: Layout, blobs: Blobs) -> None:
    digest = blobs.write(b"content")
    temporary = layout.blob(digest).parent / ".tmp-1-00"
    temporary.write_bytes(b"half")
    found = {file.path: (file.digest, file.size) for file in blobs.files()}
    assert found == {layout.blob(digest): (digest, 7), temporary: ("", 4)}


def test_no_directory_is_no_files(blobs: Blobs, layout: Layout) -> None:
    assert list(blobs.files()) == []
    assert not layout.directory.exists()
