"""Modules whose bytecode an earlier process kept: the same modules, and never those of other source."""

from __future__ import annotations

import importlib
import inspect
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import cachegraph.hit_modules as hit_modules
from cachegraph.fingerprint import source_records
from cachegraph.fingerprint.source_records import SETTLED
from cachegraph.hit_modules import HitModules
from cachegraph.store.filesystem import FileSystem
from cachegraph.store.local import store as local_store
from cachegraph.store.local.store import LocalStore

SOURCE = {
    "__init__.py": '"""A package."""\n',
    "one.py": '"""A module."""\n\nX = 1\n\n\ndef double(x):\n    """Return twice x."""\n    return 2 * x\n',
    "inner/__init__.py": "NAME = __name__\n",
    "inner/two.py": "from kept_sample.one import double\n\nY = double(3)\n",
}
MODULES = ("kept_sample.one", "kept_sample.inner", "kept_sample.inner.two")


class Process:
    """What successive processes import from `tree`, with the cache in `directory`."""

    def __init__(self, tree: Path, directory: Path) -> None:
        self.tree = tree
        self.directory = directory
        self.modules = HitModules()

    def start(self) -> None:
        """Forget what was imported, and begin as a new process does."""
        self.modules.stop()
        for name in [name for name in sys.modules if name.startswith("kept_sample")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        importlib.import_module("kept_sample")
        self.modules = HitModules()
        self.modules.start("test")

    def imported(self) -> list[ModuleType]:
        """Import the modules and return them."""
        return [importlib.import_module(name) for name in MODULES]

    def keep(self) -> None:
        """Import the modules, and keep them as after a miss."""
        self.start()
        self.imported()
        self.modules.note("kept_sample")
        self.modules.keep(LocalStore(self.directory))

    def kept(self) -> list[str]:
        """Return the modules that a new process takes from the file."""
        self.start()
        return [module.__name__ for module in self.imported() if not is_plain(module)]

    def file(self) -> Path:
        """Return the file."""
        (found,) = (self.directory / "v1" / "modules").iterdir()
        return found


def is_plain(module: ModuleType) -> bool:
    """Return True if Python alone imported `module`."""
    return type(module.__loader__) is SourceFileLoader


@pytest.fixture
def process(tmp_path: Path, cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """Return a process that imports SOURCE, whose edits count as settled at once."""
    for path, content in SOURCE.items():
        (tmp_path / "kept_sample" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kept_sample" / path).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(source_records, "SETTLED", 0)
    monkeypatch.setattr(local_store, "file_system", lambda path: FileSystem("ext4", True))
    (cache_directory / "v1").mkdir(mode=0o700, parents=True, exist_ok=True)
    found = Process(tmp_path / "kept_sample", cache_directory)
    yield found
    found.modules.stop()
    for name in [name for name in sys.modules if name.startswith("kept_sample")]:
        del sys.modules[name]


def test_the_next_process_takes_the_noted_modules_from_one_file(process: Process) -> None:
    process.keep()
    assert process.kept() == list(MODULES)
    assert stat.S_IMODE(process.file().stat().st_mode) == 0o600


def test_a_kept_module_is_as_python_would_have_imported_it(process: Process) -> None:
    process.keep()
    process.start()
    process.modules.stop()
    plain = {module.__name__: module for module in process.imported()}
    process.start()
    for module in process.imported():
        own = plain[module.__name__]
        assert not is_plain(module)
        assert is_plain(own)
        assert isinstance(module.__loader__, SourceFileLoader)
        assert (module.__file__, module.__cached__, module.__package__) == (
            own.__file__,
            own.__cached__,
            own.__package__,
        )
        assert module.__doc__ == own.__doc__
        assert getattr(module, "__path__", None) == getattr(own, "__path__", None)
        assert module.__spec__ is not None
        assert own.__spec__ is not None
        assert module.__spec__.origin == own.__spec__.origin
        assert set(vars(module)) == set(vars(own))
    one, _, two = process.imported()
    assert (one.X, two.Y) == (1, 6)
    assert inspect.getsource(one.double) == SOURCE["one.py"].partition("\n\n\n")[2]
    assert one.double.__code__.co_filename == str(process.tree / "one.py")


def test_a_module_is_read_anew_when_it_is_reloaded(process: Process) -> None:
    process.keep()
    process.start()
    one, *_ = process.imported()
    (process.tree / "one.py").write_text("X = 'other'\n")
    assert importlib.reload(one).X == "other"


def test_source_that_changed_is_imported_by_python_alone(process: Process) -> None:
    process.keep()
    file = process.tree / "one.py"
    before = file.stat()
    file.write_text(SOURCE["one.py"].replace("X = 1", "X = 7"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    (process.tree / "__pycache__" / f"one.{sys.implementation.cache_tag}.pyc").unlink()
    assert process.kept() == list(MODULES[1:])
    assert process.imported()[0].X == 7


@pytest.mark.parametrize(
    "edit",
    [lambda file: file.unlink(), lambda file: file.rename(file.parent / "three.py")],
    ids=["removed", "renamed"],
)
def test_source_that_is_gone_is_not_found(process: Process, edit: Callable[[Path], object]) -> None:
    process.keep()
    edit(process.tree / "inner" / "two.py")
    process.start()
    with pytest.raises(ModuleNotFoundError):
        process.imported()


def test_a_package_of_the_same_name_elsewhere_is_another(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.keep()
    other = tmp_path / "other" / "kept_sample"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "one.py").write_text("X = 'other'\n")
    monkeypatch.syspath_prepend(tmp_path / "other")
    process.start()
    assert importlib.import_module("kept_sample.one").X == "other"


def test_a_damaged_file_is_not_believed(process: Process) -> None:
    process.keep()
    file = process.file()
    content = file.read_bytes()
    cut = [content[:size] for size in (0, 5, 10, 20, 26, len(content) // 2, len(content) - 1)]
    places = (0, 9, 12, 27, len(content) // 2, len(content) - 1)
    flipped = [content[:at] + bytes((content[at] ^ 64,)) + content[at + 1 :] for at in places]
    for wrong in (*cut, *flipped):
        file.write_bytes(wrong)
        assert process.kept() == []
    file.write_bytes(content)
    assert process.kept() == list(MODULES)


def test_a_file_that_others_can_write_is_not_believed(process: Process) -> None:
    process.keep()
    process.file().chmod(0o666)
    assert process.kept() == []


def test_a_link_in_its_place_is_not_followed(process: Process, tmp_path: Path) -> None:
    process.keep()
    moved = process.file().rename(tmp_path / "moved")
    (process.directory / "v1" / "modules" / "x").symlink_to(moved)
    (process.directory / "v1" / "modules" / "x").rename(
        process.directory / "v1" / "modules" / hit_modules._name("test")
    )
    assert process.kept() == []


def test_nothing_is_written_if_all_noted_modules_came_from_the_file(process: Process) -> None:
    process.keep()
    before = process.file().stat().st_ino
    process.keep()
    assert process.file().stat().st_ino == before


def test_a_module_more_is_kept_beside_the_others(process: Process) -> None:
    process.keep()
    (process.tree / "more.py").write_text("Z = 5\n")
    process.start()
    importlib.import_module("kept_sample.more")
    process.modules.note("kept_sample")
    process.modules.keep(LocalStore(process.directory))
    assert process.kept() == list(MODULES)
    assert not is_plain(importlib.import_module("kept_sample.more"))


def test_only_noted_packages_are_kept(process: Process) -> None:
    process.start()
    process.imported()
    process.modules.note("kept_sample.inner")
    process.modules.keep(LocalStore(process.directory))
    assert process.kept() == ["kept_sample.inner.two"]


def test_what_was_imported_before_a_second_start_is_not_noted(process: Process) -> None:
    process.start()
    importlib.import_module("kept_sample.one")
    process.modules.start("test")
    importlib.import_module("kept_sample.inner.two")
    process.modules.note("kept_sample")
    process.modules.keep(LocalStore(process.directory))
    assert process.kept() == list(MODULES[1:])


def test_source_whose_next_edit_might_not_show_is_left_out(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_records, "SETTLED", SETTLED)
    process.keep()
    assert process.kept() == []
    now = time.time_ns()
    monkeypatch.setattr(source_records.time, "time_ns", lambda: now + 2 * SETTLED)
    process.keep()
    assert process.kept() == list(MODULES)


def test_source_that_is_edited_while_it_is_read_is_left_out(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def file_system(path: Path) -> FileSystem:
        (process.tree / "one.py").write_text(SOURCE["one.py"].replace("X = 1", "X = 7"))
        return FileSystem("ext4", True)

    monkeypatch.setattr(local_store, "file_system", file_system)
    process.keep()
    assert process.kept() == list(MODULES[1:])


def test_source_on_a_file_system_without_times_of_change_is_left_out(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_store, "file_system", lambda path: FileSystem("squashfs", True))
    process.keep()
    assert process.kept() == []


def test_a_linked_source_file_is_left_out(process: Process, tmp_path: Path) -> None:
    file = process.tree / "one.py"
    file.rename(tmp_path / "elsewhere.py")
    file.symlink_to(tmp_path / "elsewhere.py")
    process.keep()
    assert process.kept() == list(MODULES[1:])


def test_a_module_under_another_name_is_not_kept_by_that(process: Process) -> None:
    process.start()
    one, *_ = process.imported()
    sys.modules["kept_sample.alias"] = one
    process.modules.note("kept_sample")
    process.modules.keep(LocalStore(process.directory))
    assert process.kept() == list(MODULES)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("kept_sample.alias")


def test_who_wants_no_bytecode_gets_none(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    process.keep()
    assert not (process.directory / "v1" / "modules").exists()


def test_a_cache_that_was_removed_is_not_made_again(process: Process) -> None:
    process.start()
    process.imported()
    process.modules.note("kept_sample")
    shutil.rmtree(process.directory)
    with pytest.raises(FileNotFoundError):
        process.modules.keep(LocalStore(process.directory))
    process.modules._keep_quietly(LocalStore(process.directory))
    assert not process.directory.exists()


def test_another_purpose_has_another_file(process: Process) -> None:
    process.keep()
    process.start()
    process.modules.stop()
    process.modules.start("another")
    assert all(map(is_plain, process.imported()))


def test_another_level_of_optimization_has_another_file() -> None:
    program = "import cachegraph.hit_modules as m; print(m._name('x'))"
    names = {
        subprocess.run([sys.executable, *options, "-c", program], check=True, capture_output=True).stdout
        for options in ([], ["-O"], ["-OO"])
    }
    assert len(names) == 3


def test_finders_before_pythons_own_are_asked_first(process: Process) -> None:
    process.keep()
    process.start()
    places = [sys.meta_path.index(finder) for finder in (process.modules, PathFinder)]
    assert places[1] == places[0] + 1
    process.modules.stop()
    assert process.modules not in sys.meta_path


def test_no_directory_means_no_kept_modules(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.keep()
    for name, value in (("CACHEGRAPH_MODE", "off"), ("CACHEGRAPH_MODE", "nonsense")):
        monkeypatch.setenv(name, value)
        assert process.kept() == []
