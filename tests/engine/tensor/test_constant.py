"""Values as constants of a graph: their dtype, their shape, and that nobody can change them."""

import pickle

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import FrozenConstant, Type
from engine.tensor.type import is_data


def test_a_constant_has_the_dtype_and_the_shape_of_its_value():
    found = pt.constant(np.ones((1, 3), "float32"), name="c")
    assert found.type == pt.TensorType("float32", (1, 3))
    assert found.name == "c"


@pytest.mark.parametrize(
    ("value", "dtype"), [(1, "int64"), (1.5, "float64"), (True, "bool"), ([], "float64"), ([1, 2], "int64")]
)
def test_numbers_and_lists_have_numpys_dtype(value, dtype):
    assert pt.constant(value).dtype == dtype


def test_a_dtype_can_be_asked_for():
    assert pt.constant(0.1, dtype="float32").data == np.float32(0.1)
    assert pt.constant([1, 2], dtype="bool").dtype == "bool"


def test_axes_can_be_put_in_front():
    assert pt.constant([1, 2], ndim=3).type.shape == (1, 1, 2)
    with pytest.raises(ValueError, match="the value has 1"):
        pt.constant([1, 2], ndim=0)


def test_changing_the_array_afterwards_does_not_change_the_constant():
    value = np.arange(4.0)
    view = value[:2]
    frozen_view = value[:]
    frozen_view.flags.writeable = False
    constants = [pt.constant(v) for v in (value, view, frozen_view)]
    value[:] = 9
    assert [c.data[1] for c in constants] == [1, 1, 1]


def test_the_data_cannot_be_written_and_is_contiguous():
    found = pt.constant(np.arange(6.0).reshape(2, 3).T)
    assert found.data.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 1


def test_what_nobody_can_change_is_not_copied():
    found = pt.constant(np.arange(4.0))
    assert pt.constant(found.data).data is found.data
    assert found.clone().data is found.data


def test_a_constant_is_unchangeable_after_pickling():
    found = pickle.loads(pickle.dumps(pt.constant(np.arange(4.0))))
    assert not found.data.flags.writeable
    np.testing.assert_array_equal(found.data, np.arange(4.0))


def test_a_frozen_constant_can_be_data():
    found = pt.constant(np.zeros(33))
    assert is_data(FrozenConstant(found.type, found.data))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ma.masked_array([1.0], [True]), "masked"),
        ("text", "not made of numbers"),
        (None, "not made of numbers"),
        ([[1], [1, 2]], "numpy makes no array"),
        (np.ones(2, "longdouble"), "dtype longdouble|float128"),
        (np.ones(2, "datetime64[s]"), "not made of numbers"),
        ([pt.dscalar(), 1], "list that contains variables"),
    ],
)
def test_what_is_no_array_of_a_dtype_there_is_is_refused(value, text):
    with pytest.raises(TypeError, match=text):
        pt.constant(value)


def test_variables_pass_through():
    x = pt.dvector("x")
    assert pt.as_tensor_variable(x) is x
    assert pt.as_tensor_variable(x, ndim=2).type.shape == (1, None)
    row = pt.tensor("row", shape=(1, None))
    assert pt.as_tensor_variable(row, ndim=1).type.shape == (None,)
    assert pt.TensorConstant(pt.lscalar, 5).data.dtype == "int64"
    with pytest.raises(ValueError, match="could not be cast to have"):
        pt.as_tensor_variable(x, ndim=0)
    assert pt.as_tensor_variable(x, dtype="float32") is x  # a dtype is for values


def test_a_range_becomes_an_arange_with_a_name():
    found = pt.as_tensor_variable(range(2, 11, 3), name="steps")
    assert (found.name, found.type.shape, found.type.dtype) == ("steps", (3,), "int64")
    assert found.eval().tolist() == [2, 5, 8]
    assert pt.as_tensor_variable(range(3), dtype="float32").type.dtype == "float32"
    assert pt.as_tensor_variable(range(0)).eval().shape == (0,)
    with pytest.raises(ValueError, match="ndim for range must be 1"):
        pt.as_tensor_variable(range(3), ndim=2)


class Text(Type):
    """Strings."""

    __props__ = ()


def test_a_variable_that_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="no tensor variable"):
        pt.as_tensor_variable(Text().make_variable("s"))


def test_implicit_numbers_are_one_constant_bit_for_bit():
    x = pt.dvector("x")
    used = [pt.add(x, number).owner.inputs[1] for number in (0.0, 0.0, -0.0, 0, False)]
    assert used[0] is used[1]
    assert np.signbit(used[2].data[0])
    assert not np.signbit(used[0].data[0])
    assert [v.dtype for v in used] == ["float64"] * 4 + ["bool"]


def test_a_masked_array_is_refused_under_both_names_of_that_error() -> None:
    masked = np.ma.masked_array([1.0], [True])
    for error in (TypeError, NotImplementedError):
        with pytest.raises(error, match="MaskedArrays are not supported"):
            pt.as_tensor_variable(masked)


def test_an_empty_vector_is_the_shape_of_a_number() -> None:
    assert pt.ones(np.array([])).type.shape == pt.zeros(pt.constant([])).type.shape == ()


def test_constants_are_equal_by_type_and_bits():
    assert pt.constant([1.0]).equals(pt.constant([1.0]))
    assert not pt.constant([0.0]).equals(pt.constant([-0.0]))
    assert not pt.constant([1.0]).equals(pt.constant([1]))
    assert not pt.constant(1.0).equals(1.0)
