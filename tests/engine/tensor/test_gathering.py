"""Indexing by several arrays as indexing by one."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph.reference import evaluate
from engine.tensor.gathering import SpreadIndex, WrapIndex, first_axis, spread_together, unequal_lengths

X = np.arange(60.0).reshape(5, 4, 3)
LENGTHS = [(1, 3), (3, 1), (1, 1), (3, 3), (1, 0), (0, 1), (0, 0)]
"""Of two index vectors, which their types do not tell."""


def test_axes_of_arrays_come_where_the_indexed_ones_were_or_in_front():
    assert [first_axis(axes) for axes in ([0], [2], [1, 2], [1, 3])] == [0, 2, 1, 0]


def test_negative_indices_count_from_the_end():
    index = pt.lvector("i")
    wrapped = WrapIndex(1)(index, 4)
    assert evaluate([index], [wrapped], [np.array([0, -1, 3, -4])])[0].tolist() == [0, 3, 3, 0]
    with pytest.raises(IndexError, match="axis 1 of size 4: index -5 at position 1"):
        evaluate([index], [wrapped], [np.array([0, -5])])


PARTS = ["x[i, j]", "x[i, 1:, p[:, ::-1]]", "x[j - 1, ..., p]", "x[m, n]", "x[m, j]", "x[:, n, p[0]]"]


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_index_arrays_broadcast_by_the_lengths_of_a_call(mode, kernels_once):
    x, i, j, p = pt.tensor3("x"), pt.lvector("i"), pt.lvector("j"), pt.lmatrix("p")
    variables = [x, i, j, p, *(pt.vector(name, "bool") for name in "mn")]
    parts = [eval(text, {str(variable): variable for variable in variables}) for text in PARTS]
    outputs = [*parts, *[pt.set_subtensor(part, -1.0) for part in parts]]
    function = engine.function(variables, outputs, mode=mode)
    places = np.arange(60.0).reshape(X.shape)
    for first, second in LENGTHS:
        rows, columns = np.array([1, -1, 4])[:first], np.array([0, 3, -4])[:second]
        masks = np.isin(np.arange(5), [1, 4, 2][:first]), np.isin(np.arange(4), [0, 3, 1][:second])
        values = [X, rows, columns, np.array([[2, 0, 1]])[:, :first], *masks]
        due = [eval(text, dict(zip("xijpmn", values, strict=True))) for text in PARTS]
        found = function(*values)
        for one, other in zip(found, due, strict=False):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(found[len(due) :], due, strict=True):
            np.testing.assert_array_equal(one, np.where(np.isin(places, other), -1.0, X))


def test_gradients_of_index_arrays_that_broadcast_at_a_call_are_those_of_numpys():
    x, i, j = pt.matrix("x"), pt.lvector("i"), pt.lvector("j")
    weights = pt.vector("w")
    slope = engine.grad((x[i, j] * weights).sum(), x)
    function = engine.function([x, i, j, weights], [slope, x[i, j].inc(weights)])
    due = np.zeros((5, 4))
    np.add.at(due, ([2], [0, 3, 0]), [1.0, 2.0, 4.0])
    slope, added = function(X[..., 0], [2], [0, 3, 0], [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(slope, due)
    np.testing.assert_array_equal(added, X[..., 0] + due)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_index_arrays_of_lengths_that_do_not_fit_are_refused_at_a_call(mode):
    x, i, j = pt.matrix("x"), pt.lvector("i"), pt.lvector("j")
    function = engine.function([x, i, j], x[i, j], mode=mode)
    for first, second in [(2, 3), (3, 2), (0, 2), (2, 0)]:
        with pytest.raises(IndexError, match="shape mismatch: indexing arrays could not be broadcast"):
            function(X[..., 0], np.zeros(first, "int64"), np.zeros(second, "int64"))


def test_an_index_is_spread_only_where_types_do_not_tell_the_lengths():
    i, j, row = pt.lvector("i"), pt.lvector("j", shape=(3,)), pt.lmatrix("row", shape=(1, None))
    assert spread_together([[j], [pt.lscalar()]])[0][0] is j
    (one,), (other,) = spread_together([[i], [j]])
    assert isinstance(one.owner.op, SpreadIndex)
    assert one.type.shape == other.type.shape == (3,)
    assert spread_together([[row], [i]])[0][0].type.shape == (1, None)
    assert "lengths 2 and 3" in unequal_lengths(2, 3)
    with pytest.raises(TypeError, match="it must be integers of as many axes"):
        SpreadIndex().make_node(i)


def test_an_index_in_a_loop_broadcasts_too():
    x, i, j = pt.matrix("x"), pt.lmatrix("i"), pt.lvector("j")
    found = engine.scan(lambda row, x, j: x[row, j], sequences=i, non_sequences=[x, j], return_updates=False)
    given = X[..., 0], np.array([[1], [4]]), np.array([0, 2, 3])
    np.testing.assert_array_equal(engine.function([x, i, j], found)(*given), given[0][given[1], given[2]])
