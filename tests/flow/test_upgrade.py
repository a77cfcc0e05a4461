"""An engine that is upgraded, or loses its source, while a process that imported it is running."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, sys
import numpy as np
if sys.argv[2] == "first":
    exec(sys.argv[1])
import engine
import engine.tensor as pt
if sys.argv[2] == "imported":
    exec(sys.argv[1])
x = pt.vector("x")
f = engine.function([x], pt.exp(x).sum())
value = float(f(np.zeros(3)))
info = f.cache_info
print(json.dumps({"outcome": info.outcome, "reason": info.reason, "value": value}))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for package in ("cachegraph", "engine", "migrations"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / "checkout" / package, ignore=ignored)
    return tmp_path / "checkout"


def run(
    checkout: Path, meanwhile: str = "pass", when: str = "imported", **environment: str
) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, meanwhile, when],
        env={**os.environ, "PYTHONPATH": str(checkout), **environment},
        capture_output=True,
        text=True,
        cwd=checkout,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["value"] == 3.0
    return report


EDIT = "open('engine/tensor/math.py', 'a').write('# another release\\n')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "when"), [(f"import engine.tensor.math; {EDIT}", "first"), (EDIT, "imported")]
)
def test_what_an_upgraded_process_builds_is_kept_from_those_that_import_the_upgrade(
    checkout: Path, edit: str, when: str
) -> None:
    upgraded = run(checkout, edit, when)
    assert upgraded["outcome"] == "bypass"
    assert "math.py, which was changed after this process began" in upgraded["reason"]
    assert run(checkout)["outcome"] == "miss"
    assert run(checkout)["outcome"] == "hit"


def test_a_process_that_may_not_compile_refuses_what_it_cannot_describe(checkout: Path) -> None:
    run(checkout)
    with pytest.raises(AssertionError, match="CacheMissError"):
        run(checkout, EDIT, CACHEGRAPH_ON_MISS="error")


def test_an_engine_without_source_compiles_without_the_cache(checkout: Path) -> None:
    assert compileall.compile_dir(checkout / "engine", quiet=2, legacy=True)
    for path in (checkout / "engine").rglob("*.py"):
        path.unlink()
    report = run(checkout)
    assert report["outcome"] == "bypass"
    assert "no *.py file" in report["reason"]
