"""Arrays of integers in an index, alone and among slices, and the change of what is indexed: numpy's meaning."""

import random

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.graph.reference import evaluate
from engine.tensor.indexing import advanced_inc_subtensor, advanced_set_subtensor, advanced_subtensor

X = np.linspace(-1, 1, 60).reshape(5, 4, 3)
A, B = np.array([0, 3, -1, 3]), np.array([[1], [-2]])
INDICES = {
    "a number": (1,),
    "slices": (slice(1, None), slice(None, None, -2)),
    "a new axis": (slice(1, 4), None, 0),
    "rows": (A,),
    "rows of a slice": (A, slice(None, None, 2)),
    "columns": (slice(None), A),
    "the last axis": (..., [0, -1, 0]),
    "two axes": (A, A),
    "two axes in the middle": (slice(None), A, [2, 2, 2, -3]),
    "two axes apart": (A, slice(1, 3), [2, 0, -1, 0]),
    "axes that broadcast": (A, B),
    "an axis and a number": (slice(None), 1, [0, 2]),
    "an axis and a number apart": (1, slice(None), [0, 2]),
    "three axes": (A, B, 0),
    "a matrix": (B,),
    "new axes": (None, A, None, ..., 1),
    "nothing": ([],),
    "everything": (...,),
}


def changed(index, y, sets):
    result = X.copy()
    if sets:
        result[index] = y
    else:
        np.add.at(result, index, y)
    return result


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_what_is_indexed_and_changed_is_what_numpy_indexes_and_changes(mode, kernels_once):
    x, y = pt.tensor3("x"), pt.dscalar("y")
    outputs, expected = [], []
    for index in INDICES.values():
        part = X[index]
        rows = np.random.default_rng(1).normal(size=part.shape)
        outputs += [x[index], x[index].set(y), x[index].inc(y), x[index].set(rows), x[index].inc(rows * y)]
        expected += [part, changed(index, 2.0, True), changed(index, 2.0, False)]
        expected += [changed(index, rows, True), changed(index, rows * 2, False)]
    found = engine.function([x, y], outputs, mode=mode)(X, 2.0)
    for position, (one, other) in enumerate(zip(found, expected, strict=True)):
        name = list(INDICES)[position // 5], position % 5
        assert one.shape == other.shape, name
        np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=str(name))


def test_gradients_compiled_are_the_references(kernels_once):
    x, y = pt.tensor3("x"), pt.dscalar("y")
    cost = 0.0
    for index in INDICES.values():
        cost += (
            (x[index] ** 3).sum() + (x[index].set(y * 2) ** 3).sum() + (x[index].inc(x[index] * y) ** 2).sum()
        )
    gradient = engine.grad(cost, [x, y])
    found, expected = (engine.function([x, y], gradient, mode=mode)(X, 0.5) for mode in ("FAST_RUN", "NUMPY"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize(
    "name", ["columns", "two axes", "axes that broadcast", "two axes apart", "new axes", "rows"]
)
def test_gradients_are_those_of_finite_differences(name):
    index = INDICES[name]
    rows = np.random.default_rng(0).normal(size=X[index].shape)
    verify_grad(lambda x: x[index], [X], n_tests=1)
    verify_grad(lambda x, y: x[index].inc(y), [X, rows], n_tests=1)
    # Where several rows are set to one place only the last matters.
    verify_grad(lambda x, y: x[index].set(y), [X, rows], n_tests=1)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize(("axis", "size"), [(0, 5), (1, 4), (2, 3)])
def test_an_index_out_of_range_is_named_with_axis_and_size(axis, size, mode, kernels_once):
    x, i = pt.tensor3("x"), pt.lvector("i")
    index = (slice(None),) * axis + (i,)
    for output in (x[index], x[index].inc(1.0), x[index].set(1.0)):
        f = engine.function([x, i], output, mode=mode)
        with pytest.raises(IndexError, match=f"(?s)(?=.*index {size}\\b)(?=.*axis {axis})(?=.*size {size})"):
            f(X, [0, size])


def test_dtypes_are_kept_and_wider_ones_refused():
    x = pt.imatrix("x")
    assert x[0].set(1).type.dtype == "int32"
    assert x[[0]].inc(True).type.dtype == "int32"
    for wide in (1.5, pt.lscalar("n"), np.ones(2)):
        with pytest.raises(TypeError, match="cast it first"):
            x[0].set(wide)


def test_what_does_not_fit_is_refused():
    x, y = pt.dmatrix("x"), pt.dvector("y")
    with pytest.raises(TypeError, match="more dimensions"):
        y[1:].set(x)
    with pytest.raises(ValueError, match="does not fit"):
        pt.zeros((3, 4))[:, 1:].set(np.ones(2))
    with pytest.raises(ValueError, match="was given"):
        evaluate([x, y], [x[:, 1:].inc(y.dimshuffle("x", 0))], [np.ones((3, 4)), np.ones(2)])
    with pytest.raises(TypeError, match="result of indexing"):
        x.set(1.0)
    with pytest.raises(TypeError, match="result of indexing"):
        pt.exp(x[0]).inc(1.0)


def test_the_part_of_a_part_changes_what_it_was_taken_from_last():
    x = pt.dmatrix("x")
    first = x[1:]
    assert first[0].set(1.0).owner.inputs[0] is first
    assert pt.set_subtensor(x.T[0], 1.0).owner.inputs[0] is not x


def test_arrays_of_lengths_that_do_not_fit_are_refused_when_the_graph_is_built():
    x, i, j = pt.dmatrix("x"), pt.lvector("i", shape=(3,)), pt.lmatrix("j", shape=(2, 4))
    with pytest.raises(IndexError, match=r"could not be broadcast together with shapes \[\(3,\), \(2, 4\)\]"):
        x[i, j]
    assert x[i, j[:, :1]].type.shape == (2, 3)


def test_a_slice_between_equal_bounds_is_empty():
    assert pt.lvector()[1:1].type.shape == (0,)
    assert pt.lvector()[-1:-1:-3].type.shape == (0,)


def test_what_occurs_several_times_may_count_once():
    x, y = np.arange(3.0), np.array([1.0, 2.0, 4.0])
    part = pt.constant(x)[[2, 0, 2]]
    outputs = [
        pt.inc_subtensor(part, y, ignore_duplicates=True),
        part.inc(y, inplace=True),
        pt.inc_subtensor(part, y, set_instead_of_inc=True),
        part.set(y, inplace=True),
        advanced_inc_subtensor(x, y, [2, 0, 2]),
        advanced_set_subtensor(x, y, [2, 0, 2]),
        advanced_subtensor(x, [2, 0, 2]),
    ]
    expected = [[2, 1, 6], [2, 1, 7], [2, 1, 4], [2, 1, 4], [2, 1, 7], [2, 1, 4], [2, 0, 2]]
    assert [found.tolist() for found in engine.function([], outputs, mode="NUMPY")()] == expected


def _an_index(draw, shape):
    """Return an index that numpy takes, with at most one ellipsis, in front or at the end."""
    entries, axes = [], list(shape)
    while axes and draw.random() < 0.9:
        length, kind = axes.pop(0), draw.randrange(7)
        if kind == 0:
            entries.append(draw.randrange(-length, length))
        elif kind == 1:
            bounds = [draw.choice([None, draw.randrange(-length - 1, length + 2)]) for _ in range(2)]
            entries.append(slice(*bounds, draw.choice([None, 1, 2, -1, -3])))
        elif kind == 2:
            entries += [None, slice(None)]
        elif kind == 3:
            entries.append(np.array([draw.random() < 0.5 for _ in range(length)]))
        elif kind == 4 and axes:
            count = length * axes.pop(0)
            flat = np.array([draw.random() < 0.5 for _ in range(count)], "bool")
            entries.append(flat.reshape(length, -1))
        else:
            size = draw.choice([(), (1,), (2,), (2,), (3, 1), (2, 2)])
            places = [draw.randrange(-length, length) for _ in range(int(np.prod(size)))]
            entries.append(np.array(places, draw.choice(["int64", "int8"])).reshape(size))
    return (*entries, ...) if draw.random() < 0.2 else tuple(entries)


def _as_variables(draw, index):
    """Return the index with some of its arrays and numbers as variables, these, and their values."""
    found, given = [], {}
    for entry in index:
        if isinstance(entry, np.ndarray | int) and draw.random() < 0.6:
            value = np.asarray(entry)
            variable = pt.tensor(dtype=value.dtype.name, shape=(None,) * value.ndim)
            given[variable] = value
            entry = variable
        found.append(entry)
    return tuple(found), given


@pytest.mark.parametrize(("seed", "mode"), [*((seed, "NUMPY") for seed in range(12)), (12, "FAST_RUN")])
def test_any_index_selects_and_changes_what_it_does_in_numpy(seed, mode):
    draw, inputs, outputs, due = random.Random(seed), {}, [], []
    while len(outputs) < 30:
        shape = [draw.randrange(1, 5) for _ in range(draw.randrange(1, 5))]
        index, value = _an_index(draw, shape), np.random.default_rng(seed).normal(size=shape)
        try:
            part = value[index]
        except IndexError:  # of arrays that do not broadcast
            continue
        variables, given = _as_variables(draw, index)
        x = pt.tensor(shape=[draw.choice([None, length]) for length in shape])
        inputs |= {x: value, **given}
        new = np.random.default_rng(seed).normal(size=part.shape)
        outputs += [x[variables], x[variables].set(new), x[variables].inc(new)]
        due += [part, *(value.copy() for _ in range(2))]
        due[-2][index] = new
        np.add.at(due[-1], index, new)
    function = engine.function(list(inputs), outputs, mode=mode, on_unused_input="ignore")
    for one, other, output in zip(function(*inputs.values()), due, outputs, strict=True):
        assert one.shape == other.shape
        assert all(
            static in (None, found) for static, found in zip(output.type.shape, one.shape, strict=True)
        )
        np.testing.assert_allclose(one, other, rtol=1e-12)
