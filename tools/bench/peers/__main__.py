"""Cold starts, warm starts and calls of the same models in PyTensor, in JAX and in this engine.

Run as `python tools/bench/peers`. All frameworks are in one environment made for this (Python 3.12
or newer) and take turns in fresh processes: in each round a cold one, with empty caches, and a warm
one on what it left there. What is compared is `function()` and the first call together, by what the
processor needed for it; the clock's time is shown beside. Calls are timed in warm processes that
take turns too, in blocks, each the median of many calls. A figure is the least of all rounds or blocks, to
which other load on the machine only adds: a model that misses a budget gets as many rounds again, in all
frameworks. Prints a table, or JSON; ratios are within the run. `--check` fails (exit code 1) where a budget
of the engine's is missed (budgets.py):

    cold, against JAX                  at most 1.5 on each model, 1.0 in the geometric mean
    cold, against PyTensor             at most 1/10 on each model
    warm, against JAX                  at most 1/3 on each model
    a call, against JAX and PyTensor   at most 1.0 on each model

What the regression may take in itself, warm and for a call, warm_start.py and calls.py check.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[1]))
from budgets import missed, missed_by
from frameworks import ENVIRONMENT, answer, asked, environment, subject, versions

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("engine", "pytensor", "jax")
MODELS = ("regression", "kalman", "recurrent", "layers-50", "layers-100", "layers-in-scan", "minimize")
BLOCKS, BLOCK_SECONDS = 15, 0.1
Row = dict[str, Any]


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = parsed()
    python = environment(arguments.environment, arguments.python)
    models = {}
    for name in arguments.model or MODELS:
        with Console(stderr=True).status(name) as status:
            models[name] = compared_twice(python, name, arguments.rounds, status.update)
    if arguments.json:
        print(json.dumps({"versions": versions(python), "models": models}, indent=2))
    else:
        Console().print(table(models))
    misses = list(missed(models))
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


def compared_twice(python: str, model: str, rounds: int, tell: Callable[[str], None]) -> dict[str, Row]:
    """Return what `compared` does, after twice as many rounds if a budget is missed."""
    rows = compared(python, model, rounds, tell)
    if not list(missed_by(model, rows)):
        return rows
    again = compared(python, model, rounds, tell)
    return {name: least_of_both(row, again[name]) for name, row in rows.items()}


def least_of_both(first: Row, second: Row) -> Row:
    """Return `first` with the least times of both."""
    if "failure" in first or "failure" in second:
        return first
    times = {name: first["all"][name] + second["all"][name] for name in first["all"]}
    least = {name: min(first[name], second[name]) for name in (*times, "import_ms", "build_ms")}
    return {**first, **least, "all": times}


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
    """Return the least times of one framework, all times, and the results."""
    if calls is None:
        return {"failure": runs[0][0]["failure"]}
    times: dict[str, list[float]] = {"call_us": calls}
    for which, name in enumerate(("cold", "warm")):
        times[f"{name}_ms"] = [1e3 * (run[which]["function"] + run[which]["call"]) for run in runs]
        times[f"{name}_cpu_ms"] = [1e3 * run[which]["processor"] for run in runs]
    return {
        **{what: round(min(taken), 2) for what, taken in times.items()},
        "all": times,
        "import_ms": 1e3 * min(run[1]["import"] for run in runs),
        "build_ms": 1e3 * min(run[1]["build"] for run in runs),
        "results": runs[0][1]["results"],
    }


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
