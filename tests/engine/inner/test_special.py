"""Softmax, its logarithm and the logarithm of a sum of exponentials: right where exponentials overflow."""

import numpy as np
import pytest
from scipy import special

import engine
import engine.tensor as pt
from engine import verify_grad

X = np.random.default_rng(0).normal(size=(3, 4, 2))
WIDE = np.array([[1000.0, 1001.0, -2000.0], [-1000.0, -1000.0, -1000.0], [0.0, -np.inf, 1e-3]])
INFINITE = np.array([[np.inf, 1.0], [-np.inf, -np.inf], [np.nan, 0.0]])
FUNCTIONS = {
    "softmax": (pt.softmax, special.softmax),
    "log_softmax": (pt.log_softmax, special.log_softmax),
    "logsumexp": (pt.logsumexp, special.logsumexp),
    "logsumexp kept": (
        lambda x, axis: pt.logsumexp(x, axis, keepdims=True),
        lambda x, axis: special.logsumexp(x, axis=axis, keepdims=True),
    ),
}


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_values_are_scipys(dtype, mode, kernels_once):
    x, w = pt.tensor3("x", dtype=dtype), pt.matrix("w", dtype=dtype)
    pairs = [(name, axis) for name in FUNCTIONS for axis in (None, 0, -1, (0, 2))]
    wide = [(name, axis) for name in FUNCTIONS for axis in (None, 1)]
    outputs = [FUNCTIONS[name][0](x.dimshuffle(0, 2, 1), axis) for name, axis in pairs]
    outputs += [FUNCTIONS[name][0](w * 1, axis) for name, axis in wide]
    found = engine.function([x, w], outputs, mode=mode)(X.astype(dtype), WIDE.astype(dtype))
    expected = [FUNCTIONS[name][1](X.swapaxes(1, 2), axis=axis) for name, axis in pairs]
    expected += [FUNCTIONS[name][1](WIDE, axis=axis) for name, axis in wide]
    for what, one, other in zip(pairs + wide, found, expected, strict=True):
        assert (one.dtype, one.shape) == (np.dtype(dtype), np.shape(other)), what
        np.testing.assert_allclose(one, other, rtol=1e-12 if dtype == "float64" else 2e-5, err_msg=str(what))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_the_logarithm_of_a_sum_with_infinite_terms_is_infinite(mode, kernels_once):
    x = pt.dmatrix("x")
    found = engine.function([x], pt.logsumexp(x, 1), mode=mode)(INFINITE)
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_beside_an_infinite_element_a_softmax_is_what_is_written(mode, kernels_once):
    x = pt.dmatrix("x")
    powers = pt.exp(x)
    pairs = [
        (pt.log_softmax(x, 1), x - pt.logsumexp(x, 1, keepdims=True)),
        (pt.softmax(x, 1), powers / powers.sum(1, keepdims=True)),
    ]
    due = [[[np.nan, -np.inf], [np.nan] * 2, [np.nan] * 2], [[np.nan, 0], [np.nan] * 2, [np.nan] * 2]]
    for (op, written), expected in zip(pairs, due, strict=True):
        for output in (op, written):
            found = engine.function([x], output, mode=mode)(INFINITE)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_gradients_are_those_of_finite_differences(name, axis):
    verify_grad(lambda x: FUNCTIONS[name][0](x, axis), [X], n_tests=1)


def test_gradients_are_compiled(kernels_once):
    x = pt.dmatrix("x")
    cost = (pt.softmax(x, 1) ** 2).sum() + pt.log_softmax(x, 0)[0].sum() + (pt.logsumexp(x, 0) ** 2).sum()
    found, expected = (
        engine.function([x], engine.grad(cost, x), mode=m)(X[0]) for m in ("FAST_RUN", "NUMPY")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_integers_are_taken_as_floats_and_missing_axes_refused():
    assert pt.softmax(pt.lvector("n"), 0).type.dtype == "float64"
    for function, _ in FUNCTIONS.values():
        with pytest.raises(ValueError, match="dimension"):
            function(pt.dvector("x"), 1)
