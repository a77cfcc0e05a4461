"""Elements by index, and additions to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import engine.tensor as pt
from engine import verify_grad
from engine.graph.reference import evaluate
from engine.tensor.subtensor import advanced_inc_subtensor1, advanced_subtensor1
from tests.engine.special_values import DTYPES, same

INDICES = npst.arrays(
    st.sampled_from(["int64", "int32"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=st.integers(-4, 3),
)


@given(INDICES, st.sampled_from(DTYPES), st.sampled_from([(4,), (4, 2), (4, 0, 3)]))
def test_indexing_by_integers_is_numpys(index, dtype, shape):
    value = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x, i = pt.tensor("x", dtype, (None,) * value.ndim), pt.tensor("i", index.dtype, (None,) * index.ndim)
    expected = np.asarray(value[index])
    assert same(evaluate([x, i], [x[i]], [value, index])[0], expected)
    assert same(evaluate([x], [x[index]], [value])[0], expected)


def test_numbers_and_lists_index_too():
    x, value = pt.dmatrix("x"), np.arange(6.0).reshape(3, 2)
    for index in (1, -1, [0, 2, 2], [[0], [1]], [], np.int32(2)):
        expected = value[np.asarray(index, "int64")]
        assert same(evaluate([x], [x[index]], [value])[0], expected)


@pytest.mark.parametrize(
    "index",
    [1.5, np.array([0.5]), "a", pt.dvector("v"), (0, [1.5])],
)
def test_other_indices_are_refused_and_what_is_supported_is_named(index):
    with pytest.raises(TypeError, match=r"only integers .*, slices, None and Ellipsis are supported"):
        pt.dmatrix("x")[index]


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_out_of_range_is_named(index):
    x, i = pt.dmatrix("x"), pt.lvector("i")
    with pytest.raises(IndexError, match=f"axis 0 of size 3: index {index} at position 1 is out of bounds"):
        evaluate([x, i], [x[i]], [np.ones((3, 2)), np.array([0, index, 9])])


def test_a_scalar_has_no_elements_by_index():
    with pytest.raises(IndexError, match="0-dimensional, but 1 were indexed"):
        pt.dscalar("x")[[0]]


def test_the_index_must_be_a_vector_of_integers():
    with pytest.raises(TypeError, match="vector of integers"):
        advanced_subtensor1(pt.dvector(), pt.lmatrix())


def test_static_lengths_are_kept():
    x = pt.tensor("x", "float64", (None, 5))
    assert x[np.array([1, 2, 3])].type.shape == (3, 5)
    assert x[pt.lmatrix()].type.shape == (None, None, 5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_additions_to_the_same_element_accumulate(dtype):
    value, rows, index = (
        np.ones((3, 2), dtype),
        np.arange(8).reshape(4, 2).astype(dtype),
        np.array([0, 2, 0, -1]),
    )
    expected = value.copy()
    np.add.at(expected, index, rows)
    x, y, i = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype), pt.lvector("i")
    assert same(evaluate([x, y, i], [advanced_inc_subtensor1(x, y, i)], [value, rows, index])[0], expected)
    assert value.tolist() == np.ones((3, 2)).tolist()


def test_what_is_added_must_fit():
    x, y, i = pt.dvector("x"), pt.dvector("y"), pt.lvector("i")
    with pytest.raises(ValueError, match=r"shape \(3,\) to elements of one of shape \(5,\): \(2,\) fits"):
        evaluate([x, y, i], [advanced_inc_subtensor1(x, y, i)], [np.ones(5), np.ones(3), np.array([0, 1])])
    with pytest.raises(TypeError, match="cast it first"):
        advanced_inc_subtensor1(pt.fvector(), y, i)
    with pytest.raises(TypeError, match="the ranks must be equal"):
        advanced_inc_subtensor1(pt.dmatrix(), y, i)
    with pytest.raises(ValueError, match="is expected"):
        advanced_inc_subtensor1(x, np.ones(3), np.array([0, 1]))
    with pytest.raises(IndexError, match="index 7"):
        evaluate([x, y, i], [advanced_inc_subtensor1(x, y, i)], [np.ones(5), np.ones(1), np.array([7])])


def test_gradients():
    rng = np.random.default_rng(0)
    verify_grad(lambda x: x[np.array([[0, 2], [2, -1]])], [rng.normal(size=(3, 2))])
    verify_grad(lambda x: x[1], [rng.normal(size=(3,)).astype("float32")])
    index = pt.constant([0, 1, 0])
    verify_grad(
        lambda x, y: advanced_inc_subtensor1(x, y, index), [rng.normal(size=(2, 2)), rng.normal(size=(3, 2))]
    )
    verify_grad(lambda x: x[np.array([], "int64")], [rng.normal(size=(3,))])
