"""PyTensor's own tests on the engine: how much of the language is there.

Run as `python tools/pytensor_language CHECKOUT --directory RUNS`, in an environment with pytest.
CHECKOUT is a folder with PyTensor's repository: its tests are copied and run with `import pytensor`
giving the engine's names (shim.py), each file in a process of its own. Prints a table, a row for each
file:

    tests        all that were collected; of a file that cannot be collected, one
    passed       passed, and expected failures
    skipped      left out by PyTensor itself
    internal     they ask for internals of PyTensor's, and fail (explanations/)
    not covered  they need a name that the engine does not have; the names are counted below the table
    differs      they found another behaviour
    explained    either, with a reason (explanations/)
    crashed      the process died, or the test ran too long

Below it is the share that passed of the tests that are neither skipped nor internal.

Exit code 1 if a test differs without a reason, or crashed.

All that happened is kept in the directory, from which a run that was stopped goes on. `--shard 2/4` runs
the second quarter of the files; shards share a directory. `--differences` lists the tests that differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from explanations import EXPLAINED, INTERNAL, left_out  # noqa: E402
from recorded import NOT_COVERED, PACKAGE, SECONDS, TOO_LONG  # noqa: E402

from pytensor_tests.checkout import copied, shard, test_files  # noqa: E402
from pytensor_tests.explained import explanation_of  # noqa: E402
from pytensor_tests.outcomes import NEVER_ENDED, Run, run_of  # noqa: E402
from pytensor_tests.processes import environment, record_of, run_file  # noqa: E402
from pytensor_tests.recording import events  # noqa: E402

RUN = "language"
TESTS = (
    *("tests/graph", "tests/compile", "tests/scan", "tests/tensor", "tests/scalar"),
    *("tests/test_basic.py", "tests/test_gradient.py", "tests/test_ifelse.py", "tests/test_printing.py"),
    *("tests/test_raise_op.py", "tests/test_rop.py"),
)
COLUMNS = ("tests", "passed", "skipped", "internal", "not covered", "differs", "explained", "crashed")
COLUMN_OF = {
    "passed": "passed",
    "xfailed": "passed",
    "skipped": "skipped",
    NEVER_ENDED: "crashed",
    TOO_LONG: "crashed",
}
"""The columns of outcomes that need no explanation."""


def main() -> int:
    """Run the tests, print the table, and return the exit code."""
    arguments = parsed()
    suite = copied(arguments.checkout, arguments.directory)
    found = test_files(suite, arguments.tests or TESTS)
    files = [file for file in found if not left_out(file)]
    if not arguments.report:
        end = monotonic() + arguments.seconds
        for file in shard(files, arguments.shard):
            run_file(suite, RUN, file, variables(arguments, file), arguments.file_seconds, end)
    return report(arguments, files, len(found) - len(files))


def parsed() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog="pytensor_language", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=lambda name: Path(name).resolve(), help="PyTensor's repository")
    parser.add_argument(
        "--directory", type=lambda name: Path(name).resolve(), required=True, help="where runs are kept"
    )
    parser.add_argument("--tests", action="append", help=f"a folder or a file; default: {', '.join(TESTS)}")
    parser.add_argument("--shard", default="1/1", help="K/N: the K-th of N parts of the files")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no file later than this")
    parser.add_argument("--file-seconds", type=float, default=900.0, help="a process ends after this")
    parser.add_argument("--test-seconds", type=float, default=60.0, help="a test ends after this")
    parser.add_argument("--report", action="store_true", help="run nothing, count what is there")
    parser.add_argument("--differences", action="store_true", help="list the tests that differ")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser.parse_args()


def variables(arguments: argparse.Namespace, file: str) -> dict[str, str]:
    """Return the environment of a file's process."""
    return environment(HERE, arguments.directory, RUN, file) | {
        PACKAGE: str(arguments.checkout / "pytensor"),
        SECONDS: str(arguments.test_seconds),
    }


def report(arguments: argparse.Namespace, files: list[str], n_left_out: int) -> int:
    """Print what became of the tests in `files`; return the exit code."""
    runs = {file: run_of(events(record_of(arguments.directory, RUN, file))) for file in files}
    rows = {file: Counter(columns(run)) for file, run in runs.items() if run.outcomes}
    total = sum(rows.values(), Counter[str]())
    names = Counter(message for run in runs.values() for message in messages(run, "not covered"))
    differing = {test: said for run in runs.values() for test, said in unexplained(run).items()}
    if arguments.json:
        told = {"files": rows, "total": total, "names": dict(names.most_common()), "differences": differing}
        print(json.dumps(told | {"left_out": n_left_out}, indent=2))
    else:
        print_table(rows, total)
        print_share(total)
        print(f"{n_left_out} files are left out, {len(files) - len(rows)} have not run.\n\nNot covered:")
        for name, count in names.most_common(None if arguments.differences else 40):
            print(f"{count:6} {name}")
        for test, said in differing.items() if arguments.differences else ():
            print(f"{test}: {' '.join(said.split())[:300]}")
    return 1 if total["differs"] or total["crashed"] else 0


def column(run: Run, test: str) -> str:
    """Return the table's column of a test."""
    found = COLUMN_OF.get(run.outcomes[test])
    if found is not None:
        return found
    message = run.messages.get(test, "")
    if explanation_of(INTERNAL, RUN, test, message):
        return "internal"
    if explanation_of(EXPLAINED, RUN, test, message):
        return "explained"
    return "not covered" if run.outcomes[test] == NOT_COVERED else "differs"


def columns(run: Run) -> list[str]:
    """Return the column of each test, and once more `tests`."""
    return [name for test in run.outcomes for name in ("tests", column(run, test))]


def messages(run: Run, wanted: str) -> list[str]:
    """Return what the tests of a column said."""
    return [run.messages.get(test, "") for test in run.outcomes if column(run, test) == wanted]


def unexplained(run: Run) -> dict[str, str]:
    """Return what the tests said that differ without a reason, or crashed."""
    return {
        test: run.messages.get(test, outcome)
        for test, outcome in run.outcomes.items()
        if column(run, test) in ("differs", "crashed")
    }


def print_table(rows: dict[str, Counter[str]], total: Counter[str]) -> None:
    """Print a row for each file and one for all."""
    width = max(map(len, rows), default=4)

    def line(name: str, cells: list[Any]) -> str:
        return f"{name:{width}}" + "".join(f"{cell:>13}" for cell in cells)

    print(line("file", list(COLUMNS)))
    for name, row in [*rows.items(), ("all", total)]:
        print(line(name, [row[each] for each in COLUMNS]))


def print_share(total: Counter[str]) -> None:
    """Print how many of the tests that measure the language passed."""
    n_asked = total["tests"] - total["skipped"] - total["internal"]
    print(f"passed: {total['passed']} of {n_asked}, {total['passed'] / max(n_asked, 1):.1%}")


if __name__ == "__main__":
    sys.exit(main())
