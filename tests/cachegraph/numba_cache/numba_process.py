"""A process that runs functions compiled by numba, their overloads kept in the store, and prints what happened as JSON.

    python tests/cachegraph/numba_cache/numba_process.py NAME ARGUMENT [NAME ARGUMENT ...]

NAME is a function below that makes a dispatcher of the number ARGUMENT, and says what to call it with. Printed for each:
the result, how often it was found, and which functions of this file were compiled meanwhile.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import event, types
from numba.extending import overload

import cachegraph
from cachegraph.fingerprint import encode
from cachegraph.numba_cache import keep_overloads

ROOT = Path(__file__).resolve().parents[3]


def added(number: int) -> tuple[Any, tuple[Any, ...]]:
    """Calls a function of which every process has another one under the same qualified name."""

    @numba.njit
    def inner(x):
        for _ in range(3):  # too much to be inlined away
            x = np.sin(x) * 0 + x + number
        return x

    @numba.njit
    def outer(values):
        total = 0.0
        for value in values:
            total += inner(value)
        return total

    return outer, (np.ones(3),)


def both(number: int) -> tuple[Any, tuple[Any, ...]]:
    """Calls two functions of one qualified name, which other processes compiled: bitcode is linked here."""
    one, two = (kept(added(n)[0], f"added {n}") for n in (number, number + 1))

    @numba.njit
    def outer(values):
        return one(values) * 1000 + two(values)

    return outer, (np.ones(3),)


def factorial(number: int) -> tuple[Any, tuple[Any, ...]]:
    @numba.njit
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    return factorial, (number,)


def summed(number: int) -> tuple[Any, tuple[Any, ...]]:
    @numba.njit(parallel=True)
    def summed(values):
        total = 0.0
        for i in numba.prange(len(values)):
            total += values[i]
        return total

    return summed, (np.full(number, 2.0),)


def raising(number: int) -> tuple[Any, tuple[Any, ...]]:
    @numba.njit
    def raising(x):
        if x < 0:
            raise ValueError("negative", x)
        return np.sqrt(x), np.array([x, 0.0])

    return raising, (float(number),)


def needing(number: int) -> tuple[Any, tuple[Any, ...]]:
    """Calls a native function that a process may have under a name; with 0 it has not, and needs it not."""
    if not number:
        return numba.njit(lambda x: abs(x)), (-5,)
    address = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    llvm.add_symbol("cachegraph_test_symbol", address)
    symbol = types.ExternalFunction("cachegraph_test_symbol", types.int64(types.int64))

    @numba.njit
    def needing(x):
        return symbol(x)

    return needing, (-5,)


def extended(number: int) -> tuple[Any, tuple[Any, ...]]:
    """Calls what is defined by an overload alone."""

    def helper(x):
        raise NotImplementedError

    if number == 1:
        overload(helper)(lambda x: lambda x: x + 1)
    else:
        overload(helper)(lambda x: lambda x: x + 2)

    @numba.njit
    def extended(x):
        return helper(x)

    return extended, (10,)


def kept(dispatcher: Any, name: str) -> Any:
    keep_overloads(dispatcher, encode(name))
    return dispatcher


def _called(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        found = dispatcher(*arguments)
    except ValueError as error:
        return repr(error)
    return [np.asarray(item).tolist() for item in found] if isinstance(found, tuple) else float(found)


def report(name: str, number: int) -> dict[str, Any]:
    dispatcher, arguments = globals()[name](number)
    described = name if name in ("needing", "factorial", "raising") else f"{name} {number}"
    if name == "extended":
        keep_overloads(dispatcher, encode(dispatcher))
    else:
        kept(dispatcher, described)
    with event.install_recorder("numba:compile") as recorder:
        result = _called(dispatcher, arguments)
    compiled = {happened.data["dispatcher"].py_func for _, happened in recorder.buffer}
    return {
        "result": result,
        "hits": sum(dispatcher.stats.cache_hits.values()),
        "compiled": sorted(
            function.__name__ for function in compiled if function.__code__.co_filename == __file__
        ),
    }


def in_fresh_process(*commands: str | int, **environment: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, __file__, *map(str, commands)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


if __name__ == "__main__":
    pairs = zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    reports = [report(name, int(number)) for name, number in pairs]
    reports.append({"misses": dict(cachegraph.counters().misses)})
    print(json.dumps(reports))
