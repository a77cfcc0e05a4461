"""The declaration of functions that pickles may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def rebuilds_pickled(function: F) -> F:
    """Declare that pickles may call `function`: of a trusted package, they may call only classes and such
    functions."""
    function._rebuilds_pickled = True  # type: ignore[attr-defined]
    return function
