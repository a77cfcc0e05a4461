"""`impl` gives numpy's values, bit for bit, on special values and on whatever hypothesis finds."""

import warnings
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import scalar
from tests.engine.scalar.test_promotion import UFUNCS
from tests.engine.special_values import DTYPES, arrays, same, special


def computable(op, dtypes):
    try:
        return op.signature(dtypes)
    except TypeError:
        return None


def operands(op, dtypes, draw):
    """Arrays already cast to the dtypes that `op` computes in."""
    casts, _ = op.signature(dtypes)
    with np.errstate(all="ignore"):
        found = [draw(dtype).astype(to) for dtype, to in zip(dtypes, casts, strict=True)]
    if op.name == "pow" and found[1].dtype.kind == "i":
        found[1] = np.abs(found[1] % 30)
    return found


def test_special_values_meet_each_other_as_in_numpy():
    for name, ufunc in UFUNCS.items():
        op = getattr(scalar, name)
        for dtypes in product(DTYPES, repeat=op.nin):
            if computable(op, dtypes) is None:
                continue
            found = operands(op, dtypes, special)
            meshed = [a.ravel() for a in np.meshgrid(*found)]
            with np.errstate(all="ignore"):
                expected = ufunc(*meshed, dtype=None)
            assert same(op.impl(*meshed), expected), (name, dtypes)


@given(st.data())
def test_any_values_give_what_numpy_gives(data):
    name = data.draw(st.sampled_from(sorted(UFUNCS)))
    op = getattr(scalar, name)
    dtypes = data.draw(st.tuples(*[st.sampled_from(DTYPES)] * op.nin).filter(lambda d: computable(op, d)))
    found = operands(op, dtypes, lambda dtype: data.draw(arrays(dtype, (5,))))
    with np.errstate(all="ignore"):
        expected = UFUNCS[name](*found)
    assert same(op.impl(*found), expected)
    assert expected.dtype == op.signature(dtypes)[1]


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cast_is_astype(dtype, to):
    values = special(dtype)
    with np.errstate(all="ignore"):
        assert same(scalar.Cast(to).impl(values), values.astype(to))


@given(st.data())
def test_where_is_numpys(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    condition, a, b = [data.draw(arrays(d, (4,))) for d in ("bool", dtype, dtype)]
    assert same(scalar.where.impl(condition, a, b), np.where(condition, a, b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_second_broadcasts_its_second_argument(dtype):
    value = special(dtype)[:1]
    assert same(scalar.second.impl(np.empty(3), value), np.repeat(value, 3))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sigmoid_and_softplus_are_exact_without_overflow(dtype):
    x = np.array([-1000.0, -100.0, -20.0, -1.0, 0.0, 1.0, 20.0, 1000.0], dtype)
    wide = x.astype("longdouble")
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(scalar.sigmoid.impl(x), 1 / (1 + np.exp(-wide)), rtol=tolerance, atol=1e-38)
    np.testing.assert_allclose(scalar.softplus.impl(x), np.logaddexp(wide, 0), rtol=tolerance, atol=1e-38)
    assert scalar.sigmoid.impl(x).dtype == scalar.softplus.impl(x).dtype == dtype


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sigmoid_and_softplus_have_their_limits(dtype):
    x = np.array([np.inf, -np.inf, np.nan], dtype)
    assert same(scalar.sigmoid.impl(x), np.array([1, 0, np.nan], dtype))
    assert same(scalar.softplus.impl(x), np.array([np.inf, 0, np.nan], dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_log1mexp_is_exact_near_0_and_far_from_it(dtype):
    x = np.array([-1e-20, -1e-3, -0.69, -0.7, -3.0, -80.0], dtype)
    with mpmath.workprec(200):
        exact = [float(mpmath.log(-mpmath.expm1(float(each)))) for each in x]
    found = scalar.log1mexp.impl(x)
    np.testing.assert_allclose(found, exact, rtol=4 * np.finfo(dtype).eps)
    assert found.dtype == dtype
    assert same(
        scalar.log1mexp.impl(np.array([0, -np.inf, 1], dtype)), np.array([-np.inf, -0.0, np.nan], dtype)
    )


def test_reciprocal_divides_one():
    assert same(scalar.reciprocal.impl(np.array([4.0, -0.0, np.inf])), np.array([0.25, -np.inf, 0.0]))


def test_an_integer_to_a_negative_power_is_refused():
    with pytest.raises(ValueError, match="negative"):
        scalar.pow.impl(np.array([2]), np.array([-1]))


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scalar.log.impl(special("float64"))
        scalar.true_div.impl(special("float32"), np.float32(0))
        scalar.floor_div.impl(special("int64"), np.int64(0))
        scalar.Cast("int32").impl(special("float64"))
        scalar.mul.impl(np.int32(2**31 - 1), np.int32(2))
