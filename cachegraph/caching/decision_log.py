"""The log that CACHEGRAPH_LOG asks for: one line for each hit, miss and bypass, on stderr or in a file.

    line     := "cachegraph" decision level digits [": " what] ["; " more]*       on stderr
    line     := time " [" pid "] " decision ...                                   in a file
    time     := UTC to the millisecond, as 2026-11-23T23:20:15.123Z
    decision := "hit" | "miss" | "bypass"
    digits   := the first 12 of the key

A hit tells the seconds to load it, the seconds that it saved, its bytes, and its tier, if that is not the
local one. A miss tells its reason, and the seconds and bytes of the build, if there was one. Lines of several
processes do not mix: each is one write to a file opened for appending.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from cachegraph.logger import logger
from cachegraph.units import format_seconds, format_size
from cachegraph.visible_text import one_line

if TYPE_CHECKING:
    from cachegraph.key import CacheKey
    from cachegraph.store.entry import Artifact, Hit, Miss

EXPLAIN = "explain"
"""The value of the setting that asks for lines on stderr; any other names a file."""

_DIGITS = 12
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
"""Without waiting: a pipe that nobody reads would stop the program."""


class DecisionLog:
    """The log at `place`, the setting; what cannot be written is lost, and said once."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._failed = False

    def hit(self, key: CacheKey, hit: Hit, load_seconds: float | None, summary: str) -> None:
        """Write the line of a hit; `load_seconds` is None if nothing was loaded."""
        cost = sum(hit.seconds.values())
        loaded = "found" if load_seconds is None else f"loaded in {format_seconds(load_seconds)}"
        saved = f"saved {format_seconds(cost - (load_seconds or 0.0))}"
        tier = f"from {hit.tier}" if hit.tier else ""
        self._write("hit", key, summary, loaded, saved, format_size(len(hit.payload)), tier)

    def miss(self, key: CacheKey, miss: Miss, seconds: float, artifact: Artifact | None) -> None:
        """Write the line of a miss; `artifact` is what was built, None if nothing was."""
        if artifact is None:
            self._write("miss", key, "", miss.reason, miss.detail)
            return
        size = len(artifact.payload) + sum(map(len, artifact.blobs.values()))
        built = f"built in {format_seconds(seconds)}"
        self._write("miss", key, artifact.summary, miss.reason, miss.detail, built, format_size(size))

    def bypass(self, level: str, reason: str, detail: str) -> None:
        """Write the line of a compilation without the cache."""
        self._put(f"bypass {level}: {reason}" + (f"; {detail}" if detail else ""))

    def _write(self, decision: str, key: CacheKey, summary: str, *facts: str) -> None:
        told = "; ".join(fact for fact in (summary, *facts) if fact)
        self._put(f"{decision} {key.level} {key.hex[:_DIGITS]}: {told}")

    def _put(self, text: str) -> None:
        # A summary may have lines of its own, and others wrote it: a terminal must not obey it.
        line = one_line(" ".join(text.split()))
        try:
            if self._place == EXPLAIN:
                self._print(f"cachegraph {line}\n")
            else:
                self._append(f"{_time()} [{os.getpid()}] {line}\n")
        except (OSError, ValueError) as error:  # stderr is closed, or the disk is full
            if not self._failed:
                self._failed = True
                logger("cachegraph").warning("writing the log %s failed: %s", self._place, error)

    def _print(self, line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(line)

    def _append(self, line: str) -> None:
        descriptor = os.open(self._place, _FLAGS, 0o666)
        try:
            os.write(descriptor, line.encode("utf-8", "backslashreplace"))
        finally:
            os.close(descriptor)


def _time() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03}Z"
