"""The line on a terminal that says what a long compilation is doing: it comes late, and is gone in the end.

A thread draws it, since one call of a compiler may take all of the time. It writes to the descriptor of
standard error, without locks and without escape sequences, and only where a person looks: not from worker
processes and other threads than the main one, whose lines would be mixed up, nor from the background of a
shell.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

from cachegraph.processes import is_worker_process

LONG = 5.0
"""Seconds after which a compilation gets a line."""

_PAUSE = 0.25
_GONE = 1.0
"""Seconds that the end of a compilation waits for a terminal that takes no text (Ctrl-S)."""
_WIDTH = 80

_current: _Line | None = None


@contextmanager
def shown_if_long(doing: str, after: float | None = None) -> Iterator[Callable[[str], None]]:
    """Show `doing` while the block runs, after so many seconds (LONG); what is yielded replaces the text.

    Within another such block, the line is that block's and shows the inner text meanwhile. Where the line may
    not be shown, and if showing it fails, nothing happens.
    """
    global _current
    outer = _current
    line = (
        (outer or _new_line(LONG if after is None else after))
        if threading.current_thread() is threading.main_thread()
        else None
    )
    if line is None:
        yield lambda doing: None
        return
    before, line.doing, _current = line.doing, doing, line
    try:
        yield line.show
    finally:
        line.doing, _current = before, outer
        if outer is None:
            line.end()


class _Line:
    """One line, with the thread that draws it."""

    def __init__(self, descriptor: int, after: float) -> None:
        self.doing = ""
        self._after = after
        self._descriptor = descriptor
        self._begun = perf_counter()
        self._drawn = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cachegraph-line", daemon=True)
        self._thread.start()

    def show(self, doing: str) -> None:
        """Show `doing` from now on."""
        self.doing = doing

    def end(self) -> None:
        """Have the thread erase the line, and wait for it."""
        self._ended.set()
        self._thread.join(_GONE)

    def _run(self) -> None:
        pause = self._after
        while not self._ended.wait(pause):
            pause = _PAUSE
            self._draw(f"{self.doing}, {perf_counter() - self._begun:.0f} s")
        if self._drawn:
            self._draw("")
            self._write("\r")

    def _draw(self, text: str) -> None:
        # Names are users': a terminal must not obey them, and a line must not become two.
        plain = text.encode("ascii", "backslashreplace").decode()
        shown = "".join(c if c.isprintable() else "?" for c in plain)[: self._width() - 1]
        if self._write("\r" + shown.ljust(self._drawn)):
            self._drawn = len(shown)

    def _write(self, text: str) -> bool:
        """Write `text` if the terminal is still there and this process in its foreground; say if it is."""
        with suppress(OSError):
            if os.isatty(self._descriptor) and _is_in_foreground(self._descriptor):
                os.write(self._descriptor, text.encode())
                return True
        return False

    def _width(self) -> int:
        with suppress(OSError):
            return os.get_terminal_size(self._descriptor).columns or _WIDTH
        return _WIDTH


def _new_line(after: float) -> _Line | None:
    """Return a line on standard error, or None if nobody would look at it there."""
    if os.environ.get("TERM") == "dumb" or is_worker_process():
        return None
    # Anything may stand in for standard error, and a thread is refused where many run.
    with suppress(Exception):
        if sys.stderr.isatty():
            return _Line(sys.stderr.fileno(), after)
    return None


def _is_in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # a terminal that is not this process's own
        return True
