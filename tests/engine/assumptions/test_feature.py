"""The properties of a graph follow its changes; contradictions are errors; `assume` is a view of its input."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.assumptions import (
    DIAGONAL,
    LOWER_TRIANGULAR,
    SYMMETRIC,
    AssumptionFeature,
    ConflictingAssumptionsError,
    FactState,
    SpecifyAssumptions,
    assume,
    check_assumption,
)
from engine.graph import FunctionGraph
from engine.rewriting.linear_algebra.database import DrainSpecifyAssumptions


def graph_of(*outputs):
    fgraph = FunctionGraph(outputs=list(outputs), clone=False)
    feature = AssumptionFeature()
    fgraph.attach_feature(feature)
    return fgraph, feature


def test_a_state_is_no_truth_value():
    with pytest.raises(TypeError, match="no boolean value"):
        bool(FactState.TRUE)
    assert FactState.join(FactState.TRUE, FactState.FALSE) is FactState.CONFLICT


def test_what_is_false_makes_what_implies_it_false():
    x = assume(pt.dmatrix(), symmetric=False)
    _, feature = graph_of(x)
    assert feature.get(x, DIAGONAL) is FactState.FALSE
    assert feature.get(x, LOWER_TRIANGULAR) is FactState.UNKNOWN


def test_a_contradiction_is_an_error_for_who_asks():
    x = assume(pt.eye(3), diagonal=False)
    _, feature = graph_of(x)
    with pytest.raises(ConflictingAssumptionsError, match="diagonal"):
        feature.get(x, DIAGONAL)


def test_a_deep_graph_needs_no_recursion():
    x = pt.eye(5)
    for _ in range(2000):
        x = x * 1.0
    _, feature = graph_of(x)
    assert feature.check(x, DIAGONAL)


def test_what_is_known_holds_for_the_replacement_and_what_is_unknown_is_sought_again():
    x, y, v = pt.dmatrix(), pt.dmatrix(), pt.dvector()
    sine, diagonal = pt.sin(x), pt.sin(pt.diag(v))
    fgraph, feature = graph_of(sine, diagonal, y)
    assert feature.get(sine, DIAGONAL) is FactState.UNKNOWN
    fgraph.replace(x, pt.diag(v))
    assert feature.check(sine, DIAGONAL)
    assert feature.check(diagonal.owner.inputs[0], DIAGONAL)
    fgraph.replace(diagonal.owner.inputs[0], y)
    assert feature.check(y, SYMMETRIC)


def test_a_graph_has_one_feature():
    x = pt.dmatrix()
    fgraph, feature = graph_of(pt.linalg.inv(x))
    assert not check_assumption(fgraph, x, DIAGONAL)
    fgraph.attach_feature(AssumptionFeature())
    assert [each for each in fgraph.features if isinstance(each, AssumptionFeature)] == [feature]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_assume_returns_its_input_and_its_gradient(mode):
    x = pt.dvector("x")
    y = (pt.log(assume(x, unique_indices=True))).sum()
    value, gradient = engine.function([x], [y, engine.grad(y, x)], mode=mode)([1.0, 2.0])
    np.testing.assert_allclose([value, *gradient], [np.log(2), 1, 0.5])
    assert assume(x) is x


def test_equal_assumptions_are_equal_ops_and_others_have_other_keys():
    one = SpecifyAssumptions({"diagonal": FactState.TRUE, "symmetric": FactState.FALSE})
    assert one == SpecifyAssumptions({"symmetric": FactState.FALSE, "diagonal": FactState.TRUE})
    assert one != SpecifyAssumptions({"symmetric": FactState.TRUE, "diagonal": FactState.TRUE})


def test_draining_removes_assumptions_and_remembers_them():
    x = pt.dmatrix("x")
    fgraph = FunctionGraph(
        [x], [pt.linalg.inv(assume(assume(x, diagonal=True), symmetric=True))], clone=False
    )
    DrainSpecifyAssumptions().rewrite(fgraph)
    assert [type(node.op).__name__ for node in fgraph.toposort()] == ["MatrixInverse"]
    assert fgraph.assumption_feature.check(x, DIAGONAL)
