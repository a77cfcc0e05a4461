"""Outcomes of tests, as their processes recorded them (recording.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Outcomes = Mapping[str, str]
NEVER_ENDED = "never ended"
"""The outcome of a test in which the process died, or was stopped."""
GOOD = ("passed", "skipped", "xfailed")
"""Outcomes that are not looked into."""


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
    """Return the run that the events (recording.py) describe."""
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


def tally(run: Run) -> dict[str, int]:
    """Return the number of tests with each outcome."""
    return dict(Counter(run.outcomes.values()))
