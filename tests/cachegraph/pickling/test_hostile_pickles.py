"""Hostile pickles are refused, each with what was found, before anything in them runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachegraph import pickling
from tests.cachegraph.pickling.hostile_pickles import all_of_them

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("hostile_pickles.py")
REFUSALS = ("InvalidPickle: ", "UntrustedPickle: ", "MissingBlob: ")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path]:
    """What a process said of each, and the file that they would have made."""
    file = tmp_path_factory.mktemp("hostile") / "executed"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(file)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"it ended at {done.stderr[-2000:]}"
    return json.loads(done.stdout), file


def test_all_are_refused_with_a_reason(tried: tuple[dict[str, str], Path]) -> None:
    said, file = tried
    names = [name for name, _ in all_of_them(str(file))]
    assert said.keys() == set(names)
    assert len(names) > 400
    assert {name: what for name, what in said.items() if not what.startswith(REFUSALS)} == {}


def test_what_is_large_by_itself_is_loaded() -> None:
    many = tuple((number,) for number in range(100_000))
    deep: tuple[object, ...] = ()
    for _ in range(300):
        deep = (deep,)
    assert pickling.loads(pickling.dumps([many, deep, {deep: 1}]), ()) == [many, deep, {deep: 1}]


def test_nothing_in_them_was_executed(tried: tuple[dict[str, str], Path]) -> None:
    assert not tried[1].exists()


def test_what_names_something_else_is_untrusted(tried: tuple[dict[str, str], Path]) -> None:
    said = tried[0]
    named = (
        "os.system",
        "builtins.eval",
        "a partial of it",
        "__reduce__ in protocol 5",
        "a class outside: Function",
    )
    for name in named:
        assert said[name].startswith("UntrustedPickle: "), name
