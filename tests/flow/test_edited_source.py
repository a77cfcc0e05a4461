"""The engine's own source, edited while a process lives: what is built meanwhile is kept under no key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json
import sys
from pathlib import Path

import engine
import engine.tensor as pt

x = pt.vector("x")
first = engine.function([x], pt.exp(x))
edited = Path(engine.__file__).parent / "tensor" / "ordering.py"
before = edited.read_text()
if "edit" in sys.argv:
    edited.write_text(before + "\\n# edited\\n")
second = engine.function([x], pt.exp(x) * 3 + pt.sum(x))
edited.write_text(before)
found = second.cache_info
print(json.dumps([first.cache_info.outcome, found.outcome, float(second([1.0])[0])]))
"""


def run(directory: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    return [*json.loads(done.stdout), done.stderr]


def test_what_is_built_by_edited_source_is_not_stored_though_the_edit_is_undone(tmp_path: Path) -> None:
    for package in ("engine", "cachegraph"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "migrations").symlink_to(ROOT / "migrations")
    program = "import engine, engine.tensor as pt; x = pt.vector('x'); engine.function([x], pt.exp(x))"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    edited, after = run(tmp_path, "edit"), run(tmp_path)
    assert edited[:2] == ["hit", "miss"]
    assert "which was changed after this process began" in edited[3]
    assert after[:2] == ["hit", "miss"]
    assert edited[2] == after[2]
