"""Random expressions of what overflows and cancels, at ordinary and extreme points, beside PyTensor
and exact numbers.

A value or first derivative is a fault where another computes it right, by numbers of more digits
and range, and the engine's rewritten graph does not: PyTensor, if it is installed, or the numpy
backend on the graph as it was written. One in eight is compiled, too.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from rounds import ROOT, run

sys.path.insert(0, str(ROOT))
os.environ["CACHEGRAPH_MODE"] = "off"
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=")

import engine
import engine.tensor as pt
from tests.engine.generated_expressions import (
    Expression,
    extreme_values,
    generated_expression,
    ordinary_values,
)
from tests.engine.wide_numbers import Wide, inputs

try:
    import pytensor
    import pytensor.tensor as theirs
except ImportError:
    pytensor = None

REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)
LENGTH = 3

Results = list[np.ndarray]


class Tensors:
    """The functions of the engine's, or PyTensor's, `tensor` module under the names that expressions use."""

    is_wide = False

    def __init__(self, module: Any, softmax: Any) -> None:
        self.module = module
        self._softmax = softmax

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def watch(self, x: Any) -> None:
        """Nothing is known of a variable's numbers yet."""

    def softmax(self, x: Any) -> Any:
        return self._softmax(x, axis=-1)

    def positive(self, x: Any, first: Any, second: Any) -> Any:
        return self.module.switch(x > 0, first, second)

    def repeated(self, x: Any, like: Any) -> Any:
        return self.module.second(like, x)


def attack(numbers: random.Random, directory: Path) -> str | None:
    """Return the fault of one random expression, at points of both kinds."""
    count = numbers.choice([1, 1, 2])
    expression = generated_expression(numbers, count, numbers.randrange(1, 6))
    points = [
        ordinary_values(np.random.default_rng(numbers.randrange(2**32)), count, LENGTH),
        *(extreme_values(numbers, count, LENGTH) for _ in range(4)),
    ]
    modes = [REWRITTEN, *([None] if numbers.random() < 0.125 else [])]
    try:
        with np.errstate(all="ignore"):
            return _fault(expression, points, modes)
    except Exception:
        return traceback.format_exc()


def _fault(expression: Expression, points: list[list[np.ndarray]], modes: list[Any]) -> str | None:
    count = len(points[0])
    ours = [_function(engine, Tensors(pt, pt.softmax), expression, count, mode) for mode in modes]
    others = {"as written": _function(engine, Tensors(pt, pt.softmax), expression, count, "NUMPY")}
    if pytensor is not None:
        library = Tensors(theirs, theirs.special.softmax)
        mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_run")
        others["by PyTensor"] = _function(pytensor, library, expression, count, mode)
    for values in points:
        due = _exactly(expression, values)
        if due is None:
            continue
        compared = {name: f(*values) for name, f in others.items()}
        for f in ours:
            fault = _difference(f(*values), due, compared)
            if fault is not None:
                return f"{fault} at {[value.tolist() for value in values]}"
    return None


def _function(library: Any, tensors: Tensors, expression: Expression, count: int, mode: Any) -> Any:
    variables = [tensors.dvector(f"x{number}") for number in range(count)]
    result = expression(tensors, variables)
    gradients = library.grad(tensors.sum(result), variables, disconnected_inputs="ignore")
    return library.function(variables, [result, *gradients], mode=mode, on_unused_input="ignore")


def _exactly(expression: Expression, values: list[np.ndarray]) -> Results | None:
    """Return the value and derivatives; None if they contain numbers that no float64 holds."""
    wide = Wide()
    found = expression(wide, inputs(values))
    if wide.overflows:
        return None
    slopes = found.slopes.sum(-1) if np.ndim(found.slopes) else np.zeros(LENGTH * len(values))
    return [found.value, *np.split(slopes, len(values))]


def _difference(found: Results, due: Results, compared: dict[str, Results]) -> str | None:
    for number, (result, exact) in enumerate(zip(found, due, strict=True)):
        good = _is_right(result, exact)
        for name, others in compared.items():
            better = _is_right(others[number], exact) & ~good
            if np.any(better):
                what = f"derivative {number - 1}" if number else "the value"
                return f"{what} is {result}, {name} {others[number]}, exactly {exact.astype(float)}"
    return None


def _is_right(found: Any, exact: Any) -> Any:
    """Return True where `found` has nine digits of `exact` or both are near 0, and where `exact` is not
    finite.
    """
    with np.errstate(all="ignore"):
        near = np.abs(found - exact) <= 1e-9 * np.abs(exact) + 1e-12
    return near | ~np.isfinite(exact)


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
