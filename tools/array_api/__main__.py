"""The array API standard on the engine, compared with array_api_strict.

Run as `python tools/array_api [NAME...]`, in an environment with array-api-strict: all functions of the
standard's release 2025.12 and of its extensions, or those that are named. Each function is a graph of
engine.tensor, which is compiled and run for each call (eager.py). Prints a table, a row for each function:

    dtypes   the number of dtypes, or combinations of them, that it was called with
    calls    the calls
    kernels  those that ran compiled to kernels; all others ran the numpy reference of each Op
    refused  those that array_api_strict refuses
    agree    both return equal arrays of one dtype and shape, or both refuse the arguments
    differ   they do not; each is listed below the table, with its reason (reasons.py) or without

Integers and bools must be equal, floats nearly (comparison.py). Exit code 1 if a call differs without a
reason, or a function of the standard has no call.

`--kernels N` compiles one in N calls to kernels, too (default 25; 0 for none).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from comparison import difference, outcome
from eager import EagerNamespace
from namespace import BUILDERS
from reasons import reason_of

from calls import all_calls
from examples import EagerCall
from reference import function_names, reference_call

ROW = "{:32} {:>7} {:>7} {:>8} {:>7} {:>7} {:>7}"


class Row:
    """The outcome of one function."""

    def __init__(self) -> None:
        self.dtypes: set[tuple[str, ...]] = set()
        self.calls = self.kernels = self.refused = 0
        self.differences: Counter[tuple[str, str]] = Counter()

    def add(self, call: EagerCall, mode: str, is_refused: bool, found: str) -> None:
        """Count a call that array_api_strict refused or not, and in which `found`, if not empty, differed."""
        self.dtypes.add(call.dtypes)
        self.calls += 1
        self.kernels += mode == "NUMBA"
        self.refused += is_refused
        if found:
            self.differences[reason_of(call, found), f"{described(call)} [{mode}]: {found}"] += 1


def described(call: EagerCall) -> str:
    """Return the call as text, with arrays as their dtypes and shapes."""
    named = [f"{key}={shown(value)}" for key, value in call.options.items()]
    return f"{call.name}({', '.join([*map(shown, call.args), *named])})"


def shown(value: Any) -> str:
    """Return an argument as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(shown, value))})"
    return value.name if isinstance(value, np.dtype) else repr(value)


def compared(names: set[str], share: int) -> dict[str, Row]:
    """Return what is found of the functions `names`, or of all; one in `share` calls runs compiled, too."""
    spaces = {mode: EagerNamespace(BUILDERS, mode) for mode in ("NUMPY", "NUMBA")}
    rows: dict[str, Row] = defaultdict(Row)
    for number, call in enumerate(all_calls()):
        if names and call.name not in names:
            continue
        expected = outcome(reference_call, call.name, call.args, call.options)
        for mode in ("NUMPY", "NUMBA") if share and number % share == 0 else ("NUMPY",):
            found = outcome(eager_call, spaces[mode], call)
            rows[call.name].add(
                call, mode, isinstance(expected, Exception), difference(call.name, expected, found)
            )
    return rows


def eager_call(space: EagerNamespace, call: EagerCall) -> Any:
    """Return what the engine returns for a call."""
    args, options = (with_names(each) for each in (call.args, call.options))
    return space.call(call.name, *args, **options)


def with_names(value: Any) -> Any:
    """Return `value` with the names of its dtypes."""
    if isinstance(value, dict):
        return {key: with_names(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([with_names(each) for each in value])
    return value.name if isinstance(value, np.dtype) else value


def report(rows: dict[str, Row], names: set[str]) -> int:
    """Print the table and the differences; return the exit code."""
    print(ROW.format("function", "dtypes", "calls", "kernels", "refused", "agree", "differ"))
    for name, row in sorted(rows.items()):
        differ = sum(row.differences.values())
        print(
            ROW.format(name, len(row.dtypes), row.calls, row.kernels, row.refused, row.calls - differ, differ)
        )
    calls = sum(row.calls for row in rows.values())
    kernels = sum(row.kernels for row in rows.values())
    refused = sum(row.refused for row in rows.values())
    differ = sum(sum(row.differences.values()) for row in rows.values())
    print(ROW.format(f"{len(rows)} functions", "", calls, kernels, refused, calls - differ, differ))
    missing = sorted((names or set(function_names())) - set(rows))
    if missing:
        print(f"\nWithout a call: {', '.join(missing)}")
    unexplained = printed_differences(rows)
    return 1 if missing or unexplained else 0


def printed_differences(rows: dict[str, Row]) -> int:
    """Print the differences by their reasons; return the number of those without one."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in rows.values():
        for (reason, text), count in row.differences.items():
            by_reason[reason].extend([text] * count)
    for reason, texts in sorted(by_reason.items()):
        print(f"\n{len(texts)} differ: {reason or 'WITHOUT A REASON'}")
        print("\n".join(f"    {text}" for text in texts))
    return len(by_reason.get("", []))


def main() -> int:
    """Compare what the command line names and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions; by default all")
    parser.add_argument(
        "--kernels", type=int, default=25, metavar="N", help="one in N calls runs compiled, too"
    )
    options = parser.parse_args()
    names = set(options.names)
    return report(compared(names, options.kernels), names)


if __name__ == "__main__":
    sys.exit(main())
