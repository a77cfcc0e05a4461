"""A graph with a ShapeFeature answers for lengths, in terms of its inputs."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph, equal_computations
from engine.rewriting import EquilibriumGraphRewriter, ShapeFeature, ShapeOptimizer, node_rewriter
from engine.tensor import Shape_i

x, y = pt.matrix("x"), pt.matrix("y")


def _with_feature(*outputs):
    fgraph = FunctionGraph(None, list(outputs), clone=False)
    fgraph.attach_feature(ShapeFeature())
    return fgraph


def test_a_length_is_followed_to_the_inputs():
    found = pt.exp(pt.dot(x.T, y))
    fgraph = _with_feature(found)
    lengths = fgraph.shape_feature.shape_tuple(found)
    assert equal_computations(list(lengths), [Shape_i(1)(x), Shape_i(1)(y)])
    assert equal_computations(list(fgraph.shape_feature.shape_of[found]), list(lengths))
    assert found in fgraph.shape_feature.shape_of
    assert list(fgraph.shape_feature.shape_of) == [found]
    assert len(fgraph.shape_feature.shape_of) == 1


def test_a_length_of_an_input_is_its_own():
    fgraph = _with_feature(x)
    assert equal_computations([fgraph.shape_feature.get_shape(x, 1)], [Shape_i(1)(x)])


def test_a_change_of_the_graph_changes_lengths():
    inner = pt.cos(x)
    found = pt.exp(inner.T)
    fgraph = _with_feature(found)
    assert equal_computations([fgraph.shape_feature.get_shape(found, 0)], [Shape_i(1)(x)])
    fgraph.replace(inner, pt.cos(y), import_missing=True)
    assert equal_computations([fgraph.shape_feature.get_shape(found, 0)], [Shape_i(1)(y)])


def test_equal_lengths_are_known_to_be():
    z = x + 1
    feature = _with_feature(z, pt.dot(x, y)).shape_feature
    assert feature.same_shape(x, z)
    assert not feature.same_shape(x, y)
    assert feature.same_shape(z, x, 1, 1)
    assert not feature.same_shape(z, x, 0, 1)
    with pytest.raises(IndexError):
        feature.same_shape(x, z, 2, 0)


def test_generators_have_no_lengths():
    rng = engine.shared(np.random.default_rng(3))
    feature = _with_feature(pt.random.normal(rng=rng)).shape_feature
    assert feature.shape_tuple(rng) is None
    assert not feature.same_shape(rng, rng)


def test_a_graph_has_one_and_none_after_it_is_removed():
    fgraph = _with_feature(x + 1)
    feature = fgraph.shape_feature
    with pytest.raises(ValueError, match="has one"):
        fgraph.attach_feature(ShapeFeature())
    fgraph.remove_feature(feature)
    assert not hasattr(fgraph, "shape_feature")


def test_the_optimizer_attaches_one_for_the_rewrites_beside_it():
    asked = []

    @node_rewriter(None)
    def ask(fgraph, node):
        asked.append(fgraph.shape_feature.shape_tuple(node.outputs[0]))

    fgraph = FunctionGraph(None, [pt.exp(x)], clone=False)
    EquilibriumGraphRewriter([ShapeOptimizer(), ask]).rewrite(fgraph)
    assert equal_computations(list(asked[0]), [Shape_i(0)(x), Shape_i(1)(x)])
    EquilibriumGraphRewriter([ShapeOptimizer(), ask]).rewrite(fgraph)  # a second time: the graph has one
    assert len(asked) == 2
