"""Which nodes fit one loop, where a value has users that have to wait for each other."""

from itertools import permutations

import numpy as np

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.inner import Composite
from engine.rewriting.passes.fusion import FusionOptimizer
from engine.rewriting.passes.fusion_stages import Stages
from engine.tensor import Elemwise

X = np.arange(1.0, 6.0)


def fused_in(outputs, inputs):
    fgraph = FunctionGraph(inputs, outputs, clone=True)
    FusionOptimizer().apply(fgraph)
    return sorted(
        tuple(inner.op.name for inner in node.op.scalar_op.fgraph.nodes)
        for node in fgraph.toposort()
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Composite)
    )


def test_nodes_that_pass_values_have_one_stage_and_others_later_ones():
    x = pt.dvector("x")
    y = pt.exp(x)
    total = pt.sum(y * 2)
    fgraph = FunctionGraph([x], [y - total], clone=False)
    groups = Stages(fgraph).groups()
    assert [[node.op.scalar_op.name for node in group] for group in groups] == [["exp"], ["mul"], ["sub"]]


def test_a_value_waits_for_a_user_with_which_it_fits_one_loop():
    x = pt.vector("x", shape=(5,))
    negated = -pt.sum(x)[None]
    largest = -pt.max(x)
    terms = [negated + -x, negated + largest]
    for outputs in permutations(terms):
        assert fused_in(list(outputs), [x]) == [("neg", "add"), ("neg", "add")]
    f = engine.function([x], terms)
    for found, wanted in zip(f(X), [-X.sum() - X, [-X.sum() - X.max()]], strict=True):
        np.testing.assert_allclose(found, wanted)


def test_a_value_does_not_wait_where_larger_ones_would_be_parted():
    x, y = pt.dmatrix("x"), pt.dscalar("y")
    small, smaller = pt.exp(y), pt.sin(y)
    large = pt.exp(x - pt.sum(x))
    late = small + smaller + pt.sum(large)
    assert ("sub", "exp", "mul", "mul") in fused_in([large * small * smaller, late], [x, y])


def test_large_values_wait_where_small_ones_cannot_at_the_same_time():
    x = pt.dmatrix("x")
    negated = -x
    zeros = pt.eq(x.sum(axis=0), 0)
    differences, powers = zeros - negated, pt.exp(negated.sum(axis=0))
    for outputs in ([differences, powers + zeros], [zeros + powers, differences]):
        assert fused_in(outputs, [x]) == [("exp", "add"), ("neg", "sub")]
