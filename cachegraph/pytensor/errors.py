"""What the adapter refuses, and why."""

from __future__ import annotations

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
