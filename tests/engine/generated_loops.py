"""Random loops: any sequences, states and taps, rows of any rank, and a step of random operations on all that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import engine
import engine.tensor as pt

UNARY = (
    pt.tanh,
    pt.sin,
    pt.cos,
    pt.neg,
    lambda x: x * 0.5,
    lambda x: pt.exp(-pt.sqr(x)),
    lambda x: pt.log(1 + pt.exp(x)),
    lambda x: pt.log(1 - pt.sigmoid(x)) + 1 / (1 + pt.exp(-x)),
)
BINARY = (pt.add, pt.sub, pt.mul, lambda x, y: x / (2.0 + pt.sqr(y)), pt.maximum)


@dataclass
class GeneratedLoop:
    """Inputs and their values, and what is computed from them: several outputs of a loop, read in several ways."""

    inputs: list[Any]
    values: list[np.ndarray]
    outputs: list[Any]

    @property
    def floats(self) -> list[Any]:
        """The inputs that have gradients."""
        return [variable for variable in self.inputs if variable.type.dtype == "float64"]

    def slopes(self) -> list[Any]:
        """The gradients of the cost, and those of a number that depends on all of these."""
        first = engine.grad(self.cost, self.floats, disconnected_inputs="ignore")
        slope = sum((pt.sum(pt.sin(g)) for g in first), start=pt.constant(0.0))
        return [*first, *engine.grad(slope, self.floats, disconnected_inputs="ignore")]

    @property
    def cost(self) -> Any:
        """A number that depends on all outputs."""
        return sum((pt.sum(pt.sin(output)) for output in self.outputs), start=pt.constant(0.0))


def generated_loop(random: Random, depth: int = 1) -> GeneratedLoop:
    """A loop; with a `depth` above 0 its step may have a loop inside."""
    return _Maker(random).make(depth)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.numbers = np.random.default_rng(random.randrange(2**16))
        self.inputs: list[Any] = []
        self.values: list[np.ndarray] = []
        self.length = random.choice([1, 2, 3])
        self.steps = random.choice([0, 1, 2, 4, 5])
        self.known = random.choice([0.0, 0.0, 0.5, 1.0])  # how likely a type knows a length

    def make(self, depth: int) -> GeneratedLoop:
        random = self.random
        sequences = [self._sequence() for _ in range(random.randrange(3))]
        ranks = [random.choice([0, 0, 1, 1, 2]) for _ in range(random.choice([0, 1, 1, 2, 3]))]
        info: list[Any] = [self._state(rank) for rank in ranks]
        mapped = random.randrange(0 if ranks else 1, 3)
        constants = [self._input(rank) for rank in (0, 1, 2) if random.random() < 0.6]
        nested = depth > 0 and random.random() < 0.3
        limit = random.choice([None, None, 1.0])

        def step(*read: Any) -> Any:
            pool = [*read, *(c for c in constants if random.random() < 0.3)]
            pool.append(pt.constant(0.5))
            for _ in range(random.randrange(1, 5)):
                pool.append(self._operation(pool))
            if nested:
                pool.append(self._inner_loop(pool))
            new = [self._of_rank(pool, rank) for rank in ranks]
            found = [*new, *(random.choice(pool) for _ in range(mapped))]
            if limit is None:
                return found
            return found, engine.until(pt.sum(random.choice(found)) > limit)

        steps = None
        if not sequences or random.random() < 0.5:
            steps = self.steps if random.random() < self.known else self._add(np.array(self.steps))
        found = engine.scan(
            step,
            sequences,
            [*info, *[None] * mapped],
            constants if random.random() < 0.5 else None,
            n_steps=steps,
            go_backwards=random.random() < 0.3,
            return_list=True,
            return_updates=False,
        )
        return GeneratedLoop(self.inputs, self.values, [self._read(output) for output in found])

    def _add(self, value: np.ndarray) -> Any:
        shape = [length if self.random.random() < self.known else None for length in value.shape]
        variable = pt.tensor(f"x{len(self.inputs)}", value.dtype.name, shape)
        self.inputs.append(variable)
        self.values.append(value)
        return variable

    def _input(self, rank: int, *rows: int) -> Any:
        return self._add(self.numbers.normal(size=(*rows, *[self.length] * rank)))

    def _sequence(self) -> Any:
        taps = self.random.choice([[0], [0], [-1, 1], [2], [0, -2]])
        reach = max(*taps, 0) - min(*taps, 0)
        return {"input": self._input(self.random.randrange(3), self.steps + reach), "taps": taps}

    def _state(self, rank: int) -> Any:
        taps = self.random.choice([[-1], [-1], [-1], [-2], [-1, -2], [-3, -1]])
        rows = () if taps == [-1] else (-min(taps),)
        return {"initial": self._input(rank, *rows), "taps": taps}

    def _operation(self, pool: list[Any]) -> Any:
        x, y = self.random.choice(pool), self.random.choice(pool)
        kind = self.random.random()
        if kind < 0.25:
            return self.random.choice(UNARY)(x)
        if kind < 0.5 and x.type.ndim and y.type.ndim and x.type.ndim + y.type.ndim > 2:
            return pt.tanh(pt.dot(x, y))
        if kind < 0.65 and x.type.ndim == y.type.ndim == 1:
            return pt.dimshuffle(x, (0, "x")) * pt.dimshuffle(y, ("x", 0))
        if kind < 0.7 and x.type.ndim:
            return pt.sum(x, self.random.randrange(x.type.ndim))
        return self.random.choice(BINARY)(x, y)

    def _inner_loop(self, pool: list[Any]) -> Any:
        start = pt.tanh(self.random.choice(pool))
        other = self.random.choice(pool)
        found = engine.scan(
            lambda s: pt.tanh(s + 0.5 * pt.sum(other)),
            outputs_info=start,
            n_steps=self.random.choice([1, 3]),
            return_updates=False,
        )
        return self.random.choice([found[-1], pt.sum(found)])

    def _of_rank(self, pool: list[Any], rank: int) -> Any:
        """Something of a rank: bounded, so that many steps stay small, or added to what was there before."""
        found = self.random.choice(pool)
        while found.type.ndim > rank:
            found = pt.sum(found, 0)
        if found.type.ndim < rank:
            found = found + pt.zeros((self.length,) * rank)
        sums = [x for x in pool if x.type.ndim == rank and x.owner is None]
        if sums and self.random.random() < 0.3:
            return self.random.choice(sums) + found
        return pt.tanh(found)

    def _read(self, output: Any) -> Any:
        done = max(self.steps, 1)
        ways = [lambda x: x, lambda x: x[1:], lambda x: pt.sum(x, 0), lambda x: x * 2, lambda x: x[::-1]]
        if done == self.steps:
            ways += [lambda x: x[-1], lambda x: x[-1], lambda x: x[0]]
        return self.random.choice(ways)(output)
