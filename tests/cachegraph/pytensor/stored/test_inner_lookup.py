"""Inner graphs are rewritten once, whatever functions hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.tensor.optimize import minimize

import cachegraph
from cachegraph.pytensor import explain

VALUES = np.array([1.0, 2.0])


def from_graph(factor: float) -> Any:
    """Return a function of an OpFromGraph within another, scaled."""
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.exp(x) * x.sum()])
    outer = OpFromGraph([x], [inner(x) + 1.0])
    return pytensor.function([x], outer(x) * factor), (np.exp(VALUES) * 3.0 + 1.0) * factor


def loop(factor: float) -> Any:
    """Return a function of a Scan, scaled."""
    x = pt.vector("x")
    first = pt.as_tensor(np.float64(0.0))
    out = pytensor.scan(lambda a, b: a * b + 1, sequences=[x], outputs_info=[first], return_updates=False)
    return pytensor.function([x], out * factor), np.array([1.0, 3.0]) * factor


def minimum(factor: float) -> Any:
    """Return a function of the minimum of a square, scaled."""
    x, at = pt.vector("x"), pt.vector("at")
    found, _ = minimize(((at - x) ** 2).sum(), at, method="BFGS", optimizer_kwargs={"tol": 1e-10})
    return pytensor.function([x], pt.sum(found) * factor, givens={at: x * 0.5}), np.float64(3.0) * factor


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
@pytest.mark.parametrize("make", [from_graph, loop, minimum])
def test_another_function_that_holds_the_same_op_finds_its_graph(make: Any, adapter: Any) -> None:
    first, _ = make(2.0)
    stored = cachegraph.counters().levels["op"]
    second, expected = make(3.0)
    after = cachegraph.counters().levels["op"]
    assert explain(first).outcome == explain(second).outcome == "miss"
    assert stored["misses"] >= 1
    assert after["hits"] > stored["hits"]
    assert after["misses"] == stored["misses"]
    np.testing.assert_allclose(second(VALUES), expected, rtol=1e-6)


def test_another_mode_is_another_graph(adapter: Any) -> None:
    x = pt.vector("x")
    inner = OpFromGraph([x], [pt.exp(x) * x.sum()])
    pytensor.function([x], inner(x))
    before = cachegraph.counters().levels["op"]
    mode = pytensor.compile.mode.get_mode("NUMBA").excluding("fusion")
    pytensor.function([x], inner(x), mode=mode)
    assert cachegraph.counters().levels["op"]["hits"] == before["hits"]
