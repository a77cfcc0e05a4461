"""The start of the commands, each in fresh processes on a small cache.

Prints JSON: the milliseconds of the processor (least and median of all rounds), and how many times those of
an empty Python program they are. `--check` fails (exit code 1) where the least is over the budget of 150 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from cachegraph import Cache
from cachegraph.store.entry import Artifact

BUDGET = 150.0
COMMANDS = (
    *(["--version"], ["--help"], ["dir"], ["config"], ["stats"], ["list"], ["why-miss"]),
    *(["prune", "--dry-run"], ["verify"], ["doctor"], ["key", "show"], ["completion", "bash"]),
)
MISSES = """
import engine, engine.tensor as pt
x = pt.vector("x")
for factor in (2, 3):
    engine.function([x], [pt.exp(x * factor).sum()])
"""
EMPTY = "an empty program"
ENTRIES = 100


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, help="of one process a command (default: 7)")
    parser.add_argument("--check", action="store_true", help="fail where the budget is missed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cachegraph-bench-") as directory:
        fill(Path(directory))
        measure(directory)  # not counted: it leaves bytecode behind
        rounds = [measure(directory) for _ in range(arguments.rounds)]
    result = summary(rounds)
    print(json.dumps(result, indent=2))
    return 1 if arguments.check and result["over the budget"] else 0


def fill(directory: Path) -> None:
    """Store entries in `directory`, and build functions there, whose misses `why-miss` explains."""
    cache = Cache(directory, namespace="bench")
    for number in range(ENTRIES):
        cache.store(cache.key({"number": number}), Artifact(b"payload", summary=f"entry {number}"))
    cache.flush()
    milliseconds(["-c", MISSES], os.fspath(directory))


def measure(directory: str) -> dict[str, float]:
    """Return the milliseconds of the processor of each command, and of an empty program."""
    taken = {EMPTY: milliseconds(["-c", ""], directory)}
    return taken | {
        " ".join(command): milliseconds(["-m", "cachegraph", *command], directory) for command in COMMANDS
    }


def milliseconds(arguments: list[str], directory: str) -> float:
    """Return the milliseconds of the processor that one process of Python took."""
    # Bytecode is kept, as users' interpreters do: this is not about the compiler of Python.
    dropped = ("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    before = seconds_of_children()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment | {"CACHEGRAPH_DIR": directory},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):  # doctor may give advice
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr}")
    return (seconds_of_children() - before) * 1000


def seconds_of_children() -> float:
    """Return the seconds of the processor that all child processes have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summary(rounds: list[dict[str, float]]) -> dict[str, object]:
    """Return the least and median of each command, and the commands that are over the budget."""
    least = {name: min(taken[name] for taken in rounds) for name in rounds[0]}
    return {
        "rounds": len(rounds),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "budget": BUDGET,
        "commands": {
            name: {
                "least": round(fewest, 1),
                "median": round(statistics.median(taken[name] for taken in rounds), 1),
                "times an empty program": round(fewest / least[EMPTY], 1),
            }
            for name, fewest in least.items()
        },
        "over the budget": [name for name, fewest in least.items() if fewest > BUDGET],
    }


if __name__ == "__main__":
    sys.exit(main())
