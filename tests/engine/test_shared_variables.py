"""Shared variables: what they hold, who may change it, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import grad, shared
from engine.graph import clone_replace, explicit_graph_inputs
from engine.graph.generic import generic
from engine.graph.reference import evaluate
from engine.shared_variables import SharedVariable, TensorSharedVariable
from engine.tensor import sharedvar
from tests.engine.special_values import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_value_keeps_its_dtype_and_no_length_is_known(dtype):
    found = shared(np.ones((1, 3), dtype), name="s")
    assert found.type == pt.TensorType(dtype, (None, None))
    assert found.name == "s"
    assert found.get_value().dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype"), [(1, "int64"), (0.5, "float64"), (True, "bool"), (np.float32(2), "float32")]
)
def test_numbers_are_shared_as_arrays_of_no_dimensions(value, dtype):
    found = shared(value)
    assert found.type == pt.TensorType(dtype, ())
    assert isinstance(found.container.storage[0], np.ndarray)


def test_lengths_that_do_not_change_can_be_declared():
    found = shared(np.ones((1, 3)), shape=(1, None))
    assert found.broadcastable == (True, False)
    with pytest.raises(TypeError, match="length 1 is expected along axis 0"):
        found.set_value(np.ones((2, 3)))


def test_the_value_is_the_variables_own():
    value = np.zeros(2)
    found = shared(value)
    value[0] = 1
    found.get_value()[1] = 1
    assert found.get_value().tolist() == [0, 0]
    found.set_value(value)
    value[0] = 5
    assert found.get_value().tolist() == [1, 0]


def test_a_borrowed_value_is_not_copied():
    value = np.zeros(2)
    found = shared(value, borrow=True)
    assert found.get_value(borrow=True) is value
    found.set_value(value := np.ones(2), borrow=True)
    assert found.container.storage[0] is value


@pytest.mark.parametrize("borrow", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6.0)[::2],
        np.arange(3, dtype="int32"),
        np.zeros(17, "uint8")[1:].view("float64"),
    ],
)
def test_storage_holds_a_contiguous_aligned_array_of_the_dtype(value, borrow):
    found = shared(np.zeros(value.shape), borrow=borrow)
    found.set_value(value, borrow=borrow)
    stored = found.container.storage[0]
    assert stored.flags.c_contiguous
    assert stored.flags.aligned
    assert stored.dtype == "float64"
    np.testing.assert_array_equal(stored, value)


def test_a_read_only_value_may_be_changed_by_its_owner():
    value = np.zeros(2)
    value.flags.writeable = False
    assert shared(value).container.storage[0].flags.writeable


def test_values_that_the_type_does_not_hold_are_refused():
    found = shared(np.zeros(2, "float32"))
    with pytest.raises(TypeError, match="could lose digits"):
        found.set_value(np.zeros(2))
    with pytest.raises(TypeError, match="1 dimensions are expected"):
        found.set_value(np.zeros((2, 2), "float32"))
    assert found.get_value().tolist() == [0, 0]


def test_strict_and_allow_downcast_are_kept():
    with pytest.raises(TypeError, match="as it is"):
        shared(np.zeros(2), strict=True).set_value([1, 2])
    found = shared(np.zeros(2, "float32"), allow_downcast=True)
    found.set_value(np.array([0.1, 0.2]))
    assert found.get_value().dtype == "float32"


@pytest.mark.parametrize("value", [np.ones(2, "longdouble"), np.array(["a"]), pt.dscalar("x")])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError):
        shared(value)


def test_masked_arrays_are_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    found = shared(np.ones(2))
    for keep in (shared, found.set_value, lambda value: found.set_value([value[0], value])):
        with pytest.raises(TypeError, match="masked array"):
            keep(masked)


def test_a_graph_uses_the_value_of_the_moment():
    s, x = shared(np.array([1.0, 2.0])), pt.dvector("x")
    output = s * x
    assert evaluate([x], [output], [np.ones(2)])[0].tolist() == [1, 2]
    s.set_value(np.array([3.0, 4.0]))
    assert evaluate([x], [output], [np.ones(2)])[0].tolist() == [3, 4]
    assert evaluate([x, s], [output], [np.ones(2), np.zeros(2)])[0].tolist() == [0, 0]


def test_it_is_no_explicit_input_and_has_gradients():
    s, x = shared(np.array([1.0, 2.0])), pt.dvector("x")
    cost = (s * x).sum()
    assert list(explicit_graph_inputs(cost)) == [x]
    assert evaluate([x], [grad(cost, s)], [np.array([5.0, 6.0])])[0].tolist() == [5, 6]


def test_clones_share_the_value_and_the_update():
    s = shared(1.0, name="s")
    s.default_update = s + 1
    found = s.clone()
    found.set_value(2.0)
    assert s.get_value() == 2
    assert (found.name, found.default_update) == ("s", s.default_update)
    assert clone_replace(s * 2, {s: found}).owner.inputs[0] is found


def test_a_pickled_one_has_a_value_of_its_own_one_for_all_who_shared_it():
    s = shared(np.arange(3.0), name="s", allow_downcast=True)
    first, second = pickle.loads(pickle.dumps([s, s.clone()]))
    first.set_value(np.zeros(3))
    assert second.get_value().tolist() == [0, 0, 0]
    assert s.get_value().tolist() == [0, 1, 2]
    assert (first.name, first.type, first.allow_downcast) == ("s", s.type, True)
    assert copy.copy(s).container is s.container


def test_a_shared_array_can_be_zeroed_in_place_or_anew():
    array = np.array([1.0, 3.0])
    x = shared(array, borrow=True)
    x.zero()
    assert array.tolist() == [1.0, 3.0]
    assert x.get_value().tolist() == [0.0, 0.0]
    x.set_value(array, borrow=True)
    x.zero(borrow=True)
    assert array.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("value", ["text", [1, 2], {"a": [0]}, None])
def test_other_objects_are_kept_and_are_no_tensors(value):
    variable = engine.shared(value, name="kept")
    assert (variable.type, variable.name, variable.get_value()) == (generic, "kept", value)
    if isinstance(value, list | dict):
        assert variable.get_value() is not variable.get_value()
    assert variable.get_value(borrow=True) is variable.get_value(borrow=True)
    variable.set_value(88)
    assert variable.clone().get_value() == 88
    assert pickle.loads(pickle.dumps(variable)).get_value() == 88
    with pytest.raises(TypeError, match="no tensor variable"):
        pt.exp(variable)
    assert engine.function([], variable)() == 88


def test_the_class_of_shared_variables_makes_one_of_any_type():
    vector = SharedVariable(pt.dvector, [1, 2], name="v")
    assert isinstance(vector, TensorSharedVariable)
    assert engine.function([], vector * 2.0)().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError):
        SharedVariable(pt.dvector, "text")


def test_the_older_name_of_a_shared_number_is_that_of_a_tensor_and_warns():
    with pytest.warns(FutureWarning, match="deprecated"):
        found = sharedvar.ScalarSharedVariable
    assert isinstance(engine.shared(np.array(1.0)), found)
    assert not hasattr(sharedvar, "VectorSharedVariable")
