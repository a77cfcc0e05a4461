"""Expressions that overflow, cancel or end in NaN as they are written, at 28 points: values and slopes.

Due is what numbers of 4,000 bits give. Where no float64 holds it, or it is no number, nothing is compared;
elsewhere the result is finite and has ten digits.
"""

import mpmath
import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad

REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)
POINTS = np.array(
    [
        *(0.0, 1e-300, -1e-300, 1e-200, 1e-20, -1e-20, 1e-8, -1e-8, 1e-3, -1e-3, 0.3, -0.3, 1.0, -1.0),
        *(2.5, -2.5, 20.0, -20.0, 36.5, -36.5, 170.0, -170.0, 745.0, -745.0, 1e4, -1e4, 1e200, -1e200),
    ]
)
LARGEST = float(np.finfo("float64").max)

mp = mpmath.MPContext()
mp.prec = 4000
short = mpmath.MPContext()
short.dps = 60
"""Enough for functions that are no sums with 1, and take long."""


def _erfc(x):
    """The complementary error function; far from 0, mpmath cannot compute it."""
    return mp.mpf(short.erfc(x)) if abs(x) < 1e5 else 1 - mp.sign(x)


def _slope_of_tanh_gamma(x):
    """The slope of tanh(gamma(x)); it is no float64 where gamma(x) is above 1,000, and long to compute."""
    value = short.gamma(x)
    return short.digamma(x) * value * short.sech(value) ** 2 if value < 1000 else 0


def _log_erfc(x):
    return mp.log1p(-short.erf(x)) if abs(x) < 1 else mp.log(_erfc(x))


EXPRESSIONS = {
    "log(sqr(x))": (lambda x: pt.log(pt.sqr(x)), lambda x: 2 * mp.log(abs(x)), lambda x: 2 / x),
    "sqrt(sqr(x))": (lambda x: pt.sqrt(pt.sqr(x)), abs, mp.sign),
    "log1p(expm1(x))": (lambda x: pt.log1p(pt.expm1(x)), lambda x: x, lambda x: 1),
    "1 - erf(x)": (lambda x: 1 - pt.erf(x), _erfc, lambda x: -_slope_of_erf(x)),
    "1 + erf(x)": (lambda x: 1 + pt.erf(x), lambda x: _erfc(-x), lambda x: _slope_of_erf(x)),
    "(1 + x) - 1": (lambda x: (1 + x) - 1, lambda x: x, lambda x: 1),
    "log(1 - erf(x))": (
        lambda x: pt.log(1 - pt.erf(x)),
        lambda x: _if(x < 1e5, x, _log_erfc),
        lambda x: _if(x < 1e5, x, lambda x: -_slope_of_erf(x) / _erfc(x)),
    ),
    "exp(x) * exp(-x)": (lambda x: pt.exp(x) * pt.exp(-x), lambda x: 1, lambda x: 0),
    "exp(x) / exp(x / 2)": (
        lambda x: pt.exp(x) / pt.exp(x / 2),
        lambda x: mp.exp(x / 2),
        lambda x: mp.exp(x / 2) / 2,
    ),
    "x * y / y": (lambda x: x * (x + 3) / (x + 3), lambda x: x, lambda x: 1),
    "1 / exp(x)": (lambda x: 1 / pt.exp(x), lambda x: mp.exp(-x), lambda x: -mp.exp(-x)),
    "1 / sigmoid(x)": (lambda x: 1 / pt.sigmoid(x), lambda x: 1 + mp.exp(-x), lambda x: -mp.exp(-x)),
    "1 / (1 + exp(-x))": (
        lambda x: 1 / (1 + pt.exp(-x)),
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: 1 / (1 + mp.exp(-x)) / (1 + mp.exp(x)),
    ),
    "exp(x) / (1 + exp(x))": (
        lambda x: pt.exp(x) / (1 + pt.exp(x)),
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: 1 / (1 + mp.exp(-x)) / (1 + mp.exp(x)),
    ),
    "exp(x) / (exp(x) + exp(-x))": (
        lambda x: pt.exp(x) / (pt.exp(x) + pt.exp(-x)),
        lambda x: 1 / (1 + mp.exp(-2 * x)),
        lambda x: 2 / (1 + mp.exp(-2 * x)) / (1 + mp.exp(2 * x)),
    ),
    "log(exp(x) * c)": (lambda x: pt.log(pt.exp(x) * 3.0), lambda x: x + mp.log(3), lambda x: 1),
    "log(exp(x) * y)": (
        lambda x: pt.log(pt.exp(x) * pt.sqr(x)),
        lambda x: x + 2 * mp.log(abs(x)),
        lambda x: 1 + 2 / x,
    ),
    "log(y * exp(x) * z)": (
        lambda x: pt.log(pt.abs(x) * pt.exp(x) * (1 / (pt.abs(x) + 2))),
        lambda x: x + mp.log(abs(x)) - mp.log(abs(x) + 2),
        lambda x: 1 + 1 / x - mp.sign(x) / (abs(x) + 2),
    ),
    "log(exp(x) / y)": (
        lambda x: pt.log(pt.exp(x) / pt.abs(x)),
        lambda x: x - mp.log(abs(x)),
        lambda x: 1 - 1 / x,
    ),
    "log(y / exp(x))": (
        lambda x: pt.log(pt.abs(x) / pt.exp(x)),
        lambda x: mp.log(abs(x)) - x,
        lambda x: 1 / x - 1,
    ),
    "log(x**y)": (
        lambda x: pt.log(pt.abs(x) ** (pt.abs(x) + 1)),
        lambda x: (abs(x) + 1) * mp.log(abs(x)),
        lambda x: mp.sign(x) * (mp.log(abs(x)) + 1 + 1 / abs(x)),
    ),
    "sqrt(x)**2": (lambda x: pt.sqrt(x) ** 2, lambda x: _if(x >= 0, x), lambda x: _if(x >= 0, 1)),
    "log(gamma(x))": (
        lambda x: pt.log(pt.gamma(x)),
        lambda x: _if(0 < x < 1e4, x, short.loggamma),
        lambda x: _if(0 < x < 1e4, x, short.digamma),
    ),
    "sqrt(gamma(x))": (
        lambda x: pt.sqrt(pt.gamma(x)),
        lambda x: _if(0 < x < 300, x, lambda x: short.sqrt(short.gamma(x))),
        lambda x: _if(0 < x < 300, x, lambda x: short.digamma(x) * short.sqrt(short.gamma(x)) / 2),
    ),
    "tanh(gamma(x))": (
        lambda x: pt.tanh(pt.gamma(x)),
        lambda x: _if(0 < x < 300, x, lambda x: short.tanh(short.gamma(x))),
        lambda x: _if(0 < x < 300, x, _slope_of_tanh_gamma),
    ),
    "log(1 + exp(x))": (
        lambda x: pt.log(1 + pt.exp(x)),
        lambda x: mp.log1p(mp.exp(x)),
        lambda x: 1 / (1 + mp.exp(-x)),
    ),
    "sigmoid(softplus(x)) written out": (
        lambda x: pt.exp(-pt.log(1 - pt.sigmoid(x))) / (1 + pt.exp(-pt.log(1 - pt.sigmoid(x)))),
        lambda x: (1 + mp.exp(x)) / (2 + mp.exp(x)),
        lambda x: mp.exp(x) / (2 + mp.exp(x)) ** 2,
    ),
    "log(exp(log1p(sigmoid(x))) + exp(x))": (
        lambda x: pt.log(pt.exp(pt.log1p(pt.sigmoid(x))) + pt.exp(x)),
        lambda x: mp.log(1 + 1 / (1 + mp.exp(-x)) + mp.exp(x)),
        lambda x: (mp.exp(x) / (1 + mp.exp(x)) ** 2 + mp.exp(x)) / (1 + 1 / (1 + mp.exp(-x)) + mp.exp(x)),
    ),
    "exp(log(x))": (lambda x: pt.exp(pt.log(x)), lambda x: _if(x >= 0, x), lambda x: _if(x >= 0, 1)),
    "expm1(log(x))": (lambda x: pt.expm1(pt.log(x)), lambda x: _if(x >= 0, x - 1), lambda x: _if(x >= 0, 1)),
    "expm1(log1p(x))": (
        lambda x: pt.expm1(pt.log1p(x)),
        lambda x: _if(x >= -1, x),
        lambda x: _if(x >= -1, 1),
    ),
    "exp(log1p(x))": (
        lambda x: pt.exp(pt.log1p(x)),
        lambda x: _if(x >= -1, 1 + x),
        lambda x: _if(x >= -1, 1),
    ),
    "arcsinh(sinh(x))": (lambda x: pt.arcsinh(pt.sinh(x)), lambda x: x, lambda x: 1),
    "sinh(arcsinh(x))": (lambda x: pt.sinh(pt.arcsinh(x)), lambda x: x, lambda x: 1),
    "arccosh(cosh(x))": (lambda x: pt.arccosh(pt.cosh(x)), abs, mp.sign),
    "cosh(arccosh(x))": (
        lambda x: pt.cosh(pt.arccosh(x)),
        lambda x: _if(x >= 1, x),
        lambda x: _if(x >= 1, 1),
    ),
    "arctanh(tanh(x))": (lambda x: pt.arctanh(pt.tanh(x)), lambda x: x, lambda x: 1),
    "tanh(arctanh(x))": (
        lambda x: pt.tanh(pt.arctanh(x)),
        lambda x: _if(abs(x) <= 1, x),
        lambda x: _if(abs(x) <= 1, 1),
    ),
    "1 / (1 / x)": (lambda x: 1 / (1 / x), lambda x: x, lambda x: 1),
    "sign(x * c)": (lambda x: pt.sign(x * 1e-200), mp.sign, lambda x: 0),
    "log(sqrt(x))": (
        lambda x: pt.log(pt.sqrt(x)),
        lambda x: _if(x > 0, x, lambda x: mp.log(x) / 2),
        lambda x: _if(x > 0, x, lambda x: 1 / (2 * x)),
    ),
    "log(kv(0.5, x))": (
        lambda x: pt.log(pt.kv(0.5, x)),
        lambda x: _if(0 < x < 1e6, x, lambda x: mp.log(mp.pi / (2 * x)) / 2 - x),
        lambda x: _if(1e-8 < x < 1e6, x, lambda x: -1 / (2 * x) - 1),
    ),
    "log(iv(0.5, x))": (
        lambda x: pt.log(pt.iv(0.5, x)),
        lambda x: _if(0 < x < 1e6, x, lambda x: mp.log(2 / (mp.pi * x)) / 2 + mp.log(mp.sinh(x))),
        lambda x: _if(1e-8 < x < 1e6, x, lambda x: -1 / (2 * x) + 1 / mp.tanh(x)),
    ),
    "log(prod(exp))": (
        lambda x: pt.log(pt.prod(pt.stack([pt.exp(x), pt.exp(-x), pt.exp(x)]), axis=0)),
        lambda x: x,
        lambda x: 1,
    ),
    "log(prod)": (
        lambda x: pt.log(pt.prod(pt.stack([x, x, x]), axis=0)),
        lambda x: _if(x > 0, x, lambda x: 3 * mp.log(x)),
        lambda x: _if(x > 0, x, lambda x: 3 / x),
    ),
    "log(det(A))": (
        lambda x: pt.log(pt.linalg.det(_diagonal(x))) + 0 * x,
        lambda x: _if(x > 0, x, lambda x: 2 * mp.log(x)),
        lambda x: _if(x > 0, x, lambda x: 2 / x),
    ),
    "log(abs(det(A)))": (
        lambda x: pt.log(abs(pt.linalg.det(_diagonal(x)))),
        lambda x: 2 * mp.log(abs(x)),
        lambda x: 2 / x,
    ),
    "sign(det(A))": (lambda x: pt.sign(pt.linalg.det(_diagonal(x))), lambda x: mp.sign(abs(x)), lambda x: 0),
    "log(prod(diagonal(L)))": (
        lambda x: pt.log(pt.prod(pt.diagonal(_diagonal(x)))),
        lambda x: 2 * mp.log(abs(x)),
        lambda x: 2 / x,
    ),
}
"""An expression of a number, its exact value, and its exact slope."""


def _slope_of_erf(x):
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def _if(holds, x, function=lambda x: x):
    return function(x) if holds else mp.nan


def _diagonal(x):
    return pt.diag(pt.stack([x, x]))


@pytest.fixture(scope="module")
def found():
    """The value and the slope of every expression at every point: of one function."""
    x = pt.dscalar("x")
    values = [expression(x) for expression, *_ in EXPRESSIONS.values()]
    f = engine.function(
        [x], values + [grad(value, x, disconnected_inputs="ignore") for value in values], mode=REWRITTEN
    )
    with np.errstate(all="ignore"):
        columns = np.array([f(point) for point in POINTS], dtype=float).T
    return dict(
        zip(EXPRESSIONS, zip(columns[: len(values)], columns[len(values) :], strict=True), strict=True)
    )


def exact(function, point):
    """What a float64 would have to be, or NaN if none could."""
    try:
        value = function(mp.mpf(point))
    except (ZeroDivisionError, ValueError):
        return np.nan
    return float(value) if abs(value) <= LARGEST else np.nan


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_it_is_right_where_exact_arithmetic_has_a_number(found, name):
    for result, function, what in zip(found[name], EXPRESSIONS[name][1:], ("value", "slope"), strict=True):
        due = np.array([exact(function, point) for point in POINTS])
        near = np.abs(result - due) <= 1e-10 * np.abs(due) + 1e-300
        wrong = np.isfinite(due) & ~near
        assert not wrong.any(), (what, POINTS[wrong], result[wrong], due[wrong])


def test_the_log_of_a_power_is_that_of_the_power_where_the_base_is_not_positive():
    x, y = pt.dvector("x"), pt.dvector("y")
    bases = np.array([0.0, 0.0, -0.0, 0.0, -2.0, -2.0, -2.0, np.nan, np.inf, -np.inf])
    exponents = np.array([0.0, 2.0, 3.0, -1.0, 2.0, 3.0, 0.5, 0.0, -1.0, 2.0])
    with np.errstate(all="ignore"):
        due = np.log(bases**exponents)
    np.testing.assert_array_equal(engine.function([x, y], pt.log(x**y))(bases, exponents), due)
    slope = engine.function([x, y], grad(pt.log(x**y).sum(), x))
    np.testing.assert_array_equal(slope([-2.0, 2.0, 1e200], [2.0, 3.0, 300.0]), [-1.0, 1.5, 3e-198])
