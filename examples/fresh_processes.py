"""Run a program in fresh processes on one cache directory, and show side by side what they report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Report = dict[str, Any]


def main(description: str, run: Callable[[Path], Iterator[str]]) -> int:
    """Run a part of the demo on an empty cache directory, print the problems it yields, return the exit
    code.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dir", type=Path, help="an empty or absent cache directory to use and keep")
    directory = parser.parse_args().dir
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="cachegraph-demo-") as temporary:
            return _print_problems(run(Path(temporary)))
    if directory.is_dir() and any(directory.iterdir()):
        parser.error(f"{directory} is not empty: the first process has to start cold")
    return _print_problems(run(directory))


def _print_problems(problems: Iterator[str]) -> int:
    found = list(problems)
    for problem in found:
        print(f"PROBLEM: {problem}")
    return 1 if found else 0


def process(program: Path, directory: Path, *arguments: str, **environment: str) -> Report:
    """Return what a fresh process of `program` on the cache in `directory` reports, as JSON. Exits if it
    fails.
    """
    report: Report = json.loads(
        _command([sys.executable, str(program), *arguments], directory, environment, show=False)
    )
    return report


def print_stats(directory: Path) -> None:
    """Print what `cachegraph stats` says of the cache in `directory`."""
    print("cachegraph stats")
    _command([sys.executable, "-m", "cachegraph", "stats"], directory, {}, show=True)


def _command(words: list[str], directory: Path, environment: dict[str, str], show: bool) -> str:
    """Run a command on the cache in `directory`; return what it printed, if that is not shown. Exits if it
    fails.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CACHEGRAPH_", "PYTHONDONTWRITEBYTECODE"))
    }
    # With so few unknowns the threads of BLAS would only wait for each other.
    changed = {"CACHEGRAPH_DIR": str(directory), "OPENBLAS_NUM_THREADS": "1", **environment}
    sys.stdout.flush()
    done = subprocess.run(
        words, env=kept | changed, stdout=None if show else subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"PROBLEM: {' '.join(words[1:])} with {changed} ended with {done.returncode}")
    return done.stdout or ""


def print_steps(
    steps: Sequence[str], totals: Mapping[str, Sequence[str]], cold: Report, warm: Report
) -> None:
    """Print what each step, and each of `totals` (name -> steps), took in two processes, in milliseconds."""
    print(f"{'milliseconds':32}{'first':>12}{'second':>12}{'ratio':>8}")
    for name, parts in {**{step: (step,) for step in steps}, **totals}.items():
        first, second = (1000 * sum(report["seconds"][part] for part in parts) for report in (cold, warm))
        print(f"{name:32}{first:12.1f}{second:12.1f}{first / second:8.1f}")
    print()


def print_found(accounts: Mapping[str, Report]) -> None:
    """Print the outcome of each function, and the work that a miss caused."""
    levels = sorted({level for account in accounts.values() for level in account["found"]})
    print(f"{'found / not found':24}" + "".join(f"{name:>18}" for name in accounts))
    rows = {"outcome": [account["outcome"] for account in accounts.values()]}
    for level in levels:
        counts = (account["found"].get(level, (0, 0)) for account in accounts.values())
        rows[f"{level} level"] = [f"{hits} / {misses}" for hits, misses in counts]
    for count in ("rewrites", "compilations"):
        rows[count] = [str(account[count]) for account in accounts.values()]
    for name, cells in rows.items():
        print(f"{name:24}" + "".join(f"{cell:>18}" for cell in cells))


def warm_problems(name: str, account: Report) -> Iterator[str]:
    """Yield the work done for the function `name` of a second process that a warm start avoids."""
    if account["outcome"] != "hit":
        yield f"{name} was a {account['outcome']}: {account['reason']}"
    for count in ("rewrites", "compilations"):
        if account[count]:
            yield f"{name} took {account[count]} {count}"


def import_problems(warm: Report) -> Iterator[str]:
    """Yield which heavy modules the second process had imported when it had answered."""
    if warm["imported"]:
        yield f"the second process imported {', '.join(warm['imported'])} before its first answer"
