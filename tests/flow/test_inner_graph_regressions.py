"""What went wrong with graphs within Ops elsewhere, one test each."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import OpFromGraph
from engine.graph import FunctionGraph
from engine.graph.features import DestroyHandler
from engine.graph.traversal import applys_between
from engine.inner.scan import Scan
from engine.rewriting import MergeOptimizer
from engine.tensor.optimize import root
from engine.tensor.slicing import IncSubtensor


def as_reference(inputs: list[Any], outputs: list[Any], *values: Any) -> Any:
    """The compiled function, when it gave what the reference gives, and changed none of the values."""
    f = engine.function(inputs, outputs)
    before = [np.array(value) for value in values]
    due = engine.function(inputs, outputs, mode="NUMPY")(*values)
    for found, expected in zip(f(*values), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    for value, kept in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, kept)
    return f


def destroyers(op: Any) -> list[Any]:
    return [node.op for node in op.fgraph.nodes if node.op.destroy_map]


def ops_of(f: Any, kind: type) -> list[Any]:
    return [node.op for node in f.maker.fgraph.toposort() if isinstance(node.op, kind)]


def test_compiling_leaves_the_graph_of_a_loop_as_it_is_for_its_gradient() -> None:
    x = pt.dvector("x")
    (states, last), _ = engine.scan(
        lambda k, s, t: [s[k].set(pt.sum(s) + 1.0), t * s],
        sequences=[pt.constant(np.array([0, 2, 1]))],
        outputs_info=[x, pt.ones_like(x)],
    )
    op = next(node.op for node in applys_between([x], [last]) if isinstance(node.op, Scan))
    nodes = op.fgraph.nodes
    outputs = [states[-1], last[-1]]
    value = np.array([0.5, 1.5, -0.5])
    f = as_reference([x], outputs, value)
    (optimized,) = ops_of(f, Scan)
    assert destroyers(optimized)
    assert op.fgraph.nodes == nodes
    assert not destroyers(op)
    gradient = engine.grad(pt.sum(states[-1]) + pt.sum(last[-1]), x)
    as_reference([x], [*outputs, gradient], value)
    assert op.fgraph.nodes == nodes
    assert engine.function([x], outputs).cache_info.outcome == "hit"


def test_compiling_leaves_an_op_from_a_graph_as_it_is_for_its_gradient() -> None:
    x = pt.dvector("x")
    op = OpFromGraph([x], [pt.exp(x)[1:].inc(pt.sum(x))])
    nodes = op.fgraph.nodes
    (optimized,) = ops_of(as_reference([x], [op(x)], np.arange(3.0)), OpFromGraph)
    assert destroyers(optimized)
    as_reference([x], [op(x), engine.grad(pt.sum(op(x) ** 2), x)], np.arange(3.0))
    assert op.fgraph.nodes == nodes
    assert not destroyers(op)


def test_two_equal_buffers_that_are_overwritten_are_two() -> None:
    x = pt.dvector("x")
    inner = pt.dvector("inner")
    first, second = pt.exp(inner), pt.exp(inner)
    overwrite = IncSubtensor(["i"], set_instead_of_inc=True, inplace=True)
    outputs = [overwrite(first, 1.0, 0), overwrite(second, 2.0, 0)]
    graph = FunctionGraph([inner], outputs, [DestroyHandler()]).freeze()
    assert [str(node.op) for node in graph.nodes].count("exp") == 2
    assert [str(node.op) for node in graph.unfreeze().toposort()].count("exp") == 2
    assert pickle.loads(pickle.dumps(graph)) is graph
    rewritten = graph.unfreeze()
    MergeOptimizer().rewrite(rewritten)
    assert rewritten.freeze() is graph
    f = as_reference([x], OpFromGraph.from_fgraph(graph)(x), np.zeros(2))
    np.testing.assert_array_equal(f(np.zeros(2)), [[1.0, 1.0], [2.0, 1.0]])


def test_equal_zeros_that_are_filled_in_differently_do_not_become_one() -> None:
    n = pt.lscalar("n")
    op = OpFromGraph([n], [pt.zeros(n)[0].set(1.0), pt.zeros(n)[1].set(2.0), pt.zeros(n)])
    f = as_reference([n], op(n), 3)
    np.testing.assert_array_equal(f(3), [[1, 0, 0], [0, 2, 0], [0, 0, 0]])


def test_softmax_compiles_without_end_to_end_in_itself() -> None:
    x = pt.dmatrix("x")
    exponentials = pt.exp(x)
    written_out = exponentials / pt.sum(exponentials, axis=1, keepdims=True)
    for y in (pt.softmax(x, axis=1), written_out, OpFromGraph([x], [written_out])(x)):
        f = as_reference([x], [y], np.arange(6.0).reshape(2, 3))
        for op in ops_of(f, OpFromGraph):
            within = [node.op for node in op.fgraph.nodes if isinstance(node.op, OpFromGraph)]
            assert op not in within


def test_a_pickled_function_keeps_an_optimized_op_and_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.dvector("x")
    op = OpFromGraph([x], [(pt.exp(x))[[0, 1, 2]].set(1), x[[0, 1, 2]].set(1)])
    f = as_reference([x], op(x), np.arange(4.0))
    (optimized,) = ops_of(f, OpFromGraph)
    assert destroyers(optimized)
    content = pickle.dumps(f)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was rewritten, or compiled, again")

    monkeypatch.setattr("engine.compiling.build.rewritten", refuse)
    monkeypatch.setattr("engine.compiling.build.build_program", refuse)
    again = pickle.loads(content)
    np.testing.assert_array_equal(again(np.arange(4.0)), f(np.arange(4.0)))
    assert ops_of(again, OpFromGraph) == [optimized]
    shown = [engine.dprint(each, print_destroy_map=True, file="str") for each in (f, again)]
    assert shown[0] == shown[1]
    assert "d={0: [0]}" in shown[0]


def test_the_roots_of_two_equations_are_two() -> None:
    x = pt.dscalar("x")
    equations = [x**2 - 2.0, x**2 - 3.0]
    ops = [root(equation, x)[0].owner.op for equation in equations]
    assert ops[0] != ops[1]
    found = engine.function([x], [root(equation, x)[0] for equation in equations])(1.0)
    np.testing.assert_allclose(found, np.sqrt([2.0, 3.0]))
