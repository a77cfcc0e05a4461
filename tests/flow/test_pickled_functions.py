"""Functions sent to workers as users send them: they run there without rewriting, compiling, or
importing what would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.flow.model_process import ROOT

METHODS = ("fork", "spawn", "forkserver", "loky", "pickle", "cloudpickle")
PROGRAM = Path(__file__).with_name("pickled_process.py")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache that one process has compiled the functions into."""
    directory = str(tmp_path_factory.mktemp("filled") / "cache")
    assert run("pickle", directory)["here"]["made"] == ["miss", "miss", "miss"]
    return directory


def run(method: str, directory: str, *worker: str) -> dict[str, Any]:
    """What a process on the cache in `directory` reports, and its workers, whose environment has `worker`
    too.
    """
    done = subprocess.run(
        [sys.executable, str(PROGRAM), method, *worker],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": directory},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], outcome: str) -> None:
    """Check that the workers computed what is due, and built nothing."""
    here, workers = found["here"], found["workers"]
    for worker in workers:
        assert worker["process"] != here["process"]
        assert (worker["rewrites"], worker["compilations"], worker["imported"]) == (0, 0, [])
        assert worker["outcomes"] == [outcome] * 3
        assert worker["results"] == here["results"]
        assert worker["found"] == here["found"]
        assert worker["graph"] == here["graph"]
        # One call before, two there; the process that made the functions has a count of its own.
        assert (worker["counted"], here["counted"]) == (30, 10)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_finds_the_functions_in_the_cache(filled: str, method: str) -> None:
    found = run(method, filled, "CACHEGRAPH_ON_MISS=error")
    assert found["here"]["made"] == ["hit", "hit", "hit"]
    check(found, "hit")
    for worker in found["workers"]:
        assert worker["kernels"][1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_with_an_empty_cache_directory_runs_from_what_they_carry(
    filled: str, method: str, tmp_path: Path
) -> None:
    found = run(method, filled, f"CACHEGRAPH_DIR={tmp_path / 'empty'}")
    check(found, "carried")
    for worker in found["workers"]:
        assert worker["reasons"] == ["never-seen"] * 3
        assert worker["kernels"][0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "worker",
    [
        ["CACHEGRAPH_MODE=off"],
        ["CACHEGRAPH_DIR=/dev/null/cache"],
        ["CACHEGRAPH_DIR=/nonexistent", "CACHEGRAPH_MODE=readonly", "CACHEGRAPH_ON_MISS=error"],
    ],
    ids=["off", "unwritable", "readonly, a miss is an error"],
)
def test_a_worker_needs_no_cache_at_all(filled: str, worker: list[str]) -> None:
    check(run("spawn", filled, *worker), "carried")


@pytest.mark.slow
def test_functions_made_without_a_cache_are_sent_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "spawn"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_MODE": "off"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["here"]["made"] == ["bypass", "bypass", "bypass"]
    check(found, "carried")
