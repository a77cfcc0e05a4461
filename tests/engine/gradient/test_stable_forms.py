"""Values and gradients where what is written overflows or cancels: those that exact arithmetic gives."""

import numpy as np
import pytest
from scipy import special as sp

import engine
import engine.tensor as pt
from engine import grad
from engine.gradient import pushforward
from engine.gradient.stable_forms import stable_form
from engine.graph.reference import evaluate
from engine.graph.traversal import apply_ancestors
from engine.rewriting.pipeline import rewrite_graph

REWRITTEN = engine.Mode("numpy", engine.Mode().optimizer)
FAR = np.array([-800.0, -40.0, -1.0, -1e-18, 0.0, 1e-18, 1.0, 40.0, 800.0])
BELOW = np.array([-1e-20, -1e-18, -0.3, -1.0, -40.0, -800.0])
TAIL = np.array([-40.0, -1.0, 0.0, 1.0, 8.0, 20.0, 24.9, 25.1, 27.0, 40.0, 1e6])


NEAR = np.array([1e-300, 1e-18, -1e-18, 1e-9, -1e-9, 1e-3, 0.5, 0.999, 1.0, 1.001, 3.0, 800.0, -800.0])


def probability(x):
    return 1 / (1 + pt.exp(-x))


def sigmoid(x):
    return sp.expit(x)


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def log1mexp(x):
    return np.where(x < -0.69, np.log1p(-np.exp(np.minimum(x, -0.69))), np.log(-np.expm1(x)))


def hazard(x):
    """The slope of the logarithm of erfc, less its sign."""
    return 2 / np.sqrt(np.pi) / sp.erfcx(x)


SIGMOIDS = [
    (lambda x: pt.log(probability(x)), log_sigmoid, lambda x: sigmoid(-x)),
    (lambda x: pt.log(1 - probability(x)), lambda x: log_sigmoid(-x), lambda x: -sigmoid(x)),
    (lambda x: pt.log1p(-probability(x)), lambda x: log_sigmoid(-x), lambda x: -sigmoid(x)),
    (lambda x: pt.log(pt.sigmoid(x)), log_sigmoid, lambda x: sigmoid(-x)),
    (lambda x: pt.log(1 - pt.sigmoid(x)), lambda x: log_sigmoid(-x), lambda x: -sigmoid(x)),
    (lambda x: pt.log(pt.exp(-x) / (1 + pt.exp(-x))), lambda x: log_sigmoid(-x), lambda x: -sigmoid(x)),
    (lambda x: pt.log((1 + pt.exp(-x)) ** -1), log_sigmoid, lambda x: sigmoid(-x)),
    (lambda x: pt.log(0.5 * probability(x)), lambda x: np.log(0.5) + log_sigmoid(x), lambda x: sigmoid(-x)),
    (lambda x: pt.log(pt.sigmoid(x) / (1 - pt.sigmoid(x))), lambda x: x, np.ones_like),
    (lambda x: pt.log(1 + pt.exp(x)), lambda x: np.logaddexp(0, x), sigmoid),
    (lambda x: pt.log1p(pt.exp(x)), lambda x: np.logaddexp(0, x), sigmoid),
    (lambda x: pt.log(pt.exp(x)), lambda x: x, np.ones_like),
    (probability, sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    (
        lambda x: 3 * pt.exp(x) / (1 + pt.exp(x)),
        lambda x: 3 * sigmoid(x),
        lambda x: 3 * sigmoid(x) * sigmoid(-x),
    ),
    (
        lambda x: -pt.exp(x) / ((1 + pt.exp(x)) * (1 + pt.exp(-x))),
        lambda x: -(sigmoid(x) ** 2),
        lambda x: -2 * sigmoid(x) ** 2 * sigmoid(-x),
    ),
    (
        lambda x: pt.exp(-x) / (1 + pt.exp(-x)) ** 2,
        lambda x: sigmoid(x) * sigmoid(-x),
        lambda x: sigmoid(x) * sigmoid(-x) * (sigmoid(-x) - sigmoid(x)),
    ),
    (
        lambda x: (2 * (-pt.exp(x))) * 3 / (1 + pt.exp(x)),
        lambda x: -6 * sigmoid(x),
        lambda x: -6 * sigmoid(x) * sigmoid(-x),
    ),
    (
        lambda x: pt.exp(x) / ((2 + pt.cos(x)) * (1 + pt.exp(x))),
        lambda x: sigmoid(x) / (2 + np.cos(x)),
        lambda x: sigmoid(x) * (sigmoid(-x) / (2 + np.cos(x)) + np.sin(x) / (2 + np.cos(x)) ** 2),
    ),
    (lambda x: 3 / (1 + pt.exp(x)), lambda x: 3 * sigmoid(-x), lambda x: -3 * sigmoid(x) * sigmoid(-x)),
    (lambda x: pt.log(pt.exp(x) + pt.exp(-x)), lambda x: np.logaddexp(x, -x), np.tanh),
    (lambda x: pt.log(pt.exp(-x) + pt.exp(x)), lambda x: np.logaddexp(x, -x), np.tanh),
    (lambda x: pt.sigmoid(x) - 1, lambda x: -sigmoid(-x), lambda x: sigmoid(x) * sigmoid(-x)),
    (lambda x: -1 + probability(x), lambda x: -sigmoid(-x), lambda x: sigmoid(x) * sigmoid(-x)),
    (lambda x: (1 + (-pt.sigmoid(x))) - 1, lambda x: -sigmoid(x), lambda x: -sigmoid(x) * sigmoid(-x)),
    (lambda x: pt.log(pt.exp(-(x**2) / 2) / 3), lambda x: -(x**2) / 2 - np.log(3), lambda x: -x),
    (lambda x: pt.sqrt(pt.sqr(x)), np.abs, np.sign),
    (lambda x: pt.sqrt(x * x), np.abs, np.sign),
    (lambda x: (x**2) ** 0.5, np.abs, np.sign),
    (lambda x: pt.log(pt.sqr(1e250 * (1 + pt.sqr(x)))), None, lambda x: 4 * x / (1 + x**2)),
]
LOGS = [
    (lambda x: pt.log(1 - pt.exp(x)), BELOW, log1mexp, lambda x: -1 / np.expm1(-x)),
    (lambda x: pt.log1p(-pt.exp(x)), BELOW, log1mexp, lambda x: -1 / np.expm1(-x)),
    (lambda x: pt.log(-pt.expm1(x)), BELOW, log1mexp, lambda x: -1 / np.expm1(-x)),
    (lambda x: pt.log(pt.exp(-x) - 1), BELOW, lambda x: -x + log1mexp(x), lambda x: 1 / np.expm1(x)),
    (
        lambda x: pt.log(pt.exp(-x) - pt.exp(x)),
        BELOW,
        lambda x: -x + log1mexp(2 * x),
        lambda x: 1 / np.tanh(x),
    ),
    (lambda x: pt.log(pt.erfc(x)), TAIL, lambda x: _log_erfc(x), lambda x: -hazard(x)),
    (lambda x: pt.log(1 - pt.erf(x)), TAIL, lambda x: _log_erfc(x), lambda x: -hazard(x)),
    (
        lambda x: pt.log(0.5 * (1 + pt.erf(-x))),
        TAIL,
        lambda x: _log_erfc(x) - np.log(2),
        lambda x: -hazard(x),
    ),
]
POSITIVE = np.array([1e-200, 1e-10, 0.3, 1.0, 5.5, 40.0, 800.0])
NEAR = np.array([-700.0, -300.0, -1.0, -1e-18, 0.0, 1e-18, 2.5, 300.0, 700.0])
PRODUCTS = [
    (lambda x: pt.exp(x) * pt.exp(-x), FAR, np.ones_like, np.zeros_like),
    (lambda x: pt.exp(x) / pt.exp(0.5 * x), FAR, lambda x: np.exp(x / 2), lambda x: np.exp(x / 2) / 2),
    (
        lambda x: pt.exp(x) / (pt.exp(x) + pt.exp(-x)),
        FAR,
        lambda x: sp.expit(2 * x),
        lambda x: 2 * sp.expit(2 * x) * sp.expit(-2 * x),
    ),
    (
        lambda x: pt.exp(x) / (pt.exp(-x) + pt.exp(3 * x)),
        NEAR,
        lambda x: np.exp(x - np.logaddexp(-x, 3 * x)),
        lambda x: np.exp(x - np.logaddexp(-x, 3 * x)) * (2 * sp.expit(-4 * x) - 2 * sp.expit(4 * x)),
    ),
    (lambda x: 1 / pt.exp(x), NEAR, lambda x: np.exp(-x), lambda x: -np.exp(-x)),
    (lambda x: 1 / pt.sigmoid(x), NEAR, lambda x: 1 + np.exp(-x), lambda x: -np.exp(-x)),
    (lambda x: pt.log(pt.exp(x) ** 2), FAR, lambda x: 2 * x, lambda x: np.full_like(x, 2)),
    (lambda x: pt.log(pt.sqrt(pt.exp(x))), FAR, lambda x: x / 2, lambda x: np.full_like(x, 0.5)),
    (lambda x: pt.log(pt.exp(x) ** 4.0), FAR, lambda x: 4 * x, lambda x: np.full_like(x, 4)),
    (lambda x: pt.log(pt.exp(x) * pt.exp(2 * x)), FAR, lambda x: 3 * x, lambda x: np.full_like(x, 3)),
    (lambda x: pt.log(pt.expm1(pt.softplus(x))), FAR, lambda x: x, np.ones_like),
    (lambda x: (x**0.5) ** 2, POSITIVE, lambda x: x, np.ones_like),
    (lambda x: 1e200 * x * (x + 2e200) / (x + 2e200), POSITIVE, lambda x: 1e200 * x, lambda x: 1e200 + 0 * x),
    (lambda x: pt.log(pt.gamma(x)), POSITIVE, sp.gammaln, sp.psi),
    (
        lambda x: pt.exp(-x * x) / pt.erfc(x),
        np.array([-40.0, -1.0, 0.0, 1.0, 20.0, 40.0]),
        lambda x: 1 / sp.erfcx(x),
        lambda x: np.where(
            x > 0, 2 / np.sqrt(np.pi) / sp.erfcx(x) ** 2 - 2 * x / sp.erfcx(x), _slope_below(np.minimum(x, 0))
        ),
    ),
    (lambda x: pt.log(pt.prod(pt.exp(x))) + 0 * x, FAR, lambda x: np.full_like(x, x.sum()), None),
    (
        lambda x: pt.log(pt.abs(pt.prod(-x))) + 0 * x,
        POSITIVE,
        lambda x: np.full_like(x, np.log(x).sum()),
        None,
    ),
    (
        lambda x: pt.log(pt.prod(pt.abs(1e200 * x))) + 0 * x,
        -POSITIVE,
        lambda x: np.full_like(x, np.log(1e200 * np.abs(x)).sum()),
        None,
    ),
    (
        lambda x: pt.log(pt.prod((1e200 * x) ** 2)) + 0 * x,
        -POSITIVE,
        lambda x: np.full_like(x, 2 * np.log(1e200 * np.abs(x)).sum()),
        None,
    ),
    (lambda x: pt.log(pt.prod(x)) + 0 * x, POSITIVE, lambda x: np.full_like(x, np.log(x).sum()), None),
]
CASES = [(build, FAR, value, slope) for build, value, slope in SIGMOIDS] + LOGS + PRODUCTS


def _slope_below(x):
    """The slope of exp(-x**2) / erfc(x) where x is not positive."""
    ratio = np.exp(-(x**2)) / sp.erfc(x)
    return 2 / np.sqrt(np.pi) * ratio**2 - 2 * x * ratio


def _log_erfc(x):
    return np.where(x > 0, np.log(sp.erfcx(x)) - x**2, np.log(sp.erfc(np.minimum(x, 0))))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_values_and_gradients_are_right_at_extreme_points(number):
    build, points, value, slope = CASES[number]
    x = pt.dvector("x")
    outputs = [build(x), grad(pt.sum(build(x)), x)]
    with np.errstate(all="ignore"):
        due = [None if f is None else f(points) for f in (value, slope)]
    (unrewritten,) = evaluate([x], outputs[1:], [points])
    found = engine.function([x], outputs, mode=REWRITTEN)(points)
    for expected, result in zip([*due, due[1]], [*found, unrewritten], strict=True):
        if expected is not None:
            np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-18)


def test_compiled_code_gives_the_same():
    x = pt.dvector("x")
    outputs = [
        f for build, points, *_ in CASES if points is FAR for f in (build(x), grad(pt.sum(build(x)), x))
    ]
    due = engine.function([x], outputs, mode=REWRITTEN)(FAR)
    for found, expected in zip(engine.function([x], outputs)(FAR), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("points", [FAR, BELOW, TAIL], ids=["far", "below", "tail"])
def test_second_derivatives_and_tangents_are_finite(points):
    x = pt.dvector("x")
    for build, own, *_ in CASES:
        if own is points:
            first = grad(pt.sum(build(x)), x)
            tangent = pushforward(build(x), x, pt.ones_like(x))
            second = grad(pt.sum(first), x, disconnected_inputs="ignore")
            found = evaluate([x], [first, tangent, second], [points])
            assert np.all(np.isfinite(found[2]))
            np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


SCORES = np.array([[0.0, 800.0, -3.0], [1.0, 2.0, 1.5]])


def written_out(x):
    return pt.exp(x) / pt.sum(pt.exp(x), axis=1, keepdims=True)


@pytest.mark.parametrize("softmax", [lambda x: pt.softmax(x, axis=1), written_out], ids=["op", "written out"])
@pytest.mark.parametrize(
    "part",
    [
        lambda log, p: log(p),
        lambda log, p: log(p)[np.arange(2), [0, 1]],
        lambda log, p: log(p[pt.arange(2), np.array([0, 1])]),
        lambda log, p: log(p[:, 0]),
        lambda log, p: log(p.T[::-1]),
        lambda log, p: log(p[[1, 0, 0]]),
    ],
)
def test_the_logarithm_of_a_part_of_a_softmax_is_that_part_of_its_logarithm(softmax, part):
    x = pt.dmatrix("x")
    got = part(pt.log, softmax(x))
    due = part(lambda p: p, pt.log_softmax(x, axis=1))
    outputs = [v for f in (got, due) for v in (f, grad(pt.sum(f * pt.sqr(f)), x))]
    found = engine.function([x], outputs, mode=REWRITTEN)(SCORES)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-12)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-12, atol=1e-18)
    assert np.all(np.isfinite(found[1]))


@pytest.mark.parametrize("keepdims", [False, True])
def test_the_logarithm_of_a_sum_of_exponentials_has_the_softmax_for_its_gradient(keepdims):
    x = pt.dmatrix("x")
    total = pt.log(pt.sum(pt.exp(x), axis=1, keepdims=keepdims))
    for mode in ("NUMPY", REWRITTEN):
        (found,) = engine.function([x], [grad(pt.sum(total), x)], mode=mode)(SCORES)
        np.testing.assert_allclose(found, sp.softmax(SCORES, axis=1))


def test_a_gradient_for_what_lies_within_a_form_is_that_of_what_was_written():
    x = pt.dvector("x")
    p = probability(x)
    points = np.array([-1.0, 0.5])
    found = evaluate([x], grad(pt.sum(pt.log(p)), [p, x]), [points])
    np.testing.assert_allclose(found[0], 1 / sigmoid(points))
    np.testing.assert_allclose(found[1], sigmoid(-points))
    constant = grad(pt.sum(pt.log(p) * x), x, consider_constant=[p])
    np.testing.assert_allclose(evaluate([x], [constant], [points])[0], np.log(sigmoid(points)))


def test_float32_is_as_right():
    x = pt.fvector("x")
    points = np.array([-80.0, -9.5, 0.0, 8.9, 9.1, 60.0], "float32")
    outputs = [pt.log(probability(x)), pt.log(1 - probability(x)), pt.log(pt.erfc(x))]
    outputs += [grad(pt.sum(output), x) for output in outputs]
    due = [log_sigmoid, lambda x: log_sigmoid(-x), _log_erfc, lambda x: sigmoid(-x), lambda x: -sigmoid(x)]
    for found, exactly in zip(
        engine.function([x], outputs, mode=REWRITTEN)(points), [*due, lambda x: -hazard(x)], strict=True
    ):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exactly(points.astype("float64")), rtol=2e-6)


def test_what_has_a_form_within_the_steps_of_a_loop_is_differentiated_in_it():
    x, w = pt.dvector("x"), pt.dscalar("w")
    total = engine.scan(lambda r, a, w: a + pt.log(probability(w * r)), x, 0.0, w, return_updates=False)[-1]
    (found,) = evaluate([x, w], [grad(total, w)], [np.array([-800.0, 800.0, 0.5]), np.array(1.0)])
    np.testing.assert_allclose(found, -800 + 0.5 * sigmoid(-0.5))


def test_what_is_subtracted_from_both_exponents_keeps_them_small_only_if_it_is_their_largest():
    x, y, z = pt.dvectors("x", "y", "z")
    outputs = [pt.log(pt.exp(x - z) + pt.exp(y - z)), pt.log(pt.exp(x - z) - pt.exp(y - z))]
    slopes = [grad(pt.sum(output), x) for output in outputs]
    points = [np.array([1e4, -1e4]), np.array([10.0, -2e4]), np.array([3.0, 2.0])]
    found = engine.function([x, y, z], outputs + slopes, mode=REWRITTEN)(*points)
    np.testing.assert_allclose(found, [[9997, -10002], [9997, -10002], [1, 1], [1, 1]], rtol=1e-14)


@pytest.mark.parametrize(
    "largest", [pt.maximum, lambda x, y: pt.switch(pt.isinf(pt.maximum(x, y)), 0.0, pt.maximum(x, y))]
)
def test_exponents_less_their_largest_stay_as_they_are_written(largest):
    x, y = pt.dvectors("x", "y")
    m = largest(x, y)
    assert stable_form(pt.log(pt.exp(x - m) + pt.exp(y - m)).owner) is None


@pytest.mark.parametrize(
    "repeated", [lambda s, x: s, lambda s, x: pt.second(x, s)], ids=["broadcast", "filled"]
)
def test_sums_of_exponentials_of_a_number_and_a_vector_are_as_stable_as_those_of_vectors(repeated):
    s, x = pt.dscalar("s"), pt.dvector("x")
    for power, due in ((pt.exp(s), 900.0), (pt.exp(pt.log1p(pt.sqr(s))), np.log1p(900.0**2))):
        power = repeated(power, x)
        total = power + pt.exp(x)
        outputs = [pt.log(total), power / total, pt.exp(x) / total]
        slopes = [grad(pt.sum(output), [s, x]) for output in outputs]
        f = engine.function([s, x], [*outputs, *slopes[0], *slopes[1], *slopes[2]], mode=REWRITTEN)
        points = np.array([1.0, 800.0, 1000.0])
        logarithm, share, rest, *others = f(900.0, points)
        np.testing.assert_allclose(logarithm, np.logaddexp(due, points), rtol=1e-14)
        np.testing.assert_allclose(share, sp.expit(due - points), rtol=1e-12)
        np.testing.assert_allclose(rest, sp.expit(points - due), rtol=1e-12)
        assert all(np.all(np.isfinite(slope)) for slope in others)


def test_a_mask_by_multiplication_hides_what_is_not_finite():
    x = pt.dvector("x")
    masked = pt.switch(x > 0, 1.0, 0.0)
    outputs = [masked * pt.log(x), masked / x]
    outputs += [grad(pt.sum(output), x) for output in outputs]
    found = engine.function([x], outputs, mode=REWRITTEN)(np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_allclose(found, [[0, 0, np.log(2)], [0, 0, 0.5], [0, 0, 0.5], [0, 0, -0.25]])


@pytest.mark.parametrize(
    "sign", [lambda x: x, lambda x: -x, lambda x: -x * -3.0], ids=["plus", "minus", "twice"]
)
def test_the_sign_of_a_mask_hides_no_mask(sign):
    x, y = pt.dvectors("x", "y")
    logarithm = pt.log1p(-pt.exp(-pt.sqr(y)))
    masked = sign(pt.switch(x > 0, x, 0.0)) / (2.0 + pt.sqr(logarithm))
    slope = grad(pt.sum(masked), y)
    found = engine.function([x, y], slope, mode=REWRITTEN)(
        np.array([-1.0, -1.0, 1.0]), np.array([0.0, 2.0, 2.0])
    )
    np.testing.assert_array_equal(np.isnan(found), False)
    np.testing.assert_array_equal(found[:2], 0.0)
    assert found[2] != 0


def test_the_tutorials_logistic_regression_trains_to_finite_weights():
    numbers = np.random.default_rng(0)
    features = numbers.normal(size=(100, 200))
    targets = numbers.integers(0, 2, 100).astype("float64")
    x, y = pt.dmatrix("x"), pt.dvector("y")
    w, b = engine.shared(numbers.normal(size=200), name="w"), engine.shared(0.0, name="b")
    p_1 = 1 / (1 + pt.exp(-pt.dot(x, w) - b))
    xent = -y * pt.log(p_1) - (1 - y) * pt.log(1 - p_1)
    cost = xent.mean() + 0.01 * (w**2).sum()
    gw, gb = grad(cost, [w, b])
    train = engine.function([x, y], [p_1 > 0.5, xent], updates=((w, w - 0.1 * gw), (b, b - 0.1 * gb)))
    for _ in range(200):
        predictions, errors = train(100 * features, targets)
    assert np.all(np.isfinite(w.get_value()))
    assert np.all(np.isfinite(errors))
    assert np.array_equal(predictions, targets.astype(bool))


def chain(x, length, link):
    for _ in range(length):
        x = link(x)
    return x


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.log(chain(x, 3000, lambda v: 2 * v)),
        lambda x: pt.log(chain(x, 3000, lambda v: 1 - v)),
        lambda x: pt.log1p(chain(x, 3000, pt.neg)),
        lambda x: pt.log(chain(pt.exp(x), 3000, lambda v: v + pt.exp(x))),
        lambda x: pt.log(chain(x, 3000, lambda v: v[::-1])),
        lambda x: pt.log(chain(x, 3000, lambda v: 1 / v)),
        lambda x: pt.sqrt(chain(x, 3000, lambda v: v * v)),
    ],
)
def test_what_is_written_in_thousands_of_steps_has_a_gradient(build):
    x = pt.dvector("x")
    assert grad(pt.sum(build(x)), x).type == x.type


class Shifted(engine.graph.Op):
    """An Op of a user's that has an attribute of the name that softmax has."""

    def make_node(self, x):
        return engine.graph.Apply(self, [x], [x.type.make_variable()])

    def logarithm(self, x):
        raise AssertionError("it is the user's")

    def pullback(self, inputs, outputs, cotangents):
        return [cotangents[0]]


def test_an_op_of_a_users_is_not_asked_for_its_logarithm():
    x = pt.dvector("x")
    assert grad(pt.sum(pt.log(Shifted()(x))), x).type == x.type


def test_what_cancels_has_no_gradient_and_is_connected():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = engine.function([x, y], grad((x * y / y).sum(), [x, y]))
    np.testing.assert_array_equal(f([2.0], [0.0]), [[1.0], [0.0]])
    inner = y * 3
    g = engine.function([x, y], grad((x * inner / inner).sum(), inner))
    np.testing.assert_allclose(g([2.0], [5.0]), [0.0], atol=1e-16)


def test_logarithms_of_determinants_do_not_overflow():
    m = pt.dmatrix("m")
    large, negative = np.eye(200) * 1e10, -np.eye(201) * 1e10
    log_det, log_abs = pt.log(pt.linalg.det(m)), pt.log(pt.abs(pt.linalg.det(m)))
    f = engine.function([m], [log_det, log_abs, grad(log_det, m)])
    value, magnitude, slope = f(large)
    np.testing.assert_allclose([value, magnitude], 200 * np.log(1e10), rtol=1e-14)
    np.testing.assert_allclose(slope, np.eye(200) * 1e-10, rtol=1e-14)
    assert np.isnan(f(negative)[0])
    np.testing.assert_allclose(f(negative)[1], 201 * np.log(1e10), rtol=1e-14)
    diagonal = pt.log(pt.prod(pt.diagonal(pt.linalg.cholesky(m))))
    np.testing.assert_allclose(engine.function([m], diagonal)(large), 100 * np.log(1e10), rtol=1e-14)


def test_the_logarithm_of_a_product_takes_absolute_values_once():
    x = pt.dvector("x")
    for product in (pt.prod(pt.abs(x)), pt.prod(x**2)):
        forms = rewrite_graph(pt.log(product), include=("canonicalize", "stabilize"))
        written = [str(node.op) for node in apply_ancestors([forms])]
        assert written.count("abs") == 1
        assert "sign" not in written


def test_the_logarithm_of_a_negative_product_is_nan_and_of_a_positive_one_is_not():
    x = pt.dvector("x")
    f = engine.function([x], pt.log(pt.prod(x)))
    assert f([-2.0, -3.0]) == pytest.approx(np.log(6.0))
    assert np.isnan(f([-2.0, 3.0]))
    assert f([0.0, -3.0]) == -np.inf
    assert np.isnan(f([np.nan, 2.0]))


def test_exponentials_of_a_column_and_a_row_are_multiplied_as_written():
    column, row = pt.tensor("column", shape=(None, 1)), pt.tensor("row", shape=(1, None))
    f = engine.function([column, row], pt.exp(column) * pt.exp(row), mode=REWRITTEN)
    names = [str(node.op) for node in f.maker.fgraph.toposort()]
    assert sum("exp" in name for name in names) >= 1
    assert not any(
        name == "exp" and node.outputs[0].type.shape == (None, None)
        for name, node in zip(names, f.maker.fgraph.toposort(), strict=True)
    )


def test_the_slope_of_a_sum_of_opposite_exponentials_keeps_its_digits():
    x = pt.dvector("x")
    value = pt.log(pt.exp(x) + pt.exp(-x))
    slope = grad(value.sum(), x)
    f = engine.function([x], [value, slope, grad(slope.sum(), x)], mode=REWRITTEN)
    found, first, second = f(NEAR)
    np.testing.assert_allclose(found, np.logaddexp(NEAR, -NEAR), rtol=1e-14)
    np.testing.assert_allclose(first, np.tanh(NEAR), rtol=1e-14)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(second, 1 / np.cosh(NEAR) ** 2, rtol=1e-13)


def test_a_function_of_a_logarithm_with_a_form_of_its_own_keeps_it():
    x = pt.dvector("x")
    values = [pt.softplus(pt.log(1 + pt.exp(x))), pt.log1mexp(pt.log(pt.sigmoid(x)))]
    slopes = [grad(value.sum(), x) for value in values]
    f = engine.function([x], [*values, *slopes], mode=REWRITTEN)
    points = np.array([-800.0, -40.0, 0.5, 40.0])
    above, below, slope_above, slope_below = f(points)
    inner = np.logaddexp(0, points)
    np.testing.assert_allclose(above, np.logaddexp(0, inner), rtol=1e-14)
    np.testing.assert_allclose(slope_above, sigmoid(inner) * sigmoid(points), rtol=1e-14)
    np.testing.assert_allclose(below, -inner, rtol=1e-14)
    np.testing.assert_allclose(slope_below, -sigmoid(points), rtol=1e-14)
    found = f(np.array([800.0]))
    assert (found[0], found[2]) == (800, 1)


def test_a_function_of_a_logarithm_that_undoes_it_is_without_both():
    x = pt.dvector("x")
    value = pt.softplus(pt.log(pt.expm1(x)))
    f = engine.function([x], [value, grad(value.sum(), x)], mode=REWRITTEN)
    points = np.array([1e-18, 0.5, 800.0])
    for found, due in zip(f(points), (points, np.ones(3)), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-14)
