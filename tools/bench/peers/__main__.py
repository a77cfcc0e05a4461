"""Cold starts, warm starts and calls of the same models in PyTensor, in JAX and in this engine.

Run as `python tools/bench/peers`. All frameworks are in one environment made for this (Python 3.12
or newer) and take turns in fresh processes: in each round a cold one, with empty caches, and a warm
one on what it left there. What is compared is `function()` and the first call together, by the
clock; what the processor needed for it is shown beside, for machines that do other things too.
Calls are timed in warm processes that take turns too, each the median of many. Prints a table, or
JSON; ratios are within the run. `--check` fails (exit code 1) where a budget of the engine's is
missed:

    cold, against PyTensor's cold      at most 1/2
    a call, against PyTensor's         at most 1
    warm                               at most 50 ms (the least of all rounds)
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[1]))
from frameworks import ENVIRONMENT, answer, asked, environment, subject, versions

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("engine", "pytensor", "jax")
MODELS = ("regression", "kalman", "recurrent", "layers-50", "layers-100", "layers-in-scan", "minimize")
COLD_RATIO, CALL_RATIO, WARM_MS = 0.5, 1.0, 50.0
BLOCKS, BLOCK_SECONDS = 15, 0.1
Row = dict[str, Any]


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = parsed()
    python = environment(arguments.environment, arguments.python)
    models = {}
    for name in arguments.model or MODELS:
        with Console(stderr=True).status(name) as status:
            models[name] = compared(python, name, arguments.rounds, status.update)
    if arguments.json:
        print(json.dumps({"versions": versions(python), "models": models}, indent=2))
    else:
        Console().print(table(models))
    misses = [f"{name}: {miss}" for name, rows in models.items() for miss in missed(name, rows)]
    for miss in misses:
        print(f"over the budget: {miss}", file=sys.stderr)
    return 1 if arguments.check and misses else 0


def parsed() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog="peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="of a cold and a warm process (default: 3)")
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT, help="made if it is not there")
    parser.add_argument("--python", help="of the environment; default: what tools/find-python finds")
    parser.add_argument("--json", action="store_true", help="print all that was measured as JSON")
    parser.add_argument("--check", action="store_true", help="fail where a budget is missed")
    return parser.parse_args()


def compared(python: str, model: str, rounds: int, tell: Callable[[str], None]) -> dict[str, Row]:
    """Return what each framework took for `model` (milliseconds cold and warm, microseconds of a call), or
    why it failed.

    Call `tell` with each step.
    """
    runs: dict[str, list[tuple[Row, Row]]] = {name: [] for name in FRAMEWORKS}
    with tempfile.TemporaryDirectory(prefix="peers-") as directory:
        for number in range(rounds):
            for framework, found in runs.items():
                tell(f"{model} in {framework}, round {number + 1} of {rounds}")
                caches = Path(directory) / f"{framework}-{number}"
                found.append(
                    (started(python, framework, model, caches), started(python, framework, model, caches))
                )
        tell(f"{model}: calls")
        calls = timed_calls(python, model, Path(directory), [name for name in runs if able(runs[name])])
    return {name: summary(runs[name], calls.get(name)) for name in FRAMEWORKS}


def able(runs: list[tuple[Row, Row]]) -> bool:
    """Return True if the framework can run the model."""
    return "failure" not in runs[0][0]


def started_process(python: str, framework: str, model: str, caches: Path) -> AbstractContextManager[Any]:
    """Return the context of a process of subject.py."""
    return subject(python, HERE / "subject.py", (framework, model), caches)


def started(python: str, framework: str, model: str, caches: Path) -> Row:
    """Return the report of a fresh process."""
    with started_process(python, framework, model, caches) as process:
        found: Row = answer(process)
        process.communicate()
    return found


def timed_calls(python: str, model: str, directory: Path, frameworks: list[str]) -> dict[str, list[float]]:
    """Return the microseconds per call in each of many blocks, of warm processes that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in frameworks}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(started_process(python, name, model, directory / f"{name}-0"))
            for name in frameworks
        }
        for process in processes.values():
            answer(process)
        for _ in range(BLOCKS):
            for name, process in processes.items():
                taken[name].append(asked(process, BLOCK_SECONDS))
        for process in processes.values():
            process.communicate()
    return taken


def summary(runs: list[tuple[Row, Row]], calls: list[float] | None) -> Row:
    """Return times and results of one framework: medians, but the shortest warm start, which only a budget
    is compared with.
    """
    if calls is None:
        return {"failure": runs[0][0]["failure"]}
    cold, warm = ([1e3 * (run[which]["function"] + run[which]["call"]) for run in runs] for which in (0, 1))
    cold_cpu, warm_cpu = ([1e3 * run[which]["processor"] for run in runs] for which in (0, 1))
    return {
        "cold_ms": round(statistics.median(cold), 1),
        "cold_cpu_ms": round(statistics.median(cold_cpu), 1),
        "warm_cpu_ms": round(min(warm_cpu), 1),
        "warm_ms": round(min(warm), 1),
        "call_us": round(statistics.median(calls), 2),
        "all": {"cold_ms": cold, "warm_ms": warm, "call_us": calls},
        "import_ms": 1e3 * statistics.median(run[1]["import"] for run in runs),
        "build_ms": 1e3 * statistics.median(run[1]["build"] for run in runs),
        "results": runs[0][1]["results"],
    }


def missed(model: str, rows: dict[str, Row]) -> Iterator[str]:
    """Yield each budget that is missed, and which framework computes other numbers than this engine."""
    own, other = rows["engine"], rows["pytensor"]
    if "failure" in own:
        yield f"the engine cannot: {own['failure']}"
        return
    if own["warm_ms"] > WARM_MS:
        yield f"warm in {own['warm_ms']} ms, at most {WARM_MS:.0f} are due"
    for name, row in rows.items():
        if "failure" not in row and not agree(model, own["results"], row["results"]):
            yield f"{name} computes other numbers"
    if "failure" in other:
        return
    for what, most in (("cold_ms", COLD_RATIO), ("call_us", CALL_RATIO)):
        if own[what] > most * other[what]:
            yield f"{what} {own[what]}, {own[what] / other[what]:.2f} of PyTensor's; at most {most} is due"


def agree(model: str, first: list[list[float]], second: list[list[float]]) -> bool:
    """Return True if two frameworks computed the same numbers, up to rounding or a search's tolerance."""
    tolerance = 1e-4 if model == "minimize" else 1e-9
    return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(first, second, strict=True))


def table(models: dict[str, dict[str, Row]]) -> Table:
    """Return the measurements as a table."""
    found = Table(title="function() + first call, and a call; in brackets: the engine's share of it")
    found.add_column("model")
    found.add_column("framework")
    for name in ("cold, ms", "cold, CPU", "warm, ms", "warm, CPU", "a call, µs"):
        found.add_column(name, justify="right")
    for model, rows in models.items():
        for framework, row in rows.items():
            cells = (row["failure"],) if "failure" in row else measures(row, rows["engine"])
            found.add_row(model if framework == "engine" else "", framework, *cells)
        found.add_section()
    return found


def measures(row: Row, own: Row) -> tuple[str, ...]:
    """Return the cells of one framework."""
    return tuple(
        f"{row[what]:,.1f}"
        + (f" ({own[what] / row[what]:.2f})" if "failure" not in own and row is not own else "")
        for what in ("cold_ms", "cold_cpu_ms", "warm_ms", "warm_cpu_ms", "call_us")
    )


if __name__ == "__main__":
    sys.exit(main())
