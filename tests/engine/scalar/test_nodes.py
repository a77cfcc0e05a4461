"""Scalar variables and the nodes that scalar operations make of them."""

import pickle

import numpy as np
import pytest

from engine import scalar
from engine.graph.reference import evaluate
from engine.scalar import ScalarConstant, ScalarType, as_scalar, scalar_type
from tests.engine.special_values import DTYPES


def test_a_node_has_the_type_of_its_signature():
    x, y = scalar_type("int32")("x"), scalar_type("float32")("y")
    node = scalar.add.make_node(x, y)
    assert node.outputs[0].type == ScalarType("float64")
    assert node.inputs == [x, y]


def test_python_numbers_take_the_dtype_of_the_variables():
    x = scalar_type("float32")("x")
    node = scalar.mul.make_node(0.1, x)
    assert isinstance(node.inputs[0], ScalarConstant)
    assert node.inputs[0].data.dtype == node.outputs[0].dtype == "float32"


def test_perform_casts_computes_and_gives_a_numpy_scalar():
    x, y = scalar_type("int32")("x"), scalar_type("float32")("y")
    (value,) = evaluate([x, y], [scalar.true_div(x, y)], [np.int32(1), np.float32(4)])
    assert isinstance(value, np.float64)
    assert value == 0.25


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_performs_on_scalars(dtype):
    x = scalar_type(dtype)("x")
    for name in scalar.__all__:
        op = getattr(scalar, name)
        if not isinstance(op, scalar.ScalarOp):
            continue
        try:
            y = op(*[x] * op.nin)
        except TypeError:
            continue
        (value,) = evaluate([x], [y], [np.ones((), dtype)[()]])
        assert value.dtype == y.dtype, name


def test_equal_operations_are_equal_after_pickling():
    for op in (scalar.exp, scalar.Cast("int32")):
        assert pickle.loads(pickle.dumps(op)) == op
    assert scalar.Cast("int32") != scalar.Cast("int64")
    assert scalar.lt != scalar.le


def test_a_type_is_itself_after_pickling():
    assert pickle.loads(pickle.dumps(scalar_type("bool"))) is scalar_type("bool")


def test_values_are_filtered():
    assert scalar_type("float64").filter(3).dtype == "float64"
    assert scalar_type("float32").filter(0.1) == np.float32(0.1)
    assert np.isnan(scalar_type("float64").filter(np.float32("nan")))
    assert scalar_type("int32").filter(2.7, allow_downcast=True) == 2
    for dtype, value in [
        ("int32", 2.5),
        ("int32", 2**40),
        ("bool", 2),
        ("float32", np.float64(0.1)),
        ("int64", "a"),
    ]:
        with pytest.raises(TypeError, match=f"as {dtype}"):
            scalar_type(dtype).filter(value)
    with pytest.raises(TypeError, match=r"not a numpy.float64"):
        scalar_type("float64").filter(1.0, strict=True)


def test_an_unknown_dtype_is_refused():
    with pytest.raises(TypeError, match=r"'S1'.*bool"):
        scalar_type("S1")


def test_constants_are_told_apart_bit_by_bit():
    kind = scalar_type("float64")
    assert kind.data_key(np.float64(0.0)) != kind.data_key(np.float64(-0.0))
    assert kind.same_data(np.float64("nan"), np.float64("nan"))


def test_what_is_no_scalar_is_refused():
    with pytest.raises(TypeError, match="neither a variable nor a number"):
        as_scalar("one")
    assert as_scalar(np.int32(3)).type == scalar_type("int32")


def test_derivatives_are_built_of_scalar_nodes():
    x, y, g = [scalar_type("float64")() for _ in range(3)]
    found = scalar.true_div.derivative([x, y], scalar.true_div(x, y), g, scalar.apply_scalar_op)
    values = evaluate([x, y, g], found, [np.float64(2), np.float64(4), np.float64(8)])
    assert values == [2, -1]


def test_only_wanted_derivatives_are_built():
    x, y, g = [scalar_type("float64")() for _ in range(3)]
    found = scalar.mul.derivative([x, y], scalar.mul(x, y), g, scalar.apply_scalar_op, wanted=[False, True])
    assert found[0] is None
    assert found[1].owner.inputs == [g, x]


def test_nothing_flows_through_comparisons_and_conditions():
    x, g = scalar_type("float64")(), scalar_type("float64")()
    less = scalar.lt(x, 0)
    apply = scalar.apply_scalar_op
    assert scalar.lt.derivative([x, x], less, g, apply) == [None, None]
    assert scalar.where.derivative([less, x, x], scalar.where(less, x, x), g, apply)[0] is None


def test_a_number_has_the_shape_of_a_tensor_without_axes():
    for number in (scalar.float32("x"), scalar.constant(2)):
        assert (number.shape.type.shape, number.shape.dtype) == ((0,), "int64")
