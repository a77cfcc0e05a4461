"""A watch for imports: the callback comes after the import, and the import is as if nobody watched."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cachegraph.import_watcher import ImportWatcher

NAME = "watched_by_a_test"
Watch = Callable[[], list[str]]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Return a function that starts a watch and returns the list of the values of the modules imported since."""
    monkeypatch.syspath_prepend(str(tmp_path))
    seen: list[str] = []
    watcher = ImportWatcher({NAME: lambda module: seen.append(module.value)})

    def start() -> list[str]:
        watcher.start()
        watcher.start()
        return seen

    yield start
    watcher.stop()
    watcher.stop()
    sys.modules.pop(NAME, None)


def test_a_module_is_seen_once_after_it_has_run(tmp_path: Path, watch: Watch) -> None:
    (tmp_path / f"{NAME}.py").write_text("value = 'complete'\n")
    seen = watch()
    module = importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert seen == ["complete"]
    assert module.__spec__.loader is module.__loader__
    assert "exec_module" not in vars(module.__loader__)


def test_a_module_that_failed_is_seen_when_it_is_imported_again(tmp_path: Path, watch: Watch) -> None:
    path = tmp_path / f"{NAME}.py"
    path.write_text("raise ValueError('not yet')\n")
    seen = watch()
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module(NAME)
    assert seen == []
    path.write_text("value = 'mended'  # of another length, or Python takes the old bytecode\n")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert seen == ["mended"]


def test_a_module_that_is_not_there_is_reported_as_by_python(watch: Watch) -> None:
    seen = watch()
    with pytest.raises(ModuleNotFoundError, match=NAME):
        importlib.import_module(NAME)
    assert seen == []


def test_a_directory_without_code_is_imported_and_not_seen(tmp_path: Path, watch: Watch) -> None:
    (tmp_path / NAME).mkdir()
    seen = watch()
    assert list(importlib.import_module(NAME).__path__) == [str(tmp_path / NAME)]
    assert seen == []


def test_finders_of_others_that_cannot_find_are_passed_over(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{NAME}.py").write_text("value = 'found'\n")
    finders: list[Any] = [object(), *sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    seen = watch()
    module: ModuleType = importlib.import_module(NAME)
    assert seen == [module.value] == ["found"]
