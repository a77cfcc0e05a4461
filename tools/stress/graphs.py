"""Random expressions of what overflows and cancels, at ordinary and extreme points, beside PyTensor
and exact numbers.

    python tools/stress/graphs.py [--seconds S] [--rounds N] [--seed TEXT] [--first K]

A round compiles EXPRESSIONS expressions of about 30 Ops and their derivatives at once, and computes them
at five points. Exact numbers judge: balls of as many bits as they need, if python-flint is installed, and
numbers of 4,000 bits otherwise, which take twenty times as long. Where the engine's number is not theirs
to 1e-10 of it, the numpy backend computes the expression too, on the graph as it was written. PyTensor (if
it is installed) computes it where the number is not finite, and for a share of the expressions where it is. A
fault is a number that one of them computes right, and the engine's rewritten graph does not. Some rounds
are fused and compiled, too. A later run goes on with `--seed` and `--first`.

A number that only PyTensor computes right is explained (printed, and no fault) if its error is what rounding
the value and the derivatives of each operation to doubles makes of exact numbers. There terms cancel in
PyTensor's algebra: in exp(x) / (exp(x) + exp(log(exp(x)))), whose derivative is a difference of equals.
"""

from __future__ import annotations

import gc
import itertools
import os
import random
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rounds import ROOT, run

sys.path.insert(0, str(ROOT))
os.environ["CACHEGRAPH_MODE"] = "off"
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=,traceback__limit=0")

import engine
import engine.tensor as pt
from tests.engine.generated_expressions import (
    Expression,
    extreme_values,
    generated_expression,
    ordinary_values,
)

try:
    from tests.engine.balls import exact_results
except ImportError:
    from tests.engine.wide_numbers import exact_results

try:
    import pytensor
    import pytensor.tensor as theirs
    from pytensor.graph.rewriting.db import RewriteDatabaseQuery
except ImportError:
    pytensor = None

PYTENSOR = "by PyTensor"
RIVALS = ("as written", *([] if pytensor is None else [PYTENSOR]))
EXPRESSIONS = 16
COMPILED = 1 / 64
"""The share of rounds that are fused and compiled, too."""
ALONE = 0.25
"""The share of rounds that compile the values alone, too: rewrites look at who needs a variable."""
ASKED = 0.25
"""The share of expressions of which PyTensor computes finite numbers, too."""
# Fused nodes compute the same numbers; fusing them takes a third of a round.
REWRITTEN = engine.Mode(
    "numpy", engine.Mode().optimizer.excluding("recompute_for_reductions", "fusion", "inplace")
)
LENGTH = 3
DIGITS = 1e-10
"""The largest relative difference of equal numbers."""
RIGHT = 1e-8
"""The largest relative error of a number that is right, for one that is not finite or far away."""
ROUNDINGS = 8
DISTANCES = tuple(10.0**-place for place in range(14, 0, -1))
"""Of the points that tell luck. Next to a point, an expression may be rounded in the same way everywhere."""
SEVERAL = 4
"""The number of roundings in an operation."""
LUCK = 16
"""An error this many times the other's is no luck (decision 0101)."""
TINY = 1e-290
"""Smaller differences are none: the smallest numbers have few digits."""
CANCELLED = 1e-9
"""Smaller numbers than this are right where terms of a sum cancel, and 0 is exact."""


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
    modes = [REWRITTEN, *([None] if numbers.random() < COMPILED else [])]
    results = [range(1 + count), *([range(1)] if numbers.random() < ALONE else [])]
    asked = [numbers.random() < ASKED for _ in expressions]
    try:
        with np.errstate(all="ignore"):
            return _fault(expressions, points, list(itertools.product(modes, results)), asked)
    except Exception:
        return traceback.format_exc()


def _fault(
    expressions: list[Expression],
    points: list[list[np.ndarray]],
    functions: list[tuple[Any, range]],
    asked: list[bool],
) -> str | None:
    rivals = Rivals(expressions, len(points[0]))
    lost = set[tuple[int, int]]()  # where PyTensor has no value either
    for doubt in _doubts(expressions, points, functions):
        is_finite, where = bool(np.all(np.isfinite(doubt.found))), (doubt.place, id(doubt.values))
        is_asked = asked[doubt.place] if is_finite else where not in lost
        for name in RIVALS if is_asked else RIVALS[:1]:
            rival = rivals.function(name, doubt.place, doubt.number)
            result = rival(*doubt.values)
            if (
                name == PYTENSOR
                and not doubt.number
                and not np.any(np.isfinite(result[~np.isfinite(doubt.found)]))
            ):
                lost.add(where)
            if not _is_worse(doubt.found, result, doubt.due) or _is_luck(rival, doubt):
                continue
            fault = _described(doubt, name, result)
            if name != PYTENSOR or not _is_rounding(doubt):
                return fault
            print(f"explained by rounding: {fault}", flush=True)
    return None


def _described(doubt: Doubt, name: str, result: np.ndarray) -> str:
    what = f"derivative {doubt.number - 1}" if doubt.number else "the value"
    return (
        f"expression {doubt.place}: {what} is {doubt.found}, {name} {result}, "
        f"exactly {doubt.due.tolist()} at {[value.tolist() for value in doubt.values]}"
    )


class Doubt(NamedTuple):
    """A result that is not exact: of an expression the value (number 0) or the derivative by an input, at a
    point, as the engine found it and as it is due."""

    place: int
    expression: Expression
    number: int
    values: list[np.ndarray]
    found: np.ndarray
    due: np.ndarray


def _doubts(
    expressions: list[Expression], points: list[list[np.ndarray]], functions: list[tuple[Any, range]]
) -> Iterator[Doubt]:
    """Yield the results that are not exact to DIGITS, of functions in modes of results by their numbers."""
    count = len(points[0])
    ours = [
        (_function(engine, ENGINE, expressions, numbers, mode, count), numbers) for mode, numbers in functions
    ]
    for values in points:
        exact = [exact_results(expression, values) for expression in expressions]
        for f, numbers in ours:
            results = iter(f(*values))
            for place, number in itertools.product(range(len(expressions)), numbers):
                found, due = next(results), exact[place]
                if due is not None and np.any(_errors(found, due[number]) > DIGITS):
                    yield Doubt(place, expressions[place], number, values, found, due[number])


class Rivals:
    """Functions of one result of an expression, as it is written and by PyTensor, made when needed."""

    def __init__(self, expressions: list[Expression], count: int) -> None:
        self._expressions, self._count = expressions, count
        self._made: dict[tuple[str, int, int], Any] = {}

    def function(self, name: str, place: int, number: int) -> Any:
        """Return the function by one of RIVALS of the value or a derivative of the expression at `place`."""
        key = name, place, number
        if key not in self._made:
            make = _by_pytensor if name == PYTENSOR else _as_written
            self._made[key] = make(self._expressions[place], number, self._count)
        return self._made[key]


def _as_written(expression: Expression, number: int, count: int) -> Any:
    f = _function(engine, ENGINE, [expression], [number], "NUMPY", count)
    return lambda *values: f(*values)[0]


def _by_pytensor(expression: Expression, number: int, count: int) -> Any:
    library = Tensors(theirs, theirs.special.softmax)
    query = RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "inplace", "cxx_only"])
    mode = pytensor.compile.mode.Mode(linker="py", optimizer=query)
    f = _function(pytensor, library, [expression], [number], mode, count)
    return lambda *values: f(*values)[0]


def _function(
    library: Any,
    tensors: Tensors,
    expressions: list[Expression],
    numbers: Sequence[int],
    mode: Any,
    count: int,
) -> Any:
    """Return a function of the results of these `numbers` of all expressions: values (0) and derivatives."""
    variables = [tensors.dvector(f"x{place}") for place in range(count)]
    outputs = []
    for expression in expressions:
        result = expression(tensors, variables)
        wanted = [variables[number - 1] for number in numbers if number]
        slopes = library.grad(tensors.sum(result), wanted, disconnected_inputs="ignore") if wanted else []
        outputs += [*([result] if 0 in numbers else []), *slopes]
    return library.function(variables, outputs, mode=mode, on_unused_input="ignore")


def _is_worse(found: np.ndarray, other: np.ndarray, due: np.ndarray) -> bool:
    """Return True where `other` is right and `found` is not."""
    one, rival = _errors(found, due), _errors(other, due)
    return bool(np.any((rival < RIGHT) & (one > np.maximum(DIGITS, LUCK * rival))))


def _is_rounding(doubt: Doubt) -> bool:
    """Return True if rounding the value and the derivatives of each operation at random makes such errors."""
    explained, noise = np.full(doubt.due.shape, DIGITS), np.random.default_rng(0)
    for _ in range(ROUNDINGS):
        rounded = exact_results(doubt.expression, doubt.values, noise)
        if rounded is not None:
            errors = _errors(rounded[doubt.number], doubt.due)
            explained = np.maximum(explained, np.where(np.isfinite(errors), SEVERAL * errors, 0))
    return bool(np.all(_errors(doubt.found, doubt.due) <= explained))


def _is_luck(rival: Any, doubt: Doubt) -> bool:
    """Return True if the rival's numbers near the point are about as wrong as the engine's are there."""
    numbers, worst = np.random.default_rng(0), 0.0
    for distance in DISTANCES:
        near = [value * (1 + distance * numbers.normal(size=value.shape)) for value in doubt.values]
        exact = exact_results(doubt.expression, near)
        if exact is not None:
            worst = max(worst, float(np.max(_errors(rival(*near), exact[doubt.number]))))
    return worst * LUCK >= float(np.max(_errors(doubt.found, doubt.due)))


def _errors(found: np.ndarray, due: np.ndarray) -> np.ndarray:
    """Return the relative errors: 0 where no float64 is exact, infinity where `found` is not finite."""
    distance, size = np.abs(found - due), np.abs(due)
    errors = np.where(np.isfinite(found), distance / size, np.inf)
    return np.where(~np.isfinite(due) | (distance <= np.where(size < TINY, CANCELLED, TINY)), 0.0, errors)


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(200_000)
    sys.exit(run(__doc__, attack))
