"""Random PyTensor graphs as recipes: plain data, built into a graph in any process, or changed at one
site.

A recipe is a list of steps. A step names an operation, its variables by number, and its options. Variables
are two matrices of 4 x 4, two vectors of 4 (one of them shared), a whole-number vector and a scalar, then
the results of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In, Out
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from tests.cachegraph.pytensor.models import ifelse

ROOTS = ("a", "b", "x", "w", "n", "s")
UNARY = ("exp", "tanh", "neg", "abs", "sqr", "sigmoid", "cos", "floor", "sign")
BINARY = ("add", "sub", "mul", "true_div", "maximum", "minimum", "arctan2")
REDUCTIONS = ("sum", "max", "mean", "prod", "argmax", "min")
DTYPES = ("float64", "float32", "int64", "int8", "bool")
NUMBERS = (0.0, 1.0, 2.5, -3.0, float("nan"), float("inf"))
TAGS = ("psd", "symmetric", "lower_triangular", "upper_triangular", "nothing")
DRAWS = ("normal", "gumbel", "logistic", "laplace")


@dataclass(frozen=True)
class Step:
    """One operation (`kind`), with its variables and options."""

    kind: str
    takes: tuple[int, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """Steps, the numbers of the outputs, and how inputs and outputs are specified."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    updated: int | None
    mutable: tuple[bool, ...] = (False,) * 5
    borrowed: tuple[bool, ...] = ()


@dataclass
class Built:
    """A graph with the arguments of pytensor.function, and values for its inputs."""

    inputs: list[Any]
    outputs: list[Any]
    updates: dict[Any, Any]
    shared: list[Any] = field(default_factory=list)


def made(seed: int) -> Recipe:
    """Return the recipe of that number, of 2 to 9 steps."""
    random = Random(seed)
    steps: list[Step] = []
    for _ in range(random.randint(2, 9)):
        step = _step(random, len(ROOTS) + len(steps))
        if step not in steps:
            steps.append(step)
    read = {number for step in steps for number in step.takes}
    sinks = [number for number in range(len(ROOTS), len(ROOTS) + len(steps)) if number not in read]
    updated = random.choice(sinks) if random.random() < 0.3 else None
    flags = tuple(random.random() < 0.1 for _ in range(5))
    return Recipe(tuple(steps), tuple(sinks), updated, flags, tuple(random.random() < 0.1 for _ in sinks))


def _step(random: Random, count: int) -> Step:
    kind = random.choice(sorted(STEPS))
    arity, options = STEPS[kind][1], STEPS[kind][2]
    # What was made last is taken most, so that graphs are deep and little of them is unused.
    takes = tuple(random.choice((count - 1, count - 2, random.randrange(count))) for _ in range(arity))
    return Step(kind, takes, tuple(random.choice(choices) for choices in options))


def mutated(recipe: Recipe, seed: int) -> Iterator[tuple[str, Recipe]]:
    """Yield each one-site change of `recipe`: (its name, the changed recipe)."""
    random = Random(seed)
    for position, step in enumerate(recipe.steps):
        for place, choices in enumerate(STEPS[step.kind][2]):
            others = [choice for choice in choices if _differs(choice, step.options[place])]
            options = _put(step.options, place, random.choice(others))
            yield (
                f"option {place} of step {position}",
                _with(recipe, position, replace(step, options=options)),
            )
        for place in range(len(step.takes)):
            others = [n for n in range(len(ROOTS) + position) if n != step.takes[place]]
            takes = _put(step.takes, place, random.choice(others))
            if (changed := replace(step, takes=takes)) not in recipe.steps:
                yield f"edge {place} of step {position}", _with(recipe, position, changed)
    for place in range(len(recipe.mutable)):
        yield f"input {place}", replace(recipe, mutable=_flip(recipe.mutable, place))
    for place in range(len(recipe.borrowed)):
        yield f"output {place}", replace(recipe, borrowed=_flip(recipe.borrowed, place))
    yield (
        "order of outputs",
        replace(recipe, outputs=(*recipe.outputs[1:], recipe.outputs[0], recipe.outputs[0])),
    )
    yield "update", replace(recipe, updated=recipe.outputs[0] if recipe.updated is None else None)


def _with(recipe: Recipe, position: int, step: Step) -> Recipe:
    return replace(recipe, steps=_put(recipe.steps, position, step))


def _put(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _flip(flags: tuple[bool, ...], place: int) -> tuple[bool, ...]:
    return _put(flags, place, not flags[place])


def _differs(first: Any, second: Any) -> bool:
    return first is not second and first != second


def build(recipe: Recipe, prefix: str = "") -> Built:
    """Return the graph of `recipe`, with `prefix` in the names of its variables."""
    inputs = [
        pt.dmatrix(prefix + "a"), pt.dmatrix(prefix + "b"), pt.dvector(prefix + "x"),
        pt.lvector(prefix + "n"), pt.fscalar(prefix + "s"),
    ]  # fmt: skip
    weights = pytensor.shared(np.linspace(-1, 2, 4), name=prefix + "w")
    rng = pt.random.shared_rng(seed=7, name=prefix + "rng")
    made: list[Any] = [*inputs[:3], weights, *inputs[3:]]
    maker = _Maker(rng)
    for position, step in enumerate(recipe.steps):
        result = getattr(maker, step.kind)(*(made[number] for number in step.takes), *step.options)
        result.name = f"{prefix}{position}"
        made.append(result)
    updates = {rng: maker.rng} if maker.rng is not rng else {}
    if recipe.updated is not None:
        updates[weights] = maker.vector(made[recipe.updated])
    borrowed = recipe.borrowed + (False,) * (len(recipe.outputs) - len(recipe.borrowed))
    given = [In(v, mutable=flag, borrow=flag) for v, flag in zip(inputs, recipe.mutable, strict=True)]
    outputs = [Out(made[n], borrow=flag) for n, flag in zip(recipe.outputs, borrowed, strict=True)]
    return Built(given, outputs, updates, [weights, rng])


def values() -> list[Any]:
    """Return values for the inputs of every graph."""
    generator = np.random.default_rng(5)
    a, b = generator.normal(size=(2, 4, 4))
    return [a, b, generator.normal(size=4), np.array([3, -1, 0, 2]), np.float32(0.75)]


class _Maker:
    """A builder of steps; each draw replaces the generator."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def vector(self, x: Any) -> Any:
        """Return a vector of 4 float64 that depends on `x`."""
        x = x.astype("float64")
        return x[0] if x.ndim == 2 else pt.ones(4) * x if x.ndim == 0 else x

    def matrix(self, x: Any) -> Any:
        x = x.astype("float64")
        return x if x.ndim == 2 else pt.outer(self.vector(x), self.vector(x))

    def unary(self, x: Any, name: str) -> Any:
        return getattr(pt, name)(x.astype("float64"))

    def binary(self, x: Any, y: Any, name: str) -> Any:
        return getattr(pt, name)(x.astype("float64"), y.astype("float64"))

    def reduction(self, x: Any, name: str, axis: int | None) -> Any:
        return getattr(pt, name)(self.matrix(x), axis=axis)

    def cast(self, x: Any, dtype: str) -> Any:
        return pt.cast(pt.clip(x.astype("float64"), -100, 100), dtype) if dtype != "float64" else x + 0

    def constant(self, x: Any, number: float, dtype: str) -> Any:
        with np.errstate(invalid="ignore"):
            return x.astype("float64") * pt.constant(np.asarray(number).astype(dtype), dtype=dtype)

    def constants(self, x: Any, first: float, shape: tuple[int, ...]) -> Any:
        array = np.full(shape, 3.5)
        array.flat[1] = first
        return self.matrix(x) + pt.constant(array)

    def dot(self, x: Any, y: Any, transposed: bool) -> Any:
        x = self.matrix(x)
        return pt.dot(x.T if transposed else x, self.vector(y))

    def solve(self, x: Any, y: Any, tag: str, assumed: str) -> Any:
        matrix = self.matrix(x) + 9 * pt.eye(4)
        setattr(matrix.tag, tag, True)
        return pt.linalg.solve(matrix, self.vector(y), assume_a=assumed)

    def subtensor(self, x: Any, start: int, stop: int, step: int) -> Any:
        return pt.sum(self.vector(x)[start:stop:step])

    def gather(self, x: Any, index: tuple[int, ...]) -> Any:
        return self.vector(x)[np.array(index)]

    def scatter(self, x: Any, y: Any, place: int, sets: bool) -> Any:
        part = self.vector(x)[place]
        return (pt.set_subtensor if sets else pt.inc_subtensor)(part, pt.sum(y.astype("float64")))

    def dimshuffle(self, x: Any, order: tuple[Any, ...]) -> Any:
        return pt.sum(self.vector(x).dimshuffle(*order) * 2.0)

    def join(self, x: Any, y: Any, count: int) -> Any:
        return pt.concatenate([self.vector(x)[:count], self.vector(y)[count:]])

    def switch(self, x: Any, y: Any, lazy: bool, bound: float) -> Any:
        x, y = self.vector(x), self.vector(y)
        return ifelse(pt.sum(x) > bound, x, y) if lazy else pt.switch(x > bound, x, y)

    def draw(self, x: Any, name: str, size: int) -> Any:
        self.rng, drawn = getattr(self.rng, name)(pt.abs(pt.sum(self.vector(x))) + 1, size=size)
        return drawn if size == 4 else pt.sum(drawn)

    def inner(self, x: Any, function: str, number: float, inline: bool) -> Any:
        y = pt.dvector("inner")
        return OpFromGraph([y], [getattr(pt, function)(y) * number], inline=inline)(self.vector(x))

    def loop(self, x: Any, y: Any, number: float, backwards: bool) -> Any:
        results = pytensor.scan(
            lambda item, before: before * number + item,
            sequences=[self.vector(x)],
            outputs_info=[self.vector(y)],
            go_backwards=backwards,
            return_updates=False,
        )
        return results[-1]

    def composite(self, x: Any, first: str, second: str, number: float) -> Any:
        z = ps.float64("z")
        scalar = Composite([z], [getattr(ps, second)(getattr(ps, first)(z) + ps.constant(number))])
        return Elemwise(scalar)(self.vector(x))


SCALAR = ("exp", "tanh", "neg", "sqr", "cos")
FLAGS = (False, True)
STEPS: dict[str, tuple[Callable[..., Any], int, tuple[tuple[Any, ...], ...]]] = {
    "unary": (_Maker.unary, 1, (UNARY,)),
    "binary": (_Maker.binary, 2, (BINARY,)),
    "reduction": (_Maker.reduction, 1, (REDUCTIONS, (None, 0, 1))),
    "cast": (_Maker.cast, 1, (DTYPES,)),
    "constant": (_Maker.constant, 1, (NUMBERS, ("float64", "float32"))),
    "constants": (_Maker.constants, 1, (NUMBERS[:4], ((4, 4), (1, 4), (4, 1)))),
    "dot": (_Maker.dot, 2, (FLAGS,)),
    "solve": (_Maker.solve, 2, (TAGS, ("gen", "sym", "pos"))),
    "subtensor": (_Maker.subtensor, 1, ((0, 1), (2, 3, 4), (1, 2))),
    "gather": (_Maker.gather, 1, (((0, 1, 2, 3), (3, 0, 1, 2), (0, 0, 1, 1)),)),
    "scatter": (_Maker.scatter, 2, ((0, 1, 3), FLAGS)),
    "dimshuffle": (_Maker.dimshuffle, 1, ((("x", 0), ("x", "x", 0), (0, "x")),)),
    "join": (_Maker.join, 2, ((1, 2, 3),)),
    "switch": (_Maker.switch, 2, (FLAGS, (0.0, 0.5))),
    "draw": (_Maker.draw, 1, (DRAWS, (2, 3, 4))),
    "inner": (_Maker.inner, 1, (SCALAR, (2.0, 0.5), FLAGS)),
    "loop": (_Maker.loop, 2, ((0.5, 0.25), FLAGS)),
    "composite": (_Maker.composite, 1, (SCALAR, SCALAR, (1.0, 0.5, float("nan")))),
}
"""Kind of step -> its builder, its number of variables, and the choices of its options."""
