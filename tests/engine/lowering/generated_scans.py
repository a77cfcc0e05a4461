"""Random Scans, also nested, over rows of 0, 1 or 2 dimensions that all have length SIZE."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import engine.tensor as pt
from engine.inner import Scan, ScanInfo

SIZE = 3
MOST_STEPS = 4


@dataclass
class Made:
    """A Scan, the rank of a row of each of its outer inputs but the first, and the rows that each needs."""

    op: Scan
    ranks: list[int]
    rows: list[int | None]

    def arguments(self, random: Random) -> list[Any]:
        """Return values for the outer inputs: a number of steps, and enough rows for it."""
        steps = random.randint(0, MOST_STEPS)
        numbers = np.random.default_rng(random.randint(0, 2**32))
        arrays = []
        for rank, rows in zip(self.ranks, self.rows, strict=True):
            shape = (
                (SIZE,) * rank if rows is None else (rows or steps + random.randint(0, 1), *(SIZE,) * rank)
            )
            arrays.append(numbers.uniform(-1, 1, shape))
        return [steps, *arrays]


def made_scan(random: Random, depth: int, most_rank: int = 2, is_outermost: bool = True) -> Made:
    """Return a Scan whose steps nest loops up to `depth` deep; rows have at most `most_rank` dimensions."""
    rows = [_row(random.randint(0, most_rank)) for _ in range(random.randint(0, 2))]
    taps = [
        tuple(sorted(random.sample((-3, -2, -1), random.randint(1, 2)))) for _ in range(random.randint(0, 3))
    ]
    ranks = [random.randint(0, most_rank) for _ in taps]
    states = [[_row(rank) for _ in tap] for rank, tap in zip(ranks, taps, strict=True)]
    others = [_row(random.randint(0, 2)) for _ in range(random.randint(1, 2))]
    pool = [*rows, *(tap for state in states for tap in state), *others]
    for _ in range(random.randint(1, 6)):
        pool += _steps(random, pool, depth)
    new = [_of_rank(random, pool, rank) for rank in ranks]
    mapped = [random.choice(pool) for _ in range(random.randint(0 if new else 1, 3))]
    if is_outermost and random.random() < 0.3:
        # Only a step knows the lengths of these rows; all steps have the same.
        mapped += [_of_rank(random, pool, random.randint(1, 2))[: _index(random, others) + 1]]
    is_while = random.random() < 0.3
    stop = [pt.sum(random.choice(pool)) > random.uniform(-1, 2)] if is_while else []
    keeps = tuple(random.choice((None, random.randint(1, -tap[0]))) for tap in taps)
    info = ScanInfo(len(rows), tuple(taps), keeps, len(mapped), len(others), is_while)
    inputs = [*rows, *(tap for state in states for tap in state), *others]
    due = [0] * len(rows) + [-tap[0] for tap in taps] + [None] * len(others)
    return Made(
        Scan(inputs, [*new, *mapped, *stop], info),
        [_rank(v) for v in rows] + ranks + [_rank(v) for v in others],
        due,
    )


def _row(rank: int) -> Any:
    return pt.tensor(None, "float64", (None,) * rank)


def _rank(variable: Any) -> int:
    return variable.type.ndim


def _of_rank(random: Random, pool: list[Any], rank: int) -> Any:
    """Return a variable of that rank: one of the pool, or one computed from it."""
    found = random.choice(pool)
    while _rank(found) > rank:
        found = random.choice((pt.sum(found, axis=0), found[0], found[-1]))
    while _rank(found) < rank:
        found = pt.stack([found, pt.tanh(found), found * 0.5])
    return found


def _steps(random: Random, pool: list[Any], depth: int) -> list[Any]:
    """Yield variables computed from the pool by one operation or by a loop."""
    kind = random.randint(0, 9 if depth else 8)
    x = random.choice(pool)
    if kind == 0:
        return [pt.tanh(x + _of_rank(random, pool, _rank(x)))]
    if kind == 1:
        return [pt.exp(x * -0.5) * 0.3]
    if kind == 2:
        return [pt.tanh(pt.dot(_of_rank(random, pool, 2), _of_rank(random, pool, random.randint(1, 2))))]
    if kind == 3:
        return [_of_rank(random, pool, 2).T]
    if kind == 4:
        return [pt.tanh(pt.sum(x))]
    if kind == 5:
        return [_of_rank(random, pool, random.randint(1, 2))[::-1]]
    if kind == 6:
        return [_of_rank(random, pool, random.randint(1, 2))[_index(random, pool)]]
    if kind == 7:
        whole = _of_rank(random, pool, random.randint(1, 2))
        return [whole[_index(random, pool)].set(_of_rank(random, pool, _rank(whole) - 1))]
    if kind == 8:
        whole, length = _of_rank(random, pool, random.randint(1, 2)), _index(random, pool) + 1
        return [pt.sum(whole[:length], axis=0)]
    return _inner_loop(random, pool, depth)


def _index(random: Random, pool: list[Any]) -> Any:
    """Return a number from 0 to SIZE - 1, computed from something that the steps compute."""
    return pt.cast(pt.abs(_of_rank(random, pool, 0)) * 10, "int64") % SIZE


def _inner_loop(random: Random, pool: list[Any], depth: int) -> list[Any]:
    made = made_scan(random, depth - 1, 1, False)
    steps = random.choice((0, 1, SIZE, _index(random, pool)))
    given = []
    for rank, rows in zip(made.ranks, made.rows, strict=True):
        whole = _of_rank(random, pool, rank if rows is None else rank + 1)
        given.append(whole[:rows] if rows else whole)
    found = made.op(steps, *given, return_list=True)
    return [pt.tanh(pt.sum(output, axis=0)) for output in found]
