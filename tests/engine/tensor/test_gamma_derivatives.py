"""Derivatives of the logarithm of the gamma function, beside SciPy's."""

import numpy as np
import pytest
from scipy import special

import engine
import engine.tensor as pt
from engine import scalar
from engine.errors import ComplexError, NullGradientError
from engine.gradient import verify_grad
from engine.inner.composite import Composite
from engine.tensor.elemwise import Elemwise

POINTS = np.array([1e-3, 0.5, 1.0, 3.7, 50.0, -0.5, -3.25])


@pytest.mark.parametrize("order", [0, 1, 2, 7])
@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_every_order_has_the_values_of_scipy(order, mode):
    n, x = pt.lscalar("n"), pt.dvector("x")
    f = engine.function([n, x], pt.polygamma(n, x), mode=mode)
    np.testing.assert_allclose(f(order, POINTS), special.polygamma(order, POINTS), rtol=1e-13)


def test_orders_and_points_broadcast():
    n, x = pt.lvector("n"), pt.dscalar("x")
    found = engine.function([n, x], pt.polygamma(n, x))([0, 1, 4, -1], 0.5)
    np.testing.assert_allclose(found[:3], special.polygamma([0, 1, 4], 0.5))
    assert np.isnan(found[3])


def test_the_dtype_is_that_of_the_point():
    n = pt.lscalar()
    dtypes = {"float32": "float32", "float64": "float64", "int32": "float64"}
    assert {dtype: pt.polygamma(n, pt.scalar(dtype=dtype)).dtype for dtype in dtypes} == dtypes


def test_the_gradient_is_the_next_order():
    verify_grad(lambda x: pt.polygamma(np.array([0, 1, 3]), x), [np.array([0.7, 1.3, 4.0])])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_derivative_of_the_logarithm_of_the_gamma_function_has_a_gradient(dtype):
    x = pt.vector("x", dtype=dtype)
    points, y = POINTS.astype(dtype), pt.gammaln(x)
    for order in range(4):
        y = engine.grad(y.sum(), x)
        assert y.dtype == dtype
        found, due = engine.function([x], y)(points), special.polygamma(order, points.astype("float64"))
        np.testing.assert_allclose(found, due.astype(dtype), rtol=1e-12 if dtype == "float64" else 2e-5)


def test_orders_are_integers_and_points_real():
    with pytest.raises(TypeError, match="must be discrete"):
        pt.polygamma(0.5, 1.0)
    with pytest.raises(ComplexError, match="complex argument not supported"):
        pt.polygamma(0, pt.zscalar())


def test_no_gradient_by_the_order_is_defined():
    n, x = pt.lscalar("n"), pt.dscalar("x")
    with pytest.raises(NullGradientError, match="none is defined by n"):
        engine.grad(pt.polygamma(n, 0.5), n)
    assert engine.grad(pt.polygamma(n, x), x).eval({n: 0, x: 0.9}) == pytest.approx(special.polygamma(1, 0.9))


def test_orders_0_and_1_are_functions_with_kernels_and_loops_beside_others_stay_loops():
    x = pt.fvector("x")
    function = engine.function([x], [pt.polygamma(n, x) + pt.exp(x) for n in range(3)])
    ops = [str(node.op) for node in function.maker.fgraph.toposort()]
    assert sum("polygamma" in op for op in ops) == 1
    points = POINTS.astype("float32")
    for n, found in enumerate(function(points)):
        np.testing.assert_allclose(found, special.polygamma(n, points) + np.exp(points), rtol=2e-5)


def test_a_composite_with_an_order_that_is_not_known_is_computed_as_a_whole():
    n, x = (scalar.scalar_type(dtype).make_variable() for dtype in ("int64", "float64"))
    op = Elemwise(Composite([n, x], [scalar.add(scalar.polygamma(n, x), 1.0)]))
    orders, points = pt.lvector("orders"), pt.dvector("points")
    function = engine.function([orders, points], pt.exp(op(orders, points)))
    given = np.array([0, 1, 3]), np.array([0.5, 0.7, 2.0])
    np.testing.assert_allclose(function(*given), np.exp(special.polygamma(*given) + 1))
