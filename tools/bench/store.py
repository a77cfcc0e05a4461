"""The local store under load, beside diskcache on the same payloads in the same run.

First one process alone, then 16 at once on one directory, each with 90 gets to 10 puts over 600
keys of 2, 20 and 150 kB (3, 6 and 1 of ten), in turn for the store and for diskcache. A get here is
what a hit is: found, checksum and key compared, and the bytes themselves are compared with what was
put in every run; diskcache checks nothing. Durations of single calls are measured within the
processes. diskcache is installed for this alone, into .venv-diskcache.

Then what the commands take in a cache of 100,000 entries (large_store.py).

Prints JSON: microseconds (p50, p99) of gets of 20 kB, of all gets and of puts, and calls a second
of all processes together; for each command seconds of the processor and megabytes. `--check` fails
(exit code 1) if a call failed or returned other bytes, if the p50 of a 20 kB get by a process alone
is above 100 us, or if a command goes beyond its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import large_store

ROOT = Path(__file__).resolve().parents[2]
PEER = ROOT / ".venv-diskcache"
REQUIREMENT = "diskcache>=5.6,<6"
SIZES = (2_000, 20_000, 150_000)
WEIGHTS = (3, 6, 1)
KEYS = 600
SHARE_OF_PUTS = 0.1
BUDGET_US = 100.0
CONTENDERS = ("store", "diskcache")
Calls = list[tuple[str, int, float]]  # get or put, bytes, seconds


class Contender(Protocol):
    """A store that is measured."""

    def get(self, number: int) -> bytes | None:
        """Return the payload under that key; None when there is none."""

    def put(self, number: int, payload: bytes) -> None:
        """Keep a payload."""


def main() -> int:
    """Measure, print, and return the exit code; as a worker, print what one process measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=16, help="at once (default: 16)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (default: 5)")
    parser.add_argument("--check", action="store_true", help="fail over the budget")
    parser.add_argument("--worker", nargs=2, metavar=("SUBJECT", "DIRECTORY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        name, directory = arguments.worker
        print(json.dumps(work(subject(name, Path(directory)), arguments.seconds)))
        return 0
    install_peer()
    result = measure(arguments.processes, arguments.seconds)
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        result["large"] = large_store.measure(Path(directory))
    print(json.dumps(result, indent=2))
    within = result["within_budget"] and result["large"]["within_budget"]
    return 1 if arguments.check and not within else 0


def install_peer() -> None:
    """Install diskcache where nothing else sees it, if it is not there."""
    if not (PEER / "diskcache").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(PEER), REQUIREMENT]
        subprocess.run(command, check=True)


def measure(processes: int, seconds: float) -> dict[str, Any]:
    """Return what each contender did, alone and with others, and whether the store keeps its budget."""
    found: dict[str, dict[str, Any]] = {name: {} for name in CONTENDERS}
    for count in (1, processes):
        for name in CONTENDERS:
            found[name][f"{count} processes"] = run(name, count, seconds)
    store = found["store"]
    failures = sum(row["failures"] for row in store.values())
    alone = store["1 processes"]["get of 20 kB"]["p50"]
    return {
        "processors": os.cpu_count(),
        "microseconds": found,
        "budget": {"get of 20 kB, alone, p50": BUDGET_US},
        "within_budget": failures == 0 and alone <= BUDGET_US,
    }


def run(name: str, processes: int, seconds: float) -> dict[str, Any]:
    """Fill a directory, let `processes` use it at once, and return their measurements together."""
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        filled = subject(name, Path(directory))
        for number in range(KEYS):
            filled.put(number, payload(number))
        command = [sys.executable, __file__, "--worker", name, directory, "--seconds", str(seconds)]
        pipe = subprocess.PIPE
        started: list[Any] = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)
        ]
        for process in started:
            process.stdout.readline()  # it is ready
        for process in started:
            process.stdin.close()  # it may begin
        outputs = [process.stdout.read() for process in started]
        for process in started:
            process.wait()
    reports = [json.loads(text) for text in outputs if text]
    failures = sum(report["failures"] for report in reports) + processes - len(reports)
    return summary([call for report in reports for call in report["calls"]], failures, seconds)


def work(subject: Contender, seconds: float) -> dict[str, Any]:
    """Get and put at random for that long; return the calls, and how many failed or returned wrong bytes.

    Begin when all processes are ready: imports for the first put and connections are part of no call.
    """
    choose = random.Random(os.getpid())
    payloads = {number: payload(number) for number in range(KEYS)}
    subject.put(0, payloads[0])
    subject.get(0)
    print("ready", flush=True)
    sys.stdin.read()
    calls: Calls = []
    failures = 0
    end = perf_counter() + seconds
    while perf_counter() < end:
        number = choose.randrange(KEYS)
        due = payloads[number]
        is_put = choose.random() < SHARE_OF_PUTS
        start = perf_counter()
        try:
            found = subject.put(number, due) or due if is_put else subject.get(number)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            found = None
        took = perf_counter() - start
        failures += found != due
        calls.append(("put" if is_put else "get", len(due), took))
    return {"calls": calls, "failures": failures}


def payload(number: int) -> bytes:
    """Return the bytes under a key: always the same, and different for each key."""
    choose = random.Random(number)
    return choose.randbytes(choose.choices(SIZES, WEIGHTS)[0])


def summary(calls: Calls, failures: int, seconds: float) -> dict[str, Any]:
    """Return percentiles by kind of call, and calls per second."""
    gets = [took for kind, _, took in calls if kind == "get"]
    return {
        "get of 20 kB": percentiles([took for kind, size, took in calls if (kind, size) == ("get", 20_000)]),
        "get": percentiles(gets),
        "put": percentiles([took for kind, _, took in calls if kind == "put"]),
        "calls_a_second": round(len(calls) / seconds),
        "failures": failures,
    }


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile, in microseconds."""
    ordered = sorted(seconds) or [0.0]
    at = {"p50": 0.5, "p99": 0.99}
    return {name: round(1e6 * ordered[int(share * (len(ordered) - 1))], 1) for name, share in at.items()}


def subject(name: str, directory: Path) -> Contender:
    """Return the contender `name` in `directory`."""
    return StoreContender(directory) if name == "store" else DiskcacheContender(directory)


class StoreContender:
    """The local store, with keys of one part."""

    def __init__(self, directory: Path) -> None:
        sys.path.insert(0, str(ROOT))
        from cachegraph.key import CacheKey
        from cachegraph.store.entry import Artifact, Hit
        from cachegraph.store.local.store import LocalStore

        self.keys = [CacheKey.build("kernel", {"graph": str(n).encode()}) for n in range(KEYS)]
        self.store = LocalStore(directory)
        self.artifact, self.hit = Artifact, Hit

    def get(self, number: int) -> bytes | None:
        """Return the payload of a hit, checked and confirmed."""
        found = self.store.get(self.keys[number])
        return found.payload if isinstance(found, self.hit) else None

    def put(self, number: int, payload: bytes) -> None:
        """Publish an entry."""
        self.store.put(self.keys[number], self.artifact(payload))


class DiskcacheContender:
    """Diskcache with its defaults, except its limit, which nothing here reaches."""

    def __init__(self, directory: Path) -> None:
        sys.path.insert(0, str(PEER))
        import diskcache

        self.cache = diskcache.Cache(str(directory), timeout=60, size_limit=1 << 40)

    def get(self, number: int) -> bytes | None:
        """Return the payload under a key."""
        found: bytes | None = self.cache.get(number)
        return found

    def put(self, number: int, payload: bytes) -> None:
        """Store a payload under a key."""
        self.cache.set(number, payload)


if __name__ == "__main__":
    sys.exit(main())
