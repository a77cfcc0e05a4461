"""Elements by index, and additions to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.graph.reference import evaluate
from engine.graph.traversal import apply_ancestors
from engine.tensor.blockwise import Blockwise, vectorize_graph
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
    with pytest.raises(ValueError, match=r"shape \(5,\) by one of shape \(3,\): \(2,\) fits"):
        evaluate([x, y, i], [advanced_inc_subtensor1(x, y, i)], [np.ones(5), np.ones(3), np.array([0, 1])])
    with pytest.raises(TypeError, match="cast it first"):
        advanced_inc_subtensor1(pt.fvector(), y, i)
    with pytest.raises(ValueError, match="has fewer dimensions"):
        advanced_inc_subtensor1(x, pt.dmatrix(), i)
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


X = np.linspace(-1, 1, 60).reshape(5, 4, 3)
ARRAYS = [np.array([0, 3, -1, 3]), np.array([[1], [-2]])]
POSITIONS = {
    "rows": ([0], lambda a, b: (a,)),
    "columns": ([slice(None), 0], lambda a, b: (slice(None), a)),
    "a slice between": ([0, slice(None, 1), 2], lambda a, b: (a, slice(None, 2), b % 3)),
    "arrays that broadcast": ([0, 1], lambda a, b: (a, b)),
}


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMPY"])
@pytest.mark.parametrize("name", POSITIONS)
def test_ops_that_users_construct_compute_what_numpy_computes(name, mode, kernels_once):
    idx_list, index_of = POSITIONS[name]
    index = index_of(*ARRAYS)
    flat = [part for item in index for part in (item.stop if isinstance(item, slice) else item,)]
    flat = [part for part in flat if part is not None]
    x, y = pt.tensor3("x"), pt.dscalar("y")
    outputs = [pt.AdvancedSubtensor(idx_list)(x, *flat)]
    outputs += [
        pt.AdvancedIncSubtensor(idx_list, set_instead_of_inc=sets)(x, y, *flat) for sets in (True, False)
    ]
    f = engine.function([x, y], outputs, mode=mode)
    added = X.copy()
    np.add.at(added, index, 2.0)
    replaced = X.copy()
    replaced[index] = 2.0
    for found, expected in zip(f(X, 2.0), (X[index], replaced, added), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", POSITIONS)
def test_batches_of_a_tensor_are_indexed_without_a_loop(name):
    index = POSITIONS[name][1](*ARRAYS)
    x, batch = pt.tensor3("x"), pt.tensor4("batch")
    found = vectorize_graph(x[index], {x: batch})
    values = np.stack([X, X * 2])
    expected = np.stack([each[index] for each in values])
    np.testing.assert_array_equal(evaluate([batch], [found], [values])[0], expected)
    assert not any(isinstance(node.op, Blockwise) for node in apply_ancestors([found]))


def test_a_set_counts_the_last_value_in_a_gradient_and_masks_have_no_duplicates():
    x, y = X[:, :, 0], np.array([1.0, 2.0, 3.0])
    verify_grad(lambda x, y: x[[1, 1, 0], [2, 2, 3]].set(y), [x, y])
    verify_grad(lambda x, y: x[:, [1, 1, 0]].set(y), [x, y])
    mask = x > 0.5
    verify_grad(lambda x, y: x[mask].set(y), [x, np.arange(mask.sum()) + 1.0])
    verify_grad(lambda x, y: pt.inc_subtensor(x[[1, 1, 0]], y, ignore_duplicates=True), [x, x[:3]])


def test_a_number_of_indices_and_types_that_do_not_fit_are_refused():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="1 indices are needed, 2 were given"):
        pt.AdvancedSubtensor([0])(x, [0], [1])
    with pytest.raises(TypeError, match="integers or a boolean mask"):
        pt.AdvancedSubtensor([0])(x, [0.5])
    with pytest.raises(NotImplementedError, match="a single bool"):
        pt.AdvancedSubtensor([0])(x, True)
    with pytest.raises(IndexError, match="2-dimensional, but 3 were indexed"):
        pt.AdvancedSubtensor([0, 1])(x, np.ones((2, 2), "bool"), [0])
    with pytest.raises(IndexError, match="size of axis is 3 but size of corresponding boolean axis is 2"):
        pt.AdvancedSubtensor([0])(np.ones((3, 3)), np.ones(2, "bool"))
    with pytest.raises(ValueError, match="has fewer dimensions"):
        pt.AdvancedIncSubtensor([0])(x, pt.tensor3("y"), [0])


def test_static_lengths_are_those_of_arrays_slices_and_masks():
    x = pt.tensor("x", shape=(5, 4, 3))
    assert pt.AdvancedSubtensor([0, slice(None, 1), 2])(x, [0, 1], 2, [[0], [1]]).type.shape == (2, 2, 2)
    assert x[:, np.array([True, False, True, True])].type.shape == (5, 3, 3)
    assert x[:, pt.vector("mask", dtype="bool")].type.shape == (5, None, 3)


def test_new_axes_alone_are_no_index_and_can_be_set():
    x = pt.dmatrix("x")
    assert isinstance(x[None].owner.op, pt.DimShuffle)
    value = np.arange(6.0).reshape(2, 3)
    found = evaluate([x], [x[None].set(1.0), x[..., None].inc(1.0), x[()].set(2.0)], [value])
    for one, expected in zip(found, (np.ones((2, 3)), value + 1, np.full((2, 3), 2.0)), strict=True):
        np.testing.assert_array_equal(one, expected)
