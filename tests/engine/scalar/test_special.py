"""Special functions are SciPy's, bit for bit, compiled or not; close to mpmath's; and so are their slopes."""

import subprocess
import sys
from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.special

import engine
import engine.tensor as pt
from cachegraph.errors import CythonFunctionError
from cachegraph.object_code.cython_functions import function_of_doubles
from engine import scalar, verify_grad
from engine.errors import NullGradientError
from engine.runtime.errors import LoadError
from engine.runtime.externals import is_allowed, resolve
from engine.scalar.math import betainc_grad, gammainc_grad, gammaincc_grad
from engine.scalar.special import SPECIAL_FUNCTIONS, SpecialFunction

FEW = [-1.5, 0.0, 0.3, 1.0, 2.5, np.inf, np.nan]
MANY = [*FEW, -0.0, -np.inf, 0.5, 0.9, 2.0, -3.0, 10.0, 30.0, -30.0, 1e-300, 1e300]
EXACT = {
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "erfinv": mpmath.erfinv,
    "gammainc": lambda k, x: mpmath.gammainc(k, 0, x, regularized=True),
    "gammaincc": lambda k, x: mpmath.gammainc(k, x, regularized=True),
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "j0": lambda x: mpmath.besselj(0, x),
    "j1": lambda x: mpmath.besselj(1, x),
    "jv": mpmath.besselj,
    "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-x),
    "kve": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
    "betainc": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
    "hyp2f1": mpmath.hyp2f1,
    "beta": mpmath.beta,
    "poch": mpmath.rf,
}
INSIDE = [
    (0.3,),
    (0.7,),
    (0.3, 2.5),
    (1.5, 0.4),
    (2.5, 7.0),
    (0.5, 1.5, 0.3),
    (3.0, 2.0, 0.9),
    (1.2, 0.4, 2.2, 0.6),
]


def vectors(arity: int, dtype: str = "float64") -> list[np.ndarray]:
    grid = np.meshgrid(*[np.array(MANY if arity < 3 else FEW, "float64").astype(dtype)] * arity)
    return [axis.ravel() for axis in grid]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_values_are_scipys(name, mode):
    arity = SPECIAL_FUNCTIONS[name]
    place = pt if hasattr(pt, name) else pt.special
    for dtype in ("float64", "float32"):
        inputs = [pt.vector(f"x{i}", dtype=dtype) for i in range(arity)]
        with np.errstate(all="ignore"):
            values = vectors(arity, dtype)
            expected = getattr(scipy.special, name)(*[v.astype("float64") for v in values]).astype(dtype)
        found = engine.function(inputs, getattr(place, name)(*inputs), mode=mode)(*values)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "point"), [(n, p) for n, p in product(EXACT, INSIDE) if len(p) == SPECIAL_FUNCTIONS[n]]
)
def test_values_are_close_to_mpmaths(name, point):
    with mpmath.workdps(40):
        expected = float(EXACT[name](*map(mpmath.mpf, point)))
    found = SpecialFunction(name).impl(*map(np.float64, point))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["erfcx", "erfinv", "erfcinv", "i0", "i0e", "i1", "i1e", "j0", "j1"])
def test_slopes_of_one_number(name):
    verify_grad(lambda x: getattr(pt, name)(x), [np.array([0.2, 0.45, 0.9])], n_tests=1)


@pytest.mark.parametrize(
    ("make", "points"),
    [
        (pt.ndtri_exp, [np.array([-0.2, -1.5, -8.0])]),
        (pt.owens_t, [np.array([0.4, -1.2]), np.array([0.3, 2.0])]),
        (lambda x: pt.jv(1.5, x), [np.array([0.7, 3.0])]),
        (lambda x: pt.gammainc(2.5, x), [np.array([0.7, 3.0])]),
        (lambda x: pt.gammaincc(2.5, x), [np.array([0.7, 3.0])]),
        (lambda x: pt.betainc(2.5, 0.8, x), [np.array([0.1, 0.7])]),
        (lambda p: pt.gammaincinv(2.5, p), [np.array([0.1, 0.7])]),
        (lambda p: pt.gammainccinv(2.5, p), [np.array([0.1, 0.7])]),
        (lambda p: pt.betaincinv(2.5, 0.8, p), [np.array([0.1, 0.7])]),
        (lambda z: pt.hyp2f1(0.5, 1.5, 2.0, z), [np.array([0.1, -0.7])]),
    ],
)
def test_slopes_of_several_numbers(make, points):
    verify_grad(make, points, n_tests=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_at_the_ends_of_the_exponential_and_uniform_distributions_are_numbers(dtype):
    x = pt.vector("x", dtype=dtype)
    one = np.ones((), dtype)
    makes = [pt.gammainc(one, x), pt.gammaincinv(one, x), pt.betainc(one, one, x), pt.betaincinv(one, one, x)]
    slopes = engine.function([x], [engine.grad(made.sum(), x) for made in makes])(np.array([0, -1], dtype))
    np.testing.assert_array_equal(slopes, [[1, np.nan]] * 4)


PARAMETERS = {
    "gammainc": [(1e-4, 1e-4), (2.5, 7.0), (9.5, 6.25), (100.0, 80.0), (30.0, 2.0)],
    "gammaincc": [(3.0, 50.0), (1.0, 0.7), (0.1, 300.0)],
    "betainc": [(0.5, 1.5, 0.3), (3.0, 2.0, 0.9), (1.0, 1.0, 0.2), (2.5, 3.0, 1e-9), (15.0, 12.0, 0.55)],
    "hyp2f1": [(1.2, 0.4, 2.2, 0.6), (0.5, 1.5, 2.0, -0.7), (-3.0, 2.0, 1.5, 0.4), (1.0, 1.0, 3.0, 0.0)],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_slopes_by_parameters_are_close_to_mpmaths(name):
    inputs = [pt.dvector() for _ in range(SPECIAL_FUNCTIONS[name])]
    slopes = engine.grad(getattr(pt, name)(*inputs).sum(), inputs[:-1])
    found = engine.function(inputs, slopes)(*np.transpose(PARAMETERS[name]))
    for column, point in enumerate(PARAMETERS[name]):
        for row in range(len(slopes)):
            with mpmath.workdps(25):
                exact = mpmath.diff(
                    lambda v, n=row, p=point: EXACT[name](*map(mpmath.mpf, p[:n]), v, *p[n + 1 :]), point[row]
                )
            np.testing.assert_allclose(found[row][column], float(exact), rtol=1e-12, atol=1e-300)


def test_slopes_by_parameters_at_the_ends_are_zero():
    k, x = pt.dvectors("k", "x")
    slopes = [engine.grad(y.sum(), k) for y in (pt.gammainc(k, x), pt.betainc(k, 2.0, x / (1 + x)))]
    ends = engine.function([k, x], slopes)([1.5, 1.5], [0.0, 1e300])
    np.testing.assert_array_equal(ends, np.zeros((2, 2)))


def test_slopes_by_parameters_are_nan_where_the_function_is_not_defined():
    k, b, x = pt.dvectors("k", "b", "x")
    slope = engine.function([k, x], engine.grad(pt.gammainc(k, x).sum(), k))
    found = slope([-1.0, -1.0, -1.0, 0.0, 1.0, np.nan], [0.0, 1.0, np.inf, 0.0, -1.0, 0.0])
    np.testing.assert_array_equal(found, np.full(6, np.nan))
    slopes = engine.function([k, b, x], engine.grad(pt.betainc(k, b, x).sum(), [k, b]))
    found = slopes([-1.0, 1.0, 1.0, 0.0, 1.0], [1.0, -1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.5, 2.0])
    np.testing.assert_array_equal(found, np.full((2, 5), np.nan))


def test_the_slope_by_a_parameter_that_is_zero_is_that_of_the_smallest_ones():
    k, x = pt.dvectors("k", "x")
    slope = engine.function([k, x], engine.grad(pt.gammainc(k, x).sum(), k))
    points = [1e-300, 0.3, 1.0, 5.0, 100.0, np.inf]
    due = [-float(mpmath.expint(1, point)) for point in points]
    np.testing.assert_allclose(slope(np.zeros(6), points), due, rtol=1e-13)


def test_functions_of_numbers_give_the_slopes_by_parameters():
    p, q, x = (scalar.float64(name) for name in "pqx")
    found = [
        betainc_grad(p, q, x, True),
        betainc_grad(p, q, x, False),
        gammainc_grad(p, x),
        gammaincc_grad(p, x),
    ]
    functions = [scalar.betainc(p, q, x), scalar.gammainc(p, x), scalar.gammaincc(p, x)]
    due = [*engine.grad(functions[0], [p, q]), *(engine.grad(function, p) for function in functions[1:])]
    found, due = np.split(np.array(engine.function([p, q, x], [*found, *due])(2.0, 3.0, 0.4)), 2)
    np.testing.assert_array_equal(found, due)


def test_the_slope_of_erfcx_has_all_its_digits():
    """The terms of 2 x erfcx(x) - 2 / sqrt(pi) are equal in eight digits at 1e4, and in all of them at 1e8."""
    points = np.array([-1e200, -20.0, -3.0, 0.0, 1.0, 9.99, 10.0, 12.0, 1e3, 1e4, 1e8, 1e200, np.inf, np.nan])
    x = pt.dvector("x")
    slope = engine.grad(pt.erfcx(x).sum(), x)
    with mpmath.workdps(60):
        due = [float(_slope_of_erfcx(point)) for point in points[1:-2]]
    found = engine.function([x], [slope, engine.grad(slope.sum(), x)])(points)
    np.testing.assert_allclose(found[0], [-np.inf, *due, 0.0, np.nan], rtol=1e-13)
    assert np.all(np.isfinite(found[1][1:-2]))


def _slope_of_erfcx(x):
    if x > 1e7:
        return -1 / (mpmath.sqrt(mpmath.pi) * mpmath.mpf(x) ** 2)
    x = mpmath.mpf(x)
    return 2 * x * mpmath.exp(x * x) * mpmath.erfc(x) - 2 / mpmath.sqrt(mpmath.pi)


def test_slopes_that_no_series_gives_are_nan():
    a, z = pt.dvectors("a", "z")
    slope = engine.function([a, z], engine.grad(pt.hyp2f1(a, 10.0, 3.0, z).sum(), a))
    np.testing.assert_array_equal(slope([12.0, 1.0, 1.0], [-0.95, 1.0, -2.0]), np.nan)


@pytest.mark.parametrize("name", ["gammainc", "betainc", "hyp2f1"])
def test_slopes_of_float32s_are_computed_in_doubles(name):
    point = INSIDE[{2: 2, 3: 5, 4: 7}[SPECIAL_FUNCTIONS[name]]]
    slopes = []
    for dtype in ("float32", "float64"):
        first = pt.scalar(dtype=dtype)
        slope = engine.grad(getattr(pt, name)(first, *np.float32(point[1:])), first)
        assert slope.dtype == dtype
        slopes.append(engine.function([first], slope)(np.float32(point[0])))
    np.testing.assert_allclose(*slopes, rtol=1e-7)


def test_a_slope_by_the_order_of_a_bessel_function_is_refused():
    v = pt.dscalar("v")
    with pytest.raises(NullGradientError, match="jv: it declares none for argument 0"):
        engine.grad(pt.jv(v, 2.0), v)


def test_another_function_is_refused():
    with pytest.raises(ValueError, match="'zeta' is none of"):
        SpecialFunction("zeta")


def test_only_functions_of_doubles_are_linked():
    assert is_allowed("special_erfcx_1")
    assert not is_allowed("special_erfcx")
    with pytest.raises(LoadError, match="no such function of 3 doubles"):
        resolve("special_erfcx_3")
    with pytest.raises(CythonFunctionError, match="no such function"):
        function_of_doubles("scipy.special.cython_special", "itj0y0", 1)


def test_a_second_process_links_them_and_one_without_them_never_imports_scipy():
    program = """
import sys, numpy as np, engine, engine.tensor as pt
x = pt.dvector("x")
f = engine.function([x], pt.{}(x))
print(f.cache_info.outcome, float(f(np.array([0.5]))[0]), "scipy.special" in sys.modules)
"""

    def run(name):
        found = subprocess.run(
            [sys.executable, "-c", program.format(name)], capture_output=True, text=True, check=True
        )
        return found.stdout.split()

    expected = str(float(scipy.special.erfcx(0.5)))
    assert run("erfcx") == ["miss", expected, "True"]
    assert run("erfcx") == ["hit", expected, "True"]
    assert run("exp")[2] == "False"
