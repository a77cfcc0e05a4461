"""Errors of the adapter, and how its own failures are logged and counted."""

from __future__ import annotations

from cachegraph.errors import CachegraphError
from cachegraph.logger import logger


class Unstorable(CachegraphError):
    """An optimized graph holds something that has no stored form: `found`."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"storing an optimized graph: found {self.found}; each process compiles the function"


class Changed(CachegraphError):
    """Something is no longer what the key of a function describes: `found`."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"compiling a function: {self.found} has changed since its key was made; nothing of it is "
            "stored, and it is compiled as it is now. Change such things before pytensor.function, or after "
            "the first call"
        )


class UnsupportedPyTensor(CachegraphError):
    """The installed PyTensor is unknown to the adapter: what was `found`, and what is `expected`."""

    def __init__(self, found: str, expected: str, advice: str) -> None:
        super().__init__(found, expected, advice)
        self.found = found
        self.expected = expected
        self.advice = advice

    def __str__(self) -> str:
        return f"installing into PyTensor: found {self.found}, expected {self.expected}; {self.advice}"


def note_failure(doing: str, name: str, error: BaseException) -> None:
    """Log and count a failure of the adapter; the caller then continues as PyTensor does."""
    logger("cachegraph").warning(
        "%s failed (%s: %s), so PyTensor makes %s as if there were no cache",
        doing,
        type(error).__name__,
        error,
        name,
        exc_info=error,
    )
    count_bypass("adapter-failure")


def count_bypass(kind: str) -> None:
    """Count a function that bypasses the cache; never raises."""
    from cachegraph.cache import default_cache  # classes of errors are imported without it
    from cachegraph.caching.counters import PROCESS

    try:
        default_cache().note_bypass("function", kind)
    except Exception:  # the settings may be what failed
        PROCESS.bypass(kind)
