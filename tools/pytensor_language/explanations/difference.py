"""Why tests of PyTensor's have another outcome on the engine."""

from __future__ import annotations

from pytensor_tests.explained import ExplainedDifference

RUN = "language"


def difference(tests: str, message: str, reason: str) -> ExplainedDifference:
    """Return a reason; `tests` is a pattern of ids, `message` a part of what the failure says.

    For a test that needs a name which the engine does not have, the name is the message.
    """
    return ExplainedDifference(RUN, tests, message, reason)
