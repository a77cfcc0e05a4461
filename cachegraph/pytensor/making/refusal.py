"""Functions that another backend's linker refuses: numba makes them instead, and the reason is kept."""

from __future__ import annotations

from typing import Any

from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from cachegraph.errors import CacheMissError
from cachegraph.logger import logger
from cachegraph.pytensor.backends import backend_of
from cachegraph.pytensor.errors import count_bypass

REFUSED = "refused-by-backend"
"""The bypass reason of a function that its backend does not link."""


def mode_instead(mode: Any, error: Exception) -> Any:
    """Return the mode by which numba makes a function of `mode`, whose linker raised `error`; None if there
    is none.

    There is none if the linker is no backend's (backends.py), or if the error forbids compiling.
    """
    if backend_of(mode.linker) is None or isinstance(error, CacheMissError):
        return None
    rewrites = mode.provided_optimizer
    if isinstance(rewrites, RewriteDatabaseQuery):
        rewrites = rewrites.including("numba")
    return Mode("numba", rewrites)


def note_refusal(linker: Any, name: str | None, error: Exception) -> str:
    """Log and count that `linker` did not make a function because of `error`; return that as a reason."""
    reason = f"{type(linker).__name__} refused it ({type(error).__name__}: {error})"
    logger("cachegraph").warning("numba compiles %s: %s", name or "a function", reason)
    count_bypass(REFUSED)
    return reason
