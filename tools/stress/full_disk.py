"""Processes on a disk that is full or becomes so: right results, no exception, nobody in line for what
cannot be kept.

    python tools/stress/full_disk.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round makes a small file system in memory where the user may mount one (root, as a rule);
elsewhere each process gets a limit on the sizes of its files. Some processes at once then ask one
cache on it for the same keys, while something else takes the room and gives it back. Each must get
the right bytes, in little more time than building them all takes; what is found later must be
right, no temporary file may stay, and with room again everything is kept.
"""

from __future__ import annotations

import logging
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rounds import run

from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import Settings

PROCESSES = 4
KEYS = [CacheKey.build("kernel", {"scheme": b"stress", "graph": b"%d" % n}) for n in range(5)]
SIZES = (100, 20_000, 70_000, 200_000, 3000)
BUILD_SECONDS = 0.1
SLACK = 6.0
"""Seconds beside those of building, on a machine that does other things as well."""


def artifact(number: int) -> Artifact:
    """Return the artifact built for the key of that number."""
    content = random.Random(number).randbytes(SIZES[number])
    return Artifact(content, {"graph": content[::4]}, {"compile": BUILD_SECONDS})


def build(number: int) -> Artifact:
    """Wait as long as building takes."""
    time.sleep(BUILD_SECONDS)
    return artifact(number)


def use(settings: Settings, order: list[int]) -> None:
    """Get every key; raise AssertionError for a wrong byte, or if builders waited for each other."""
    begin = time.monotonic()
    cache = Cache(settings)
    for number in order:
        make = lambda number=number: build(number)  # noqa: E731
        found = cache.get_or_build(KEYS[number], make, bytes)
        assert found.value == artifact(number).payload, f"wrong bytes of {number}"
    cache.flush()
    taken = time.monotonic() - begin
    assert taken < 3 * len(order) * BUILD_SECONDS + SLACK, f"it took {taken:.1f} s"


def start(settings: Settings, order: list[int], limit: int | None) -> int:
    """Start a process that uses the cache, with files of at most `limit` bytes; return its number."""
    child = os.fork()
    if not child:
        code = 1
        try:
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            use(settings, order)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[bool]:
    """Mount a file system of `size` bytes at `path`; yield True if that worked."""
    path.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "cachegraph-stress", str(path)]
    mounted = (
        shutil.which("mount") is not None and subprocess.run(command, capture_output=True).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path, leave: int) -> None:
    """Use up all free space but `leave` bytes."""
    with suppress(OSError), (path / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    with suppress(OSError):
        size = (path / "ballast").stat().st_size
        os.truncate(path / "ballast", max(size - leave, 0))


def fault_in(settings: Settings, healthy: bool) -> str | None:
    """Return the fault of the cache's content; a `healthy` cache must have every key."""
    cache = Cache(settings)
    for number, key in enumerate(KEYS):
        found = cache.lookup(key)
        if isinstance(found, Hit) and found.payload != artifact(number).payload:
            return f"wrong bytes of {number}"
        if healthy and not isinstance(found, Hit):
            return f"{number} is not kept although there is room: {found}"
    left = [path.name for path in settings.directory.rglob(".tmp-*")]
    return f"temporary files stay: {left}" if left else None


def attack(choose: random.Random, directory: Path) -> str | None:
    """Run processes on a cache with too little space, then again with enough."""
    room = choose.choice([0, 4096, 40_000, 100_000, 300_000, 600_000])
    place = directory / "disk"
    with small_disk(place, 4_000_000) as mounted:
        cache = place / "cache"
        settings = Settings(
            cache, "readwrite", "compile", cache / "shared" if choose.random() < 0.3 else None
        )
        if mounted and choose.random() < 0.5:
            Cache(settings).store(KEYS[0], artifact(0))
        if mounted:
            fill(place, room)
        orders = [choose.sample(range(len(KEYS)), len(KEYS)) for _ in range(PROCESSES)]
        children = [start(settings, order, None if mounted else room) for order in orders]
        ended = [os.waitpid(child, 0)[1] for child in children]
        if any(ended):
            return f"a process failed, with {room} bytes of room"
        fault = fault_in(settings, healthy=False)
        (place / "ballast").unlink(missing_ok=True)
        if fault is None and os.waitpid(start(settings, orders[0], None), 0)[1]:
            return "a process failed that had room again"
        return fault or fault_in(settings, healthy=True)


if __name__ == "__main__":
    logging.disable()  # each process says once that it cannot store
    sys.exit(run(__doc__, attack))
