"""A real Slurm: an array of tasks that start at once on an empty shared directory builds each key once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "slurm" / "run_array.py"
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"


@pytest.mark.slow
@pytest.mark.stress
def test_an_array_that_starts_at_once_on_two_nodes_builds_each_key_once_and_every_task_is_right() -> None:
    size = [] if FULL else ["--tasks=20", "--nodes=2", "--slots=4"]
    done = subprocess.run([sys.executable, str(PROGRAM), *size], capture_output=True, text=True, check=False)
    summary = json.loads(done.stdout)
    if "skipped" in summary:
        pytest.skip(summary["skipped"])
    assert summary["right"] == summary["tasks"] == (1000 if FULL else 20), summary
    assert summary["built"] == summary["keys"], summary
    assert summary["keys"]["function"] == 1
    assert summary["left behind"] == []
    assert done.returncode == 0
