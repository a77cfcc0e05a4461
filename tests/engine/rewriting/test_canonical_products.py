import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import FunctionGraph, equal_computations
from engine.graph.reference import evaluate
from engine.tensor.rewriting.math import mul_canonizer

X, Y, Z = np.array([1.5, -2.0, 0.25]), np.array([3.0, 0.7, -1.1]), np.array([0.9, 2.0, 8.0])


@pytest.fixture
def named():
    return pt.dvector("x"), pt.dvector("y"), pt.dvector("z")


def as_fractions(inputs, output):
    fgraph = FunctionGraph(inputs, [output])
    mul_canonizer.rewrite(fgraph)
    return fgraph


@pytest.mark.parametrize(
    ("build", "due"),
    [
        (lambda x, y, z: x / y * 2.0 / z, lambda x, y, z: pt.constant([2.0]) * x / (y * z)),
        (lambda x, y, z: (-x) / y / (-4.0 * z), lambda x, y, z: pt.constant([0.25]) * x / (y * z)),
        (lambda x, y, z: x / (y / z), lambda x, y, z: x * z / y),
        (lambda x, y, z: (x / y) * (y / z) * z, lambda x, y, z: x),
        (lambda x, y, z: 3.0 * x * 2.0, lambda x, y, z: pt.constant([6.0]) * x),
        (lambda x, y, z: x / y / x, lambda x, y, z: pt.constant([1.0]) / y),
        (lambda x, y, z: x / 3.0, lambda x, y, z: x / pt.constant([3.0])),
    ],
)
def test_products_of_quotients_are_one_fraction(named, build, due):
    fgraph = as_fractions(list(named), build(*named))
    assert equal_computations(fgraph.outputs, [due(*named)], fgraph.inputs, list(named))
    after = evaluate(fgraph.inputs, fgraph.outputs, [X, Y, Z])[0]
    np.testing.assert_allclose(after, evaluate(list(named), [build(*named)], [X, Y, Z])[0], rtol=1e-14)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x / 1e-200 * 0.0,
        lambda x: 0.0 * x * np.inf,
        lambda x: np.nan * x * 0.0,
        lambda x: x / 0.0,
        lambda x: np.inf * x * 2.0,
        lambda x: (1e-200 * x) * 1e-200,
        lambda x: x / 1e-200 / 1e-200,
        lambda x: x / 0.0 * 2.0,
    ],
)
def test_numbers_whose_product_is_no_plain_number_stay(named, build):
    x = named[0]
    values = np.array([1e300, 0.0, np.inf, np.nan, -0.0])
    fgraph = as_fractions([x], build(x))
    np.testing.assert_array_equal(
        evaluate(fgraph.inputs, fgraph.outputs, [values])[0], evaluate([x], [build(x)], [values])[0]
    )


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y, z: 0.0 * x * y,
        lambda x, y, z: x * (0.0 / y) / z,
        lambda x, y, z: 2.0 * x * 0.5 * 0.0 * y,
    ],
)
def test_a_product_with_zero_is_zero_in_its_shape(named, build):
    fgraph = as_fractions(list(named), build(*named))
    assert {node.op for node in fgraph.apply_nodes} == {pt.second}
    values = [np.array([1.0, np.inf, np.nan]), np.array([2.0, 0.0, 1.0]), Z]
    np.testing.assert_array_equal(evaluate(fgraph.inputs, fgraph.outputs, values)[0], np.zeros(3))


def test_what_zero_absorbs_has_a_part_in_the_shape_still():
    row, column = pt.drow("row"), pt.dcol("column")
    fgraph = as_fractions([row, column], 0.0 * row * column)
    found = evaluate(fgraph.inputs, fgraph.outputs, [np.ones((1, 3)), np.ones((2, 1))])[0]
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_functions_have_it_by_name_alone(named):
    x = named[0]
    assert np.isnan(engine.function([x], 0.0 * x)(np.array([np.inf, np.nan]))).all()


def test_a_fraction_stays_as_it_is(named):
    x, y, z = named
    fgraph = FunctionGraph([x, y, z], [x * z / y])
    (node,) = [node for node in fgraph.apply_nodes if node.op == pt.true_div]
    mul_canonizer.rewrite(fgraph)
    assert node in fgraph.apply_nodes


def test_products_of_whole_numbers_stay():
    i = pt.lvector("i")
    assert len(as_fractions([i], 2 * i * 3).apply_nodes) == 2


def test_what_is_left_out_has_a_part_in_the_shape_still(named):
    x = named[0]
    fgraph = as_fractions([x], x * np.full((2, 3), 2.0))
    np.testing.assert_array_equal(evaluate(fgraph.inputs, fgraph.outputs, [X])[0], [2 * X, 2 * X])
    with pytest.raises((ValueError, AssertionError)):
        evaluate(fgraph.inputs, fgraph.outputs, [X[:2]])
    column = pt.tensor("column", dtype="float64", shape=(None, 1))
    cancelled = as_fractions([x, column], x * column / column)
    np.testing.assert_array_equal(
        evaluate(cancelled.inputs, cancelled.outputs, [X, np.ones((2, 1))])[0], [X, X]
    )
