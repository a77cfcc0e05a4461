import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.mode import get_default_mode
from engine.rewriting.named_zeros import NAMED_ZEROS, local_add_of_sparse_write
from engine.scalar import Add
from engine.tensor import Elemwise
from engine.tensor.rewriting.math import local_0_dot_x, local_mul_zero, local_zero_div
from engine.tensor.rewriting.subtensor import local_incsubtensor_of_zeros

NAMES = [rewriter.name for rewriter in NAMED_ZEROS]
MATRIX = np.arange(20.0).reshape(5, 4)
WRITES = (pt.IncSubtensor, pt.AdvancedIncSubtensor)


@pytest.fixture
def x():
    return pt.dmatrix("x")


def named(inputs, output, *, excluding="fusion"):
    mode = get_default_mode().excluding(excluding).including(*NAMES)
    return engine.function(inputs, output, mode=mode, on_unused_input="ignore")


def has(function, *ops):
    return any(isinstance(node.op, ops) for node in function.maker.fgraph.apply_nodes)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[:3].inc(pt.zeros_like(x[:3])),
        lambda x: x[[0, 2, 2]].inc(np.zeros(4)),
        lambda x: x[[[0, 0], [1, 1]], [[0, 1], [0, 1]]].inc(pt.zeros_like(x[:2, :2])),
        lambda x: x[1, 2].inc(-0.0),
    ],
)
def test_zeros_are_not_added_to_a_part(x, write):
    function = named([x], write(x))
    assert not has(function, *WRITES)
    np.testing.assert_array_equal(function(MATRIX), MATRIX)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[:3].set(pt.zeros_like(x[:3])),
        lambda x: x[:3].inc(pt.ones_like(x[:3])),
        lambda x: x[:3].inc(x[1:4]),
        lambda x: x[:3].inc(np.array([0.0, np.nan, 0.0, 0.0])),
    ],
)
def test_other_writes_stay(x, write):
    function = named([x], write(x))
    assert has(function, *WRITES)
    np.testing.assert_array_equal(function(MATRIX), engine.function([x], write(x))(MATRIX))


def test_products_with_zeros_are_zeros_in_their_shape(x):
    v, zeros = pt.dvector("v"), pt.zeros_like(x)
    products = [pt.dot(zeros.T, x), pt.dot(x, zeros.T), pt.dot(zeros, v), pt.dot(v, pt.zeros_like(v))]
    function = named([x, v], products)
    assert not has(function, pt.Dot)
    found = function(np.full((5, 4), np.inf), np.ones(4))
    assert [value.shape for value in found] == [(4, 4), (5, 5), (5,), ()]
    assert all(not value.any() for value in found)


SQUARE = pt.dmatrix("square", shape=(5, 4))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.exp(x) + pt.zeros_like(x)[1:3].inc(x[:2]),
        lambda x: pt.zeros_like(x)[[0, 2, 2]].inc(x[:3]) + pt.exp(x),
        lambda x: pt.zeros_like(x)[1:].inc(x[1:]) + pt.zeros_like(x)[0].inc(x[3]),
        lambda x: pt.exp(x) + pt.zeros((5, 4))[2, 1].inc(3.0) + pt.zeros((5, 4))[2].inc(x[0]),
    ],
)
def test_a_part_of_zeros_is_added_where_it_belongs(build):
    function = named([SQUARE], build(SQUARE))
    nodes = function.maker.fgraph.apply_nodes
    assert not any(isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add) for node in nodes)
    np.testing.assert_allclose(function(MATRIX), engine.function([SQUARE], build(SQUARE))(MATRIX), rtol=1e-15)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.exp(x) + pt.ones_like(x)[1:3].inc(x[:2]),
        lambda x: pt.exp(x) + pt.zeros_like(x)[1:3].set(x[:2]),
        lambda x: pt.exp(x[0]) + pt.zeros_like(x)[1:3].inc(x[:2]),
        lambda x: pt.exp(pt.dmatrix()) + pt.zeros_like(x)[1:3].inc(x[:2]),
    ],
)
def test_other_sums_with_written_parts_stay(build):
    (node,) = [build(SQUARE).owner]
    fgraph = engine.graph.FunctionGraph(outputs=node.outputs, clone=False)
    assert local_add_of_sparse_write.transform(fgraph, node) is None


@pytest.mark.parametrize(
    ("build", "number"),
    [
        (lambda x, v: 0 * x * v, 0),
        (lambda x, v: v * pt.zeros_like(x), 0),
        (lambda x, v: 0 / (x + v), 0),
        (lambda x, v: pt.zeros_like(x) / v, 0),
        (lambda x, v: (x + v) / (x + v), 1),
    ],
)
def test_elements_that_are_known_are_numbers_in_their_shape(x, build, number):
    v = pt.dvector("v")
    values = np.full((5, 4), np.nan), np.full(4, np.nan)
    found = named([x, v], build(x, v))(*values)
    np.testing.assert_array_equal(found, np.full((5, 4), float(number)))
    assert np.isnan(engine.function([x, v], build(x, v))(*values)).all()


def test_an_element_that_is_not_known_is_computed(x):
    function = named([x], [x / 0, 1 * x, x / (x + 1), 0 - x])
    with np.errstate(all="ignore"):
        due = [MATRIX / 0, MATRIX, MATRIX / (MATRIX + 1), 0 - MATRIX]
        np.testing.assert_array_equal(function(MATRIX), due)


def test_functions_have_them_by_name_alone(x):
    function = engine.function([x], [x[:3].inc(pt.zeros_like(x[:3])), pt.dot(pt.zeros_like(x).T, x)])
    assert has(function, *WRITES)
    assert has(function, pt.Dot)
    written, _ = function(np.full((5, 4), -0.0))
    assert not np.signbit(written[:3]).any()
    assert np.signbit(written[3:]).all()
    assert np.isnan(function(np.full((5, 4), np.inf))[1]).all()


def test_lengths_are_compared_where_the_mode_leaves_out_what_does_not(x):
    y = pt.dmatrix("y")
    function = named([x, y], pt.dot(pt.zeros_like(x), y), excluding="shape_unsafe")
    with pytest.raises(ValueError, match="4"):
        function(MATRIX, MATRIX)


@pytest.mark.parametrize(
    "rewriter", [local_0_dot_x, local_incsubtensor_of_zeros, local_mul_zero, local_zero_div]
)
def test_they_have_pytensors_paths(rewriter):
    assert rewriter in NAMED_ZEROS
