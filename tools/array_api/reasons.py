"""Reasons for calls that differ from array_api_strict's, and rightly so.

A difference is explained if the function, and what the comparison says of it, fit.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from examples import EagerCall

REASONS = (
    (
        "sign",
        "*j), not *-0j)",
        "the sign of a complex number is numpy's, whose real and imaginary part are never -0.0; "
        "array_api_strict divides",
    ),
    (
        "linalg.inv",
        "array_api_strict refuses: LinAlgError: Singular matrix",
        "the inverse of a singular matrix is NaN (engine/tensor/linalg)",
    ),
    (
        "linalg.matrix_norm",
        "the engine refuses: ValueError: zero-size array to reduction operation maximum *",
        "a maximum of no numbers is refused, as by PyTensor; numpy's norms of no elements are 0",
    ),
    (
        "m??imum",
        "*0.0), not *0.0)",
        "of two zeros either may be the extreme, as the standard allows (engine/lowering/operations.py)",
    ),
)
"""Patterns of names and of differences, with the reason."""


def reason_of(call: EagerCall, found: str) -> str:
    """Return why the call may differ as `found` says; empty if there is no reason."""
    fits = (
        reason for name, text, reason in REASONS if fnmatchcase(call.name, name) and fnmatchcase(found, text)
    )
    return next(fits, "")
