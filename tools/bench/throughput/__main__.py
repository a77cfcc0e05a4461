"""Throughput of operations on arrays: this engine beside numpy, PyTensor (numba mode) and JAX.

Run as `python tools/bench/throughput`. Each framework computes in one process, with one thread, on one
processor; in each round the processes take turns. What is compared is the processor's seconds of a
call with its result, the least of all rounds. A framework that took more than HOPELESS times the least of
the others in a round has no further turns: it is not the best of them. All compute on the same numbers,
and must return the same: up to 1e-9 of the largest element in float64, 1e-3 in float32. Where the engine
takes more than is due, all are measured once more, in new processes: in one of them arrays may lie in memory
so that the caches hold less. Prints a table, or JSON. `--check` fails (exit code 1) where a budget of the
engine's is missed:

    engine / best of the others, geometric mean    at most 1.0
    engine / best of the others, every one         at most 1.5
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from math import inf
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[1]))
from frameworks import ENVIRONMENT, answer, ask, asked, environment, subject, versions
from operations import OPERATIONS

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("engine", "numpy", "pytensor", "jax")
DTYPES = ("float64", "float32")
SIZES = (1_000, 100_000, 10_000_000)
MEAN_RATIO, MOST_RATIO = 1.0, 1.5
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
ROUND_SECONDS = 0.02
HOPELESS = 3.0
TABLE_WIDTH = 110
"""Of a table that is no terminal's."""
Case = tuple[str, str, int]
"""An operation, a dtype and a size."""
Row = dict[str, Any]
"""A case (operation, dtype, size), and seconds or a failure of each framework."""


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = parsed()
    python = environment(arguments.environment, arguments.python)
    cases = product(arguments.operation or OPERATIONS, arguments.dtype or DTYPES, arguments.size or SIZES)
    rows = measured_twice(python, list(cases), arguments.rounds)
    if arguments.json:
        print(json.dumps({"versions": versions(python), "cases": rows}, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else TABLE_WIDTH).print(table(rows))
    misses = list(missed(rows))
    for miss in misses:
        print(f"over the budget: {miss}", file=sys.stderr)
    return 1 if arguments.check and misses else 0


def parsed() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog="throughput", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="only this; may be repeated")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="only this; may be repeated")
    parser.add_argument("--size", action="append", type=int, help="elements; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="of turns (default: 5)")
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT, help="made if it is not there")
    parser.add_argument("--python", help="of the environment; default: what tools/find-python finds")
    parser.add_argument("--json", action="store_true", help="print all that was measured as JSON")
    parser.add_argument("--check", action="store_true", help="fail where a budget is missed")
    return parser.parse_args()


def measured_twice(python: str, cases: list[Case], rounds: int) -> list[Row]:
    """Return the row of each case, measured again where the engine takes too long."""
    rows = list(measured(python, cases, rounds))
    places = [place for place, found in enumerate(rows) if (ratio(found) or 0.0) > MOST_RATIO]
    again = measured(python, [cases[place] for place in places], rounds) if places else ()
    for place, found in zip(places, again, strict=True):
        rows[place]["seconds"] = least_of_each(rows[place]["seconds"], found["seconds"])
    return rows


def least_of_each(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Return the least seconds of each framework."""
    return {name: min(taken, second.get(name, inf)) for name, taken in first.items()}


def measured(python: str, cases: list[Case], rounds: int) -> Iterator[Row]:
    """Yield the row of each case."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="throughput-")))
        processes = {
            name: stack.enter_context(subject(python, HERE / "subject.py", (name,), directory / name))
            for name in FRAMEWORKS
        }
        with Console(stderr=True).status("") as status:
            for number, case in enumerate(cases):
                status.update(f"{' '.join(map(str, case))} ({number + 1} of {len(cases)})")
                yield row(processes, case, rounds)
        for process in processes.values():
            process.communicate()


def row(processes: dict[str, Any], case: Case, rounds: int) -> Row:
    """Return the row of one case: seconds of a call, or why a framework has none."""
    for process in processes.values():
        ask(process, case)
    reports = {name: answer(process) for name, process in processes.items()}
    failures = {name: report["failure"] for name, report in reports.items() if "failure" in report}
    samples = {name: report["sample"] for name, report in reports.items() if name not in failures}
    return {
        **dict(zip(("operation", "dtype", "size"), case, strict=True)),
        "seconds": least_seconds({name: processes[name] for name in samples}, rounds),
        "failures": failures,
        "disagree": [name for name in samples if not agree(samples["numpy"], samples[name], case[1])],
    }


def least_seconds(processes: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the least seconds of a call in each process, which take turns."""
    least = dict.fromkeys(processes, inf)
    for _ in range(rounds):
        best = min([taken for name, taken in least.items() if name != "engine"], default=inf)
        for name, process in processes.items():
            if name == "engine" or least[name] == inf or least[name] <= HOPELESS * best:
                least[name] = min(least[name], asked(process, ROUND_SECONDS))
    return least


def agree(first: list[float], second: list[float], dtype: str) -> bool:
    """Return True if two results are the same up to rounding."""
    if len(first) != len(second):
        return False
    tolerance = TOLERANCE[dtype]
    largest = float(np.max(np.abs(first)))
    return np.allclose(first, second, rtol=tolerance, atol=tolerance * largest)


def ratio(found: Row) -> float | None:
    """Return the engine's share of the best of the others; None if nothing can be compared."""
    seconds = found["seconds"]
    others = [taken for name, taken in seconds.items() if name != "engine"]
    return seconds["engine"] / min(others) if others and "engine" in seconds else None


def missed(rows: list[Row]) -> Iterator[str]:
    """Yield each budget that is missed, in words."""
    for found in rows:
        case = " ".join(str(found[part]) for part in ("operation", "dtype", "size"))
        for name in found["disagree"]:
            yield f"{case}: {name} computes other numbers than numpy"
        share = ratio(found)
        if "engine" in found["failures"]:
            yield f"{case}: the engine cannot: {found['failures']['engine']}"
        elif share is not None and share > MOST_RATIO:
            yield f"{case}: {share:.2f} of the best of the others; at most {MOST_RATIO} is due"
    if (mean := mean_ratio(rows)) > MEAN_RATIO:
        yield f"geometric mean {mean:.2f} of the best of the others; at most {MEAN_RATIO} is due"


def mean_ratio(rows: list[Row]) -> float:
    """Return the geometric mean of the ratios; 0.0 if there are none."""
    shares = [share for found in rows if (share := ratio(found)) is not None]
    return geometric_mean(shares) if shares else 0.0


def table(rows: list[Row]) -> Table:
    """Return the measurements as a table."""
    title = f"microseconds of a call; the engine's share of the best: {mean_ratio(rows):.2f} on average"
    found = Table(title=title)
    for name in ("operation", "dtype", "size", *FRAMEWORKS, "share"):
        found.add_column(name, justify="left" if name in ("operation", "dtype") else "right")
    last = ""
    for one in rows:
        share = ratio(one)
        taken = one["seconds"]
        cells = [f"{1e6 * taken[name]:,.1f}" if name in taken else "-" for name in FRAMEWORKS]
        found.add_row(
            one["operation"] if one["operation"] != last else "",
            one["dtype"],
            f"{one['size']:,}",
            *cells,
            "-" if share is None else f"{share:.2f}",
        )
        last = one["operation"]
    return found


if __name__ == "__main__":
    sys.exit(main())
