"""Lengths of broadcast tensors: known where they can be, checked where not."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.known_lengths import known_length


def value(lengths, given):
    return engine.function(list(given), list(lengths), on_unused_input="ignore")(*given.values())


def test_known_lengths_stay_known():
    lengths = pt.broadcast_shape((1, 2), pt.as_tensor([3, 1, 2]), (2,), arrays_are_shapes=True)
    assert [known_length(length) for length in lengths] == [3, 1, 2]
    assert pt.broadcast_shape() == ()
    assert len(pt.broadcast_shape_iter(iter([(1, 2), (3, 1)]), arrays_are_shapes=True)) == 2
    x = pt.tensor("x", shape=(None, 1))
    assert [known_length(length) for length in pt.broadcast_shape(x, x + 1, np.ones(4))] == [None, 4]
    with pytest.raises(ValueError, match="do not fit"):
        pt.broadcast_shape((2,), (3,), arrays_are_shapes=True)


@pytest.mark.parametrize(("a", "b", "due"), [(2, 2, 2), (0, 0, 0), (1, 2, None), (2, 3, None), (0, 1, None)])
def test_lengths_that_differ_are_refused_when_the_function_runs(a, b, due):
    n, m = pt.lscalars("n", "m")
    (length,) = pt.broadcast_shape((n,), (m,), arrays_are_shapes=True)
    if due is None:
        with pytest.raises(AssertionError, match="Could not broadcast"):
            value([length], {n: a, m: b})
    else:
        assert value([length], {n: a, m: b})[0] == due


@pytest.mark.parametrize(("a", "b", "c"), [(1, 2, 2), (2, 1, 1), (1, 1, 1), (0, 1, 0), (2, 3, 1), (1, 2, 3)])
def test_lengths_of_one_may_broadcast_when_the_function_runs(a, b, c):
    given = dict(zip(pt.lscalars("n", "m", "k"), (a, b, c), strict=True))
    (length,) = pt.broadcast_shape(
        *[(n,) for n in given], arrays_are_shapes=True, allow_runtime_broadcast=True
    )
    try:
        (due,) = np.broadcast_shapes((a,), (b,), (c,))
    except ValueError:
        with pytest.raises(AssertionError, match="Could not broadcast"):
            value([length], given)
    else:
        assert value([length], given)[0] == due
