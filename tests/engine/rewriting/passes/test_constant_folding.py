import warnings

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import Constant, FunctionGraph
from engine.rewriting import rewrite_graph
from engine.rewriting.passes.constant_folding import (
    topo_constant_folding,
    topo_unconditional_constant_folding,
)
from engine.tensor import Alloc


def test_what_is_computed_from_constants_alone_becomes_a_constant(rewritten, dtype):
    c = pt.constant(np.array([1, 2, 4], dtype))
    graph = rewritten([], pt.exp(pt.log(c) + c).sum()).check_values()
    assert graph.ops == []
    assert isinstance(graph.fgraph.outputs[0], Constant)


def test_data_is_not_looked_at(rewritten):
    data = pt.constant(np.arange(33.0))
    graph = rewritten([], pt.exp(data).sum()).check_values()
    assert graph.ops == ["exp", "Sum{axis=[0]}"]


def test_two_graphs_that_differ_in_data_alone_are_rewritten_alike(rewritten):
    ones, others = (pt.constant(values) for values in (np.ones(40), np.linspace(0, 1, 40)))
    x = pt.dvector("x")
    first, second = (rewritten(x, pt.sum(x * c + c * 1)) for c in (ones, others))
    assert first.ops == second.ops
    assert first.applied == second.applied


def test_no_data_is_made(rewritten):
    column, row = pt.constant(np.arange(6.0)[:, None]), pt.constant(np.arange(6.0)[None])
    assert rewritten([], column + row).check_values().ops == ["add"]


def test_32_elements_are_the_most_that_is_folded(rewritten):
    column, row = pt.constant(np.ones((4, 1))), pt.constant(np.ones((1, 8)))
    assert rewritten([], column + row).check_values().ops == []


def test_what_raises_is_left_to_raise_when_it_runs(rewritten):
    graph = rewritten([], pt.constant(np.array([2]))[np.array([3])])
    assert graph.ops == ["AdvancedSubtensor{i}"]
    assert rewritten([], pt.constant(np.int64(2)) ** pt.constant(np.int64(-1))).ops == ["pow"]


def test_folding_does_not_warn(rewritten):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = rewritten([], pt.log(pt.constant(np.array([0.0, -1.0]))) / 0.0).check_values()
    assert graph.ops == []


def test_negative_zero_is_kept(rewritten):
    graph = rewritten([], 1 / (pt.constant(-0.0) * 1)).check_values(exact=True)
    assert graph.ops == []
    assert graph.evaluate() == -np.inf


@pytest.mark.parametrize("nothing", [0.0, np.zeros(3), np.zeros(1)])
@pytest.mark.parametrize("join", [pt.mul, pt.true_div])
def test_constant_branches_that_are_not_taken_stay_zero_beside_infinite_numbers(rewritten, nothing, join):
    outside = {pt.mul: -np.inf, pt.true_div: 0.0}[join]
    chosen = pt.where(np.array([True, False, True]), np.array([1.5, 0.0, 1.0]), pt.constant(nothing))
    graph = rewritten([], join(chosen, np.array([1.5, outside, 2.0])))
    assert graph.ops == []
    np.testing.assert_array_equal(graph.evaluate(), [join(1.5, 1.5).eval(), 0.0, join(1.0, 2.0).eval()])


def test_constant_branches_alone_are_folded(rewritten):
    chosen = pt.where(np.array([True, False]), 2.0, 0.0)
    assert rewritten([], pt.exp(chosen)).check_values().ops == []
    assert rewritten([], chosen + 1.0).check_values().ops == []
    assert rewritten([], 1.0 / chosen).check_values().ops == []


def test_a_filled_array_that_is_a_result_is_written_when_it_is_needed():
    filled = pt.alloc(np.e, 3, 5)
    fgraph = FunctionGraph([], [filled], clone=False)
    topo_constant_folding.apply(fgraph)
    assert fgraph.outputs[0] is filled
    topo_unconditional_constant_folding.apply(fgraph)
    np.testing.assert_array_equal(fgraph.outputs[0].data, np.full((3, 5), np.e))


def test_a_filled_array_of_which_a_part_is_set_stays():
    found = rewrite_graph(pt.zeros(4)[:2].set(pt.vector("x")))
    assert isinstance(found.owner.inputs[0].owner.op, Alloc)
    assert isinstance(rewrite_graph(pt.zeros(4) + 1.0), Constant)
