"""Outcomes of each test in each run, and differences between runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from explanations import explanation_of

Outcomes = Mapping[str, str]
NEVER_ENDED = "never ended"
"""The outcome of a test in which the process died, or was stopped."""
NOT_RUN = "not run"
"""The outcome of a test that still has to run: never equal to that of one that failed."""
GOOD = ("passed", "skipped", "xfailed")
"""Outcomes that are not looked into."""


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
            explanation_of(name, test, other.messages.get(test, "")),
        )
        for test, outcome in other.outcomes.items()
        if plain.outcomes.get(test, NEVER_ENDED) not in (NEVER_ENDED, outcome)
    ]


def with_tests_not_run(plain: Run, other: Run) -> Run:
    """Return `plain` with the outcome NOT_RUN for tests that it lacks and that did not pass in `other`."""
    missing = {test: NOT_RUN for test, outcome in other.outcomes.items() if outcome not in GOOD}
    return replace(plain, outcomes=missing | dict(plain.outcomes))


def tally(run: Run) -> dict[str, int]:
    """Return the number of tests with each outcome."""
    return dict(Counter(run.outcomes.values()))
