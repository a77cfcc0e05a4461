"""Functions that callbacks call: their keys, and how they are had where nothing describes them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from cachegraph.errors import SourceError
from cachegraph.store.entry import Hit
from engine.compiling.key import callback_function_key
from engine.compiling.load import called_entries
from engine.compiling.request import all_constants
from engine.graph import FrozenFunctionGraph
from engine.tensor.optimize import minimize

pytestmark = pytest.mark.usefixtures("kernels_once")


def graph(name: str = "x", factor: float = 2.0, size: int = 40) -> FrozenFunctionGraph:
    x = pt.vector(name)
    inner = pt.vector(name)
    data = pt.constant(np.full(size, factor))
    op = engine.OpFromGraph([inner], [inner * data], name=name)
    return FrozenFunctionGraph.from_io([x], [pt.sum(op(x) * pt.constant(np.arange(50.0))[:size])])


def test_a_key_describes_what_is_computed_and_no_name():
    keys = [callback_function_key(graph(**options), ("numba",)).hex for options in ({}, {"name": "another"})]
    assert keys[0] == keys[1]
    others = [
        callback_function_key(graph(factor=3.0), ("numba",)),
        callback_function_key(graph(size=41), ("numba",)),
        callback_function_key(graph(), ("another",)),
    ]
    assert len({keys[0], *(key.hex for key in others)}) == 4
    assert {key.level for key in others} == {"function"}


def test_all_numbers_of_its_constants_are_identity():
    assert sorted(constant.data.size for constant in all_constants(graph())) == [40, 50]


def fitted(data: np.ndarray) -> Any:
    """The mean of `data`, which an Op within the objective holds."""
    x, inner = pt.scalar("x"), pt.scalar("inner")
    distance = engine.OpFromGraph([inner], [pt.sum((inner - pt.constant(data)) ** 2)])
    return engine.function([x], minimize(distance(x), x)[0])


def test_data_that_an_op_within_the_objective_holds_is_not_taken_for_other_data():
    for mean in (1.0, 2.0, 1.0):
        data = mean + np.linspace(-1.0, 1.0, 100)
        np.testing.assert_allclose(fitted(data)(0.0), mean, atol=1e-5)


def test_where_the_engines_source_cannot_be_read_nothing_is_kept_and_all_works(monkeypatch):
    def refuse() -> bytes:
        raise SourceError("reading", "it", "nothing")

    monkeypatch.setattr(engine.compiling.key, "engine_code", refuse)
    f = fitted(np.linspace(0.0, 1.0, 50))
    assert f.cache_info.outcome == "bypass"
    np.testing.assert_allclose(f(3.0), 0.5, atol=1e-5)
    (function,) = f._compiled.runner.functions
    assert not isinstance(default_cache().lookup(function.key), Hit)


def test_a_function_refers_to_the_functions_that_it_calls_and_these_to_their_kernels():
    """What is referred to is not evicted first."""
    f = fitted(np.linspace(0.0, 1.0, 50))
    runner = f._compiled.runner
    (function,) = runner.functions
    assert function.key.digest in called_entries(runner.program)
    kernels = {bytes.fromhex(use.digest) for use in function.execution.program.kernels}
    assert set(called_entries(function.execution.program)) == kernels


def test_a_pickled_function_finds_what_it_calls():
    f = fitted(np.linspace(0.0, 1.0, 50))
    again = pickle.loads(pickle.dumps(f))
    assert again.cache_info.found["function"] == [2, 0]
    np.testing.assert_allclose(again(3.0), 0.5, atol=1e-5)
