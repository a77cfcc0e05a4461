"""What goes wrong in the adapter itself: said in one log line, and counted."""

from __future__ import annotations

from cachegraph.cache import default_cache
from cachegraph.caching.counters import PROCESS


def note_failure(doing: str, name: str, error: BaseException) -> None:
    """Log and count a failure of the adapter; whoever notes it goes PyTensor's own way."""
    import logging  # only what fails needs it

    logging.getLogger("cachegraph").warning(
        "%s failed (%s: %s), so PyTensor makes %s as if there were no cache",
        doing,
        type(error).__name__,
        error,
        name,
        exc_info=error,
    )
    count_bypass("adapter-failure")


def count_bypass(kind: str) -> None:
    """Count a function that does without the cache; never raises."""
    try:
        default_cache().note_bypass("function", kind)
    except Exception:  # the settings are what failed
        PROCESS.bypass(kind)
