"""Runs a file of PyTensor's tests in processes of its own until each test has an outcome.

A tool has a pytest plugin `recorded` in its folder, which records (recording.py) and prepares its subject.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

from pytensor_tests.recording import RECORD, events

TOOLS = Path(__file__).resolve().parents[1]


def record_of(directory: Path, run: str, file: str) -> Path:
    """Return the path of the record of one file of tests."""
    return directory / "records" / run / (file.replace("/", "__") + ".jsonl")


def all_events(directory: Path, run: str) -> Iterator[dict[str, Any]]:
    """Yield the events that all processes of a run wrote."""
    for record in sorted((directory / "records" / run).glob("*.jsonl")):
        yield from events(record)


def run_file(suite: Path, run: str, file: str, variables: dict[str, str], seconds: float, end: float) -> None:
    """Run a file of tests in fresh processes until each has an outcome; one in which the process dies has
    none. A process that needs more than `seconds` is stopped, and none is started after the time `end`.
    """
    record = Path(variables[RECORD])
    while monotonic() < end and not any("end" in event for event in events(record)):
        before = len(list(events(record)))
        print(f"{run} {file}", file=sys.stderr, flush=True)
        began = monotonic()
        try:
            code: int | str = subprocess.run(
                command(file),
                cwd=suite,
                env=variables,
                timeout=seconds,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            code = "time limit"
        print(f"{run} {file}: {code}, {monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if code == "time limit" or len(list(events(record))) == before:
            return


def command(file: str) -> list[str]:
    """Return the command that runs a file of tests."""
    return [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "recorded",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        file,
    ]


def environment(tool: Path, directory: Path, run: str, file: str) -> dict[str, str]:
    """Return the variables of a process: its record, its plugin in the folder `tool`, its own places."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CACHEGRAPH_", "PYTENSOR_"))
    }
    scratch = directory / "temporary" / run
    scratch.mkdir(parents=True, exist_ok=True)
    record = record_of(directory, run, file)
    record.parent.mkdir(parents=True, exist_ok=True)
    return kept | {
        "PYTHONPATH": os.pathsep.join((str(tool), str(TOOLS), str(TOOLS.parent))),
        "PYTENSOR_FLAGS": f"base_compiledir={directory / 'compiled' / run}",
        "CACHEGRAPH_DIR": str(directory / "store"),
        "TMPDIR": str(scratch),
        RECORD: str(record),
    }
