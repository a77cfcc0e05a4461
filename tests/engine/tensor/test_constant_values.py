"""The number that a variable is known to be is found through what moves, repeats, checks or computes it."""

import numpy as np
import pytest

import engine.scalar as scalar
import engine.tensor as pt
from engine.raise_op import Assert
from engine.tensor.constant_values import infer_static_shape

X = pt.dvector("x")
TWO = pt.constant(2.0)


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (np.array(3), 3),
        (TWO, 2),
        (pt.cast(TWO, "int32") + 1, 3),
        (pt.second(X, TWO), 2),
        (pt.alloc(TWO, X.shape[0]).dimshuffle("x", 0), 2),
        (pt.stack([X[0], TWO])[1], 2),
        (pt.join(0, [5.0], X[:1].reshape((1,)))[0], 5),
        (pt.constant(np.arange(40.0))[7], 7),
        (pt.drow().shape[0], 1),
        (pt.tensor_from_scalar(scalar.constant(4)), 4),
        (Assert("")(TWO, TWO > 1), 2),
        (pt.specify_shape(pt.constant([6, 6]), (2,)), 6),
        (pt.NoneConst, None),
    ],
)
def test_a_known_number_is_found(variable, expected):
    assert pt.get_underlying_scalar_constant_value(variable) == expected


@pytest.mark.parametrize(
    "variable",
    [
        X[0],
        pt.stack([X[0], TWO])[0],
        Assert("")(TWO, TWO > 2),
        np.array([0, 1]),
        np.array([]),
        pt.exp(X[0]),
        None,
    ],
)
def test_what_is_not_known_is_refused(variable):
    with pytest.raises(pt.NotScalarConstantError, match="not known to be one number"):
        pt.get_underlying_scalar_constant_value(variable)
    assert pt.get_underlying_scalar_constant_value(variable, raise_not_constant=False) is variable


def test_a_tensor_tells_the_number_that_it_is():
    assert pt.second(X, 3.0).get_underlying_scalar_constant() == 3
    with pytest.raises(pt.NotScalarConstantError, match="not known to be one number"):
        X.get_underlying_scalar_constant()


def test_nodes_are_looked_through_on_request():
    total = TWO + 1
    find = pt.get_underlying_scalar_constant_value
    assert find(total) == 3
    for options in ({"elemwise": False}, {"only_process_constants": True}, {"max_recur": 0}):
        assert find(total, raise_not_constant=False, **options) is total


def test_a_number_has_no_dimensions_and_is_the_callers_own():
    with pytest.raises(pt.NotScalarConstantError, match="1 dimensions"):
        pt.get_scalar_constant_value(pt.constant([2.0]))
    found = pt.get_scalar_constant_value(TWO)
    found += 1
    assert pt.get_scalar_constant_value(TWO) == 2


def test_static_lengths_are_told_of_a_shape_and_others_are_refused():
    n, x = pt.iscalar("n"), pt.tensor("x", shape=(3, None))
    lengths, static = infer_static_shape([n, 4, x.shape[0], pt.constant(2) * 3, pt.dscalar("y").size])
    assert lengths[0] is n
    assert static == (None, 4, 3, 6, 1)
    assert infer_static_shape(pt.specify_shape(pt.lvector(), (2,)))[1] == (None, None)
    with pytest.raises(TypeError, match=r"^Shapes must be scalar integers(.|\n)*A\. wrong"):
        infer_static_shape([pt.dscalar("wrong")])
    with pytest.raises(ValueError, match="could not be cast to have 0 dimensions"):
        infer_static_shape([pt.as_tensor([[1, 2]])])
