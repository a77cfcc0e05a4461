"""The demo, as a user runs it, and the promises a warm process of it makes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "grunfeld": ("function() + first call", "found / not found", "log density", "cachegraph stats"),
    "nile": (
        "maximum: function() + call",
        "found / not found",
        "gradient, by differences",
        "cachegraph stats",
    ),
}
"""What each part of the demo shows."""


def run(
    program: str, *arguments: str, part: str = "grunfeld", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of one part of the demo in a fresh process."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / part / program), *arguments],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def report(*arguments: str, **environment: str) -> dict[str, Any]:
    """Return what a fresh process of fit.py reports."""
    done = run("fit.py", *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a cache directory that one process has compiled the model into."""
    directory = str(tmp_path_factory.mktemp("shared") / "cache")
    assert report("normal", "--no-fit", CACHEGRAPH_DIR=directory)["outcome"] == "miss"
    return directory


def test_the_second_process_finds_all_of_it_and_may_not_compile(shared_cache: str) -> None:
    warm = report("normal", "--no-fit", CACHEGRAPH_DIR=shared_cache, CACHEGRAPH_ON_MISS="error")
    assert (warm["outcome"], warm["rewrites"], warm["compilations"]) == ("hit", 0, 0)


def test_a_warm_process_imports_no_compiler_and_no_database_toolkit(shared_cache: str) -> None:
    warm = report("normal", "--no-fit", CACHEGRAPH_DIR=shared_cache)
    assert (warm["outcome"], warm["imported"]) == ("hit", [])


def test_the_working_directory_and_the_hash_seed_are_not_in_the_key(
    shared_cache: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "grunfeld" / "fit.py"), "normal", "--no-fit"],
        cwd=tmp_path,
        env=os.environ | {"CACHEGRAPH_DIR": shared_cache, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["outcome"] == "hit"


def test_a_miss_that_may_not_compile_is_an_error_that_names_the_reason() -> None:
    done = run("fit.py", "normal", "--no-fit", CACHEGRAPH_ON_MISS="error")
    assert done.returncode != 0
    assert "CacheMissError" in done.stderr
    assert "never-seen" in done.stderr


def test_a_related_model_reuses_kernels(shared_cache: str) -> None:
    related = report("robust", "--no-fit", CACHEGRAPH_DIR=shared_cache)
    hits, _ = related["found"]["kernel"]
    assert related["outcome"] == "miss"
    assert hits >= 1


@pytest.mark.slow
@pytest.mark.parametrize("part", SHOWN)
def test_the_demo_ends_well_and_shows_its_tables(part: str, tmp_path: Path) -> None:
    done = run("demo.py", "--dir", str(tmp_path / "cache"), part=part)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in SHOWN[part]:
        assert words in done.stdout


@pytest.mark.parametrize("part", SHOWN)
def test_the_demo_refuses_a_directory_that_is_not_empty(part: str, tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = run("demo.py", "--dir", str(tmp_path), part=part)
    assert (done.returncode, done.stdout) == (2, "")


def test_the_second_process_of_the_filter_builds_nothing_and_agrees_with_the_literature(
    tmp_path: Path,
) -> None:
    directory = str(tmp_path / "cache")
    outcomes = []
    for _ in range(2):
        done = run("fit.py", part="nile", CACHEGRAPH_DIR=directory)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        outcomes.append([found[name]["outcome"] for name in ("likelihood", "maximum")])
    assert outcomes == [["miss", "miss"], ["hit", "hit"]]
    assert found["imported"] == []
    assert [found[name]["compilations"] for name in ("likelihood", "maximum")] == [0, 0]
    # Durbin and Koopman (2012), section 2.10.
    variances = [math.exp(theta) for theta in found["found"]["theta"]]
    assert variances == pytest.approx([15099, 1469.1], rel=1e-4)
