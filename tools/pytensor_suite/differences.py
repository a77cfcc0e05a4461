"""Differences between the outcomes of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from explanations import EXPLAINED

from pytensor_tests.explained import explanation_of
from pytensor_tests.outcomes import GOOD, NEVER_ENDED, Run

NOT_RUN = "not run"
"""The outcome of a test that still has to run: never equal to that of one that failed."""


@dataclass(frozen=True)
class ChangedOutcome:
    """A test with another outcome than without the adapter; `explanation` is empty if it is unexpected."""

    test: str
    run: str
    plain: str
    outcome: str
    message: str
    explanation: str


def differences(plain: Run, name: str, other: Run) -> list[ChangedOutcome]:
    """Return the tests whose outcome in `other` differs from that in `plain`, if they ended there."""
    return [
        ChangedOutcome(
            test,
            name,
            plain.outcomes[test],
            outcome,
            other.messages.get(test, ""),
            explanation_of(EXPLAINED, name, test, other.messages.get(test, "")),
        )
        for test, outcome in other.outcomes.items()
        if plain.outcomes.get(test, NEVER_ENDED) not in (NEVER_ENDED, outcome)
    ]


def with_tests_not_run(plain: Run, other: Run) -> Run:
    """Return `plain` with the outcome NOT_RUN for tests that it lacks and that did not pass in `other`."""
    missing = {test: NOT_RUN for test, outcome in other.outcomes.items() if outcome not in GOOD}
    return replace(plain, outcomes=missing | dict(plain.outcomes))
