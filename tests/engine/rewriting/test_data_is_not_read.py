"""Rewrites never read data: they work the same if every read of data raises."""

from __future__ import annotations

from random import Random
from typing import Any, NoReturn

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compiling.mode import get_mode
from engine.graph import Constant, FrozenFunctionGraph, FunctionGraph
from engine.graph.replace import clone_replace
from engine.rewriting import run_pipeline
from tests.engine.generated_loops import generated_loop

SEEN = frozenset(("dtype", "shape", "size", "ndim", "nbytes", "flags", "base", "strides", "__class__"))
D = np.linspace(0.5, 1.5, 50)
SQUARE = np.linspace(0.5, 1.5, 49).reshape(7, 7)


class Unreadable(np.ndarray):
    """An array that raises on every access except to type and shape."""

    def __getattribute__(self, name: str) -> Any:
        if name in SEEN:
            return super().__getattribute__(name)
        raise AssertionError(f"a rewrite took {name} of data")

    def _read(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise AssertionError("a rewrite read data")

    __getitem__ = __iter__ = __int__ = __float__ = __bool__ = __eq__ = __len__ = _read  # type: ignore[assignment]
    __array_ufunc__ = __array_function__ = __array__ = __index__ = __add__ = __mul__ = _read  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def unreadable(graph: FrozenFunctionGraph) -> tuple[FunctionGraph, list[Any]]:
    """Return `graph`, thawed, with unreadable data, and these data."""
    fgraph = graph.unfreeze()
    arrays = []
    for variable in list(fgraph.variables):
        if isinstance(variable, Constant) and pt.is_data(variable):
            arrays.append(variable.data.view(Unreadable))
            fgraph.replace(variable, type(variable)(variable.type, arrays[-1]))
    return fgraph, arrays


def check(inputs: list[Any], outputs: list[Any]) -> None:
    graph = FrozenFunctionGraph.from_io(inputs, outputs)
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        fgraph, arrays = unreadable(graph)
        assert arrays
        run_pipeline(fgraph, get_mode(mode).optimizer)
        kept = {id(array) for array in arrays}
        made = [
            v
            for v in fgraph.variables
            if isinstance(v, Constant) and pt.is_data(v) and id(v.data) not in kept
        ]
        assert made == [], "a rewrite made data of data"


x, n = pt.vector("x"), pt.lscalar("n")
m = pt.matrix("m")
held, same = pt.constant(D), pt.constant(D.copy())
square = pt.constant(SQUARE)
y = pt.vector("y")


def steps(function: Any, **arguments: Any) -> Any:
    return engine.scan(function, return_updates=False, **arguments)


GRAPHS: dict[str, list[Any]] = {
    "rows that are all the same": [
        steps(lambda row: pt.sum(row * 2), sequences=[pt.alloc(pt.constant(D[None]), n, 50)])
    ],
    "rows that are filled": [
        steps(lambda row: pt.sum(row), sequences=[pt.zeros((n, 50)) + pt.constant(D[None])])
    ],
    "given twice": [steps(lambda a, b: pt.sum(a * b), sequences=[held, same])],
    "a state": [steps(lambda a, b: pt.tanh(a * b), outputs_info=[x], non_sequences=[held], n_steps=3)[-1]],
    "padded": [pt.sum(m * held) + pt.sum(m + same), pt.concatenate([m, held[None, :]], axis=0)],
    "equal": [x * held + x * same, pt.sqr(held) - pt.sqr(same)],
    "sums": [pt.sum(x * held), pt.sum(m * held[None, :], axis=0), pt.mean(held), pt.max(held)],
    "products": [pt.dot(m, held), pt.dot(square, square), pt.dot(square, pt.dot(square, x))],
    "parts": [
        held[3],
        held[::-1][2:],
        square[1, 2],
        pt.set_subtensor(held[2:5], 0.0),
        held[pt.constant([1, 2])],
    ],
    "of one row": [m + pt.constant(D[None]), pt.constant(D[None])[0], pt.constant(D[:, None])[:, 0] * x],
    "powers": [held**2, x**held, pt.exp(pt.log(held)), held * 1 + 0, held / held, held - held],
    "shapes": [held.shape[0], pt.zeros_like(held), pt.alloc(held, n, 50), pt.reshape(held, (5, 10))],
    "chosen": [pt.switch(held > 1, x, held), pt.clip(held, 0, 1), pt.argmax(held), pt.sort(held)],
    "stable": [
        pt.log(1 + pt.exp(held)),
        pt.logsumexp(held),
        pt.softmax(held),
        pt.log(pt.sum(pt.exp(held * x))),
    ],
    "linear algebra": [engine.tensor.linalg.cholesky(square), engine.tensor.linalg.solve(square, square)],
    "within": [
        engine.OpFromGraph([x, y], [pt.sum(x * y)], inline=inline)(x, held) for inline in (True, False)
    ],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_no_rewrite_reads_data(name: str) -> None:
    outputs = GRAPHS[name]
    check([x, n, m], outputs)
    numbers = [pt.sum(output) for output in outputs if output.type.dtype == "float64"]
    wanted = [variable for variable in (x, m) if numbers]
    slopes = (
        engine.grad(sum(numbers[1:], start=numbers[0]), wanted, disconnected_inputs="ignore")
        if wanted
        else []
    )
    if slopes:
        check([x, n, m], [*slopes, *outputs])


@pytest.mark.parametrize("seed", range(25))
def test_no_rewrite_of_loops_reads_data(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = generated_loop(Random(seed))
    given = {
        i: pt.constant(value) for i, value in zip(loop.inputs, loop.values, strict=True) if value.size > 1
    }
    if not given:
        return
    outputs = clone_replace([*loop.outputs, *loop.slopes()], given)
    monkeypatch.setattr("engine.tensor.type.LARGEST_CONSTANT", 1)
    monkeypatch.setattr("engine.inner.folding.LARGEST_CONSTANT", 1)
    check([i for i in loop.inputs if i not in given], outputs)


def test_what_has_the_bytes_of_other_data_is_not_taken_for_it() -> None:
    n, outcomes = pt.lscalar("n"), []
    for number in (0.5, 2.0):
        rows = pt.alloc(pt.constant(np.full((1, 50), 0.5)), n, 50)
        sums = steps(lambda row: pt.sum(row), sequences=[rows])
        f = engine.function([n], [sums, pt.sum(pt.constant(np.full(50, number)) * 2)])
        found = f(3)
        np.testing.assert_allclose(found[0], [25.0] * 3)
        np.testing.assert_allclose(found[1], number * 100)
        outcomes.append(f.cache_info.outcome)
    assert outcomes == ["miss", "hit"]
