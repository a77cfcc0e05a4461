"""Random damage to every kind of file of a cache: flips, cuts, additions, sparse growth, modes, links,
other files' bytes.

    python tools/stress/damage.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round copies a sound cache (an index, its log, blobs; in half of the rounds a shared directory
with entries, blobs and leases, too), damages a few of its files, before a process opens them or
under its hands, and uses it in a process of its own; in some a function is compiled with it, too.
That may give no wrong byte and no exception, take no memory to speak of and wait for nobody. Where
only bytes were damaged it heals, too: what is built again is found by the next process, and then
`verify` finds nothing.
"""

from __future__ import annotations

import functools
import logging
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from rounds import run

import engine
import engine.tensor as pt
from cachegraph.cache import Artifact, Cache, Hit
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from cachegraph.store.claims import lease
from cachegraph.store.local.store import LocalStore
from cachegraph.store.maintenance import pruning, verification
from cachegraph.store.shared.store import SharedStore
from cachegraph.store.tiers import TieredStore

LONGEST = 60.0
"""Seconds; a round takes a tenth of one, and a few where it compiles."""
MOST_MEMORY = 300 * 2**20
"""Bytes beside what the program itself takes."""
SPARSE = 2**40
LARGEST = 2**24
SIZES = (0, 100, 3000, 20_000, 64 * 1024, 150_000)
KEYS = [CacheKey.build("kernel", {"scheme": b"stress", "graph": b"%d" % n}) for n in range(12)]
TIME_TO_LIVE = 0.3
POINT = np.linspace(-1.0, 2.0, 50)

Damage = Callable[[random.Random, Path], None]


@functools.cache
def artifact(number: int) -> Artifact:
    """Return the artifact stored under the key of that number."""
    content = random.Random(number).randbytes(SIZES[number % len(SIZES)])
    blobs = {"graph": content[::3]} if number % 2 else {}
    return Artifact(content, blobs, {"compile": 1.0 + number}, f"number {number}")


@functools.cache
def origin() -> Path:
    """Return a sound cache in two forms: all in the index, and the last part of it still in the log."""
    place = Path(tempfile.mkdtemp(prefix="cachegraph-stress-origin-"))
    cache = Cache(Settings(place / "closed" / "local", "readwrite", "compile", place / "closed" / "shared"))
    for number, key in enumerate(KEYS):
        if number == len(KEYS) // 2:
            cache._store.close()
        cache._store.put(key, artifact(number))
    in_child(
        lambda: SharedStore(place / "closed" / "shared").claims(KEYS[0])[0].acquire()
    )  # and dies with it
    assert in_child(lambda: compute(cache.settings)) is None
    shutil.copytree(place / "closed", place / "logged")
    cache._store.close()
    assert verification.verify(local_of(cache)) == []  # and what that imports, no round has to import
    cache._store.close()
    return place


def compute(settings: Settings) -> None:
    """Make a function and call it, as a program does; raises AssertionError for a wrong number."""
    os.environ["CACHEGRAPH_DIR"] = str(settings.directory)
    os.environ["CACHEGRAPH_SHARED_DIR"] = str(settings.shared_directory or "")
    x = pt.vector("x")
    total = pt.sum(pt.tanh(x) * pt.exp(-x))
    found, slope = engine.function([x], [total, engine.grad(total, x)])(POINT)
    np.testing.assert_allclose(found, np.sum(np.tanh(POINT) * np.exp(-POINT)))
    np.testing.assert_allclose(slope, np.exp(-POINT) * (1 - np.tanh(POINT) ** 2 - np.tanh(POINT)))


# Bytes that are damaged


def place_in(choose: random.Random, size: int) -> int:
    """Return an offset in a file: often in its head, on which the most depends."""
    return choose.randrange(min(size, 120) if choose.random() < 0.3 else size)


def in_place(change: Callable[[random.Random, bytearray], object]) -> Damage:
    """Return a damage that changes bytes of a file but not its length."""

    def damage(choose: random.Random, path: Path) -> None:
        content = bytearray(path.read_bytes() if path.stat().st_size < LARGEST else b"")
        if content:
            change(choose, content)
            with path.open("r+b") as file:
                file.write(content)

    return damage


def flip(choose: random.Random, content: bytearray) -> None:
    """Flip one bit, or several."""
    for _ in range(choose.choice([1, 1, 1, 8])):
        content[place_in(choose, len(content))] ^= 1 << choose.randrange(8)


def scribble(choose: random.Random, content: bytearray) -> None:
    """Overwrite some bytes with zeros, ones or anything."""
    begin = place_in(choose, len(content))
    length = min(choose.choice([1, 4, 512, 4096]), len(content) - begin)
    content[begin : begin + length] = choose.choice(
        [bytes(length), b"\xff" * length, choose.randbytes(length)]
    )


def swap_pages(choose: random.Random, content: bytearray) -> None:
    """Exchange two pages."""
    one, other = (choose.randrange(len(content)) // 4096 * 4096 for _ in range(2))
    length = min(4096, len(content) - max(one, other))
    content[one : one + length], content[other : other + length] = (
        content[other : other + length],
        content[one : one + length],
    )


def cut(choose: random.Random, path: Path) -> None:
    """Cut the file short."""
    size = path.stat().st_size
    os.truncate(path, choose.choice([0, size // 2, max(size - 1, 0), choose.randrange(size + 1)]))


def extend(choose: random.Random, path: Path) -> None:
    """Add bytes at the end."""
    with path.open("ab") as file:
        file.write(choose.randbytes(choose.choice([1, 4096, 100_000])))


def grow(choose: random.Random, path: Path) -> None:
    """Extend the file by bytes that nobody has written, as many as the file system allows."""
    size = choose.choice([SPARSE, SPARSE, 2**33, 2**31 + 1])
    for smaller in (size, size >> 4, size >> 8):
        with suppress(OSError):
            return os.truncate(path, smaller)
    return None


def remove(choose: random.Random, path: Path) -> None:
    """Remove the file."""
    path.unlink()


BYTES: list[Damage] = [
    in_place(flip),
    in_place(flip),
    in_place(scribble),
    in_place(swap_pages),
    cut,
    extend,
    grow,
    remove,
]

# Files that are something else


def change_mode(choose: random.Random, path: Path) -> None:
    """Give the file a mode that refuses somebody, or admits others."""
    path.chmod(choose.choice([0, 0o200, 0o400, 0o644, 0o666, 0o777]))


def take_anothers_bytes(choose: random.Random, path: Path) -> None:
    """Replace the file's content by that of another file of the cache."""
    others = files_of(path.parents[3 if path.parent.parent.name in ("blobs", "e", "b", "l") else 1])
    path.write_bytes(
        choose.choice([other for other in others if other.stat().st_size < LARGEST]).read_bytes()
    )


def become_a_directory(choose: random.Random, path: Path) -> None:
    """Replace the file by a directory."""
    path.unlink()
    path.mkdir()


def become_a_link(choose: random.Random, path: Path) -> None:
    """Replace the file by a link: to itself, to an endless file, or to a copy under another name."""
    elsewhere = path.with_name(f"{path.name}-elsewhere")  # a name of its own: this file may be such a copy
    path.rename(elsewhere)
    path.symlink_to(choose.choice([elsewhere, Path("/dev/zero"), path]))


def become_a_pipe(choose: random.Random, path: Path) -> None:
    """Replace the file by a pipe that nobody writes to."""
    path.unlink()
    os.mkfifo(path)


KINDS: list[Damage] = [change_mode, take_anothers_bytes, become_a_directory, become_a_link, become_a_pipe]


def files_of(directory: Path) -> list[Path]:
    """Return the regular files below `directory`."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def damage_some(choose: random.Random, directory: Path, opened: bool) -> tuple[bool, str]:
    """Damage a few files; return whether only bytes were damaged, and a description."""
    only_bytes = choose.random() < 0.75
    done = []
    for _ in range(choose.choice([1, 1, 2, 4])):
        found = files_of(directory)
        weights = [20 if "index" in path.name else 1 for path in found]
        [path] = choose.choices(found, weights)
        how = choose.choice(BYTES if only_bytes else BYTES + KINDS)
        if opened and path.name.endswith("-shm"):
            continue  # who writes into what SQLite has mapped kills the process: decision 0065
        with suppress(FileNotFoundError):
            how(choose, path)
            done.append(f"{getattr(how, '__name__', how)} {path.relative_to(directory)}")
    return only_bytes, ", ".join(done)


# Using what is left


def use(cache: Cache) -> None:
    """Look every key up, build what is missing, as a program does; all results must be right."""
    for number, key in enumerate(KEYS):
        check(cache, number, cache.lookup(key))
        found = cache.get_or_build(key, lambda number=number: artifact(number), bytes)  # type: ignore[misc]
        assert found.value == artifact(number).payload, f"wrong bytes of {number}"
    cache.flush()


def check(cache: Cache, number: int, found: object) -> None:
    """Raise AssertionError if `found` is a hit with anything wrong in it."""
    if not isinstance(found, Hit):
        return
    due = artifact(number)
    assert (found.payload, found.seconds, list(found.blobs)) == (due.payload, due.seconds, list(due.blobs)), (
        number
    )
    for name, blob in found.blobs.items():
        assert cache.read_blob(blob) in (None, due.blobs[name]), f"wrong bytes of the blob of {number}"


def local_of(cache: Cache) -> LocalStore:
    """Return the store of the index."""
    store = cache._store
    return store.local if isinstance(store, TieredStore) else store  # type: ignore[return-value]


def maintain(choose: random.Random, cache: Cache) -> None:
    """Run commands on the cache; they may refuse what they cannot read."""
    with suppress(sqlite3.Error, OSError):
        local = local_of(cache)
        if choose.random() < 0.5:
            pruning.carry_out(local, pruning.plan(local, time.time()))
        else:
            verification.verify(local)
        for shared in cache._store.shared if isinstance(cache._store, TieredStore) else ():
            verification.verify(shared)


def check_healed(settings: Settings) -> None:
    """Raise AssertionError unless every key is found, and `verify` finds nothing when it is run again."""
    cache = Cache(settings)
    for number, key in enumerate(KEYS):
        found = cache.lookup(key)
        assert isinstance(found, Hit), f"{number} is not found again: {found}"
        check(cache, number, found)
    verification.verify(local_of(cache))
    assert verification.verify(local_of(cache)) == []


def in_child(work: Callable[[], object]) -> str | None:
    """Run `work` in a process of its own, and return the fault it found."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "it died"
        try:
            os.close(reading)
            signal.alarm(int(LONGEST))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, resource.RLIM_INFINITY))
            work()
            taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
            said = "" if taken < MOST_MEMORY else f"it took {taken >> 20} MB"
        except BaseException:
            said = traceback.format_exc()
        os.write(writing, said.encode()[-60_000:])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return f"it ended with status {status}" if status else said or None


def attack(choose: random.Random, directory: Path) -> str | None:
    """Damage a copy of a sound cache, and use it."""
    place = directory / "cache"
    shutil.copytree(origin() / choose.choice(["closed", "logged"]), place)
    shared = place / "shared" if choose.random() < 0.5 else None
    settings = Settings(place / "local", "readwrite", "compile", shared)
    opened = choose.random() < 0.3
    computes = choose.random() < 0.1
    cache = Cache(settings)

    def work() -> None:
        if opened:
            cache.lookup(choose.choice(KEYS))
        only_bytes, what = damage_some(choose, place, opened)
        try:
            if choose.random() < 0.3:
                maintain(choose, cache)
            if computes:
                compute(settings)
            use(cache)
            if only_bytes:
                use(Cache(settings))
                use(
                    Cache(settings)
                )  # an index that is found damaged loses what was on the damaged pages, stored by then
                check_healed(settings)
            if computes:
                compute(settings)
        except BaseException as error:
            error.add_note(
                f"damage: {what}; only bytes: {only_bytes}; opened: {opened}; shared: {bool(shared)}"
            )
            raise

    return in_child(work)


if __name__ == "__main__":
    logging.disable()  # each damaged index is told of
    defaults = lease.Lease.__init__.__defaults__[1:]  # type: ignore[index]
    lease.Lease.__init__.__defaults__ = (TIME_TO_LIVE, *defaults)  # type: ignore[misc]
    code = run(__doc__, attack)
    shutil.rmtree(origin(), ignore_errors=True)
    sys.exit(code)
