"""The shapes of all variables of a graph, and digests of arrays."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.tensor.utils import hash_from_ndarray, shape_of_variables


def test_shapes_follow_from_those_of_the_inputs():
    x, y = pt.dmatrix("x"), pt.lvector("y")
    product, part = pt.dot(x, x.T), x[1:, y]
    graph = FunctionGraph([x, y], [product, part], clone=False)
    found = shape_of_variables(graph, {x: (5, 2), y: (7,)})
    assert (found[x], found[y], found[product], found[part]) == ((5, 2), (7,), (5, 5), (4, 7))
    assert set(found) == set(graph.variables)


def test_static_lengths_hold():
    x = pt.tensor("x", shape=(None, 3))
    graph = FunctionGraph([x], [x + x], clone=False)
    assert shape_of_variables(graph, {x: (2, 3)})[graph.outputs[0]] == (2, 3)
    with pytest.raises(TypeError):
        shape_of_variables(graph, {x: (2, 4)})


def test_shapes_of_other_variables_are_refused():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="for its inputs"):
        shape_of_variables(FunctionGraph([x], [x + 1.0]), {x: (2, 2)})


def test_a_digest_tells_dtypes_shapes_and_elements_apart_and_not_strides():
    square = np.arange(4.0).reshape(2, 2)
    different = [
        square,
        square.T,
        square[:1],
        square.astype("float32"),
        np.zeros((1, 0)),
        np.zeros((2, 0)),
        1,
    ]
    assert len({hash_from_ndarray(each) for each in different}) == len(different)
    assert hash_from_ndarray(square[:, ::2]) == hash_from_ndarray(square[:, ::2].copy())
