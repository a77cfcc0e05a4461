"""Lengths of axes, reshape and flatten."""

from itertools import product

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.graph.reference import evaluate
from engine.graph.replace import clone_replace
from engine.tensor import Reshape, Shape_i
from tests.engine.special_values import DTYPES, same


def test_a_length_is_an_int64_of_no_dimensions():
    x = pt.dmatrix("x")
    first, last = pt.shape_i(x, 0), pt.shape_i(x, -1)
    assert first.owner.op == Shape_i(0)
    found = evaluate([x], [first, last], [np.empty((3, 0))])
    assert [same(f, np.array(n)) for f, n in zip(found, (3, 0), strict=True)] == [True, True]


def test_a_length_along_no_axis_is_refused():
    for axis in (2, -3):
        with pytest.raises(ValueError, match="out of bounds for array of dimension 2"):
            pt.shape_i(pt.dmatrix("x"), axis)


@pytest.mark.parametrize("value", [[1, 2], np.ones(3), pt.dscalar()])
def test_an_op_takes_lengths_of_tensor_variables_only(value):
    with pytest.raises(TypeError, match="Taking the length"):
        Shape_i(0)(value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (-1,), (3, -1), (1, 6, 1), (-1, 1)])
def test_reshape_is_numpys(shape, dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    x = pt.matrix("x", dtype=dtype)
    found = pt.reshape(x, shape)
    assert same(evaluate([x], [found], [value])[0], value.reshape(shape))
    assert same(evaluate([x], [found], [value.copy(order="F")])[0], value.reshape(shape))
    assert found.type.shape == tuple([None if n == -1 else n for n in shape])


def test_lengths_may_be_variables():
    x, n, k = pt.dvector("x"), pt.iscalar("n"), pt.lscalar("k")
    found = evaluate([x, n, k], [pt.reshape(x, (n, k))], [np.arange(6.0), np.int32(2), 3])
    assert found[0].shape == (2, 3)


@pytest.mark.parametrize("filled", [pt.zeros, lambda shape: pt.reshape(pt.arange(12), shape)])
def test_a_vector_of_lengths_can_be_replaced(filled, kernels_once):
    n, due = pt.lscalar("n"), pt.lvector("due")
    for shape in (pt.as_tensor((n, 4)), pt.as_tensor((n, n)), pt.dmatrix("x").shape):
        found = filled(shape)
        f = engine.function([due], found, givens={shape: due[:2]})
        assert f([3, 4]).shape == (3, 4)


def test_a_constant_in_a_vector_of_lengths_is_static():
    n = pt.lscalar("n")
    shape = pt.as_tensor((n, 4))
    assert pt.zeros(shape).type.shape == pt.reshape(pt.dvector(), shape).type.shape == (None, 4)


def test_a_static_source_gives_a_static_result():
    x = pt.tensor("x", "float64", (2, 6))
    assert pt.reshape(x, (3, -1)).type.shape == (3, 4)
    assert pt.reshape(x, 12).type.shape == (12,)
    for shape in [(5,), (5, -1)]:
        with pytest.raises(ValueError, match="incompatible with new shape"):
            pt.reshape(x, shape)


@pytest.mark.parametrize("shape", [(4,), (4, -1), (0, -1), (2, 4)])
def test_another_number_of_elements_is_refused(shape):
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match=r"shape \(2, 3\), which has 6 elements, to"):
        evaluate([x], [pt.reshape(x, shape)], [np.ones((2, 3))])


def test_one_length_may_be_minus_one_and_no_other_negative():
    x = pt.dvector("x")
    for shape in [(-1, -1), (-2,)]:
        with pytest.raises(ValueError, match="one length may be -1"):
            pt.reshape(x, shape)


RUN_TIME_SHAPES = list(product((-(2**63), -2, -1, 0, 1, 2, 3, 4, 6, 2**62, 2**63 - 1), repeat=2))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("constant", [None, -1, 0, 2])
def test_a_length_may_turn_out_to_be_minus_one_when_the_function_is_called(constant, mode, kernels_once):
    x, n, k = pt.dmatrix("x"), pt.lscalar("n"), pt.lscalar("k")
    shape = (n, k) if constant is None else (n, constant, k)
    y = pt.reshape(x, shape)
    f = engine.function([x, n, k], [y + 1, y.shape, pt.zeros_like(y), y.sum()], mode=mode)
    for value in (np.arange(6.0).reshape(2, 3), np.ones((0, 3)), np.ones((1, 1))):
        for lengths in RUN_TIME_SHAPES:
            full = lengths if constant is None else (lengths[0], constant, lengths[1])
            if min(lengths) < -1:  # numpy takes every negative length for -1
                expected = None
            else:
                try:
                    expected = value.reshape(full)
                except ValueError:
                    expected = None
            if expected is None:
                with pytest.raises(ValueError, match="Reshap" if max(lengths) < 10 else None):
                    f(value, *lengths)
                continue
            found = f(value, *lengths)
            np.testing.assert_array_equal(found[0], expected + 1)
            assert tuple(found[1]) == found[2].shape == expected.shape
            assert found[3] == expected.sum()


def test_a_gradient_passes_a_length_that_turns_out_to_be_minus_one(kernels_once):
    x, n = pt.dvector("x"), pt.lscalar("n")
    gradient = engine.grad((x.reshape((n, 2)) ** 2).sum(), x)
    assert engine.function([x, n], gradient)(np.arange(4.0), -1).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("shape", [pt.lvector("s"), (2.0,), (pt.dscalar(),), (True,)])
def test_lengths_are_integers_of_no_dimensions(shape):
    with pytest.raises(TypeError, match="must be an integer of 0 dimensions"):
        pt.reshape(pt.dvector("x"), shape)


def test_nothing_is_reshaped_to_nothing():
    x = pt.dmatrix("x")
    assert evaluate([x], [pt.reshape(x, (0, 5))], [np.ones((0, 3))])[0].shape == (0, 5)
    assert evaluate([x], [pt.reshape(x, (5, -1))], [np.ones((0, 3))])[0].shape == (5, 0)


def test_a_scalar_is_reshaped():
    x = pt.dscalar("x")
    assert evaluate([x], [pt.reshape(x, (1, 1))], [3.0])[0].tolist() == [[3]]
    assert evaluate([x], [pt.reshape(pt.reshape(x, (1,)), ())], [3.0])[0].shape == ()


def test_the_rank_can_be_checked():
    assert pt.reshape(pt.dvector("x"), (2, 3), ndim=2).ndim == 2
    with pytest.raises(ValueError, match="1 dimensions: 2 lengths"):
        pt.reshape(pt.dvector("x"), (2, 3), ndim=1)
    with pytest.raises(ValueError, match="1 lengths were given"):
        Reshape(2)(pt.dvector("x"), 1)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_flatten_makes_the_last_axes_one(ndim):
    x = pt.tensor3("x")
    for value in (np.arange(24.0).reshape(2, 3, 4), np.ones((0, 3, 2))):
        expected = value.reshape(value.shape[: ndim - 1] + (int(np.prod(value.shape[ndim - 1 :])),))
        assert same(evaluate([x], [pt.flatten(x, ndim)], [value])[0], expected)
    with pytest.raises(ValueError, match="from 1 to"):
        pt.flatten(x, 4)


def test_a_scalar_is_flattened_to_a_vector():
    x = pt.dscalar("x")
    assert evaluate([x], [pt.flatten(x)], [3.0])[0].tolist() == [3]


def test_gradients():
    rng = np.random.default_rng(2)
    verify_grad(lambda x: pt.reshape(x, (3, -1)), [rng.normal(size=(2, 3))])
    verify_grad(lambda x: pt.flatten(x), [rng.normal(size=(2, 3)).astype("float32")])
    verify_grad(lambda x: pt.reshape(x, (pt.shape_i(x, 1), pt.shape_i(x, 0))), [rng.normal(size=(2, 3))])


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_arrays_of_other_lengths_are_not_broadcast(mode, kernels_once):
    n, v = pt.lscalar("n"), pt.dvector("v")
    ranges, vectors = (
        engine.function([n, v], found, mode=mode) for found in pt.broadcast_arrays(pt.arange(n), v)
    )
    assert ranges(3, np.ones(3)).tolist() == [0, 1, 2]
    for f in (ranges, vectors):
        for length in (1, 4):
            with pytest.raises(ValueError, match=r"Got shape|found lengths|does not fit"):
                f(3, np.ones(length))


def test_broadcast_arrays_keep_static_lengths():
    left, right = pt.tensor("left", "float64", (3,)), pt.tensor("right", "float64", (2, 1))
    assert {found.type.shape for found in pt.broadcast_arrays(left, right)} == {(2, 3)}
    assert pt.broadcast_arrays() == ()


@pytest.mark.parametrize("rest", [-1, pt.lscalar()])
def test_the_only_unknown_length_follows_from_the_others(rest):
    x = pt.tensor(dtype="float64", shape=(2, 2, 6))
    assert pt.reshape(x, (6, rest)).type.shape == (6, 4)
    assert pt.reshape(x, (6, rest, 2)).type.shape == (6, 2, 2)


def test_a_length_that_contradicts_the_static_one_is_refused():
    x, n = pt.tensor(dtype="float64", shape=(2, 6)), pt.lscalar()
    f = engine.function([x, n], pt.reshape(x, (3, n)))
    assert f(np.zeros((2, 6)), 4).shape == (3, 4)
    with pytest.raises(ValueError, match="Reshape"):
        f(np.zeros((2, 6)), 5)


def test_a_vector_of_unknown_length_has_as_many_lengths_as_are_asked_for():
    x, shape = pt.dmatrix(), pt.lvector()
    f = engine.function([x, shape], [x.reshape(shape, ndim=2), pt.Reshape(2)(x, shape)])
    assert [each.shape for each in f(np.zeros((3, 4)), [6, -1])] == [(6, 2)] * 2
    with pytest.raises(ValueError, match="Reshape"):
        f(np.zeros((3, 4)), [12])


def test_a_new_constant_makes_a_new_type():
    x, n = pt.dvector(), pt.as_tensor(50)
    y = pt.reshape(x, (100 // n, n))
    new = clone_replace(y, {n: pt.as_tensor(25)}, rebuild_strict=False)
    assert y.type.shape[1] == 50
    assert new.type.shape[1] == 25


def test_lengths_are_listed_as_constants_where_they_are_known():
    x = pt.tensor(dtype="float64", shape=(1, None))
    known, unknown = pt.shape_tuple(x)
    assert known.data == 1
    assert not hasattr(unknown, "data")
    assert pt.specify_broadcastable(x, 1).type.shape == (1, 1)
    assert pt.specify_broadcastable(x, 0) is x


def test_the_size_of_a_number_is_a_function_of_it():
    x = pt.dscalar("x")
    assert engine.function([x], x.size)(3.0) == 1
    assert engine.function([x], x.size)(3.0).dtype == "int64"
