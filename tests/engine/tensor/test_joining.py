"""Shapes as vectors, tensors put together, tensors of a given shape: numpy's meaning, by the reference and compiled."""

from itertools import product

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.tensor.creation import LONGEST_RANGE

UNREWRITTEN = engine.Mode("numba", engine.compiling.mode.MODES["NUMPY"].optimizer)
X = np.linspace(-1, 1, 20).reshape(5, 4)
BUILDS = {
    "join rows": (lambda x, i, s, d: pt.join(0, x, x[:2]), lambda x, i, s, d: np.concatenate([x, x[:2]])),
    "join columns": (
        lambda x, i, s, d: pt.concatenate([x, x[:, ::-1], x[:, :1]], axis=-1),
        lambda x, i, s, d: np.concatenate([x, x[:, ::-1], x[:, :1]], axis=-1),
    ),
    "join one of many dtypes": (
        lambda x, i, s, d: pt.join(0, pt.zeros((1, 4), "int32"), x),
        lambda x, i, s, d: np.concatenate([np.zeros((1, 4)), x]),
    ),
    "stack": (
        lambda x, i, s, d: pt.stack([x, 2 * x], axis=1),
        lambda x, i, s, d: np.stack([x, 2 * x], axis=1),
    ),
    "stack last": (
        lambda x, i, s, d: pt.stack([x[:, 0], x[:, 1]], axis=-1),
        lambda x, i, s, d: np.stack([x[:, 0], x[:, 1]], axis=-1),
    ),
    "stack a constant": (
        lambda x, i, s, d: pt.stack([x, np.ones((5, 4))], axis=1),
        lambda x, i, s, d: np.stack([x, np.ones((5, 4))], axis=1),
    ),
    "stack numbers": (
        lambda x, i, s, d: pt.stack([d, x[0, 0], 1.5]),
        lambda x, i, s, d: np.array([d, x[0, 0], 1.5]),
    ),
    "shape": (lambda x, i, s, d: pt.exp(x).shape, lambda x, i, s, d: np.array(x.shape)),
    "size": (lambda x, i, s, d: x.shape[0] + x.size, lambda x, i, s, d: np.array(x.shape[0] + x.size)),
    "reshape": (lambda x, i, s, d: x.reshape(x.shape[::-1]), lambda x, i, s, d: x.reshape(x.shape[::-1])),
    "zeros": (lambda x, i, s, d: pt.zeros(x.T.shape) - x.T, lambda x, i, s, d: -x.T),
    "ones": (
        lambda x, i, s, d: pt.ones((3, x.shape[0] - 1), "int32"),
        lambda x, i, s, d: np.ones((3, 4), "int32"),
    ),
    "full": (lambda x, i, s, d: pt.full((abs(i), 2), d), lambda x, i, s, d: np.full((abs(i), 2), d)),
    "full_like": (lambda x, i, s, d: pt.full_like(x, 7), lambda x, i, s, d: np.full_like(x, 7)),
    "alloc": (lambda x, i, s, d: pt.alloc(x[0], 3, x.shape[1]), lambda x, i, s, d: np.stack([x[0]] * 3)),
    "arange": (lambda x, i, s, d: pt.arange(i, 5, s), lambda x, i, s, d: np.arange(i, 5, s)),
    "arange to": (lambda x, i, s, d: pt.arange(i), lambda x, i, s, d: np.arange(i)),
    "arange of floats": (lambda x, i, s, d: pt.arange(0, 0.7, d), lambda x, i, s, d: np.arange(0, 0.7, d)),
    "arange of numbers": (lambda x, i, s, d: pt.arange(5, 0, -2), lambda x, i, s, d: np.arange(5, 0, -2)),
    "expand_dims": (lambda x, i, s, d: pt.expand_dims(x, -1), lambda x, i, s, d: np.expand_dims(x, -1)),
}


@pytest.mark.parametrize(
    "mode", ["FAST_RUN", "NUMPY", UNREWRITTEN], ids=["rewritten", "numpy", "unrewritten"]
)
def test_what_is_made_is_what_numpy_makes(mode, kernels_once):
    variables = pt.dmatrix("x"), pt.lscalar("i"), pt.lscalar("s"), pt.dscalar("d")
    f = engine.function(variables, [build(*variables) for build, _ in BUILDS.values()], mode=mode)
    for point in [(3, 1, 0.1), (-2, 2, -0.3), (7, -1, 0.5), (0, -9, 1.7)]:
        for (name, (_, expected)), found in zip(BUILDS.items(), f(X, *point), strict=True):
            value = expected(X, *point)
            assert (found.shape, found.dtype) == (value.shape, value.dtype), name
            np.testing.assert_allclose(found, value, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_lengths_that_do_not_fit_are_refused(mode, kernels_once):
    x, y, n = pt.dmatrix("x"), pt.dmatrix("y"), pt.lscalar("n")
    joined = engine.function([x, y], pt.join(1, x, y), mode=mode)
    with pytest.raises(ValueError, match=r"one length|must be equal"):
        joined(np.ones((2, 3)), np.ones((3, 3)))
    filled = engine.function([x, n], pt.alloc(x, n, 2), mode=mode)
    for length in (2, -1):
        with pytest.raises(ValueError, match=r"does not fit|expected .-?[12], 2.|must not be negative"):
            filled(np.ones((3, 2)), length)
    steps = engine.function([n], pt.arange(0, 5, n), mode=mode)
    with pytest.raises(ValueError, match="cannot be zero"):
        steps(0)


def _outcome(call):
    with np.errstate(all="ignore"):
        try:
            return call()
        except (ValueError, ZeroDivisionError):
            return "refused"


BOUNDS = [0, 1, -1, 2, 5, -7, 2**62, -(2**62), 2**63 - 1, 2 - 2**63, -(2**63)]
FLOAT_BOUNDS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-320, 1e300, -1e300, 9e18, 1e19, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_ranges_between_any_bounds_have_as_many_numbers_as_there_are_or_are_refused(mode, kernels_once):
    variables = [pt.lscalar(name) for name in ("start", "stop", "step")]
    f = engine.function(variables, pt.arange(*variables), mode=mode)
    for start, stop, step in product(BOUNDS, BOUNDS, BOUNDS):
        numbers = range(start, stop, step) if step else ()
        count = (numbers[-1] - start) // step + 1 if numbers else 0
        if step in (0, -(2**63)) or count > LONGEST_RANGE:
            with pytest.raises(ValueError, match=r"Making a range|the step of a range"):
                f(start, stop, step)
        elif count < 1000:
            assert f(start, stop, step).tolist() == list(numbers), (start, stop, step)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_ranges_of_floats_are_refused_where_numpys_are(mode, kernels_once):
    variables = [pt.dscalar(name) for name in ("start", "stop", "step")]
    f = engine.function(variables, pt.arange(*variables), mode=mode)
    for bounds in product(FLOAT_BOUNDS, FLOAT_BOUNDS, FLOAT_BOUNDS):
        with np.errstate(all="ignore"):
            if 10_000 < (np.float64(bounds[1]) - bounds[0]) / bounds[2] < 2**63:
                continue  # more memory than there is
        expected, found = _outcome(lambda b=bounds: np.arange(*b)), _outcome(lambda b=bounds: f(*b))
        assert type(found) is type(expected), bounds
        if not isinstance(expected, str):
            np.testing.assert_allclose(found, expected, 1e-12, 1e-12, err_msg=str(bounds))
        constant = _outcome(lambda b=bounds: pt.arange(*b))
        assert (constant == "refused") == (isinstance(expected, str)), bounds


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_an_array_of_more_bytes_than_there_can_be_is_refused_also_where_it_is_not_made(mode, kernels_once):
    n, m = pt.lscalar("n"), pt.lscalar("m")
    f = engine.function([n, m], pt.alloc(1.0, n, m, 1).sum(), mode=mode)
    assert f(3, 4) == 12
    for lengths in product([0, 1, 2**31, 2**32, 2**60, 2**62 + 1, 2**63 - 1], repeat=2):
        if max(lengths[0], 1) * max(lengths[1], 1) >= 2**60:
            with pytest.raises(ValueError, match="array is too big"):
                f(*lengths)
    with pytest.raises(ValueError, match="array is too big"):
        f(2**62, 0)


def test_what_cannot_be_put_together_is_refused_when_it_is_built():
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    for build, error in [
        (lambda: pt.join(2, x, x), ValueError),
        (lambda: pt.join(0, x, x[0]), TypeError),
        (lambda: pt.join(0, pt.ones((2, 2)), pt.ones((2, 3))), ValueError),
        (lambda: pt.stack([]), ValueError),
        (lambda: pt.zeros(pt.lvector("n")), TypeError),
        (lambda: pt.zeros(2.5), TypeError),
        (lambda: pt.alloc(x, 3), ValueError),
        (lambda: pt.ones((2, -1)), ValueError),
        (lambda: pt.arange(0, 1, 0), ValueError),
        (lambda: pt.arange(n, 1, 0), ValueError),
        (lambda: pt.arange(np.inf), ValueError),
        (lambda: pt.arange(np.nan), ValueError),
        (lambda: pt.arange(2**62), ValueError),
        (lambda: pt.arange(0.0, 1.0, 0.0), ValueError),
        (lambda: pt.zeros((2**32, 2**32)), ValueError),
        (lambda: pt.zeros((2**32, n, 2**32), "int32"), ValueError),
        (lambda: pt.arange(x), TypeError),
        (lambda: pt.MakeVector("int64").make_node(1.5), TypeError),
    ]:
        with pytest.raises(error):
            build()


def test_make_vector_makes_a_vector_of_scalars():
    n, m = pt.lscalar("n"), pt.lscalar("m")
    vector = pt.make_vector(n, m, n + m)
    assert (vector.type.dtype, vector.type.shape) == ("int64", (3,))
    assert engine.function([n, m], vector)(2, -5).tolist() == [2, -5, -3]


def test_static_lengths_are_known():
    x = pt.tensor("x", "float64", (3, None))
    assert pt.join(0, x, x[:2]).type.shape == (5, None)
    assert pt.join(1, x, x).type.shape == (3, None)
    assert pt.stack([x, x]).type.shape == (2, 3, None)
    assert x.shape.type.shape == (2,)
    assert pt.zeros(x.shape).type.shape == (3, None)
    assert pt.arange(2, 9, 3).type.shape == (3,)


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    verify_grad(lambda x, y: pt.join(1, x, y, x), [x, y])
    verify_grad(lambda x, y: pt.join(0, x.T, y.T), [x, y])
    verify_grad(lambda x: pt.stack([x[0, 0], x[1, 1], 2.0]), [x])
    verify_grad(lambda x, y: pt.stack([x, x * y], axis=1), [x, y])
    verify_grad(lambda y: pt.alloc(y, 4, 3, 5), [y])
    verify_grad(lambda y: y.sum() * pt.ones(y.shape), [y])


def test_a_gradient_through_joined_and_filled_tensors_is_compiled(kernels_once):
    x, d = pt.dmatrix("x"), pt.dscalar("d")
    joined = pt.join(1, x, pt.alloc(d, x.shape[0], 2), x[:, ::-1])
    gradient = engine.grad((joined**3).sum(), [x, d])
    found, expected = (engine.function([x, d], gradient, mode=mode)(X, 0.5) for mode in ("FAST_RUN", "NUMPY"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_axis_may_be_a_constant_that_is_cast():
    x = pt.dmatrix("x")
    assert pt.join(pt.cast(pt.constant(1), "int32"), x, x).owner.op == pt.Join(1)
    with pytest.raises(TypeError, match="one constant integer"):
        pt.join(pt.lscalar("axis"), x, x)
