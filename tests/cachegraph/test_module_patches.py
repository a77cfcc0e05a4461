"""Modules are patched now or when they are imported, by several patches at once, and restored."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cachegraph.import_watcher import ImportWatcher
from cachegraph.module_patches import ModulePatches, unknown_object

NAME = "patched_here"


@pytest.fixture(autouse=True)
def module_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / f"{NAME}.py"
    file.write_text("def given(first, second=1):\n    return ['own']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders = list(sys.meta_path)
    yield file
    sys.modules.pop(NAME, None)
    assert sys.meta_path == finders


def adding(word: str) -> ModulePatches:
    def replacements(module: ModuleType) -> dict[str, Any]:
        own = module.given
        return {"given": lambda first: [*own(first), word]}

    return ModulePatches({NAME: replacements})


@pytest.mark.parametrize("is_imported", [False, True])
def test_of_several_patches_the_first_applied_is_the_innermost(is_imported: bool) -> None:
    if is_imported:
        importlib.import_module(NAME)
    first, second = adding("first"), adding("second")
    for patches in (first, second, first):
        patches.apply()
    module: Any = importlib.import_module(NAME)
    assert module.given(0) == ["own", "first", "second"]
    second.restore()
    assert module.given(0) == ["own", "first"]
    first.restore()
    assert module.given(0) == ["own"]


def test_an_import_that_fails_is_watched_again(module_file: Path) -> None:
    source = module_file.read_text()
    module_file.write_text("raise RuntimeError('not yet')\n")
    seen: list[str] = []
    watchers = [ImportWatcher({NAME: lambda module, n=n: seen.append(f"{n}{module.__name__}")}) for n in "ab"]
    for watcher in watchers:
        watcher.start()
    try:
        with pytest.raises(RuntimeError, match="not yet"):
            importlib.import_module(NAME)
        module_file.write_text(source + "\n\n\n")
        importlib.invalidate_caches()
        module = importlib.import_module(NAME)
    finally:
        for watcher in watchers:
            watcher.stop()
    assert seen == [f"a{NAME}", f"b{NAME}"]
    assert module.__spec__ is not None
    assert "exec_module" not in vars(module.__spec__.loader)


def test_a_module_that_is_not_there_stays_unknown() -> None:
    patches = [ModulePatches({"no_such_module_here": lambda _: {}}) for _ in range(2)]
    for one in patches:
        one.apply()
    try:
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module_here")
    finally:
        for one in patches:
            one.restore()


def test_what_is_not_as_known_is_named() -> None:
    module = importlib.import_module(NAME)
    assert unknown_object(module, {"given": ("first", "second")}) is None
    assert unknown_object(module, {"given": ("first",)}) == "given"
    assert unknown_object(module, {"absent": ()}) == "absent"
