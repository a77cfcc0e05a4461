"""Random graphs and loops with users' Ops in many places, each of which gives what it is given: the
results stay.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.graph import Apply, FrozenFunctionGraph, Op, Variable
from engine.graph.reference import evaluate
from engine.graph.traversal import io_toposort
from engine.inner import HasInnerGraph, OpFromGraph, Scan
from engine.scalar import ScalarOp
from engine.scalar.promotion import same
from engine.tensor.elemwise import Elemwise
from tests.engine.generated_graphs import graphs
from tests.engine.generated_loops import generated_loop

FULL = os.environ.get("CACHEGRAPH_STRESS") == "full"
FEW = settings(
    max_examples=300 if FULL else 5,
    derandomize=not FULL,
    database=None,
)


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory: pytest.TempPathFactory, unreachable_user_cache: Any) -> Any:
    """A kernel that several examples need is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHEGRAPH_DIR", str(tmp_path_factory.mktemp("users") / "cache"))
        yield


@pytest.fixture(autouse=True)
def cache_directory() -> None:
    """Not a directory a test, but that of the module."""


class Same(Op):
    """Gives the array that it is shown."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]


class Inferred(Same):
    """Says how long it is."""

    def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
        return input_shapes


class Remembering(Same):
    """Keeps what it was shown last, and gives that again if it is shown the same."""

    _last: Any = None

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (x,) = inputs
        is_same = self._last is not None and self._last.dtype == x.dtype and self._last.shape == x.shape
        if not (is_same and self._last.tobytes() == x.tobytes()):
            self._last = x
        output_storage[0][0] = self._last


class Reusing(Same):
    """Has one array for all results of one shape."""

    def __init__(self) -> None:
        self._arrays: dict[Any, Any] = {}

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (x,) = inputs
        found = self._arrays.setdefault((x.dtype, x.shape), np.empty_like(x))
        found[...] = x
        output_storage[0][0] = found


class Overwriting(Same):
    """Destroys what it is shown, which nobody may notice."""

    destroy_map = {0: [0]}

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0].copy()
        inputs[0][...] = 0


class SameNumber(ScalarOp):
    rule = staticmethod(same)

    def _impl(self, a: Any) -> Any:
        return a


KINDS = (Same(), Inferred(), Remembering(), Reusing(), Elemwise(SameNumber()))


class Sprinkler:
    """Puts users' Ops behind some of what is computed, also in the graphs within Ops, which has `within`
    of them.
    """

    def __init__(self, random: Random, within: Sequence[Any]) -> None:
        self.random = random
        self.within = within

    def outputs(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], chosen: Sequence[Any]
    ) -> list[Variable]:
        random = self.random
        copies: dict[Variable, Variable] = {variable: variable for variable in inputs}
        for node in io_toposort(inputs, outputs):
            arguments = [copies.get(variable, variable) for variable in node.inputs]
            fresh = [output.type.make_variable() for output in node.outputs]
            copy = Apply(self.op(node.op), arguments, fresh)
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                op = random.choice(chosen)
                # A view may be of an input, which must not be overwritten.
                is_fit = op != Overwriting() or isinstance(node.op, Elemwise)
                copies[old] = op(new) if is_fit and random.random() < 0.4 else new
        return [copies.get(variable, variable) for variable in outputs]

    def op(self, op: Any) -> Any:
        if not isinstance(op, HasInnerGraph) or isinstance(op, ScalarOp):
            return op
        inner = [variable.type.make_variable() for variable in op.fgraph.inputs]
        outputs = self.outputs(inner, op.fgraph.bind(inner), self.within)
        fgraph = FrozenFunctionGraph.from_io(inner, outputs)
        return OpFromGraph.from_fgraph(fgraph) if type(op) is OpFromGraph else op.with_inner_graph(fgraph)


def check(inputs: list[Any], values: list[Any], outputs: list[Any], random: Random, tolerance: float) -> None:
    due = evaluate(inputs, outputs, values)
    # Of a loop that makes no step only the Ops know how long its rows would be.
    within = KINDS if makes_steps(inputs, values, outputs) else (Elemwise(SameNumber()),)
    changed = Sprinkler(random, within).outputs(inputs, outputs, (*KINDS, Overwriting()))
    for mode in ("FAST_RUN", "NUMPY"):
        f = engine.function(inputs, changed, mode=mode, on_unused_input="ignore")
        for _ in range(2):
            for found, expected in zip(f(*values), due, strict=True):
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def makes_steps(inputs: list[Any], values: list[Any], outputs: list[Any]) -> bool:
    counts = [node.inputs[0] for node in io_toposort(inputs, outputs) if isinstance(node.op, Scan)]
    return all(evaluate(inputs, counts, values))


@pytest.mark.stress
@FEW
@given(graphs(10), st.integers(0, 2**32))
def test_graphs_compute_the_same_whatever_users_ops_are_in_them(graph: Any, seed: int) -> None:
    inputs, values = graph.needed(graph.sinks)
    is_rough = any(value.dtype == np.float32 for value in graph.known.values())
    check(inputs, values, graph.sinks, Random(seed), 1e-3 * graph.scale if is_rough else 1e-9 * graph.scale)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(200 if FULL else 10))
def test_loops_compute_the_same_whatever_users_ops_are_in_them(seed: int) -> None:
    random = Random(seed)
    loop = generated_loop(random, depth=2)
    check(loop.inputs, loop.values, list(loop.outputs), random, 1e-9)
