"""Outcomes of each test in each run, differences between runs, and explanations of expected ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

EXPLAINED = {
    "warm tests/link/numba/test_compile_ops.py::test_ofg_inner_compilation_reused": "it counts how often "
    "an inner graph is converted for numba, and expects 2: where the function is found, none is",
}
"""A pattern of runs and test ids -> why the adapter changes the outcome of the test, and rightly so."""

Outcomes = Mapping[str, str]
NEVER_ENDED = "never ended"
"""The outcome of a test in which the process died, or was stopped."""


@dataclass(frozen=True)
class ChangedOutcome:
    """A test with another outcome than without the adapter; `explanation` is empty if it is unexpected."""

    test: str
    run: str
    plain: str
    outcome: str
    message: str
    explanation: str


@dataclass(frozen=True)
class Run:
    """The record of a run: test -> outcome, test -> failure message, seconds in tests, and the caches'
    counters.
    """

    outcomes: Outcomes
    messages: Mapping[str, str]
    seconds: float
    counters: Mapping[str, Any]


def run_of(events: Iterable[Mapping[str, Any]]) -> Run:
    """Return the run that the events (recorded.py) describe."""
    outcomes: dict[str, str] = {}
    messages: dict[str, str] = {}
    seconds = 0.0
    counted: dict[str, Any] = {}
    for event in events:
        if "start" in event:
            outcomes[event["start"]] = NEVER_ENDED
        elif "test" in event:
            outcomes[event["test"]] = event["outcome"]
            seconds += event["seconds"]
            if event["message"]:
                messages[event["test"]] = event["message"]
        elif event["counters"]:
            counted = added(counted, event["counters"])
    return Run(outcomes, messages, seconds, counted)


def added(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum of two nested tables of numbers."""
    total = dict(left)
    for name, value in right.items():
        total[name] = (
            added(total.get(name, {}), value) if isinstance(value, Mapping) else total.get(name, 0) + value
        )
    return total


def differences(plain: Run, name: str, other: Run) -> list[ChangedOutcome]:
    """Return the tests whose outcome in `other` differs from that in `plain`, if they ended there."""
    return [
        ChangedOutcome(
            test,
            name,
            plain.outcomes[test],
            outcome,
            other.messages.get(test, ""),
            explanation_of(name, test),
        )
        for test, outcome in other.outcomes.items()
        if plain.outcomes.get(test, NEVER_ENDED) not in (NEVER_ENDED, outcome)
    ]


def explanation_of(run: str, test: str) -> str:
    """Return why a test may differ in a run; empty if there is no reason."""
    return next((why for pattern, why in EXPLAINED.items() if fnmatchcase(f"{run} {test}", pattern)), "")


def tally(run: Run) -> dict[str, int]:
    """Return the number of tests with each outcome."""
    return dict(Counter(run.outcomes.values()))
