"""Processes killed at random points while they put, get, evict, delete and prune; what they leave must
be right.

    python tools/stress/kill.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round starts a few processes on one directory (an index, with a limit in half of the rounds; or an
index before a shared directory) and kills them one by one, each after a random part of a second.
Then whatever is found must be right, what a process said it had stored must be found, unless it was
evicted or deleted since, `verify` may find nothing damaged, and the cache must work as if nothing
had been.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rounds import run

from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance import pruning, verification
from cachegraph.store.maintenance.planning import Criteria
from cachegraph.store.tiers import TieredStore

PROCESSES = 3
LONGEST_LIFE = 0.25
"""Seconds; a process does about a hundred things in them."""
LIMIT = 700_000
SIZES = (50, 3000, 20_000, 100_000)
KEYS = [CacheKey.build("kernel", {"scheme": b"stress", "graph": b"%d" % n}) for n in range(40)]


def artifact(number: int, version: int) -> Artifact:
    """Return one of several artifacts for one key, as different processes would build it."""
    content = random.Random(f"{number} {version}").randbytes(SIZES[(number + version) % len(SIZES)])
    blobs = {"graph": content[::4]} if number % 2 else {}
    return Artifact(content, blobs, {"compile": 1.0 + version}, f"number {number}")


def fault_in(cache: Cache, number: int) -> str | None:
    """Return the fault of a lookup's result, if any."""
    found = cache.lookup(KEYS[number])
    if not isinstance(found, Hit):
        return None if found.reason in ("never-seen", "evicted") else f"{number}: {found}"
    due = artifact(number, int(found.seconds["compile"]) - 1)
    if found.payload != due.payload:
        return f"wrong bytes of {number}"
    for name, blob in found.blobs.items():
        if cache.read_blob(blob) not in (None, due.blobs[name]):
            return f"wrong bytes of a blob of {number}"
    return None


def local_of(cache: Cache) -> LocalStore:
    """Return the store of the index."""
    store = cache._store
    return store.local if isinstance(store, TieredStore) else store  # type: ignore[return-value]


def live(choose: random.Random, settings: Settings, say: Callable[[str], None]) -> None:
    """Put, get and remove without end; report the start of each put, and start and end of each removal."""
    cache = Cache(settings)
    while True:
        number = choose.randrange(len(KEYS))
        what = choose.choices(["put", "get", "build", "delete", "prune", "flush"], [8, 6, 4, 1, 1, 1])[0]
        if what == "put":
            begin = time.monotonic()
            if cache.store(KEYS[number], artifact(number, choose.randrange(4))):
                say(f"+ {begin} {number}")
        elif what == "get":
            fault = fault_in(cache, number)
            if fault:
                say(f"! {fault}")
        elif what == "build":
            cache.get_or_build(KEYS[number], lambda: artifact(number, 0), bytes)  # noqa: B023
        elif what == "delete":
            say(f"- {number}")
            cache._store.delete([KEYS[number].digest])
            say("=")
        elif what == "prune":
            say("- " + " ".join(map(str, range(len(KEYS)))))
            store = local_of(cache)
            pruning.carry_out(store, pruning.plan(store, time.time(), Criteria(max_size=LIMIT // 2)))
            say("=")
        else:
            cache.flush()


def start(choose: random.Random, settings: Settings) -> tuple[int, int]:
    """Start a process that calls `live`; return its number and its output."""
    seed = choose.random()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            live(
                random.Random(seed),
                settings,
                lambda said: os.write(writing, f"{time.monotonic()} {said}\n".encode()),
            )
        except BaseException as error:
            os.write(writing, f"{time.monotonic()} ! {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.close(writing)
    return child, reading


def attack(choose: random.Random, directory: Path) -> str | None:
    """Start processes on one directory, kill them, and check what they left."""
    shared = directory / "shared" if choose.random() < 0.3 else None
    limit = LIMIT if choose.random() < 0.5 else 0
    settings = Settings(directory / "local", "readwrite", "compile", shared, max_size=limit)
    lives = [start(choose, settings) for _ in range(PROCESSES)]
    heard = _Heard()
    for child, _ in lives:
        time.sleep(choose.random() * LONGEST_LIFE)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for child, reading in lives:
        with open(reading) as pipe:
            heard.add([line for line in pipe if line.endswith("\n")])
        os.waitpid(child, 0)
    return heard.faults[0] if heard.faults else fault_after(settings, set() if limit else heard.stored())


class _Heard:
    """The output of the killed processes: puts (start, number), removals (start and end, numbers), and
    faults.
    """

    def __init__(self) -> None:
        self.puts: list[tuple[float, int]] = []
        self.removals: list[tuple[float, float, set[int]]] = []
        self.faults: list[str] = []

    def add(self, lines: list[str]) -> None:
        """Add the output of one process."""
        begun: tuple[float, set[int]] | None = None
        for line in lines:
            when, what, *rest = line.split()
            if what == "+":
                self.puts.append((float(rest[0]), int(rest[1])))
            elif what == "-":
                begun = float(when), set(map(int, rest))
            elif what == "=" and begun:
                self.removals.append((begun[0], float(when), begun[1]))
                begun = None
            else:
                self.faults.append(line)
        if begun:
            self.removals.append((begun[0], float("inf"), begun[1]))

    def stored(self) -> set[int]:
        """Return the numbers that must be stored: put after every removal had ended."""
        return {
            number
            for begin, number in self.puts
            if all(end < begin for _, end, numbers in self.removals if number in numbers)
        }


def fault_after(settings: Settings, stored: set[int]) -> str | None:
    """Return the fault of what the killed processes left; the keys in `stored` must be found."""
    cache = Cache(settings)
    for number, key in enumerate(KEYS):
        fault = fault_in(cache, number)
        if fault:
            return fault
        if number in stored and not isinstance(cache.lookup(key), Hit):
            return f"{number} was stored, and is not found: {cache.lookup(key)}"
    problems = verification.verify(local_of(cache))
    if isinstance(cache._store, TieredStore):
        for shared in cache._store.shared:
            problems += verification.verify(shared)
    if problems:
        return f"verify finds {problems[0]}"
    return fault_of_use(cache)


def fault_of_use(cache: Cache) -> str | None:
    """Return the fault of storing every key again, if any."""
    for number, key in enumerate(KEYS):
        due = artifact(number, 0)
        if not cache.store(key, due):
            return f"{number} cannot be stored"
        found = cache.lookup(key)
        if not isinstance(found, Hit) or found.payload != due.payload:
            return f"{number} is not found just after it was stored: {found!r:.100}"
    cache.flush()
    return None


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
