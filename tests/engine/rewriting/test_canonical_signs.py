import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph, equal_computations
from engine.graph.reference import evaluate
from engine.rewriting.walking import out2in
from engine.tensor.rewriting.math import local_neg_to_mul


def signs_as_factors(inputs, output):
    fgraph = FunctionGraph(inputs, [output])
    out2in(local_neg_to_mul).rewrite(fgraph)
    return fgraph


@pytest.mark.parametrize("values", [[1.5, -0.0, 0.0, np.inf], [-np.inf, np.nan, 5e-324, -2.0]])
def test_a_sign_becomes_a_factor_and_changes_no_value(values):
    x, y = pt.dvector("x"), pt.dvector("y")
    for negated in (-x, -(x * y), -(x * y * 2.5), -(x / y)):
        fgraph = signs_as_factors([x, y], negated)
        assert not any(node.op == pt.neg for node in fgraph.apply_nodes)
        given = [np.array(values), np.array(values[::-1])]
        before, after = evaluate([x, y], [negated], given), evaluate(fgraph.inputs, fgraph.outputs, given)
        np.testing.assert_array_equal(after, before)
        assert (np.isnan(before) | (np.signbit(before) == np.signbit(after))).all()


def test_two_signs_are_none():
    x = pt.dvector("x")
    assert signs_as_factors([x], pt.neg(pt.neg(x))).apply_nodes == set()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_whole_numbers_wrap_as_they_did(dtype):
    x = pt.vector("x", dtype=dtype)
    values = np.array([0, 1, 100, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    for negated in (-x, -(x * np.array([3], dtype))):
        fgraph = signs_as_factors([x], negated)
        np.testing.assert_array_equal(
            evaluate(fgraph.inputs, fgraph.outputs, [values])[0], evaluate([x], [negated], [values])[0]
        )


def test_a_whole_number_whose_negative_wraps_is_no_factor_to_negate():
    x = pt.dvector("x")
    fgraph = signs_as_factors([x], -pt.mul(np.array([-128], "int8"), x))
    np.testing.assert_array_equal(
        evaluate(fgraph.inputs, fgraph.outputs, [np.array([1.0, 2.0])])[0], [128.0, 256.0]
    )


def test_a_constant_factor_is_negated():
    x = pt.dvector("x")
    fgraph = signs_as_factors([x], -(pt.constant([2.5]) * x))
    assert equal_computations(fgraph.outputs, [pt.constant([-2.5]) * x], fgraph.inputs, [x])
