"""Why tests of PyTensor's have another outcome on the engine."""

from __future__ import annotations

from pytensor_tests.explained import ExplainedDifference

RUN = "language"
WRONG = ("Not equal to tolerance", "Arrays are not", "Mismatched elements", "MISMATCH", "wrong value")
"""Parts of what tests say of other numbers."""


def difference(tests: str, message: str, reason: str) -> ExplainedDifference:
    """Return a reason; `tests` is a pattern of ids, `message` a part of what the failure says.

    For a test that needs a name which the engine does not have, the name is the message.
    """
    return ExplainedDifference(RUN, tests, message, reason)


class OtherForm(ExplainedDifference):
    """A reason for another graph: it explains neither other numbers nor a name that is not covered."""

    def explains(self, run: str, test: str, message: str) -> bool:
        """Return True if this is the reason for that outcome."""
        is_name = " " not in message and ("." in message or "(" in message)
        return (
            not is_name
            and not any(each in message for each in WRONG)
            and super().explains(run, test, message)
        )
