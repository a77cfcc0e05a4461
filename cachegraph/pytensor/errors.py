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


class UnsupportedPyTensor(CachegraphError):
    """The PyTensor that is installed is not one that the adapter knows: what was `found`, what is `expected`."""

    def __init__(self, found: str, expected: str, advice: str) -> None:
        super().__init__(found, expected, advice)
        self.found = found
        self.expected = expected
        self.advice = advice

    def __str__(self) -> str:
        return f"installing into PyTensor: found {self.found}, expected {self.expected}; {self.advice}"
