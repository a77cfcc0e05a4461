"""Running sums and products, positions of extremes, products, quantifiers and moments are numpy's."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad, verify_grad
from engine.graph.reference import evaluate
from engine.graph.replace import vectorize_graph
from tests.engine.special_values import DTYPES

X = np.array([[[1.5, -2.0], [0.5, 3.0], [-1.0, 2.5]], [[0.25, 3.0], [2.0, 3.0], [1.0, -0.5]]])
NOT_NUMBERS = np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, 2.0, np.inf, 0.0], [-0.0, 0.0, 0.0, -np.inf]])


def compare(x, cases, value, mode):
    found = engine.function([x], [output for output, _ in cases], mode=mode)(value)
    for number, (one, (_, expected)) in enumerate(zip(found, cases, strict=True)):
        assert (one.dtype, one.shape) == (np.asarray(expected).dtype, np.shape(expected)), number
        np.testing.assert_allclose(one, expected, rtol=1e-6, err_msg=str(number))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_along_an_axis_or_all(dtype, mode, kernels_once):
    x = pt.tensor("x", dtype, (None, None, None))
    value = np.abs(X).astype(dtype) if dtype.startswith("u") else X.astype(dtype)
    cases = []
    for axis in (None, 0, 1, -1):
        cases += [
            (pt.cumsum(x, axis), np.cumsum(value, axis)),
            (pt.cumprod(x.dimshuffle(2, 0, 1), axis), np.cumprod(value.transpose(2, 0, 1), axis)),
            (pt.argmax(x, axis), np.argmax(value, axis)),
            (pt.argmin(x, axis, keepdims=True), np.argmin(value, axis, keepdims=True)),
        ]
    compare(x, cases, value, mode)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_over_axes(dtype, mode, kernels_once):
    x = pt.tensor("x", dtype, (None, None, None))
    value = X.astype(dtype)
    cases = []
    for axis in (None, 0, (0, 2)):
        cases += [
            (pt.prod(x, axis), np.prod(value, axis)),
            (pt.all(x > 0, axis), np.all(value > 0, axis)),
            (pt.any(x, axis, keepdims=True), np.any(value, axis, keepdims=True)),
        ]
        if dtype != "bool":
            cases += [
                (pt.var(x, axis), np.var(value, axis)),
                (pt.std(x, axis, ddof=1, keepdims=True), np.std(value, axis, ddof=1, keepdims=True)),
            ]
    compare(x, cases, value, mode)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("axes", [(), (0,), (2,), (0, 1), (1, 2), (0, 2), (1, 3), (0, 1, 3), (0, 1, 2, 3)])
def test_a_position_over_axes_is_that_among_their_elements(axes, mode):
    value = np.random.default_rng(sum(axes)).integers(0, 9, (2, 3, 4, 5)).astype("float64")
    kept = [axis for axis in range(4) if axis not in axes]
    rows = value.transpose(*kept, *axes).reshape([*[value.shape[axis] for axis in kept], -1])
    x = pt.dtensor4("x")
    largest, smallest = engine.function([x], [pt.argmax(x, axes), pt.argmin(x, axes)], mode=mode)(value)
    np.testing.assert_array_equal(largest, rows.argmax(-1))
    np.testing.assert_array_equal(smallest, rows.argmin(-1))


def test_a_position_in_a_batch_is_one_op():
    x, batch = pt.dtensor3(), pt.dtensor4()
    found = vectorize_graph(pt.argmax(x, (0, -1)), {x: batch})
    assert found.owner.op == pt.Argmax((1, 3))
    values = np.arange(120.0).reshape(2, 3, 4, 5) % 7
    expected = values.transpose(0, 2, 1, 3).reshape(2, 4, 15).argmax(-1)
    np.testing.assert_array_equal(found.eval({batch: values}), expected)


def test_the_lengths_of_positions_need_no_positions():
    x = pt.dtensor3("x")
    f = engine.function([x], pt.argmax(x, (0, 2)).shape)
    assert not any(isinstance(node.op, pt.Argmax) for node in f.maker.fgraph.apply_nodes)
    assert f(np.ones((2, 3, 4))).tolist() == [3]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_the_first_not_a_number_is_the_largest_and_the_smallest(mode, kernels_once):
    x = pt.dmatrix("x")
    outputs = [pt.argmax(x, 1), pt.argmin(x, 1), pt.argmax(x, 0)]
    found = engine.function([x], outputs, mode=mode)(NOT_NUMBERS)
    assert [v.tolist() for v in found] == [[1, 0, 0], [1, 3, 3], [1, 0, 1, 0]]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_of_nothing(mode, kernels_once):
    x = pt.dmatrix("x")
    outputs = [pt.cumsum(x, 0), pt.prod(x, 0), pt.all(x, 0), pt.any(x, 0)]
    found = engine.function([x], outputs, mode=mode)(np.ones((0, 2)))
    assert [v.tolist() for v in found] == [[], [1, 1], [True, True], [False, False]]
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        engine.function([x], pt.argmax(x, 0), mode=mode)(np.ones((0, 2)))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_diagonals_are_numpys(mode, kernels_once):
    m, v = pt.dmatrix("m"), pt.dvector("v")
    matrix, vector = X[0], X[0, :, 0]
    ks = (-1, 0, 1, 5)
    outputs = (
        [pt.diagonal(m, k) for k in ks] + [pt.diag(v, k) for k in ks[:3]] + [pt.trace(m), pt.outer(v, m)]
    )
    expected = [np.diagonal(matrix, k) for k in ks] + [np.diag(vector, k) for k in ks[:3]]
    expected += [np.trace(matrix), np.outer(vector, matrix)]
    found = engine.function([m, v], outputs, mode=mode)(matrix, vector)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pt.cumsum(x, 1),
        lambda x: pt.cumprod(x, 0),
        lambda x: pt.cumsum(x) * pt.cumprod(x),
        lambda x: pt.prod(x, (0, 2)),
        lambda x: pt.var(x, 1, ddof=1) + pt.std(x),
        lambda x: pt.diagonal(x[0], -1) + pt.trace(x[1]),
        lambda x: pt.diag(x[0, :, 0], 1) * pt.outer(x[0], x[1])[:4, :4],
    ],
)
def test_gradients_are_those_of_finite_differences(function):
    verify_grad(function, [X], n_tests=1)


@pytest.mark.parametrize("values", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0]])
def test_the_gradient_of_a_product_is_right_with_zeros(values):
    x = pt.dvector("x")
    (found,) = evaluate([x], [grad(pt.prod(x), x)], [values])
    assert found.tolist() == [values[1] * values[2], values[0] * values[2], values[0] * values[1]]


def test_what_has_no_axis_is_refused():
    x = pt.dvector("x")
    for function in (pt.cumsum, pt.argmax):
        with pytest.raises(ValueError, match="dimension"):
            function(x, 1)
    with pytest.raises(ValueError, match="mode"):
        pt.CumOp(0, "max")
    with pytest.raises(ValueError, match="2 dimensions"):
        pt.diagonal(x)
