"""A build that is interrupted at any chosen point of cachegraph's code, and what may be left of it: nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from cachegraph.cache import Artifact, Cache
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.claims.node_lock import NodeLock
from cachegraph.store.paths import TEMPORARY_PREFIX

PACKAGE = str(Path(sys.modules["cachegraph"].__file__ or "").parent)


EVENTS = sys.monitoring.events
TOOL = 4  # one of the numbers that no tool has for itself


class Interrupt(KeyboardInterrupt):
    """The interrupt of this test, so that no other passes for it."""


def count_points(call: Callable[[], object]) -> int:
    """Return at how many points of cachegraph's code `call` can be interrupted."""
    return _run(call, sys.maxsize)


def interrupt(call: Callable[[], object], point: int) -> bool:
    """Run `call`, interrupt it at its `point`-th point, and return whether the interrupt came through as it was raised."""
    try:
        _run(call, point)
    except Interrupt:
        return True
    return False


def _run(call: Callable[[], object], point: int) -> int:
    """Points are where CPython runs handlers of signals: where a function begins, where a call of C code has returned, and
    where code jumps back."""
    seen = 0

    def note(code: CodeType, *_: object) -> None:
        nonlocal seen
        if code.co_filename.startswith(PACKAGE) and threading.current_thread() is threading.main_thread():
            seen += 1
            if seen == point:
                raise Interrupt

    def note_jump(code: CodeType, offset: int, destination: int) -> None:
        if destination < offset:
            note(code)

    sys.monitoring.use_tool_id(TOOL, "interrupts")
    try:
        sys.monitoring.register_callback(TOOL, EVENTS.PY_START, note)
        sys.monitoring.register_callback(TOOL, EVENTS.C_RETURN, note)
        sys.monitoring.register_callback(TOOL, EVENTS.JUMP, note_jump)
        sys.monitoring.set_events(TOOL, EVENTS.PY_START | EVENTS.CALL | EVENTS.JUMP)
        call()
    finally:
        sys.monitoring.set_events(TOOL, 0)
        sys.monitoring.free_tool_id(TOOL)
    return seen


class Caches:
    """A cache on this node before a shared one, and builds in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.settings = Settings(directory / "local", "readwrite", "compile", directory / "shared")
        self.cache = Cache(self.settings)

    @staticmethod
    def key_of(name: str) -> CacheKey:
        """Return the key of `name`."""
        return CacheKey.build("kernel", {"graph": name.encode()})

    def build(self, name: str) -> bytes:
        """Return what the key of `name` has, found or built."""

        def build() -> Artifact:
            return Artifact(name.encode(), {"blob": name.encode() * 20_000}, {"compile": 1.0})

        return self.cache.get_or_build(self.key_of(name), build, bytes).value

    def fault_after(self, name: str) -> str | None:
        """Return what an interrupted build of `name` has left that it may not leave, None if that is nothing."""
        key = self.key_of(name)
        if self.cache._builder()._flights._table.holder(key.digest) is not None:
            return "this process's threads are made to wait"
        lock = NodeLock(self.cache._store.local.layout.lock(key.hex), self.cache._store.local.guard)  # type: ignore[union-attr]
        if lock.acquire() is not None:
            return "this node's processes are made to wait"
        lock.release()
        if not _comes_true(lambda: not self._files("shared/v1/l", key.hex)):
            return "other hosts are made to wait"
        if self._files("", TEMPORARY_PREFIX):
            return f"a temporary file is left: {self._files('', TEMPORARY_PREFIX)}"
        found = self.build(name)
        return None if found == name.encode() else f"the next build returned {found!r}"

    def _files(self, below: str, start: str) -> list[str]:
        return [
            name
            for _, _, names in os.walk(self.directory / below)
            for name in names
            if name.startswith(start) and name != "index.sqlite"
        ]


def _comes_true(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
