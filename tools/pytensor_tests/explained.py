"""Explanations of tests of PyTensor's that have another outcome in one of our runs, and rightly so.

A difference is explained if the run, the test's id and the message of its failure all fit. A message is
part of it: a test of what is overwritten must not hide a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class ExplainedDifference:
    """A `reason` in a `run`; `tests` is a pattern of ids, `message` a part of what the failure says."""

    run: str
    tests: str
    message: str
    reason: str

    def explains(self, run: str, test: str, message: str) -> bool:
        """Return True if this is the reason for that outcome."""
        return run == self.run and fnmatchcase(test, self.tests) and self.message in message


def explanation_of(explained: Iterable[ExplainedDifference], run: str, test: str, message: str) -> str:
    """Return why a test may fail in a run with that message; empty if there is no reason."""
    return next((each.reason for each in explained if each.explains(run, test, message)), "")
