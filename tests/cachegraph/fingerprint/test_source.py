"""The digest of a package's source: right, independent of place and time; and whether it is what was imported."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import cachegraph.fingerprint.source
from cachegraph.cache import Artifact, Cache
from cachegraph.errors import SourceError
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.source import check_relied_on, imported_source, source_digest
from cachegraph.key import CacheKey
from cachegraph.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _nothing_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cachegraph.fingerprint.source, "_relied_on", {})


def _tree(root: Path, files: dict[str, str]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


SOURCE = {"__init__.py": "", "a.py": "x = 1\n", "sub/b.py": "y = 2\n", "sub/deep/c.py": "z = 3\n"}


def test_where_when_and_in_which_order_files_were_written_does_not_matter(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", SOURCE)
    other = _tree(tmp_path / "elsewhere" / "other", dict(reversed(SOURCE.items())))
    os.utime(other / "a.py", (1, 1))
    assert source_digest(one) == source_digest(other)
    assert len(source_digest(one)) == 16


def test_the_order_of_a_listing_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = _tree(tmp_path / "one", SOURCE), _tree(tmp_path / "other", SOURCE)
    expected = source_digest(one)
    listed = os.scandir

    def backwards(path: str) -> Any:
        with listed(path) as entries:
            return nullcontext(list(entries)[::-1])

    monkeypatch.setattr(os, "scandir", backwards)
    assert source_digest(other) == expected


def test_text_cannot_move_from_a_file_into_the_name_of_the_next(tmp_path: Path) -> None:
    two_files = _tree(tmp_path / "two", {"a.py": "1", "b.py": "2"})
    one_file = _tree(tmp_path / "one", {"a.py": "1b.py2"})
    assert source_digest(two_files) != source_digest(one_file)


def test_what_is_not_python_source_does_not_matter(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", SOURCE)
    other = _tree(
        tmp_path / "other", {**SOURCE, "py.typed": "", "__pycache__/a.cpython-311.pyc": "?", "notes.txt": "n"}
    )
    assert source_digest(one) == source_digest(other)


@pytest.mark.parametrize(
    "changed",
    [
        {**SOURCE, "a.py": "x = 2\n"},
        {**SOURCE, "sub/deep/c.py": "z = 3"},
        {**SOURCE, "new.py": ""},
        {name: content for name, content in SOURCE.items() if name != "__init__.py"},
        {**SOURCE, "a.py": SOURCE["sub/b.py"], "sub/b.py": SOURCE["a.py"]},
        {"__init__.py": "", "a.py": "x = 1\n", "sub_b.py": "y = 2\n", "sub/deep/c.py": "z = 3\n"},
    ],
)
def test_a_file_edited_added_removed_or_renamed_changes_the_digest(
    changed: dict[str, str], tmp_path: Path
) -> None:
    assert source_digest(_tree(tmp_path / "one", SOURCE)) != source_digest(_tree(tmp_path / "other", changed))


def test_a_directory_is_not_taken_for_a_file_that_holds_its_digest(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one", {"a.py/b.py": "y = 2\n"})
    held = source_digest(one / "a.py")
    other = _tree(tmp_path / "other", {})
    other.mkdir()
    (other / "a.py").write_bytes(held)
    assert source_digest(one) != source_digest(other)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_a_file_of_any_size_counts_to_its_last_byte(size: int, tmp_path: Path) -> None:
    trees = {
        name: _tree(tmp_path / name, {"a.py": "#" * size + end, "b.py": "b = 1\n"})
        for name, end in (("one", "1"), ("same", "1"), ("other", "2"), ("longer", "11"))
    }
    digests = {name: source_digest(tree) for name, tree in trees.items()}
    assert digests["one"] == digests["same"]
    assert len(set(digests.values())) == 3


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    read = os.readv

    def read_early(descriptor: int, buffers: tuple[memoryview]) -> int:
        length = read(descriptor, buffers)
        path.write_text("x = 1\ny = 2\n")
        return length

    monkeypatch.setattr(os, "readv", read_early)
    with pytest.raises(SourceError, match="changed while it was read"):
        source_digest(tmp_path)


def test_a_directory_without_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no \*\.py file") as caught:
        source_digest(_tree(tmp_path, {"a.pyc": "compiled"}))
    assert caught.value.path == tmp_path
    with pytest.raises(SourceError, match="No such file"):
        source_digest(tmp_path / "archive.zip" / "package")


def test_the_source_of_this_package_can_be_read() -> None:
    assert source_digest(ROOT / "cachegraph") != source_digest(ROOT / "cachegraph" / "fingerprint")


Begin = Callable[[float], None]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Return a function that lets this process have begun at another time."""
    return lambda when: monkeypatch.setattr(cachegraph.fingerprint.source, "began", lambda: when)


def test_source_that_was_changed_after_the_process_began_is_refused_by_name(
    tmp_path: Path, begin: Begin
) -> None:
    (tmp_path / "module.py").write_text("x = 1\n")
    written = (tmp_path / "module.py").stat().st_ctime
    begin(written - 1.0)
    with pytest.raises(SourceError, match="changed after this process began") as caught:
        imported_source(tmp_path)
    assert "module.py" in caught.value.found
    begin(written)
    assert imported_source(tmp_path) == source_digest(tmp_path)


def test_a_modification_time_set_back_does_not_hide_a_change(tmp_path: Path, begin: Begin) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    os.utime(path, (0, 0))
    begin(path.stat().st_ctime - 1.0)
    with pytest.raises(SourceError):
        imported_source(tmp_path)


def test_nothing_is_stored_once_source_that_keys_rely_on_was_changed(
    tmp_path: Path, cache_directory: Path, begin: Begin
) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    begin(path.stat().st_ctime)
    imported_source(tmp_path)
    cache, key = (
        Cache(Settings(cache_directory, "readwrite", "compile")),
        CacheKey.build("function", {"scheme": b"a"}),
    )
    assert cache.store(key, Artifact(b"before"))
    check_relied_on()
    path.write_text("x = 2\n")
    path.write_text("x = 1\n")
    os.utime(path, (0, 0))
    with pytest.raises(SourceError, match=r"module\.py"):
        check_relied_on()
    assert not cache.store(key, Artifact(b"after"))
    path.unlink()
    assert not cache.store(key, Artifact(b"after"))
    found = cache.get_or_build(key, lambda: Artifact(b"built"), bytes)
    assert found.value == b"before"


def test_code_of_a_package_that_is_not_followed_is_its_name_and_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: Begin
) -> None:
    begin(time.time() + 60)  # the files are younger than this process

    def encoding(place: str, source: str) -> bytes:
        directory = _tree(
            tmp_path / place, {"described_here/__init__.py": "", "described_here/code.py": source}
        )
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(directory))
            for name in ("described_here", "described_here.code"):
                patch.delitem(sys.modules, name, raising=False)
            function = importlib.import_module("described_here.code").function
            found = encode(lambda x: function(x), ("described_here",))
            for name in ("described_here", "described_here.code"):
                patch.delitem(sys.modules, name)
        return found

    before = "def function(x):\n    return x\n"
    assert encoding("one", before) == encoding("two", before)
    assert encoding("one", before) != encoding("three", before + "# edited\n")


def test_every_byte_of_a_long_file_counts(tmp_path: Path) -> None:
    lines = "x = 1\n" * 40_000
    one = _tree(tmp_path / "one", {"a.py": lines})
    other = _tree(tmp_path / "other", {"a.py": f"{lines[:-2]}2\n"})
    assert source_digest(one) != source_digest(other)
    assert source_digest(one) == source_digest(_tree(tmp_path / "third", {"a.py": lines}))
