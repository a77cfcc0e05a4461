"""Gradients of functions of several branches: what a branch that is not taken computes has no part in them."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad
from engine.graph.reference import evaluate

REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)
POINTS = np.array([-1.0, 0.0, 0.25, 4.0])
INF = float("inf")


def weibull(x):
    """The logarithm of the density of shape 1.5 and scale 2."""
    z = x / 2.0
    return pt.switch(x >= 0, np.log(0.75) + 0.5 * pt.log(z) - z**1.5, -INF)


def nested(x):
    inner = pt.switch(x < 2, pt.log(x) / pt.sqrt(2 - x), pt.sqrt(x - 2))
    return pt.switch(x > 0, inner, 0.0)


def shared_by_two_branches(x):
    root, positive = pt.sqrt(x), x > 0
    return pt.switch(positive, 2 * root, 0.0) + pt.switch(positive, 3 * root, x)


def truncated(x):
    inside = pt.and_(x >= 0, x <= 1)
    return pt.switch(inside, 1.5 * pt.log(x) + 0.5 * pt.log1p(-x), -INF)


def of_rows(x):
    total = pt.sum(pt.sqrt(x.reshape((4, 1))), axis=1)
    return pt.switch(x > 0, total, 0.0)


def transposed(x):
    return pt.switch(x.reshape((1, 4)) > 0, pt.sqrt(x.reshape((4, 1))).T, 0.0)


def sinc(x):
    return pt.switch(pt.eq(x, 0), 1.0, pt.sin(x) / x)


P = POINTS[2:]
CASES = [
    (lambda x: pt.where(x > 0, pt.sqrt(x), 0.0), [0, 0, *(0.5 / np.sqrt(P))]),
    (lambda x: pt.switch(x > 0, pt.log(x) * 2 - x, -INF), [0, 0, *(2 / P - 1)]),
    (lambda x: pt.switch(x <= 0, 0.0, x**0.5), [0, 0, *(0.5 / np.sqrt(P))]),
    (lambda x: pt.switch(x > 0, pt.exp(3 * pt.log(x)), 0.0), [0, 0, *(3 * P**2)]),
    (lambda x: pt.switch(x > 0, pt.gammaln(x) / pt.sqrt(x), 0.0), None),
    (lambda x: pt.sqrt(pt.clip(x, 0.0, 9.0)), [0, INF, *(0.5 / np.sqrt(P))]),
    (weibull, [0, INF, *(0.5 / P - 0.75 * np.sqrt(P / 2))]),
    (nested, [0, 0, None, 0.5 / np.sqrt(2)]),
    (shared_by_two_branches, [1, 1, *(2.5 / np.sqrt(P))]),
    (truncated, [0, INF, 1.5 / 0.25 - 0.5 / 0.75, 0]),
    (of_rows, [0, 0, *(0.5 / np.sqrt(P))]),
    (transposed, [0, 0, *(0.5 / np.sqrt(P))]),
    (sinc, [np.sin(1) - np.cos(1), 0, *((P * np.cos(P) - np.sin(P)) / P**2)]),
]


@pytest.mark.parametrize("mode", ["NUMPY", REWRITTEN], ids=["as written", "rewritten"])
@pytest.mark.parametrize(("build", "due"), CASES)
def test_a_branch_that_is_not_taken_adds_nothing(build, due, mode):
    x = pt.dvector("x")
    (found,) = engine.function([x], [grad(pt.sum(build(x)), x)], mode=mode)(POINTS)
    assert not np.any(np.isnan(found))
    for number, expected in enumerate(due or ()):
        if expected is not None:
            np.testing.assert_allclose(found[number], expected, rtol=1e-12, atol=1e-15)


def test_compiled_code_gives_the_same():
    x = pt.dvector("x")
    gradients = [grad(pt.sum(build(x)), x) for build, _ in CASES]
    due = evaluate([x], gradients, [POINTS])
    for found, expected in zip(engine.function([x], gradients)(POINTS), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_second_derivatives_and_parameters_are_finite_too():
    x, shape = pt.dvector("x"), pt.dscalar("shape")
    z = x / 2.0
    cost = pt.sum(pt.switch(x > 0, pt.log(shape) + (shape - 1) * pt.log(z) - z**shape, 0.0))
    first = grad(cost, [x, shape])
    second = [grad(pt.sum(first[0]), x), grad(first[1], shape), grad(pt.sum(first[0]), shape)]
    for found in evaluate([x, shape], [*first, *second], [POINTS, np.array(1.5)]):
        assert np.all(np.isfinite(found))


def test_branches_within_the_steps_of_a_loop_are_told_apart():
    x = pt.dvector("x")
    found = engine.scan(lambda r, a: a + pt.switch(r > 0, pt.sqrt(r), 0.0), x, 0.0, return_updates=False)
    (slope,) = evaluate([x], [grad(found[-1], x)], [POINTS])
    np.testing.assert_allclose(slope, [0, 0, *(0.5 / np.sqrt(P))])


def test_what_is_multiplied_by_a_branch_gets_nothing_where_that_is_not_taken():
    x, y = pt.dvector("x"), pt.dvector("y")
    cost = pt.sum(pt.switch(x > 0, x, 0.0) * pt.sqrt(y))
    (found,) = evaluate([x, y], [grad(cost, y)], [POINTS, np.zeros(4)])
    assert found.tolist() == [0, 0, INF, INF]


def test_a_branch_of_another_dtype_is_left_as_it_is():
    x, k = pt.dvector("x"), pt.ivector("k")
    cost = pt.sum(pt.switch(x > 0, k, 0.0) * (x * 2**40) * pt.exp(pt.switch(x > 0, k, 0.0)))
    values = [np.array([-1.0, 2.0]), np.array([3, 3], "int32")]
    outputs = [cost, grad(cost, x)]
    for found, due in zip(
        engine.function([x, k], outputs, mode=REWRITTEN)(*values),
        evaluate([x, k], outputs, values),
        strict=True,
    ):
        np.testing.assert_allclose(found, due)
        assert found.dtype == np.float64


def test_what_both_branches_use_gets_what_flows_through_each():
    x = pt.dvector("x")
    y = pt.exp(x)
    cost = pt.sum(pt.switch(x > 0, y * 2, pt.switch(x < 0, y * 3, y * x)))
    (found,) = evaluate([x], [grad(cost, x)], [POINTS])
    np.testing.assert_allclose(found, [3 * np.exp(-1), 1.0, *(2 * np.exp(P))])


def test_the_slope_of_log1mexp_is_right_close_to_0_and_far_from_it():
    x = pt.dvector("x")
    points = np.array([-1e-20, -1e-17, -0.5, -0.7, -30.0, -700.0])
    due = -1 / np.expm1(-points)
    for mode in ("NUMPY", REWRITTEN, None):
        (found,) = engine.function([x], [grad(pt.sum(pt.log1mexp(x)), x)], mode=mode)(points)
        np.testing.assert_allclose(found, due, rtol=1e-12)
