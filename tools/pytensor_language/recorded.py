"""A pytest plugin: records what becomes of each test, with the engine in PyTensor's place.

Loaded with `-p recorded`. CACHEGRAPH_SUITE_PACKAGE is PyTensor's folder of the checkout, and
CACHEGRAPH_SUITE_SECONDS how long a test may run. A test that needs a name that the engine does not have
has the outcome "not covered" and the name as its message. A file that cannot be collected is a test.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from missing import Phase, name_not_covered
from shim import install

from pytensor_tests.recording import RECORD, Recorder, message

PACKAGE = "CACHEGRAPH_SUITE_PACKAGE"
SECONDS = "CACHEGRAPH_SUITE_SECONDS"
NOT_COVERED = "not covered"
TOO_LONG = "too long"


class TooLong(pytest.fail.Exception):
    """A test runs for longer than it may."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Put the engine in PyTensor's place before the first import of it."""
    install(Path(os.environ[PACKAGE]))


def pytest_configure(config: pytest.Config) -> None:
    """Record this run, unless the plugin is imported for something else."""
    if RECORD in os.environ:
        config.pluginmanager.register(LanguageRecorder(Path(os.environ[RECORD])))


class LanguageRecorder(Recorder):
    """A recorder of tests on the engine."""

    def __init__(self, record: Path) -> None:
        super().__init__(record)
        self.tests = str(Path.cwd())
        signal.signal(signal.SIGALRM, _stop)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        super().pytest_runtest_logstart(nodeid)
        Phase.running = True
        signal.setitimer(signal.ITIMER_REAL, float(os.environ[SECONDS]))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        Phase.running = False
        super().pytest_runtest_logfinish(nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is None or report.outcome != "failed":
            return report
        name = name_not_covered(call.excinfo.value, self.tests)
        if name:
            report.longrepr, report.reason = name, NOT_COVERED  # type: ignore[attr-defined]
        elif isinstance(call.excinfo.value, TooLong):
            report.reason = TOO_LONG  # type: ignore[attr-defined]
        return report

    def outcome(self, report: pytest.TestReport) -> str:
        # What PyTensor marks as incomplete is complete here: all that the test asserts holds.
        if report.outcome == "failed" and str(report.longrepr).startswith("[XPASS(strict)]"):
            return "passed"
        return getattr(report, "reason", None) or super().outcome(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file, or a class, whose tests could not be collected."""
        if report.failed and report.nodeid not in self.known:
            self.write(
                {"test": report.nodeid, "outcome": "failed", "seconds": 0.0, "message": message(report)}
            )


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLong(f"a test ran for more than {os.environ[SECONDS]} s")
