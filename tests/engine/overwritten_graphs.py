"""Random graphs of what overwrites and what must not notice it: parts set and added to, views, reductions, numbers read
from memory for lengths and indices, graphs within Ops whose outputs are their inputs, loops, and values returned twice.

All vectors have 4 elements, matrices 3 rows of 4, indices 3 numbers below 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine import OpFromGraph, scan
from engine.compiling.mode import MODES, Mode

UNFUSED = Mode("numba", MODES["NUMPY"].optimizer.including("inplace", "optimize_inner_graphs", "merge"))
"""Without fusion all graphs consist of the same few kernels."""
Choices = tuple[int, int, int, int]
Step = Callable[["Pool", Choices], None]


@dataclass
class Pool:
    """The variables that there are, by kind, and in the order in which they were made. Choice 0 is the latest."""

    vectors: list[Any] = field(default_factory=list)
    matrices: list[Any] = field(default_factory=list)
    indices: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    places: list[Any] = field(default_factory=list)
    """Integers of 0 dimensions, from 0 to 2."""
    made: list[Any] = field(default_factory=list)

    def v(self, choice: int) -> Any:
        return self.vectors[-1 - choice % len(self.vectors)]

    def m(self, choice: int) -> Any:
        return self.matrices[-1 - choice % len(self.matrices)]

    def i(self, choice: int) -> Any:
        return self.indices[-1 - choice % len(self.indices)]

    def p(self, choice: int) -> Any:
        return self.places[-1 - choice % len(self.places)]

    def n(self, choice: int) -> Any:
        return self.numbers[-1 - choice % len(self.numbers)]

    def add(self, pool: list[Any], variable: Any) -> None:
        pool.append(variable)
        self.made.append(variable)


def _change(part: Any, value: Any, choice: int) -> Any:
    return part.set(value) if choice % 2 else part.inc(value)


def _set_element(g: Pool, c: Choices) -> None:
    g.add(g.vectors, _change(g.v(c[0])[g.p(c[1])], g.n(c[2]), c[3]))


def _set_slice(g: Pool, c: Choices) -> None:
    x, y = g.v(c[0]), g.v(c[1])
    part, value = [(x[1:], y[:-1]), (x[::2], y[1::2]), (x[::-1], y), (x[:], y), (x[2:], y[0])][c[2] % 5]
    g.add(g.vectors, _change(part, value, c[3]))


def _set_up_to(g: Pool, c: Choices) -> None:
    n = g.p(c[2])
    g.add(g.vectors, _change(g.v(c[0])[:n], g.v(c[1])[:n], c[3]))


def _set_chosen(g: Pool, c: Choices) -> None:
    index = g.i(c[2])
    g.add(g.vectors, _change(g.v(c[0])[index], g.v(c[1])[index], c[3]))


def _set_row(g: Pool, c: Choices) -> None:
    g.add(g.matrices, _change(g.m(c[0])[g.p(c[1])], g.v(c[2]), c[3]))


def _set_column(g: Pool, c: Choices) -> None:
    g.add(g.matrices, _change(g.m(c[0])[:, g.p(c[1])], g.m(c[2])[:, 0], c[3]))


def _set_rows(g: Pool, c: Choices) -> None:
    index = g.i(c[2])
    g.add(g.matrices, _change(g.m(c[0])[index], g.m(c[1])[index], c[3]))


def _set_through_a_view(g: Pool, c: Choices) -> None:
    """What is overwritten is itself a part of something else."""
    x = g.m(c[0])
    base = [x[g.p(c[1])], x[:, ::-1][g.p(c[1])], x.T[:, g.p(c[1])], x.reshape((12,))[4:8]][c[2] % 4]
    g.add(g.vectors, _change(base[1:], g.v(c[3])[1:], c[3]))


def _set_index(g: Pool, c: Choices) -> None:
    g.add(g.indices, g.i(c[0])[g.p(c[1])].set(c[2] % 3))


def _place(g: Pool, c: Choices) -> None:
    g.add(g.places, g.i(c[0])[g.p(c[1])])


def _set_place(g: Pool, c: Choices) -> None:
    g.add(g.places, g.p(c[0])[...].set(g.p(c[1])))


def _add_places(g: Pool, c: Choices) -> None:
    g.add(g.places, pt.minimum(g.p(c[0]) + g.p(c[1]), 2))


def _view(g: Pool, c: Choices) -> None:
    x = g.m(c[0])
    g.add(g.vectors, [x[g.p(c[1])], x[-1], g.v(c[2])[::-1], x.T[:, 0], x.reshape((12,))[::3]][c[3] % 5])


def _view_of_matrix(g: Pool, c: Choices) -> None:
    g.add(
        g.matrices, [g.m(c[0])[::-1], g.m(c[0])[:, ::-1], g.m(c[0]).reshape((12,)).reshape((3, 4))][c[1] % 3]
    )


def _combine(g: Pool, c: Choices) -> None:
    g.add(g.vectors, [pt.tanh(g.v(c[0])), g.v(c[0]) + g.v(c[1]), g.v(c[0]) * g.n(c[1])][c[2] % 3])


def _combine_matrices(g: Pool, c: Choices) -> None:
    g.add(g.matrices, [pt.tanh(g.m(c[0])), g.m(c[0]) * g.m(c[1]), g.m(c[0]) + g.v(c[1])][c[2] % 3])


def _fill(g: Pool, c: Choices) -> None:
    g.add(g.vectors, [pt.zeros(4), pt.alloc(g.n(c[1]), 4), pt.zeros_like(g.v(c[1]))][c[0] % 3])


def _reduce(g: Pool, c: Choices) -> None:
    product = g.v(c[0]) * pt.tanh(g.v(c[1]))
    g.add(g.numbers, [pt.sum(product), pt.max(product), pt.sum(g.v(c[0])[: g.p(c[1])])][c[2] % 3])


def _reduce_matrix(g: Pool, c: Choices) -> None:
    product = g.m(c[0]) * pt.tanh(g.m(c[1]))
    g.add(g.vectors, pt.sum(product, axis=0))


def _product(g: Pool, c: Choices) -> None:
    g.add(g.vectors, pt.dot(pt.dot(g.m(c[0]), pt.tanh(g.v(c[1]))), pt.tanh(g.m(c[2]))))


def _stack(g: Pool, c: Choices) -> None:
    g.add(g.matrices, pt.stack([g.v(c[0]), g.v(c[1]), g.v(c[2])]))


def _within(g: Pool, c: Choices) -> None:
    """An Op whose graph changes, passes on and shows parts of what it computes, and of its inputs."""
    x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("m")
    e = pt.tanh(x)
    bodies = [
        [e[1:].set(y[1:]), e[0] * y],
        [x, x[::-1]],
        [e, e[::-1]],
        [e[0].set(2.0)[1].inc(y[1]), m[0]],
        [m[1:2].set(y)[1], m[1]],
        [pt.exp(-(x**2))[[0, 1, 2]].set(1.0), pt.exp(-(x**2))[[0, 1]].inc(2.0)],
    ]
    op = OpFromGraph([x, y, m], bodies[c[3] % len(bodies)])
    for output in op(g.v(c[0]), g.v(c[1]), g.m(c[2])):
        g.add(g.vectors, output)


def _loop(g: Pool, c: Choices) -> None:
    """States of which only the last rows are used, and a row that is kept of every step."""
    random = Random(str(c))

    def step(k: Any, s: Any, t: Any, m: Any, i: Any) -> list[Any]:
        inner = Pool([m[k], t, s], [m], [i], [pt.tanh(s[0])], [k], [])
        for _ in range(random.randint(1, 5)):
            random.choice(WITHIN_LOOPS)(inner, _choices(random))
        return [inner.v(0), inner.v(random.randrange(3)), inner.v(random.randrange(6))]

    places = pt.constant(np.array([0, 2, 1, 1][: random.randint(0, 4)], "int64"))
    given = g.m(c[1]) if c[0] % 2 else pt.tanh(g.m(c[1]))
    (s, t, every), _ = scan(step, places, [g.v(c[2]), g.v(c[3]), None], [given, g.i(c[0])])
    if random.random() < 0.8 and places.type.shape[0]:
        g.add(g.vectors, s[-1])
        g.add(g.vectors, t[-1])
    else:
        g.add(g.vectors, pt.sum(pt.tanh(s), axis=0))
    g.add(g.vectors, pt.sum(pt.tanh(every), axis=0))


STEPS: tuple[Step, ...] = (
    _set_element,
    _set_slice,
    _set_slice,
    _set_up_to,
    _set_chosen,
    _set_row,
    _set_column,
    _set_rows,
    _set_through_a_view,
    _set_index,
    _place,
    _set_place,
    _add_places,
    _view,
    _view_of_matrix,
    _combine,
    _combine_matrices,
    _fill,
    _reduce,
    _reduce_matrix,
    _product,
    _stack,
    _within,
    _loop,
    _loop,
)
WITHIN_LOOPS = (*(step for step in STEPS if step is not _loop), *[_set_element, _set_slice] * 5)


@dataclass
class Overwritten:
    """A graph: inputs, outputs, and values for the inputs."""

    inputs: list[Any]
    outputs: list[Any]
    values: list[np.ndarray]


def overwritten_graph(seed: int) -> Overwritten:
    """A graph of 6 to 30 steps, other ones for other seeds. It returns what was made last, and some of all there is,
    inputs too, perhaps several times."""
    random = Random(seed)
    x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("m")
    i, p, n = pt.lvector("i"), pt.lscalar("p"), pt.dscalar("n")
    inputs = [x, y, m, i, p, n]
    pool = Pool([x, y], [m], [i], [n], [p, i[1]], [])
    for _ in range(random.randint(6, 30)):
        random.choice(STEPS)(pool, _choices(random))
    outputs = [pool.made[-1], *random.choices([*inputs, *pool.made], k=random.randint(1, 5))]
    numbers = np.random.default_rng(seed)
    values = [numbers.normal(size=4), numbers.normal(size=4), numbers.normal(size=(3, 4))]
    return Overwritten(inputs, outputs, [*values, np.array([2, 0, 1]), np.array(1), np.array(0.5)])


def _choices(random: Random) -> Choices:
    """Often small numbers: what was made last is more often used."""
    a, b, c, d = (random.choice((random.randrange(60), random.randrange(4))) for _ in range(4))
    return a, b, c, d


def check(graph: Overwritten, mode: Mode | None) -> int:
    """Compare the values with the reference's, call after call, and return how many nodes overwrite.

    Inputs stay as they are, and every result is an array of its own.
    """
    inputs, outputs = graph.inputs, graph.outputs
    due = engine.function(inputs, outputs, mode="NUMPY", on_unused_input="ignore")(*graph.values)
    f = engine.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    for _ in range(2):
        values = [value.copy() for value in graph.values]
        found = f(*values)
        for before, after in zip(graph.values, values, strict=True):
            np.testing.assert_array_equal(before, after)
        for result, expected, output in zip(found, due, outputs, strict=True):
            text = engine.dprint(output, file="str")
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=text)
        for number, result in enumerate(found):
            assert not any(np.shares_memory(result, other) for other in (*values, *found[:number]))
            result[...] = -7
    return sum(bool(node.op.destroy_map) for node in f.maker.fgraph.apply_nodes)
