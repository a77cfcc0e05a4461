"""Nodes run by PyTensor's own code: what is kept between calls, and in which language."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.elemwise import Elemwise

from engine.pytensor.nodes import NodesStep, Places


def results(inputs: list[Any], output: Any, values: list[Any]) -> Any:
    """The value of an output, by its nodes; and the step."""
    fgraph = FunctionGraph(inputs, [output], clone=False)
    places = Places(inputs)
    step = NodesStep(fgraph, fgraph.toposort(), places)
    place, found = places(output), places.values(values)
    step(found)
    return found[place], step


def test_nodes_run_in_order_on_values_and_constants() -> None:
    x = pt.dvector("x")
    zeros = [pt.constant(0.0), pt.constant(-0.0)]
    found, _ = results([x], pt.stack([x[0] / zeros[0], x[0] / zeros[1]]), [np.ones(1)])
    assert found.tolist() == [np.inf, -np.inf]


def test_values_are_not_kept_after_a_call() -> None:
    x = pt.dvector("x")
    value = np.ones(3)
    kept = weakref.ref(value)
    found, step = results([x], pt.exp(x) * 2, [value])
    result = weakref.ref(found)
    del value, found
    gc.collect()
    assert (kept(), result()) == (None, None)
    assert step is not None


@pytest.mark.slow
@pytest.mark.skipif(not pytensor.config.cxx, reason="PyTensor has no C++ compiler")
def test_an_elementwise_node_of_more_operands_than_numpy_takes_is_compiled_from_c() -> None:
    inner = [ps.float64() for _ in range(33)]
    total = inner[0]
    for each in inner[1:]:
        total = ps.add(total, ps.tanh(each))
    inputs = [pt.dvector() for _ in inner]
    values = list(np.linspace(-1.0, 1.0, 33 * 4).reshape(33, 4))
    found, _ = results(inputs, Elemwise(ps.Composite(inner, [total]))(*inputs), values)
    np.testing.assert_allclose(found, values[0] + np.tanh(values[1:]).sum(axis=0), rtol=1e-12)
