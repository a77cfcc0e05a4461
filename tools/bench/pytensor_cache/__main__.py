"""PyTensor's functions in fresh processes: its own numba cache, the engine, and the adapter's store.

Run as `python tools/bench/pytensor_cache` in an environment with PyTensor and PyMC. PyTensor alone and the
engine are measured, with `--adapter` the adapter, too. First all modules are compiled to bytecode, and
imported in a process that does not count. Each model is then compiled cold in each way, on empty caches, as
often as there are rounds but only until PyTensor has taken a minute; the first caches are kept for the run.
On these, fresh processes of all ways take turns. The whole takes half an hour on two slow cores,
half as much again with the adapter. Compared is `pytensor.function` and the first call together, by the clock
and in seconds of the processor, the median over rounds of the ratio within a round; and a call after that,
the least of all rounds. What PyTensor imports in order to compile is in its time, as it is in
its users'; the ratio without it is shown too. The imports of PyMC and nutpie come before, in every way. What
installing the adapter takes is in its time.

Prints a table for each, or JSON. `--check` fails (exit code 1) where a budget is missed, or where the
ways do not compute the same:

    the engine, cold, seconds of the processor               at most 1/5 of PyTensor's
    the engine, cold, geometric mean from 300 nodes          at most 1/10
    the engine, warm, seconds of the processor               at most 1/8
    the engine, a call                                       at most PyTensor's, geometric mean 0.7
    on the engine, warm: `pm.sample` until its first draw    at most 1/4 (cold starts have no budget)
    and PyMC's density with its gradient, from the model     at most 1/4
    the adapter, warm, models of 500 nodes and more          at most 1/5 of PyTensor's
    the adapter, warm, every model                           at most PyTensor's
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from compileall import compile_dir
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MODELS = (
    "eight-schools hierarchical 44-variables kalman 50-layers 2000-nodes mixture correlated gaussian-process "
    "volatility pm.logp-dlogp pm.sample pm.sample-nutpie"
).split()
OF_PYMC = ("pm.logp-dlogp", "pm.sample", "pm.sample-nutpie")
"""From a model to its density, and to the first draw of a sampler: `function` is a part of these."""
WAYS = ("pytensor", "engine")
ADAPTER = "cachegraph"
IMPORTED = ("pymc", "nutpie", "pytensor.link.numba.dispatch")
"""A first process imports these, so that bytecode is there and files are in memory."""
LARGE_NODES, LARGE_RATIO, RATIO = 500, 1 / 5, 1.0
ENGINE_NODES, ENGINE_MEANS = 300, {"cold": 1 / 10, "call": 0.7}
OF_PYMC_RATIOS = {"warm": 1 / 4}
ENGINE_RATIOS = {"cold": 1 / 5, "warm": 1 / 8, "call": 1.0}
COLD_SECONDS = 60.0
"""Seconds of PyTensor's cold starts after which a model's are not repeated."""
Report = dict[str, Any]


def main() -> int:
    """Measure, print, and return the exit code."""
    arguments = parsed()
    missing = [name for name in ("pytensor", "pymc") if find_spec(name) is None]
    if missing:
        print(
            f"{sys.executable} has no {' and no '.join(missing)}: "
            "install cachegraph's development environment",
            file=sys.stderr,
        )
        return 2
    rows = {}
    installed = [name for name in MODELS if name != "pm.sample-nutpie" or find_spec("nutpie")]
    ways = (*WAYS, ADAPTER) if arguments.adapter else WAYS
    make_bytecode()
    for name in arguments.model or installed:
        with Console(stderr=True).status(name) as status:
            rows[name] = compared(name, ways, arguments.rounds, arguments.caches, status.update)
    if arguments.json:
        print(json.dumps({"versions": versions(), "models": rows}, indent=2))
    else:
        console = Console()
        console.width = max(console.width, 120)
        console.print(*([table(rows)] if arguments.adapter else []), engine_table(rows))
    misses = [f"{name}: {miss}" for name, row in rows.items() for miss in missed(name, row)]
    misses += missed_means(rows)
    for miss in misses:
        print(miss, file=sys.stderr)
    return 1 if arguments.check and misses else 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="pytensor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; may be repeated")
    parser.add_argument("--adapter", action="store_true", help="measure the adapter with numba, too")
    parser.add_argument("--rounds", type=int, default=3, help="of a process each way (default: 3)")
    parser.add_argument("--caches", type=Path, help="keep the caches here, and use what is there")
    parser.add_argument("--json", action="store_true", help="print all that was measured as JSON")
    parser.add_argument("--check", action="store_true", help="fail where a budget is missed")
    return parser.parse_args()


def versions() -> dict[str, str]:
    """The releases that are measured."""
    return {name: version(name) for name in ("pytensor", "pymc", "numba", "llvmlite", "numpy", "scipy")}


def make_bytecode() -> None:
    """Compile the modules of this checkout to bytecode, and import all that a process imports once."""
    for package in ("cachegraph", "engine"):
        compile_dir(ROOT / package, quiet=1)
    imports = "\n".join(f"import {name}" for name in IMPORTED if find_spec(name.partition(".")[0]))
    with tempfile.TemporaryDirectory(prefix="bench-pytensor-") as temporary:
        command = [sys.executable, "-W", "ignore", "-c", imports]
        subprocess.run(command, env=environment("pytensor", Path(temporary)), check=True)


def compared(
    model: str, ways: Sequence[str], rounds: int, caches: Path | None, tell: Callable[[str], None]
) -> Report:
    """Return the times of all `ways` for `model`; `tell` gets the progress."""
    with tempfile.TemporaryDirectory(prefix="bench-pytensor-") as temporary:
        kept = (caches or Path(temporary)).resolve() / model
        others = [] if caches else [Path(temporary) / f"cold-{number}" for number in range(1, rounds)]
        cold = cold_starts(model, ways, [kept, *others], tell)
        for way in ways:
            if way != "engine":
                measured(model, way, kept)  # not counted: what the second process still has to compile
        warm: dict[str, list[Report]] = {way: [] for way in ways}
        for number in range(rounds):
            for way in ways[:: 1 if number % 2 else -1]:
                tell(f"{model}: {way}, round {number + 1} of {rounds}")
                warm[way].append(measured(model, way, kept))
    return summary(cold, warm)


def cold_starts(
    model: str, ways: Sequence[str], caches: Sequence[Path], tell: Callable[[str], None]
) -> dict[str, list[Report]]:
    """Return the reports of all `ways` on each of `caches`, until PyTensor's have taken COLD_SECONDS."""
    cold: dict[str, list[Report]] = {way: [] for way in ways}
    for number, directory in enumerate(caches, 1):
        for way in ways:
            tell(f"{model}: cold, {way}, {number} of at most {len(caches)}")
            cold[way].append(measured(model, way, directory))
        if sum(total(report, 1) for report in cold["pytensor"]) >= COLD_SECONDS:
            break
    return cold


def measured(model: str, way: str, caches: Path) -> Report:
    """Return the report of a fresh process; raise CalledProcessError if it fails."""
    command = [sys.executable, "-W", "ignore", str(HERE / "subject.py"), model, way]
    variables = environment(way, caches)
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    report: Report = json.loads(done.stdout.splitlines()[-1])
    return report


def environment(way: str, caches: Path) -> dict[str, str]:
    """Return the variables of a process that is measured; its caches are in a directory of `caches`."""
    dropped = ("CACHEGRAPH_", "PYTENSOR_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    temporary = caches / "temporary"
    temporary.mkdir(parents=True, exist_ok=True)
    return kept | {
        "PYTHONPATH": str(ROOT),
        "CACHEGRAPH_DIR": str(caches / "cachegraph"),
        # cxx= keeps PyTensor from looking for a C++ compiler, which nothing here needs.
        "PYTENSOR_FLAGS": f"cxx=,base_compiledir={caches / way}",
        "TMPDIR": str(temporary),
        # The models are small: threads would only wait for each other.
        "OPENBLAS_NUM_THREADS": "1",
    }


def summary(cold: dict[str, list[Report]], warm: dict[str, list[Report]]) -> Report:
    """Medians in milliseconds, and the medians of the ratios within the rounds."""
    nodes = cold["pytensor"][0]["nodes"]
    result: Report = {"nodes": nodes, "same": same(cold, warm), "ways": {}, "ratios": {}}
    for way, reports in warm.items():
        result["ways"][way] = {
            "cold_ms": round(median_ms(cold[way], 0)),
            "cold_cpu_ms": round(median_ms(cold[way], 1)),
            "warm_ms": round(median_ms(reports, 0), 1),
            "warm_cpu_ms": round(median_ms(reports, 1), 1),
            "call_us": round(min(report.get("call_us", 0.0) for report in reports), 1),
            "steps_ms": {
                step: round(1e3 * statistics.median(report["steps"][step][0] for report in reports), 1)
                for step in reports[0]["steps"]
            },
        }
    if ADAPTER in warm:
        result["ratios"] = adapter_ratios(warm)
        result["found"] = warm[ADAPTER][-1]["found"]
    result["engine"] = engine_ratios(cold, warm)
    return result


def median_ms(reports: list[Report], which: int) -> float:
    """The median of the total in milliseconds: by the clock (0) or of the processor (1)."""
    return 1e3 * statistics.median(total(report, which) for report in reports)


def adapter_ratios(warm: dict[str, list[Report]]) -> dict[str, float]:
    """The adapter's parts of PyTensor's time, warm."""
    asked = (("clock", 0, True), ("processor", 1, True), ("clock, no imports", 0, False))
    return {name: round(median_ratio(warm, ADAPTER, which, imports), 3) for name, which, imports in asked}


def engine_ratios(cold: dict[str, list[Report]], warm: dict[str, list[Report]]) -> dict[str, float]:
    """The engine's parts of PyTensor's seconds of the processor, cold and warm, and of its time of a call."""
    ratios = {"cold": median_ratio(cold, "engine", 1), "warm": median_ratio(warm, "engine", 1)}
    if "call_us" in warm["engine"][0]:
        calls = [min(report["call_us"] for report in warm[way]) for way in ("engine", "pytensor")]
        ratios["call"] = calls[0] / calls[1]
    return {name: round(ratio, 4) for name, ratio in ratios.items()}


def median_ratio(rounds: dict[str, list[Report]], way: str, which: int, imports: bool = True) -> float:
    """The median over rounds of a way's part of PyTensor's total, of which imports may not be a part."""
    pairs = zip(rounds[way], rounds["pytensor"], strict=True)
    return statistics.median(total(mine, which) / total(theirs, which, imports) for mine, theirs in pairs)


def total(report: Report, which: int, imports: bool = True) -> float:
    """The seconds of all steps: by the clock (0) or of the processor (1), with or without what PyTensor
    imported.
    """
    return float(
        sum(taken[which] for step, taken in report["steps"].items() if imports or step != "dispatch")
    )


def same(cold: dict[str, list[Report]], warm: dict[str, list[Report]]) -> str:
    """How results agree: "" if what each way finds is bit for bit what it stored, and close to
    PyTensor's; else what is wrong.

    PyTensor's own differ in their last bits from one process to the next: the order of some of its
    rewrites does.
    """
    for way in [way for way in cold if way != "pytensor"]:
        stored = cold[way][0]["results"]
        if any(report["results"] != stored for report in warm[way]):
            return f"{way}: a hit gives other bits than the miss"
        for mine, theirs in zip(numbers(stored), numbers(cold["pytensor"][0]["results"]), strict=True):
            if not np.allclose(mine, theirs, rtol=1e-8, atol=1e-8):
                return f"{way}: other results than PyTensor's"
    return ""


def numbers(results: list[str]) -> list[np.ndarray]:
    """The arrays (of float64) that a subject printed."""
    return [np.frombuffer(bytes.fromhex(result)) for result in results]


def missed(model: str, row: Report) -> Iterator[str]:
    """Yield what is wrong with a model: each budget that is missed, and results that differ."""
    if row["same"]:
        yield row["same"]
    most = LARGE_RATIO if row["nodes"] >= LARGE_NODES else RATIO
    for name in ("clock", "processor"):
        if row["ratios"].get(name, 0.0) > most:
            yield f"{row['ratios'][name]:.2f} of PyTensor's time ({name}), at most {most:.2f} is due"
    for name, most in (OF_PYMC_RATIOS if model in OF_PYMC else ENGINE_RATIOS).items():
        ratio = row["engine"].get(name, 0.0)
        if ratio > most:
            yield f"the engine, {name}: {ratio:.3f} of PyTensor's, at most {most:.3f} is due"


def missed_means(rows: dict[str, Report]) -> Iterator[str]:
    """Yield which geometric mean of the engine's ratios is too large, that of cold starts of large models."""
    for name, most in ENGINE_MEANS.items():
        mean = engine_mean(rows, name)
        if mean is not None and mean > most:
            yield f"the engine, {name}: {mean:.3f} of PyTensor's on average, at most {most:.3f} is due"


def engine_mean(rows: dict[str, Report], name: str) -> float | None:
    """The geometric mean of a ratio over models, for cold starts the large ones; None if there is none.

    What is of PyMC is not among the models.
    """
    found = [row for model, row in rows.items() if model not in OF_PYMC]
    large = [row for row in found if name != "cold" or row["nodes"] >= ENGINE_NODES]
    ratios = [row["engine"][name] for row in large if name in row["engine"]]
    return statistics.geometric_mean(ratios) if ratios else None


def table(rows: dict[str, Report]) -> Table:
    """The figures as a table."""
    found = Table(
        title="function() + first call in a fresh process, ms: PyTensor's own cache and the adapter"
    )
    for name, justify in (("model", "left"), ("nodes", "right")):
        found.add_column(name, justify=justify)
    for name in ("cold", "cold, adapter", "warm", "warm, adapter", "ratio", "of CPU", "without imports"):
        found.add_column(name, justify="right")
    for model, row in rows.items():
        other, own = (row["ways"][way] for way in ("pytensor", ADAPTER))
        cells = (other["cold_ms"], own["cold_ms"], other["warm_ms"], own["warm_ms"])
        found.add_row(
            model, str(row["nodes"]), *map(str, cells), *(f"{ratio:.2f}" for ratio in row["ratios"].values())
        )
    return found


def engine_table(rows: dict[str, Report]) -> Table:
    """The engine's figures beside PyTensor's as a table."""
    found = Table(
        title="function() + first call, CPU ms, and a call, us: PyTensor's numba mode and the engine"
    )
    found.add_column("model")
    for name in ("nodes", "cold", "engine", "ratio", "warm", "engine", "ratio", "call", "engine", "ratio"):
        found.add_column(name, justify="right")
    for model, row in rows.items():
        other, own = row["ways"]["pytensor"], row["ways"]["engine"]
        cells = []
        for name, key in (("cold", "cold_cpu_ms"), ("warm", "warm_cpu_ms"), ("call", "call_us")):
            ratio = row["engine"].get(name)
            cells += [str(other[key]), str(own[key]), "" if ratio is None else f"{ratio:.3f}"]
        found.add_row(model, str(row["nodes"]), *cells)
    means = {name: engine_mean(rows, name) for name in ENGINE_RATIOS}
    shown = ["" if mean is None else f"{mean:.3f}" for mean in means.values()]
    found.add_row("geometric mean", "", "", "", shown[0], "", "", shown[1], "", "", shown[2])
    return found


if __name__ == "__main__":
    sys.exit(main())
