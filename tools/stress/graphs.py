"""Random expressions of what overflows and cancels, at ordinary and extreme points, beside PyTensor
and exact numbers.

    python tools/stress/graphs.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round compiles EXPRESSIONS expressions of about 30 Ops and their derivatives at once, and computes them
at five points. Numbers of 4,000 bits judge. Where the engine's number is not theirs to 1e-10 of it, PyTensor
(if it is installed) and the numpy backend compute the expression too, on the graph as it was written: a fault
is a number that one of them computes right, and the engine's rewritten graph does not. One round in eight is
compiled, too. Rounds take half of the time with gmpy2, which mpmath uses if it is installed. A later run goes
on with `--seed` and `--first`.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Iterator, Sequence
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
    from pytensor.graph.rewriting.db import RewriteDatabaseQuery
except ImportError:
    pytensor = None

EXPRESSIONS = 16
REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)
LENGTH = 3
DIGITS = 1e-10
"""The largest relative difference of equal numbers."""
RIGHT = 1e-8
"""The largest relative error of a number that is right, for one that is not finite or far away."""
NEIGHBOURS = 6
LUCK = 16
"""An error this many times the other's is no luck (decision 0101)."""
TINY = 1e-290
"""Smaller differences are none: the smallest numbers have few digits."""
CANCELLED = 1e-9
"""Smaller numbers than this are right where terms of a sum cancel, and 0 is exact."""

Results = list[np.ndarray]


class Tensors:
    """The functions of the engine's, or PyTensor's, `tensor` module under the names that expressions use."""

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


ENGINE = Tensors(pt, pt.softmax)


def attack(numbers: random.Random, directory: Path) -> str | None:
    """Return the fault of random expressions, at points of both kinds."""
    count = numbers.choice([1, 1, 2])
    expressions = [
        generated_expression(numbers, count, numbers.choice([2, 4, 8, 12, 12, 16]))
        for _ in range(EXPRESSIONS)
    ]
    points = [
        ordinary_values(np.random.default_rng(numbers.randrange(2**32)), count, LENGTH),
        *(extreme_values(numbers, count, LENGTH) for _ in range(4)),
    ]
    modes = [REWRITTEN, *([None] if numbers.random() < 0.125 else [])]
    try:
        with np.errstate(all="ignore"):
            return _fault(expressions, points, modes)
    except Exception:
        return traceback.format_exc()


def _fault(expressions: list[Expression], points: list[list[np.ndarray]], modes: list[Any]) -> str | None:
    count, rivals = len(points[0]), dict[int, dict[str, Any]]()
    ours = [_function(engine, ENGINE, expressions, count, mode) for mode in modes]
    for place, values, found, due in _doubts(ours, expressions, points):
        if place not in rivals:
            rivals[place] = _rivals(expressions[place], count)
        for name, rival in rivals[place].items():
            results = rival(*values)
            number = _worse(found, results, due)
            if number is None or _is_luck(rival, expressions[place], values, number, found, due):
                continue
            what = f"derivative {number - 1}" if number else "the value"
            shown = [float(item) for item in due[number]]
            return (
                f"expression {place}: {what} is {found[number]}, {name} {results[number]}, "
                f"exactly {shown} at {[value.tolist() for value in values]}"
            )
    return None


def _doubts(
    ours: list[Any], expressions: list[Expression], points: list[list[np.ndarray]]
) -> Iterator[tuple[int, list[np.ndarray], Results, Results]]:
    """Yield expression, point, results and exact results wherever a result is not exact to DIGITS."""
    for values in points:
        exact = [_exactly(expression, values) for expression in expressions]
        for f in ours:
            for place, found in enumerate(_by_expression(f(*values), len(values))):
                due = exact[place]
                if due is not None and any(np.any(errors > DIGITS) for errors in _errors(found, due)):
                    yield place, values, found, due


def _rivals(expression: Expression, count: int) -> dict[str, Any]:
    """Return functions of one expression as it is written, and by PyTensor if it is installed."""
    found = {"as written": _function(engine, ENGINE, [expression], count, "NUMPY")}
    if pytensor is not None:
        library = Tensors(theirs, theirs.special.softmax)
        query = RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "inplace", "cxx_only"])
        mode = pytensor.compile.mode.Mode(linker="py", optimizer=query)
        found["by PyTensor"] = _function(pytensor, library, [expression], count, mode)
    return found


def _function(library: Any, tensors: Tensors, expressions: list[Expression], count: int, mode: Any) -> Any:
    variables = [tensors.dvector(f"x{number}") for number in range(count)]
    outputs = []
    for expression in expressions:
        result = expression(tensors, variables)
        outputs += [result, *library.grad(tensors.sum(result), variables, disconnected_inputs="ignore")]
    return library.function(variables, outputs, mode=mode, on_unused_input="ignore")


def _by_expression(results: Sequence[np.ndarray], count: int) -> list[Results]:
    return [list(results[first : first + 1 + count]) for first in range(0, len(results), 1 + count)]


def _worse(found: Results, other: Results, due: Results) -> int | None:
    """Return the number of the first result where `other` is right and `found` is not."""
    for number, (one, rival) in enumerate(zip(_errors(found, due), _errors(other, due), strict=True)):
        if np.any((rival < RIGHT) & (one > np.maximum(DIGITS, LUCK * rival))):
            return number
    return None


def _is_luck(
    rival: Any,
    expression: Expression,
    values: list[np.ndarray],
    number: int,
    found: Results,
    due: Results,
) -> bool:
    """Return True if the rival's numbers next to this point are about as wrong as `found` is here."""
    numbers, worst = np.random.default_rng(0), 0.0
    for _ in range(NEIGHBOURS):
        near = [value * (1 + 1e-14 * numbers.normal(size=value.shape)) for value in values]
        exact = _exactly(expression, near)
        if exact is not None:
            worst = max(worst, float(np.max(_errors(rival(*near), exact)[number])))
    return worst * LUCK >= float(np.max(_errors(found, due)[number]))


def _exactly(expression: Expression, values: list[np.ndarray]) -> Results | None:
    """Return the value and derivatives; None if they contain numbers that no float64 holds."""
    try:
        found = expression(Wide(), inputs(values))
    except OverflowError:
        return None
    slopes = np.broadcast_to(found.slopes.sum(-1), LENGTH * len(values))
    return [found.value, *np.split(slopes, len(values))]


def _errors(found: Results, exact: Results) -> list[np.ndarray]:
    """Return the relative errors: 0 where no float64 is exact, infinity where `found` is not finite."""
    return [
        np.array([_error_of(float(one), due) for one, due in zip(result, dues, strict=True)])
        for result, dues in zip(found, exact, strict=True)
    ]


def _error_of(found: float, due: Any) -> float:
    if not abs(due) <= np.finfo("float64").max:
        return 0.0
    if not np.isfinite(found):
        return np.inf
    distance = abs(found - due)
    if distance <= (CANCELLED if abs(due) < TINY else TINY):
        return 0.0
    return float(distance / abs(due)) if due else np.inf


if __name__ == "__main__":
    sys.exit(run(__doc__, attack))
