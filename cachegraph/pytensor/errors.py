"""Errors of the adapter, and how its own failures are logged and counted."""

from __future__ import annotations

from cachegraph.cache import default_cache
from cachegraph.caching.counters import PROCESS
from cachegraph.errors import CachegraphError


class Unstorable(CachegraphError):
    """An optimized graph holds something that its stored form does not represent: `found`."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"storing an optimized graph: found {self.found}; the function is compiled anew in each process"
        )


class Changed(CachegraphError):
    """Something is no longer what the key of a function says: `found`."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return (
            f"compiling a function: {self.found} has changed since its key was made; nothing of it is kept, and it is "
            "compiled as it is now. Change such things before pytensor.function, or after the first call"
        )


class UnsupportedPyTensor(CachegraphError):
    """The PyTensor that is installed is not one that the adapter knows: what was `found`, what is `expected`."""

    def __init__(self, found: str, expected: str, advice: str) -> None:
        super().__init__(found, expected, advice)
        self.found = found
        self.expected = expected
        self.advice = advice

    def __str__(self) -> str:
        return f"installing into PyTensor: found {self.found}, expected {self.expected}; {self.advice}"


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
