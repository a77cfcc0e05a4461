"""A recorder for pytest: writes what becomes of each test to a file.

CACHEGRAPH_SUITE_RECORD names the file, and CACHEGRAPH_SUITE_ONLY has a JSON list of tests, if not all
shall run. A line of JSON for each event, written when it happens, so that a process that is killed
leaves what it did:

    {"start": TEST}
    {"test": TEST, "outcome": "passed" | "failed" | "skipped" | "xfailed" | "xpassed",
     "seconds": of the processor, "message": TEXT}
    {"end": EXIT CODE, "pytensor": VERSION, "counters": of the process's caches, or null}

Tests that the file knows already are not run again: one whose outcome is there, and one that was
started and never ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

RECORD = "CACHEGRAPH_SUITE_RECORD"
ONLY = "CACHEGRAPH_SUITE_ONLY"


def events(record: Path) -> Iterator[dict[str, Any]]:
    """Yield the events in a file. The last line of a process that was killed may be cut off: it is left
    out.
    """
    if not record.exists():
        return
    for line in record.read_text().split("\n")[:-1]:
        yield json.loads(line)


class Recorder:
    """A writer of events to the file `record`."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.known = {event.get("test", event.get("start")) for event in events(record) if "end" not in event}
        self.reports: dict[str, list[pytest.TestReport]] = {}
        self.began = 0.0

    def counters(self) -> dict[str, Any] | None:
        """Return the counters of this process's caches, or None."""
        return None

    def write(self, event: dict[str, Any]) -> None:
        with self.record.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        only = json.loads(os.environ.get(ONLY, "null"))
        wanted = [
            item for item in items if item.nodeid not in self.known and (only is None or item.nodeid in only)
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = wanted

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.began = process_time()
        self.write({"start": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        reports = self.reports.pop(nodeid)
        told = max(reports, key=lambda report: ("passed", "skipped", "failed").index(report.outcome))
        self.write(
            {
                "test": nodeid,
                "outcome": self.outcome(told),
                "seconds": round(process_time() - self.began, 3),
                "message": message(told),
            }
        )

    def outcome(self, report: pytest.TestReport) -> str:
        """Return the outcome of a test in one word."""
        if hasattr(report, "wasxfail"):
            return "xfailed" if report.outcome == "skipped" else "xpassed"
        return report.outcome

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        import pytensor

        self.write({"end": int(exitstatus), "pytensor": pytensor.__version__, "counters": self.counters()})


def message(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the last words of a test that did not pass."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return "" if report.outcome != "failed" else (crash.message if crash else str(report.longrepr))[-2000:]
