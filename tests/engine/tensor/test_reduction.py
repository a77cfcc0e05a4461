"""Sums, means and extrema over axes, against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import engine.tensor as pt
from engine import scalar, verify_grad
from engine.graph.reference import evaluate
from engine.graph.replace import vectorize_graph
from engine.tensor import Max, Min, Sum
from engine.tensor.reduction import Prod, ProdWithoutZeros
from engine.tensor.reduction_by import CAReduce
from tests.engine.special_values import DTYPES, SIGNED, UNSIGNED, arrays, same

SUMS = {
    **dict.fromkeys(("bool", *SIGNED), "int64"),
    **dict.fromkeys(UNSIGNED, "uint64"),
    **{dtype: dtype for dtype in ("float32", "float64")},
}
AXES = [None, 0, 1, -1, (0, 1), (1, -3), (2, 0), (), (0, 1, 2)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_any_axes_are_numpys(dtype, axis, keepdims):
    rng = np.random.default_rng(7)
    value = (rng.normal(size=(2, 3, 4)) * 3).astype("int8" if dtype in UNSIGNED else dtype).astype(dtype)
    x = pt.tensor3("x", dtype=dtype)
    total, mean, largest, smallest = evaluate(
        [x], [f(x, axis=axis, keepdims=keepdims) for f in (pt.sum, pt.mean, pt.max, pt.min)], [value]
    )
    wide = np.sum(value, axis, dtype="float64" if dtype == "float32" else None, keepdims=keepdims)
    assert same(total, np.asarray(wide).astype(SUMS[dtype]))
    assert mean.dtype == ("float32" if dtype == "float32" else "float64")
    np.testing.assert_allclose(
        mean, np.mean(value, axis, keepdims=keepdims), rtol=1e-6 if dtype == "float32" else 1e-14, atol=1e-7
    )
    assert same(largest, np.asarray(np.max(value, axis, keepdims=keepdims)))
    assert same(smallest, np.asarray(np.min(value, axis, keepdims=keepdims)))


@given(st.data(), st.sampled_from(["float64", "float32", "int64"]))
def test_special_values_pass_through_reductions(data, dtype):
    value = data.draw(arrays(dtype, (3, 2)))
    x = pt.matrix("x", dtype=dtype)
    found = evaluate([x], [pt.max(x, 0), pt.min(x, 1)], [value])
    assert same(found[0] + 0, np.max(value, 0) + 0)
    assert same(found[1] + 0, np.min(value, 1) + 0)


def test_float32_is_summed_in_float64():
    x, value = pt.fvector("x"), np.full(10**5, 0.1, "float32")
    found = evaluate([x], [x.sum()], [value])[0]
    assert found == np.float32(value.astype("float64").sum())


def test_dtypes_can_be_asked_for():
    x = pt.fvector("x")
    assert pt.sum(x, dtype="float64").owner.op == Sum((0,), "float64", "float64")
    assert pt.sum(x, acc_dtype="float32").owner.op == Sum((0,), "float32", "float32")
    assert pt.mean(pt.ivector("i"), dtype="float32").dtype == "float32"
    total = pt.mean(x, dtype="int64")
    assert total.dtype == "float64"
    assert total.owner.inputs[0].owner.op == Sum((0,), "int64", "float64")
    assert pt.Prod()(x).owner.op == pt.prod(x).owner.op


def test_a_sum_over_no_axes_is_a_cast_in_a_function():
    i, x = pt.bvector("i"), pt.dmatrix("x")
    total = pt.sum(i, axis=())
    assert total.owner.op == Sum((), "int64", "int64")
    f = engine.function([i], [total, pt.prod(i, axis=())])
    assert not [node for node in f.maker.fgraph.toposort() if isinstance(node.op, CAReduce)]
    found = f(np.array([100, -100], "int8"))
    assert [each.dtype.name for each in found] == ["int64", "int64"]
    assert [each.tolist() for each in found] == [[100, -100], [100, -100]]
    gradient = engine.grad(pt.sum(pt.sum(x, axis=()) * x), x)
    np.testing.assert_array_equal(gradient.eval({x: np.ones((2, 3))}), np.full((2, 3), 2.0))
    assert pt.max(x, axis=()) is x


def test_nothing_sums_to_zero_and_has_no_mean():
    x = pt.dmatrix("x")
    total, mean = evaluate([x], [x.sum(0), x.mean(0)], [np.empty((0, 3))])
    assert total.tolist() == [0, 0, 0]
    assert np.isnan(mean).all()


@pytest.mark.parametrize("function", [pt.max, pt.min])
def test_nothing_has_no_extremum(function):
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="zero-size"):
        evaluate([x], [function(x)], [np.empty((0, 3))])
    assert evaluate([x], [function(x, axis=1)], [np.empty((0, 3))])[0].shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_has_the_extremum_that_it_starts_from(dtype):
    x = pt.matrix("x", dtype=dtype)
    outputs = [Max(0, initial=True)(x), Min(0, initial=True)(x)]
    for value in (np.zeros((0, 2), dtype), np.ones((3, 2), dtype)):
        ends = [-np.inf, np.inf] if dtype.startswith("float") else [False, True]
        if dtype in SIGNED + UNSIGNED:
            ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
        expected = [np.full(2, value[0, 0] if len(value) else end, dtype) for end in ends]
        for found in (evaluate([x], outputs, [value]), engine.function([x], outputs)(value)):
            assert all(map(same, found, expected))


def test_integers_wrap_as_in_numpy():
    x, value = pt.lvector("x"), np.array([2**63 - 1, 1])
    assert evaluate([x], [x.sum()], [value])[0] == -(2**63)


def test_static_lengths_are_kept():
    x = pt.tensor("x", "float64", (2, None, 1))
    assert x.sum(1).type.shape == (2, 1)
    assert x.sum((0, 1), keepdims=True).type.shape == (1, 1, 1)


def test_an_op_takes_sorted_axes_once():
    assert Max((1, 0)) == Max((0, 1))
    assert Sum((0,), "float64", "float64") != Sum((0,), "float32", "float64")
    with pytest.raises(ValueError, match="repeated axis"):
        Max((0, 0))
    with pytest.raises(ValueError, match="axis 1 is out of bounds for array of dimension 1"):
        Max((1,))(pt.dvector())
    assert Max(-1)(pt.dmatrix()).owner.op == Max((1,))
    assert Max(None)(pt.dmatrix()).owner.op == Max((0, 1))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("function", [pt.sum, pt.mean, pt.max, pt.min])
def test_gradients(function, axis, keepdims):
    value = np.random.default_rng(1).permutation(24).reshape(2, 3, 4) / 7.0
    verify_grad(lambda x: function(x, axis=axis, keepdims=keepdims), [value])
    verify_grad(lambda x: function(x, axis=axis, keepdims=keepdims), [value.astype("float32")])


def test_gradients_over_no_elements():
    for function in (pt.sum, pt.mean):
        verify_grad(lambda x, f=function: f(x, axis=1), [np.ones((0, 2))])


def test_all_that_tie_for_an_extremum_get_its_gradient():
    x = pt.dvector("x")
    largest = x.max()
    (gradient,) = largest.owner.op.pullback([x], [largest], [pt.constant(2.0)])
    assert evaluate([x], [gradient], [np.array([3.0, 1.0, 3.0])])[0].tolist() == [2, 0, 2]


@pytest.mark.parametrize("axis", [None, 0, (1,), -1])
@pytest.mark.parametrize(
    ("scalar_op", "function"),
    [(scalar.add, np.sum), (scalar.mul, np.prod), (scalar.maximum, np.max), (scalar.minimum, np.min)],
)
def test_a_reduction_can_be_made_of_a_scalar_op(scalar_op, function, axis):
    x, value = pt.dmatrix("x"), np.random.default_rng(3).normal(size=(3, 4))
    found = CAReduce(scalar_op, axis=axis)(x)
    assert isinstance(found.owner.op, CAReduce)
    np.testing.assert_allclose(evaluate([x], [found], [value])[0], function(value, axis))


def test_a_reduction_that_is_made_of_a_scalar_op_is_named_and_applied_again():
    assert str(CAReduce(scalar.add)) == "CAReduce{add, axes=None}"
    assert str(CAReduce(scalar.add, axis=(1,))) == "CAReduce{add, axis=1}"
    assert CAReduce(scalar.add, 0) == CAReduce(scalar.add, 0) != CAReduce(scalar.mul, 0)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2), ()])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
@pytest.mark.parametrize(
    ("scalar_op", "ufunc"),
    [
        (scalar.add, np.add),
        (scalar.mul, np.multiply),
        (scalar.and_, np.bitwise_and),
        (scalar.or_, np.bitwise_or),
        (scalar.xor, np.bitwise_xor),
    ],
)
def test_a_reduction_by_a_scalar_op_has_the_dtype_of_the_elements(scalar_op, ufunc, dtype, axis, mode):
    x, value = pt.tensor3(dtype=dtype), np.random.default_rng(3).integers(0, 9, (3, 2, 4)).astype(dtype)
    f = engine.function([x], CAReduce(scalar_op, axis)(x), mode=mode)
    for elements in (value, value[:0]):
        over = (0, 1, 2) if axis is None else axis
        np.testing.assert_array_equal(
            f(elements), ufunc.reduce(elements, axis=over, dtype=dtype), strict=True
        )


def test_a_bitwise_reduction_has_a_batch_and_no_gradient():
    x, value = pt.btensor3("x"), np.arange(24, dtype="int8").reshape(2, 3, 4)
    row = pt.bmatrix("row")
    batch = vectorize_graph(CAReduce(scalar.xor, 0)(row), {row: x})
    np.testing.assert_array_equal(engine.function([x], batch)(value), np.bitwise_xor.reduce(value, axis=1))
    (gradient,) = batch.owner.op.pullback([x], [batch], [None])
    assert gradient is None


def test_a_reduction_by_another_scalar_op_is_refused():
    with pytest.raises(NotImplementedError, match="Making a reduction by sub"):
        CAReduce(scalar.sub)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_product_can_leave_zeros_out(mode):
    x, value = pt.dmatrix("x"), np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    assert ProdWithoutZeros()(pt.imatrix()).dtype == "int64"
    found = engine.function([x], ProdWithoutZeros(axis=1)(x), mode=mode)(value)
    np.testing.assert_array_equal(found, [6.0, 1.0])


def test_a_product_that_is_promised_to_have_no_zeros_has_a_gradient_of_quotients():
    value = np.random.default_rng(5).uniform(0.5, 2.0, (3, 4))
    verify_grad(Prod(axis=1, no_zeros_in_input=True), [value])
    verify_grad(Prod(no_zeros_in_input=True), [value])
    assert Prod(0) != Prod(0, no_zeros_in_input=True)


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("ddof", [0, 1])
def test_a_corrected_variance_accounts_for_a_rounded_mean(axis, ddof):
    x = pt.dmatrix("x")
    value = 1e8 + np.random.default_rng(0).normal(size=(5, 40))
    found = engine.function([x], [pt.var(x, axis, ddof, corrected=True), x.std(axis, ddof, corrected=True)])(
        value
    )
    exact = (value - 1e8).var(axis, ddof=ddof)
    np.testing.assert_allclose(found, [exact, np.sqrt(exact)], rtol=1e-9)


@pytest.mark.parametrize("axis", [0, -1, (0,), (-1,), (), None])
def test_a_number_has_an_axis_that_changes_nothing_as_for_numpy(axis):
    x = pt.dscalar("x")
    outputs = [pt.sum(x, axis), pt.max(x, axis), pt.mean(x, axis), pt.prod(x, axis), pt.var(x, axis)]
    found = engine.function([x], outputs, on_unused_input="ignore")(5.0)
    assert found == [5.0, 5.0, 5.0, 5.0, 0.0]
    with pytest.raises(ValueError, match="out of bounds for array of dimension 0"):
        pt.sum(x, (-2,))
