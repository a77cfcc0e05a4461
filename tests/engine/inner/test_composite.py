import pickle

import numpy as np
import pytest

import engine.tensor as pt
from engine import scalar
from engine.errors import MissingInputError
from engine.graph import FrozenFunctionGraph
from engine.inner import Composite, HasInnerGraph
from engine.scalar import Cast, apply_scalar_op, scalar_type
from engine.tensor import Elemwise


def scalars(*dtypes):
    return [scalar_type(dtype).make_variable() for dtype in dtypes]


def scaled(factor, dtype="float64"):
    (x,) = scalars(dtype)
    return Composite([x], [apply_scalar_op(scalar.mul, apply_scalar_op(scalar.exp, x), factor)])


def test_equal_graphs_make_equal_composites():
    assert scaled(2.0) == scaled(2.0)
    assert hash(scaled(2.0)) == hash(scaled(2.0))
    assert scaled(2.0).fgraph is not None
    assert scaled(0.0) != scaled(-0.0)
    assert scaled(2.0) != scaled(2.0, "float32")


def test_it_holds_one_frozen_graph_and_is_its_own_clone():
    op = scaled(2.0)
    assert isinstance(op, HasInnerGraph)
    assert isinstance(op.fgraph, FrozenFunctionGraph)
    assert op.inner_inputs == op.fgraph.inputs
    assert op.inner_outputs == op.fgraph.outputs
    assert op.clone() is op
    assert Composite.from_fgraph(op.fgraph) == op


def test_it_comes_back_from_a_pickle_as_an_equal():
    op = pickle.loads(pickle.dumps(scaled(2.5)))
    assert op == scaled(2.5)
    assert op.fgraph.outputs[0] is scaled(2.5).fgraph.outputs[0]


def test_what_is_no_scalar_is_refused():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="is no scalar"):
        Composite([x], [pt.exp(x)])


def test_a_missing_input_is_refused():
    x, y = scalars("float64", "float64")
    with pytest.raises(MissingInputError):
        Composite([x], [apply_scalar_op(scalar.add, x, y)])


def test_applied_to_other_dtypes_it_is_rebuilt_for_them():
    op = scaled(2.0)
    node = op.make_node(*scalars("float64"))
    assert (node.op, node.outputs[0].type) == (op, scalar_type("float64"))
    node = op.make_node(*scalars("float32"))
    assert node.op != op
    assert node.op.input_dtypes == ("float32",)
    assert node.outputs[0].type == scalar_type("float32")
    with pytest.raises(TypeError, match="takes 1 arguments, 2 were given"):
        op.signature(("float64", "float64"))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_its_values_are_those_of_the_operations_in_it(dtype):
    x, y = scalars(dtype, "int32")
    total = apply_scalar_op(scalar.add, x, y)
    outputs = [apply_scalar_op(scalar.exp, total), apply_scalar_op(Cast("int64"), total), total]
    op = Elemwise(Composite([x, y], outputs))
    a, b = pt.matrix("a", dtype=dtype), pt.irow("b")
    results = op(a, b)
    values = [np.linspace(-1, 2, 6).reshape(2, 3).astype(dtype), np.array([[1, -2, 3]], "int32")]
    storage = [[None] for _ in results]
    op.perform(results[0].owner, values, storage)
    expected = values[0] + values[1]
    for (found,), result, reference in zip(
        storage, results, [np.exp(expected), expected.astype("int64"), expected], strict=True
    ):
        assert found.dtype == result.type.dtype == reference.dtype
        np.testing.assert_array_equal(found, reference)


def test_an_output_that_is_an_input_or_a_constant_has_the_shape_of_all():
    x, y = scalars("float64", "float64")
    op = Elemwise(Composite([x, y], [y, apply_scalar_op(scalar.second, x, 2.0)]))
    node = op.make_node(pt.dmatrix(), pt.drow())
    storage = [[None], [None]]
    op.perform(node, [np.zeros((2, 3)), np.arange(3.0)[None]], storage)
    np.testing.assert_array_equal(storage[0][0], [[0, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(storage[1][0], np.full((2, 3), 2.0))


def test_a_scalar_composite_performs_on_numbers():
    op = scaled(2.0, "float32")
    node = op.make_node(*scalars("float32"))
    storage = [[None]]
    op.perform(node, [np.float32(0.5)], storage)
    assert storage[0][0] == np.exp(np.float32(0.5)) * np.float32(2)
    assert type(storage[0][0]) is np.float32


def test_its_gradient_is_refused_because_it_is_made_after_gradients():
    x = pt.dvector("x")
    with pytest.raises(NotImplementedError, match="before it is fused"):
        Elemwise(scaled(2.0)).pullback([x], [Elemwise(scaled(2.0))(x)], [x])


def test_a_small_one_is_printed_as_its_expression():
    assert str(scaled(2.5)) == "Composite{mul(exp(i0), 2.5)}"
    (x,) = scalars("float64")
    y = x
    for _ in range(20):
        y = apply_scalar_op(scalar.sin, y)
    assert str(Composite([x], [y])) == "Composite{...}"
