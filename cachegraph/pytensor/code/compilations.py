"""The compilations of one function by numba: counted, timed, and shown on a terminal while they last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any


class Compilations:
    """The `count` of compilations of a function in this process, and the `seconds` that they took."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count what the block does as a compilation, also if it fails."""
        from cachegraph.waiting_line import shown_if_long  # a function that is found compiles nothing

        begin = perf_counter()
        try:
            with shown_if_long("numba compiles a function"):
                yield
        finally:
            self.count += 1
            self.seconds += perf_counter() - begin


def with_compilations(dispatcher: Any) -> Any:
    """Return numba's `dispatcher` with its compilations for calls from Python in `compilations`."""
    compile_for_args = dispatcher._compile_for_args
    compilations = dispatcher.compilations = Compilations()

    def counted(*args: Any, **kws: Any) -> Any:
        with compilations.one():
            return compile_for_args(*args, **kws)

    dispatcher._compile_for_args = counted
    return dispatcher
