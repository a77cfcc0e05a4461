"""A real Slurm: an array of tasks that start at once on an empty shared directory builds each key once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "tools" / "slurm" / "run_array.py"
FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"


def run_array(*options: str) -> dict[str, Any]:
    """Return what became of the array; every task is right, wherever the directory is."""
    size = [] if FULL else ["--tasks=20", "--nodes=2", "--slots=4"]
    command = [sys.executable, str(PROGRAM), *size, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    summary: dict[str, Any] = json.loads(done.stdout)
    if "skipped" in summary:
        pytest.skip(summary["skipped"])
    assert summary["right"] == summary["tasks"] == (1000 if FULL else 20), summary
    return summary


@pytest.mark.slow
@pytest.mark.stress
def test_an_array_that_starts_at_once_on_an_empty_directory_builds_each_key_once() -> None:
    summary = run_array()
    assert summary["built"] == summary["keys"], summary
    assert summary["keys"]["function"] == 1
    assert summary["left behind"] == []


@pytest.mark.slow
@pytest.mark.stress
def test_nodes_that_share_only_a_database_and_a_bucket_build_each_key_once() -> None:
    summary = run_array("--share=site")
    assert summary["built"] == summary["keys"], summary
    assert summary["keys"]["function"] == 1
    assert summary["left behind"] == []


@pytest.mark.slow
@pytest.mark.stress
def test_where_nodes_see_with_a_delay_what_others_wrote_every_task_is_right_and_hardly_any_builds() -> None:
    summary = run_array("--share=sshfs")
    assert summary["keys"]["function"] == 1
    assert sum(summary["built"].values()) <= 2 * sum(summary["keys"].values()), summary
