"""Random expressions of vectors, to be computed by any library: what people write that overflows or cancels, composed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

EXTREME = (0.0, 1e-18, -1e-18, 1e-3, -1e-3, 1.0, -1.0, 36.0, -36.0, 40.0, -40.0, 745.0, -745.0, 800.0, -800.0)

Expression = Callable[[Any, Sequence[Any]], Any]
"""A function of a library and the inputs there."""

Unary = Callable[[Any, Any], Any]

UNSTABLE: tuple[Unary, ...] = (
    lambda f, x: f.log(1 / (1 + f.exp(-x))),
    lambda f, x: f.log(1 - 1 / (1 + f.exp(-x))),
    lambda f, x: f.log(f.sigmoid(x)),
    lambda f, x: f.log(1 - f.sigmoid(x)),
    lambda f, x: f.log1p(-f.sigmoid(x)),
    lambda f, x: f.log(1 + f.exp(x)),
    lambda f, x: f.log1p(f.exp(x)),
    lambda f, x: f.log(f.exp(x)),
    lambda f, x: f.exp(x) / (1 + f.exp(x)),
    lambda f, x: 2.5 / (1 + f.exp(x)),
    lambda f, x: f.log(f.exp(x) + f.exp(-x)),
    lambda f, x: f.repeated(f.log(f.sum(f.exp(x))), x),
    lambda f, x: f.log(f.softmax(x)),
    lambda f, x: f.log(1 - f.exp(-f.sqr(x))),
    lambda f, x: f.log1p(-f.exp(-f.sqr(x))),
    lambda f, x: f.exp(x) - 1,
    lambda f, x: f.sqrt(f.sqr(x)),
    lambda f, x: f.log1p(f.expm1(x)),
    lambda f, x: 1 - f.exp(x),
    lambda f, x: (1 + x) - 1,
    lambda f, x: f.exp(-x) / (1 + f.exp(-x)),
)
"""Expressions that people write, and that overflow or lose digits where their values need not."""

BRANCHES: tuple[Unary, ...] = (
    lambda f, x: f.positive(x, f.sqrt(x), 0.0),
    lambda f, x: f.positive(x, f.log(x) * 0.5 - x, 0.0),
    lambda f, x: f.positive(x, f.log(x) / f.sqrt(x), f.exp(x)),
)
"""Of inputs alone: which branch is taken may not depend on rounding."""

UNARY: tuple[Unary, ...] = (
    lambda f, x: f.tanh(x),
    lambda f, x: f.sin(x),
    lambda f, x: f.sigmoid(x),
    lambda f, x: f.softplus(x),
    lambda f, x: f.exp(-f.sqr(x)),
    lambda f, x: -x,
    lambda f, x: 0.5 * x,
    lambda f, x: x / 4 + 1.0,
    lambda f, x: f.sqr(x),
    lambda f, x: x**3,
    lambda f, x: f.log1p(f.sqr(x)),
    lambda f, x: f.repeated(f.sum(x), x),
)
Binary = Callable[[Any, Any, Any], Any]

BINARY: tuple[Binary, ...] = (
    lambda f, x, y: x + y,
    lambda f, x, y: x - 0.75 * y,
    lambda f, x, y: x * y,
    lambda f, x, y: x / (2.0 + f.sqr(y)),
    lambda f, x, y: f.log(f.exp(x) + f.exp(y)),
    lambda f, x, y: f.exp(x) / (f.exp(x) + f.exp(y)),
)


def generated_expression(random: Random, inputs: int, size: int) -> Expression:
    """An expression of so many vectors, made of `size` operations; each is made once for all libraries."""
    steps = [_step(random, inputs, inputs + number) for number in range(size)]

    def compute(library: Any, variables: Sequence[Any]) -> Any:
        pool = list(variables)
        for step in steps:
            pool.append(step(library, pool))
            library.watch(pool[-1])
        return pool[-1]

    return compute


def _step(random: Random, inputs: int, known: int) -> Callable[[Any, list[Any]], Any]:
    # What was made last is used mostly, so that an expression is deep.
    place = known - 1 if random.random() < 0.7 else random.randrange(known)
    kind = random.random()
    if kind < 0.35:
        # Never a variable beside itself: x - x is 0 by algebra, and no number where x is infinite.
        other, binary = random.choice([k for k in range(known) if k != place] or [0]), random.choice(BINARY)
        return lambda library, pool: binary(library, pool[place], pool[other])
    if kind < 0.5:
        branch, which = random.choice(BRANCHES), random.randrange(inputs)
        return lambda library, pool: branch(library, pool[which]) * pool[place]
    if kind < 0.8:
        unstable = random.choice(UNSTABLE)
        return lambda library, pool: unstable(library, pool[place])
    unary = random.choice(UNARY)
    return lambda library, pool: unary(library, pool[place])


def ordinary_values(numbers: np.random.Generator, inputs: int, length: int) -> list[np.ndarray]:
    """Small numbers, none of them 0."""
    return [numbers.normal(size=length) for _ in range(inputs)]


def extreme_values(random: Random, inputs: int, length: int) -> list[np.ndarray]:
    """Numbers whose exponentials overflow, vanish, or are next to 1."""
    return [np.array([random.choice(EXTREME) for _ in range(length)]) for _ in range(inputs)]
