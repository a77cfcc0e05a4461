"""Seconds that eviction saves: one trace of processes that use models, replayed with the store's
policy and with LRU.

Costs and sizes are real (eviction_costs.json: the demo's models, compiled). Who asks for what, and
when, is drawn with a seed, and models a group that shares a cache. On each of 40 days, of 10
projects, each of which has all the models:

    production    6 functions, of any projects, that run 3 times a day, every day
    exploration   8 runs of functions of the project of the week, the latest most often; never again
    a sweep       every 10 days all functions of one project run once, as continuous integration does

Kernels that most models have are the same in all projects. A process looks its function up, then
each kernel; what is missing is built and stored; it writes its uses when it ends. Prints JSON: for
each limit (a share of all that is ever asked for) the seconds that hits saved under each policy, of
those that a cache without limit saves. `--check` fails (exit code 1) unless the store keeps more
than LRU at every limit.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


from cachegraph.key import CacheKey  # noqa: E402
from cachegraph.store.activity import Activity  # noqa: E402
from cachegraph.store.entry import Artifact, Hit, Miss  # noqa: E402
from cachegraph.store.local import eviction  # noqa: E402
from cachegraph.store.local.store import LocalStore  # noqa: E402

COSTS = Path(__file__).with_name("eviction_costs.json")
SEED = 2026
DAYS, PROJECTS, PRODUCTION = 40, 10, 6
RUNS_IN_PRODUCTION, RUNS_OF_EXPLORERS, DAYS_BETWEEN_SWEEPS = 3, 8, 10
SHARES = (0.05, 0.1, 0.2)
SHARED_BY = 16  # models: a kernel that so many have is the same in all projects


class Item(NamedTuple):
    """An entry as a request asks for it: its key, bytes, seconds of building and of loading."""

    key: CacheKey
    size: int
    build: float
    load: float


class Request(NamedTuple):
    """One process: the function it wants, and the kernels that this one calls."""

    function: Item
    kernels: tuple[Item, ...]


SELECT_OLDEST = """
    SELECT digest, clock FROM entry
    WHERE digest != ? ORDER BY last_used, id LIMIT 16
"""


class LeastRecentlyUsed(eviction.Eviction):
    """The store with LRU: a put evicts the entries that were used longest ago."""

    def _least_worth(self, connection: sqlite3.Connection) -> list[Any]:
        return [
            eviction._LeastWorth(*row) for row in connection.execute(SELECT_OLDEST, (self.spared,)).fetchall()
        ]


POLICIES = {"store": eviction.Eviction, "lru": LeastRecentlyUsed}


def main() -> int:
    """Replay, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the trace (default: {SEED})")
    parser.add_argument("--days", type=int, default=DAYS, help=f"in the trace (default: {DAYS})")
    parser.add_argument("--check", action="store_true", help="fail where LRU keeps as much")
    arguments = parser.parse_args()
    result = compare(trace(arguments.seed, arguments.days))
    print(json.dumps({"seed": arguments.seed, "days": arguments.days, **result}, indent=2))
    return 1 if arguments.check and not result["ahead"] else 0


def trace(seed: int, days: int) -> list[Request]:
    """Return the requests of all days; the same seed gives the same requests."""
    choose = random.Random(seed)
    recorded = json.loads(COSTS.read_text())
    models = sorted(recorded["models"].values())
    known = Requests(recorded["entries"], models)
    production = [(choose.randrange(PROJECTS), choose.choice(models)) for _ in range(PRODUCTION)]
    wanted: list[tuple[int, str]] = []
    for day in range(days):
        explored = day // 7 % PROJECTS
        today = production * RUNS_IN_PRODUCTION
        for _ in range(RUNS_OF_EXPLORERS):
            back = min(int(choose.expovariate(0.5)), len(models) - 1)
            today.append((explored, models[(3 * day - back) % len(models)]))
        choose.shuffle(today)
        if day % DAYS_BETWEEN_SWEEPS == DAYS_BETWEEN_SWEEPS - 1:
            today += [(choose.randrange(PROJECTS), models[0])]
            today += [(today[-1][0], model) for model in models[1:]]
        wanted += today
    return [known.of(project, model) for project, model in wanted]


class Requests:
    """A maker of requests: one model within a project, from the entries recorded for that model."""

    def __init__(self, entries: dict[str, Any], models: list[str]) -> None:
        self.entries = entries
        used = Counter(kernel for model in models for kernel in entries[model]["references"])
        self.common = {kernel for kernel, count in used.items() if count >= SHARED_BY}
        self.made: dict[tuple[int, str], Request] = {}

    def of(self, project: int, model: str) -> Request:
        """Return the request, the same object each time."""
        if (project, model) not in self.made:
            kernels = self.entries[model]["references"]
            made = Request(self.item(project, model), tuple(self.item(project, name) for name in kernels))
            self.made[project, model] = made
        return self.made[project, model]

    def item(self, project: int, name: str) -> Item:
        """Return one entry within a project."""
        told = self.entries[name]
        owner = "all" if name in self.common else str(project)
        key = CacheKey.build(told["level"], {"graph": f"{owner} {name}".encode()})
        return Item(key, told["bytes"], told["build"], told["load"])


def compare(requests: list[Request]) -> dict[str, Any]:
    """Return the seconds that each policy saves at each limit, and whether the store always beats LRU."""
    asked = {item.key: item for request in requests for item in (request.function, *request.kernels)}
    total = sum(item.size for item in asked.values())
    unlimited = replay(requests, 0, "store")
    limits = {}
    for share in SHARES:
        saved = {policy: replay(requests, int(total * share), policy) for policy in POLICIES}
        limits[f"{share:.0%}"] = {
            "bytes": int(total * share),
            **{f"seconds_saved_{policy}": round(seconds, 2) for policy, seconds in saved.items()},
            **{f"share_saved_{policy}": round(seconds / unlimited, 3) for policy, seconds in saved.items()},
        }
    ahead = all(row["seconds_saved_store"] > row["seconds_saved_lru"] for row in limits.values())
    return {
        "processes": len(requests),
        "entries": len(asked),
        "bytes": total,
        "seconds_saved_without_limit": round(unlimited, 2),
        "limits": limits,
        "ahead": ahead,
    }


def replay(requests: list[Request], room: int, policy: str) -> float:
    """Return the seconds saved by hits when the store has `room` bytes for entries (0: no limit)."""
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory, evicting(policy):
        store = LocalStore(Path(directory))
        store.max_size = room
        saved = sum(run(store, request) for request in requests)
        store.close()
    return saved


@contextmanager
def evicting(policy: str) -> Iterator[None]:
    """Make the store evict by `policy` during the block."""
    original = eviction.Eviction
    eviction.Eviction = POLICIES[policy]  # type: ignore[misc]
    try:
        yield
    finally:
        eviction.Eviction = original  # type: ignore[misc]


def run(store: LocalStore, request: Request) -> float:
    """Return the seconds that one process saves: it looks up, builds, stores, and records its uses."""
    activity = Activity()
    found = {item: use(store, activity, item) for item in request.kernels}
    references = [item.key.digest for item in request.kernels]
    # A function one of whose kernels is gone is rewritten, for its hit cannot be linked.
    whole = use(store, activity, request.function) and all(found.values())
    for item in (item for item, hit in found.items() if not hit):
        put(store, item)
    if not whole:
        put(store, request.function, references)
    store.add_counts(activity.take())
    hits = [item for item, hit in found.items() if hit] + ([request.function] if whole else [])
    return sum(item.build - item.load for item in hits)


def use(store: LocalStore, activity: Activity, item: Item) -> bool:
    """Look one entry up, count the use, and return True if it was found."""
    found = store.get(item.key)
    if isinstance(found, Hit):
        activity.use(item.key.digest, item.load)
        activity.hit(item.key.level, item.build - item.load)
    else:
        activity.miss(item.key, Miss(found.reason, ""), item.build)
    return isinstance(found, Hit)


def put(store: LocalStore, item: Item, references: list[bytes] | tuple[()] = ()) -> None:
    """Store an entry of the recorded size, of random bytes: object code hardly compresses either."""
    content = random.Random(item.key.digest).randbytes(item.size)
    artifact = Artifact(content, seconds={"build": item.build}, references=references)
    store.put(item.key, artifact, item.load)


if __name__ == "__main__":
    sys.exit(main())
