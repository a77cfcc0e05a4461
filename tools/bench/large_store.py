"""Cost of the commands in a cache of 100,000 entries: CPU seconds and memory, each in a fresh process.

A tenth are functions that refer to five kernels each and have a blob; the rest are kernels, Ops and
code of numba. Then the same entries as 20,000 files of a shared directory, for `show`. Called by
store.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cachegraph.key import CacheKey  # noqa: E402
from cachegraph.store.entry import Artifact  # noqa: E402
from cachegraph.store.local.sizes import bytes_held  # noqa: E402
from cachegraph.store.local.store import LocalStore  # noqa: E402
from cachegraph.store.shared.store import SharedStore  # noqa: E402

ENTRIES, FILES = 100_000, 20_000
SECONDS = {
    "stats": 1.0,
    "show": 1.0,
    "list --limit 50": 1.0,
    "list --limit 50 --sort size": 1.0,
    "prune --dry-run": 5.0,
    "prune --dry-run --max-size": 5.0,
    "prune --what-if": 1.0,
    "report": 1.0,
    "list": 20.0,
    "show of a shared directory": 1.0,
    "recorded_cost": 0.001,
}
MEGABYTES = 120.0


def measure(directory: Path, entries: int = ENTRIES, files: int = FILES) -> dict[str, Any]:
    """Fill stores in `directory`, run the commands, return the cost and budget of each and whether all are
    within it.
    """
    local, shared = directory / "local", directory / "shared"
    key, held = fill(local, entries)
    farther = fill_shared(shared, files)
    commands = {
        "stats": ["stats"],
        "show": ["show", key],
        "list --limit 50": ["list", "--limit", "50"],
        "list --limit 50 --sort size": ["list", "--limit", "50", "--sort", "size"],
        "prune --dry-run": ["prune", "--dry-run"],
        "prune --dry-run --max-size": ["prune", "--dry-run", "--max-size", str(held // 2)],
        "prune --what-if": ["prune", "--what-if"],
        "report": ["report", str(directory / "report.html")],
        "list": ["list"],
    }
    found = {name: run(local, command) for name, command in commands.items()}
    found["show of a shared directory"] = run(shared, ["show", farther])
    found["recorded_cost"] = {"seconds": seconds_of_recorded_cost(local), "megabytes": 0.0}
    within = all(
        row["seconds"] <= SECONDS[name] and row["megabytes"] <= MEGABYTES for name, row in found.items()
    )
    return {"entries": entries, "commands": found, "budget": SECONDS, "within_budget": within}


def fill(directory: Path, entries: int) -> tuple[str, int]:
    """Put entries, in one transaction; return one key (hex) and the bytes held."""
    store = LocalStore(directory)
    choose = random.Random(1)
    kernels: list[bytes] = []
    with in_one_transaction(store):
        for number in range(entries):
            key, artifact = entry(number, kernels, choose)
            store.put(key, artifact)
    with store.database.writing() as connection:
        held = bytes_held(connection)
    store.close()
    return key.hex, held


def fill_shared(directory: Path, files: int) -> str:
    """Write entry files and return one key (hex)."""
    store = SharedStore(directory, network=False)
    choose = random.Random(1)
    with without_waiting_for_the_disk():
        for number in range(files):
            key, artifact = entry(number, [], choose)
            store.put(key, artifact)
    return key.hex


def entry(number: int, kernels: list[bytes], choose: random.Random) -> tuple[CacheKey, Artifact]:
    """Return the key and the artifact of that number; `kernels` are those so far."""
    level = ("function", "kernel", "kernel", "kernel", "kernel", "kernel", "op", "op", "numba", "numba")[
        number % 10
    ]
    parts = {"graph": choose.randbytes(120), "code": b"c" * 32, "toolchain": b"t" * 64}
    key = CacheKey.build(level, parts)
    seconds = {"rewrite": choose.random(), "compile": choose.random()}
    summary = f"{level} {number}: Elemwise{{exp}}, Sum{{axis=0}}"
    if level != "function":
        if level == "kernel":
            kernels.append(key.digest)
        return key, Artifact(choose.randbytes(300), {}, seconds, summary)
    called = choose.sample(kernels, min(5, len(kernels)))
    return key, Artifact(choose.randbytes(300), {"graph": choose.randbytes(500)}, seconds, summary, called)


@contextmanager
def in_one_transaction(store: LocalStore) -> Iterator[None]:
    """Make all puts of `store` part of one transaction: 100,000 separate ones take minutes."""
    with without_waiting_for_the_disk(), store.database.writing() as connection:
        store.database.writing = lambda: nullcontext(connection)  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            del store.database.writing  # type: ignore[method-assign]


@contextmanager
def without_waiting_for_the_disk() -> Iterator[None]:
    """Write files without making each durable."""
    fsync, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = fsync


def run(directory: Path, command: list[str]) -> dict[str, float]:
    """Return the CPU seconds and the peak memory of `cachegraph COMMAND --dir directory`."""
    arguments = [sys.executable, "-m", "cachegraph", *command, "--dir", str(directory)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    while process.stdout.read(1 << 16):
        pass
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return {
        "seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "megabytes": round(usage.ru_maxrss / 1024, 1),
    }


def seconds_of_recorded_cost(directory: Path) -> float:
    """Return the seconds of asking for the recorded cost of a level that has no entries."""
    store = LocalStore(directory)
    with store.database.writing() as connection:
        connection.execute("UPDATE entry SET level = 'op' WHERE level = 'numba'")
    key = CacheKey.build("numba", {"graph": b"no such"})
    store.recorded_cost(key)
    begin = perf_counter()
    assert store.recorded_cost(key) is None
    taken = perf_counter() - begin
    store.close()
    return round(taken, 6)
