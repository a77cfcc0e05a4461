"""Masks: what they choose, set and add to, of any rank and among other indices; where something is not 0."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import verify_grad
from engine.graph import io_toposort
from engine.graph.reference import evaluate

X = np.arange(24.0).reshape(2, 3, 4) - 7
ROWS = np.array([False, True])
PLANE = np.array([[True, False, True], [False, False, True]])
ALL = X % 3 == 0


def variables():
    return pt.dtensor3("x"), *(
        pt.tensor(name, "bool", (None,) * rank) for name, rank in zip("rpa", (1, 2, 3), strict=True)
    )


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_mask_chooses_as_numpys(mode, kernels_once):
    x, rows, plane, every = variables()
    cases = [
        (x[rows], X[ROWS]),
        (x[plane], X[PLANE]),
        (x[every], X[ALL]),
        (x[x > 3], X[X > 3]),
        (x[PLANE], X[PLANE]),
        (x[0, 0][[True, False, True, False]], X[0, 0][[True, False, True, False]]),
        (x[:, [True, False, True]], X[:, [True, False, True]]),
        (x[0, plane[0], 1:], X[0, PLANE[0], 1:]),
        (x[..., x[0, 0] > -6], X[..., X[0, 0] > -6]),
        (x[plane, 1], X[PLANE, 1]),
        (x[rows, [1]], X[ROWS, [1]]),
        (x[rows, None], X[ROWS, None]),
    ]
    function = engine.function([x, rows, plane, every], [output for output, _ in cases], mode=mode)
    for number, (found, (_, expected)) in enumerate(zip(function(X, ROWS, PLANE, ALL), cases, strict=True)):
        np.testing.assert_array_equal(found, expected, err_msg=str(number))
    for found, (output, _) in zip(
        function(X * 0, ROWS & False, PLANE & False, ALL & False), cases[:4], strict=False
    ):
        assert len(found) == 0
        assert found.ndim == output.ndim


def changed(value, index, y, adds=False):
    result = value.copy()
    result[index] = result[index] + y if adds else y
    return result


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_what_a_mask_chooses_is_set_and_added_to(mode, kernels_once):
    x, rows, plane, every = variables()
    cases = [
        (x[every].set(0.0), changed(X, ALL, 0)),
        (x[every].inc(2.0), changed(X, ALL, 2, True)),
        (x[plane].set(x[0, 0]), changed(X, PLANE, X[0, 0])),
        (x[every].set(x[every] ** 2), changed(X, ALL, X[ALL] ** 2)),
        (x[plane].inc(x[plane]), changed(X, PLANE, X[PLANE], True)),
        (x[rows].set(x[:1] + 1), changed(X, ROWS, X[:1] + 1)),
        (x[:, [True, False, True]].inc(1.0), changed(X, np.s_[:, [True, False, True]], 1, True)),
        (x[1][plane[1]].set(5.0), changed(X[1], PLANE[1], 5)),
    ]
    function = engine.function([x, rows, plane, every], [output for output, _ in cases], mode=mode)
    for number, (found, (_, expected)) in enumerate(zip(function(X, ROWS, PLANE, ALL), cases, strict=True)):
        np.testing.assert_array_equal(found, expected, err_msg=str(number))


@pytest.mark.parametrize("index", ["plane, None", "plane, slice(None), None", "None, plane", "every, None"])
def test_a_part_with_new_axes_that_a_mask_chooses_is_changed_in_place(index):
    x, rows, plane, every = variables()
    part, selected = eval(index), eval(index, {"plane": PLANE, "every": ALL, "slice": slice})
    changes = [pt.set_subtensor(x[part], 2.0), pt.inc_subtensor(x[part], 2.0)]
    f = engine.function([x, rows, plane, every], changes, on_unused_input="ignore")
    for found, adds in zip(f(X, ROWS, PLANE, ALL), (False, True), strict=True):
        np.testing.assert_array_equal(found, changed(X, selected, 2.0, adds))


def test_one_value_for_all_that_is_chosen_needs_no_positions():
    x, _, plane, _ = variables()
    for output in (x[plane].set(1.0), x[plane].inc(x[0, 0])):
        assert not [node for node in io_toposort([], [output]) if isinstance(node.op, pt.FlatNonzero)]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_places_that_are_not_zero_are_numpys(mode, kernels_once):
    x, k, v = pt.dtensor3("x"), pt.imatrix("k"), pt.vector("v", dtype="bool")
    outputs = [*pt.nonzero(x), *pt.where(k), *v.nonzero(), pt.flatnonzero(k), pt.where(v)[0].shape[0]]
    value = np.where(ALL, X, -0.0)
    value[0, 1, 1] = np.nan
    matrix = (PLANE * 5).astype("i4")
    found = engine.function([x, k, v], outputs, mode=mode)(value, matrix, ROWS)
    expected = [*np.nonzero(value), *np.nonzero(matrix), *np.nonzero(ROWS), np.flatnonzero(matrix), 1]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == "int64"
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_mask_of_another_length_is_refused_in_numpys_words(mode, kernels_once):
    x, rows, plane, _ = variables()
    of_rows, of_plane = (engine.function([x, m], x[m], mode=mode) for m in (rows, plane))
    with pytest.raises(IndexError, match=r"along axis 0; size of axis is 2 but size of .* is 3"):
        of_rows(X, np.ones(3, bool))
    with pytest.raises(IndexError, match=r"along axis 1; size of axis is 3 but size of .* is 2"):
        of_plane(X, np.ones((2, 2), bool))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_another_number_of_values_than_places_is_refused(mode, kernels_once):
    x, v = pt.dvector("x"), pt.dvector("v")
    function = engine.function([x, v], x[x > 0].set(v), mode=mode)
    assert function(np.array([1.0, -1.0, 2.0]), np.array([7.0, 8.0])).tolist() == [7, -1, 8]
    with pytest.raises(ValueError, match=r"2|shape"):
        function(np.array([1.0, -1.0, 2.0]), np.ones(3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0] ** 2,
        lambda x: x[PLANE],
        lambda x: x[x > 0].set(x[x > 0] ** 2) * x,
        lambda x: x[PLANE].inc(x[0, 0] ** 2),
        lambda x: x[:, [True, False, True]] * 2,
        lambda x: x[ALL].set(pt.sum(x**2)),
    ],
)
def test_gradients_are_those_of_finite_differences(function):
    verify_grad(function, [X / 7 + 0.01], n_tests=1)


def test_gradients_are_compiled(kernels_once):
    x = pt.dtensor3("x")
    gradient = engine.grad(pt.sum(x[x > 0] ** 3) + pt.sum(x[x < 0].set(0.0)), x)
    found = engine.function([x], gradient)(X)
    np.testing.assert_allclose(found, np.where(X > 0, 3 * X**2 + 1, X == 0))


def test_a_mask_in_every_pass_of_a_loop(kernels_once):
    x = pt.dmatrix("x")
    output = engine.scan(lambda row: pt.sum(row[row > 0]), sequences=x, return_updates=False)
    np.testing.assert_allclose(engine.function([x], output)(X[0]), np.where(X[0] > 0, X[0], 0).sum(1))


def test_what_is_no_mask_is_refused():
    x, k = pt.dvector("x"), pt.lscalar("k")
    with pytest.raises(IndexError, match="too many indices"):
        x[pt.matrix("m", dtype="bool")]
    for single in (True, np.array(False), pt.scalar("b", dtype="bool")):
        with pytest.raises(NotImplementedError, match="single bool"):
            x[single]
    with pytest.raises(ValueError, match="no dimensions"):
        pt.nonzero(k)
    with pytest.raises(ValueError, match="both"):
        pt.where(x > 0, x)
    with pytest.raises(TypeError, match="must be of bools"):
        pt.FlatNonzero()(x, 3)


def test_choosing_element_by_element_stays():
    x = pt.dvector("x")
    assert evaluate([x], [pt.where(x > 0, x, 0)], [[1.0, -1.0]])[0].tolist() == [1, 0]


def test_the_count_of_a_constant_mask_is_known():
    x, mask = pt.tensor3("x"), np.array([[True, False], [True, True]])
    assert x[mask].type.shape == (3, None)
    assert x[mask[0], :, [0, 1, 2]].type.shape == (3, None)
