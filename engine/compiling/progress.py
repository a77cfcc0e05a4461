"""The progress line of a compilation that takes long: on the terminal, gone when it is done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING

from engine.runtime.target import is_worker_process

if TYPE_CHECKING:
    from rich.progress import Progress

LONG = 2.0
"""Seconds after which a compilation gets a line."""


@contextmanager
def shown_progress(begun: float, total: int) -> Iterator[Callable[[], None]]:
    """Return a function to call after each of `total` kernels, for a compilation that began at `begun`.

    It shows how many are done once the compilation takes long, and if standard error is a terminal. Worker
    processes and other threads than the main one show nothing: their lines would be mixed up.
    """
    line = _Line(begun, total)
    try:
        yield line.advance
    finally:
        line.close()


class _Line:
    """The line, which appears late or never. It changes when told to, so that it needs no thread."""

    def __init__(self, begun: float, total: int) -> None:
        self._begun = begun
        self._total = total
        self._done = 0
        self._shown: Progress | None = None

    def advance(self) -> None:
        """Count one kernel as done."""
        self._done += 1
        if perf_counter() - self._begun > LONG and (self._shown or _may_be_shown()):
            with suppress(OSError):  # the terminal may be gone, which is no reason to stop compiling
                self._show()

    def close(self) -> None:
        """Remove the line if it is shown."""
        if self._shown is not None:
            with suppress(OSError):
                self._shown.stop()

    def _show(self) -> None:
        if self._shown is None:
            self._shown = _progress()
            self._shown.add_task("compiling kernels", total=self._total)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=self._done, refresh=True)


def _may_be_shown() -> bool:
    stream = sys.stderr
    if stream is None or stream.closed or not stream.isatty() or find_spec("rich") is None:
        return False
    return not is_worker_process() and threading.current_thread() is threading.main_thread()


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
