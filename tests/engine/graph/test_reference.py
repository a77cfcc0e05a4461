"""The numpy backend: it computes mutable and frozen graphs, and checks arguments and results."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.errors import MissingInputError
from engine.graph import Apply, FrozenFunctionGraph, Op
from engine.graph.reference import evaluate


def test_mutable_and_frozen_graphs_give_the_same():
    x, y = pt.dvector("x"), pt.dmatrix("y")
    outputs = [pt.exp(x) * y, (x * np.arange(3.0)).sum()]
    frozen = FrozenFunctionGraph.from_io([x, y], outputs)
    values = [np.arange(3.0), np.ones((2, 3))]
    expected = evaluate([x, y], outputs, values)
    found = evaluate(frozen.inputs, frozen.outputs, values)
    assert all(np.array_equal(f, e) for f, e in zip(found, expected, strict=True))


def test_inputs_and_constants_may_be_outputs_and_are_copies():
    x, c = pt.dvector("x"), pt.constant([1.0])
    value = np.ones(2)
    found = evaluate([x], [x, c, x.dimshuffle("x", 0)], [value])
    assert not any(np.shares_memory(f, v) for f in found for v in (value, c.data))
    assert all(f.flags.c_contiguous and f.flags.writeable for f in found)


def test_a_variable_between_can_be_given():
    x = pt.dscalar("x")
    middle = pt.exp(x)
    assert evaluate([middle], [middle * 2], [3.0]) == [6]


def test_values_are_converted_and_checked():
    x = pt.dvector("x")
    assert evaluate([x], [x], [[1, 2]])[0].dtype == "float64"
    with pytest.raises(TypeError, match="1 dimensions are expected"):
        evaluate([x], [x], [1.0])
    with pytest.raises(ValueError, match="1 inputs, 2 values"):
        evaluate([x], [x], [[1.0], [2.0]])


def test_a_variable_without_a_value_is_named():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    with pytest.raises(MissingInputError, match="y of type") as caught:
        evaluate([x], [x + y], [1.0])
    assert caught.value.variable is y


class Liar(Op):
    """Declares float64 and returns float32."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].astype("float32")


def test_an_op_that_gives_another_type_than_it_said_is_caught():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="dtype float64 as it is"):
        evaluate([x], [Liar()(x)], [np.ones(2)])
