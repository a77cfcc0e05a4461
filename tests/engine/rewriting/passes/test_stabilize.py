import numpy as np
import pytest

import engine
import engine.tensor as pt

BUILDS = [
    (lambda x: pt.log(1 + x), ["log1p"], lambda x: np.log1p(x)),
    (lambda x: pt.log(x + 1), ["log1p"], lambda x: np.log1p(x)),
    (lambda x: pt.log(1 - x), ["neg", "log1p"], lambda x: np.log1p(-x)),
    (lambda x: pt.exp(x) - 1, ["expm1"], lambda x: np.expm1(x)),
    (lambda x: pt.exp(x) + (-1), ["expm1"], lambda x: np.expm1(x)),
    (lambda x: 1 - pt.exp(x), ["expm1", "neg"], lambda x: -np.expm1(x)),
    (lambda x: pt.log(pt.exp(x)), [], lambda x: x),
    (lambda x: pt.log(pt.sigmoid(x)), ["neg", "softplus", "neg"], lambda x: -np.logaddexp(0, -x)),
    (lambda x: pt.log(1 - pt.sigmoid(x)), ["softplus", "neg"], lambda x: -np.logaddexp(0, x)),
    (lambda x: pt.log1p(-pt.sigmoid(x)), ["softplus", "neg"], lambda x: -np.logaddexp(0, x)),
    (lambda x: pt.log1p(pt.exp(x)), ["softplus"], lambda x: np.logaddexp(0, x)),
    (lambda x: pt.log(1 + pt.exp(x)), ["softplus"], lambda x: np.logaddexp(0, x)),
    (lambda x: 1 / (1 + pt.exp(-x)), ["sigmoid"], lambda x: np.exp(-np.logaddexp(0, -x))),
    (lambda x: pt.reciprocal(pt.exp(-x) + 1), ["sigmoid"], lambda x: np.exp(-np.logaddexp(0, -x))),
    (lambda x: 1 / (1 + pt.exp(x)), ["neg", "sigmoid"], lambda x: np.exp(-np.logaddexp(0, x))),
    (lambda x: pt.exp(x) / (1 + pt.exp(x)), ["sigmoid"], lambda x: np.exp(-np.logaddexp(0, -x))),
    (lambda x: 1 / (1 + pt.exp(x)) * pt.exp(x), ["sigmoid"], lambda x: np.exp(-np.logaddexp(0, -x))),
    (
        lambda x: 3 / (1 + pt.exp(x)) * pt.exp(x),
        ["sigmoid", "mul"],
        lambda x: 3 * np.exp(-np.logaddexp(0, -x)),
    ),
]


@pytest.mark.parametrize(("build", "expected", "exactly"), BUILDS)
def test_an_unstable_expression_becomes_a_stable_one(rewritten, dtype, build, expected, exactly):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, build(x))
    assert graph.ops == expected
    moderate = np.array([-0.9, -0.5, 0.25, 0.75], dtype)
    np.testing.assert_allclose(
        graph.check_values(moderate).evaluate(moderate),
        exactly(moderate),
        rtol=1e-5 if dtype == "float32" else 1e-12,
    )


@pytest.mark.parametrize(("build", "expected", "exactly"), BUILDS[3:])
def test_a_stable_expression_is_right_where_the_unstable_one_overflows_or_cancels(
    rewritten, dtype, build, expected, exactly
):
    x = pt.vector("x", dtype=dtype)
    extreme = np.array([-80.0, -1e-9, 1e-9, 60.0], dtype)
    found = rewritten(x, build(x)).evaluate(extreme)
    np.testing.assert_allclose(
        found, exactly(extreme.astype("float64")), rtol=1e-5 if dtype == "float32" else 1e-12
    )


@pytest.mark.parametrize(
    ("build", "sign"),
    [
        (lambda x: pt.exp(pt.log1p(pt.sqr(x))) - 1, 1),
        (lambda x: -1 + pt.exp(pt.log(1 + pt.sqr(x))), 1),
        (lambda x: 1 - pt.exp(pt.log1p(pt.sqr(x))), -1),
    ],
)
def test_a_number_added_to_1_under_a_logarithm_comes_back_whole(rewritten, build, sign):
    x = pt.vector("x")
    values = np.array([-1e-18, 0.5, 30.0])
    np.testing.assert_allclose(rewritten(x, build(x)).evaluate(values), sign * values**2, rtol=1e-12)


@pytest.mark.parametrize("points", [[-800.0, -3.0, -1e-9, 0.0, 0.4, 2.0]])
@pytest.mark.parametrize(
    ("build", "expected", "exactly"),
    [
        (lambda x: pt.log1mexp(pt.log1mexp(x)), [], lambda x: x if x <= 0 else np.nan),
        (lambda x: pt.log1mexp(pt.log(x)), ["neg", "log1p"], lambda x: np.log1p(-x) if x >= 0 else np.nan),
        (lambda x: pt.softplus(pt.log(x)), ["log1p"], lambda x: np.log1p(x) if x >= 0 else np.nan),
    ],
)
def test_functions_of_logarithms_are_computed_without_them(rewritten, build, expected, exactly, points):
    x = pt.vector("x")
    graph = rewritten(x, build(x))
    assert [op for op in graph.ops if op not in ("le", "ge", "where")] == expected
    with np.errstate(all="ignore"):
        exact = [exactly(point) for point in points]
    np.testing.assert_allclose(graph.evaluate(np.array(points)), exact, rtol=1e-14)


def test_digits_next_to_0_survive_a_logarithm_of_what_log1mexp_is_read_by(rewritten):
    x = pt.vector("x")
    found = rewritten(x, pt.log1p(pt.expm1(pt.log1mexp(x)))).evaluate(np.array([-1e-30, -50.0]))
    np.testing.assert_allclose(found, [np.log(1e-30), -np.exp(-50.0)], rtol=1e-14)


@pytest.mark.parametrize(
    ("build", "exactly"),
    [
        (lambda x: pt.log(pt.exp(x)), lambda x: x),
        (lambda x: pt.log1p(pt.expm1(x)), lambda x: x),
        (lambda x: pt.sqr(pt.sqrt(x)), lambda x: x if x >= 0 else np.nan),
        (lambda x: pt.exp(pt.log(x)), lambda x: x if x >= 0 else np.nan),
        (lambda x: pt.tanh(pt.arctanh(x)), lambda x: x if abs(x) <= 1 else np.nan),
        (lambda x: pt.log1mexp(pt.log(x)), lambda x: np.log1p(-float(x)) if 0 <= x <= 1 else np.nan),
    ],
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_functions_undo_each_other_for_whole_numbers_too(rewritten, build, exactly, dtype):
    x = pt.vector("x", dtype=dtype)
    graph = rewritten(x, build(x))
    assert not {"exp", "log", "expm1", "sqrt", "tanh"} & set(graph.ops)
    points = np.array([0, 1, 2, 127, *([] if dtype == "uint8" else [-1, -128])], dtype)
    with np.errstate(all="ignore"):
        exact = [exactly(int(point)) for point in points]
    np.testing.assert_array_equal(graph.evaluate(points), exact)


def test_the_root_of_a_square_of_whole_numbers_stays_because_squares_wrap(rewritten):
    x = pt.vector("x", dtype="int8")
    assert "sqrt" in rewritten(x, pt.sqrt(pt.sqr(x))).ops


def test_integers_are_left_alone_because_they_wrap(rewritten):
    x = pt.lvector("x")
    assert "log1p" not in rewritten(x, pt.log(1 + x)).ops


def test_a_sum_in_another_precision_is_left_alone(rewritten):
    x = pt.fvector("x")
    graph = rewritten(x, pt.log(pt.cast(1 + x, "float64"))).check_values(np.array([1e-9, 2.0], "float32"))
    assert "log1p" not in graph.ops


def test_a_constant_that_is_not_one_is_left_alone(rewritten):
    x = pt.dvector("x")
    assert rewritten(x, pt.log(2 + x)).check_values(np.array([1.0, 2.0])).ops == ["add", "log"]


def test_a_pattern_with_one_variable_twice_needs_the_same_variable_twice(rewritten):
    x, y = pt.dvector("x"), pt.dvector("y")
    graph = rewritten([x, y], pt.sigmoid(-x) * pt.exp(y)).check_values(
        np.array([1.0, 2.0]), np.array([0.0, 1.0])
    )
    assert graph.ops == ["neg", "sigmoid", "exp", "mul"]


@pytest.mark.parametrize(
    ("build", "due"),
    [
        (lambda x: (1 + x) - 1, lambda x: x),
        (lambda x: 1 - (1 - x), lambda x: x),
        (lambda x: (3 - x) - 3, lambda x: -x),
        (lambda x: (x + 1e20) + (-1e20), lambda x: x),
        (lambda x: (x - 2.5) + 1, lambda x: x - 1.5),
        (lambda x: (3 + x)[None] - pt.constant(np.array([[3]], "float32")), lambda x: x[None]),
    ],
)
def test_constants_of_sums_are_added_first(build, due):
    x = pt.dvector("x")
    points = np.array([1e-300, -1e-20, 0.3, 5.0])
    np.testing.assert_array_equal(engine.function([x], build(x))(points), due(points))


def test_constants_of_sums_whose_sum_overflows_stay():
    x = pt.dvector("x")
    f = engine.function([x], (x + 1.5e308) + 1.5e308)
    np.testing.assert_array_equal(f([-1.5e308, 0.0]), [1.5e308, np.inf])


@pytest.mark.parametrize("c", [3.0, -3.0, 1e308, -1e-308])
def test_the_sign_of_a_quotient_by_a_number_needs_no_quotient(rewritten, c):
    x = pt.dvector("x")
    values = np.array([2.0, -0.5, 0.0, 5e-324, -5e-324, np.inf, -np.inf, np.nan])
    graph = rewritten(x, pt.sign(x / c))
    assert {"true_div", "mul"}.isdisjoint(graph.ops)
    np.testing.assert_array_equal(graph.evaluate(values), np.sign(values) * np.sign(c))
    over = rewritten(x, pt.sign(c / x)).check_values(values, exact=True)
    assert "true_div" in over.ops


@pytest.mark.parametrize("one", [np.float32(1), np.int8(1), np.bool_(True)])
def test_a_number_of_another_dtype_is_that_number(rewritten, one):
    x = pt.dvector("x")
    graph = rewritten(x, pt.log(pt.constant(np.array([one])) + x))
    assert graph.ops == ["log1p"]
    np.testing.assert_allclose(graph.evaluate(np.array([1e-20, 2.0])), np.log1p([1e-20, 2.0]), rtol=1e-15)


def test_an_argument_of_another_dtype_is_no_argument_of_the_function(rewritten):
    x = pt.fvector("x")
    assert "log1p" not in rewritten(x, pt.log(pt.constant(np.array([1.0])) + x)).ops


def test_a_result_that_is_an_exponential_of_softplus_needs_no_softplus(rewritten):
    x = pt.dvector("x")
    values = np.array([-np.inf, -800.0, -1e-9, 0.0, 3.0, 700.0, 800.0, np.inf, np.nan])
    graph = rewritten(x, pt.exp(pt.softplus(x)))
    assert graph.ops == ["exp", "add"]
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(graph.evaluate(values), 1 + np.exp(values), rtol=1e-15)


def test_a_result_that_undoes_log1mexp_is_nan_where_that_is(rewritten):
    x = pt.dvector("x")
    values = np.array([-np.inf, -800.0, -3.0, -1e-12, -0.0, 0.0, 1e-9, 2.0, np.inf, np.nan])
    graph = rewritten(x, pt.expm1(pt.log1mexp(x)))
    assert {"expm1", "log1mexp"}.isdisjoint(graph.ops)
    due = np.where(values <= 0, -np.exp(np.minimum(values, 0)), np.nan)
    np.testing.assert_allclose(graph.evaluate(values), due, rtol=1e-15)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: pt.log(pt.sum(pt.exp(pt.softplus(x)))),
        lambda x, y: pt.log(pt.exp(pt.softplus(x)) + pt.exp(y)),
        lambda x, y: pt.exp(pt.softplus(x)) / (1 + pt.exp(pt.softplus(x))),
        lambda x, y: pt.exp(pt.softplus(x)) * pt.exp(-y),
    ],
)
def test_an_exponential_of_softplus_that_is_read_does_not_overflow(rewritten, build):
    x, y = pt.dvector("x"), pt.dvector("y")
    assert np.isfinite(rewritten([x, y], build(x, y)).evaluate(np.array([800.0]), np.array([800.0]))).all()


def test_log1p_of_what_undoes_log1mexp_keeps_its_digits(rewritten):
    x = pt.dvector("x")
    graph = rewritten(x, pt.log1p(pt.expm1(pt.log1mexp(x))))
    np.testing.assert_allclose(graph.evaluate(np.array([-1e-12])), np.log(1e-12), rtol=1e-12)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + 0.0 + 0.0,
        lambda x: 0.0 + (0.0 + x),
        lambda x: 0.0 - x + 0.0,
        lambda x: x + 0.0 + pt.constant(-0.0),
        lambda x: x + pt.constant(-0.0) + 0.0,
    ],
)
def test_zeros_that_are_added_one_after_the_other_make_a_zero_positive(rewritten, build):
    x = pt.dvector("x")
    rewritten(x, build(x)).check_values(np.array([-0.0, 0.0, -1.0, np.inf, np.nan]), exact=True)
