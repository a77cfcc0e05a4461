"""Time that overwriting saves: elementwise kernels that write onto their input, and array parts that
are set.

    tools/bench/overwriting.py

Prints nanoseconds an element, the least of several rounds. See docs/decisions/0016.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.codegen.compile import compile_kernel
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.statements import Statement
from engine.runtime.container import pack_kernel
from engine.runtime.load import process_loader
from engine.runtime.target import process_level, process_triple

SIZES = (30_000, 5_000_000)
ROUNDS = 7


def least(run: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time of one `run`, in seconds."""
    found = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        for _ in range(repeats):
            run()
        found.append((perf_counter() - begin) / repeats)
    return min(found)


def number(value: float) -> Any:
    """Return a constant in the form that kernels take."""
    return "constant", "float64", np.float64(value).tobytes()


BODIES = {
    "x * 2 + 1": (
        Statement("mul", (("input", 0), number(2.0)), "float64"),
        Statement("add", (("value", 0), number(1.0)), "float64"),
    ),
    "exp(-x)": (
        Statement("neg", (("input", 0),), "float64"),
        Statement("exp", (("value", 0),), "float64"),
    ),
}


def compare_kernels() -> None:
    """Time a kernel that writes to another array, and one that writes onto its input."""
    level = process_level()
    for number, (name, body) in enumerate(BODIES.items()):
        kernel, symbol = (
            elementwise([NestOperand("float64", (False,))], body, [("value", 1)], 1),
            f"k_{number}",
        )
        content = pack_kernel(symbol, process_triple(), level, compile_kernel(kernel, symbol, level))
        linked = process_loader().load(content, symbol)
        run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(linked.address)
        for size in SIZES:
            x, y = np.ones(size), np.empty(size)
            found = []
            for output in (y, x):
                words = np.array([x.ctypes.data, size, output.ctypes.data])
                call = partial(run, words.ctypes.data)
                found.append(1e9 * least(call, 10_000_000 // size + 1) / size)
            print(
                f"{name:10} {size:8} elements: elsewhere {found[0]:6.3f}, onto its input {found[1]:6.3f} ns"
            )


def compare_functions() -> None:
    """Time a function that sets ten elements of an array, one after the other."""
    x = pt.dvector("x")
    y = pt.exp(x)
    for place in range(10):
        y = y[place].set(1.0)
    value = np.zeros(1_000_000)
    for name, mode in (("in place", engine.Mode()), ("copied", engine.Mode().excluding("inplace"))):
        f = engine.function([x], y, mode=mode)
        print(f"ten elements of a million set, {name}: {1e3 * least(partial(f, value), 3):.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        os.environ["CACHEGRAPH_DIR"] = directory
        compare_kernels()
        compare_functions()
