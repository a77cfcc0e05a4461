"""The functions that pickles of a trusted package may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def rebuilds_pickled(function: F) -> F:
    """Declare that pickles may call `function`: of a trusted package they call its classes and these, nothing else."""
    function._rebuilds_pickled = True  # type: ignore[attr-defined]
    return function
