"""PyTensor's own tests with and without the adapter: the same must pass.

Run as `python tools/pytensor_suite CHECKOUT`, in an environment with PyTensor, PyMC and pytest.
CHECKOUT is a folder with PyTensor's repository, best at the tag of the release that is installed;
only its tests are used, on the PyTensor that is installed. Three runs:

    plain  without the adapter
    cold   with it, on an empty store
    warm   with it, on the store that the cold run left

Each file of tests is a process of its own in each run, and PyTensor's own compile directory is
empty at the start of each run. Prints each test with another outcome than in the plain run, whether
it is explained (explanations.py), what was not run, and what the adapter counted. Exit code 1 if
there is a difference that is not explained.

With `--mode ENGINE` there are two other runs, and the adapter is in neither:

    engine  with that mode of PyTensor's (and its linker) as the default one
    numba   the tests that do not pass in it, with PyTensor's own default mode

A test that fails in both is not a difference; one that has not run in numba mode yet is.

All that happened is kept in `--directory`, from which a run that was stopped goes on: files that
are done and tests that are done are not run again. `--shard 2/4` runs the second quarter of the
files; shards share a directory.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from differences import differences, with_tests_not_run  # noqa: E402
from recorded import ADAPTER, MODE  # noqa: E402

from pytensor_tests.checkout import copied, shard, test_files  # noqa: E402
from pytensor_tests.outcomes import GOOD, NEVER_ENDED, Run, run_of, tally  # noqa: E402
from pytensor_tests.processes import all_events, environment, record_of, run_file  # noqa: E402
from pytensor_tests.recording import ONLY, events  # noqa: E402

SUITES = ("tests/compile", "tests/link/numba", "tests/scan")
MODE_SUITES = ("tests/compile", "tests/scan", "tests/tensor")
RUNS = ("plain", "cold", "warm")
MODE_RUNS = ("engine", "numba")
"""The runs with `--mode`: those tests are run in the second that do not pass in the first."""


def main() -> int:
    """Run the tests, print the comparison, and return the exit code."""
    arguments = parsed()
    suite = copied(arguments.checkout, arguments.directory)
    if not arguments.report:
        default = MODE_SUITES if arguments.mode else SUITES
        files = shard(test_files(suite, arguments.tests or default), arguments.shard)
        end = monotonic() + arguments.seconds
        for run, file in in_order(arguments.run, arguments.mode, files):
            carry_out(arguments, suite, run, file, end)
    return report(arguments.directory, MODE_RUNS[::-1] if arguments.mode else RUNS, arguments.json)


def in_order(chosen: list[str] | None, mode: str | None, files: list[str]) -> list[tuple[str, str]]:
    """Return the runs of the files, one after the other; with a mode, all runs of a file together."""
    if mode:
        return [(run, file) for file in files for run in MODE_RUNS if not chosen or run in chosen]
    return [(run, file) for run in chosen or RUNS for file in files]


def parsed() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog="pytensor_suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a folder with PyTensor's repository")
    parser.add_argument(
        "--directory",
        type=lambda name: Path(name).resolve(),
        required=True,
        help="where runs are kept, and the stores",
    )
    parser.add_argument("--mode", choices=("ENGINE",), help="compare this mode with PyTensor's default one")
    parser.add_argument(
        "--run", action="append", choices=RUNS + MODE_RUNS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--tests",
        action="append",
        help=f"a folder or a file; default: {', '.join(SUITES)}; with a mode: {', '.join(MODE_SUITES)}",
    )
    parser.add_argument("--shard", default="1/1", help="K/N: the K-th of N parts of the files")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no file later than this")
    parser.add_argument(
        "--file-seconds", type=float, default=3600.0, help="stop a file's process after this (default: 3600)"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, compare what is there")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    return parser.parse_args()


def carry_out(arguments: argparse.Namespace, suite: Path, run: str, file: str, end: float) -> None:
    """Run a file of tests with what the run asks for."""
    variables = environment(HERE, arguments.directory, run, file) | {
        ADAPTER: str(int(run in ("cold", "warm")))
    }
    if run == "engine":
        variables[MODE] = arguments.mode
    elif run == "numba":
        variables[ONLY] = json.dumps(not_passed(arguments.directory, file))
    if variables.get(ONLY) != "[]":
        run_file(suite, run, file, variables, arguments.file_seconds, end)


def not_passed(directory: Path, file: str) -> list[str]:
    """Return the tests of a file that did not pass with the mode."""
    run = run_of(events(record_of(directory, "engine", file)))
    return [test for test, outcome in run.outcomes.items() if outcome not in GOOD]


def report(directory: Path, names: tuple[str, ...], as_json: bool) -> int:
    """Print the results of the runs in `directory` and their differences from the first of them; return the
    exit code.
    """
    runs = {run: run_of(all_events(directory, run)) for run in names}
    plain = runs[names[0]]
    # With a mode, a failure that was not compared is a difference.
    others = {run: with_tests_not_run(plain, runs[run]) if run in MODE_RUNS else plain for run in names[1:]}
    found = [each for run, other in others.items() for each in differences(other, run, runs[run])]
    told = {
        "runs": {name: summary(run, plain) for name, run in runs.items()},
        "differences": [asdict(each) for each in found],
    }
    if as_json:
        print(json.dumps(told, indent=2))
    else:
        print_runs(told["runs"])
        for each in found:
            print(
                f"{each.run}: {each.test}: {each.plain} -> {each.outcome}: "
                f"{each.explanation or each.message[:500]}"
            )
    return 1 if any(not each.explanation for each in found) else 0


def summary(run: Run, plain: Run) -> dict[str, Any]:
    """Return the results of a run as JSON; `not_run` counts tests of the plain run that this one lacks."""
    return {
        "tests": len(run.outcomes),
        "outcomes": tally(run),
        "seconds": round(run.seconds),
        "not_run": len(plain.outcomes.keys() - run.outcomes.keys()),
        "stopped": sorted(test for test, outcome in run.outcomes.items() if outcome == NEVER_ENDED),
        "counters": run.counters,
    }


def print_runs(runs: dict[str, dict[str, Any]]) -> None:
    """Print a paragraph for each run."""
    for name, run in runs.items():
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(run["outcomes"].items()))
        print(f"{name}: {run['tests']} tests in {run['seconds']} s: {outcomes}; {run['not_run']} not run")
        for kind in ("levels", "misses", "bypasses", "store_failures"):
            if run["counters"].get(kind):
                print(f"    {kind}: {json.dumps(run['counters'][kind])}")


if __name__ == "__main__":
    sys.exit(main())
