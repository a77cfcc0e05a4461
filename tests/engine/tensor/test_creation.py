"""New variables, by PyTensor's names."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.tensor.basic import AllocEmpty

SHAPES = {
    "scalar": (),
    "vector": (None,),
    "matrix": (None, None),
    "row": (1, None),
    "col": (None, 1),
    "tensor3": (None,) * 3,
}
PREFIXES = {
    "": "float64",
    "d": "float64",
    "f": "float32",
    "b": "int8",
    "w": "int16",
    "i": "int32",
    "l": "int64",
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_names_say_dtype_and_shape(prefix, kind):
    found = getattr(pt, prefix + kind)("v")
    assert found.type == pt.TensorType(PREFIXES[prefix], SHAPES[kind])
    assert found.name == "v"
    assert getattr(pt, prefix + kind)().name is None


def test_dtype_and_shape_can_be_given():
    assert pt.vector("v", dtype="bool").dtype == "bool"
    assert pt.matrix("m", shape=(1, 3)).broadcastable == (True, False)
    assert pt.tensor("t", dtype="float32", shape=(None, 2)).type == pt.TensorType("float32", (None, 2))
    with pytest.raises(ValueError, match="tuple of length 2"):
        pt.matrix("m", shape=(1,))


def test_every_call_makes_another_variable():
    assert pt.dscalar("x") is not pt.dscalar("x")
    assert pt.TensorType("float64", ())("x").type == pt.dscalar().type


@pytest.mark.parametrize("maker", [pt.vector, pt.matrix, pt.row, pt.tensor5])
def test_a_shape_is_a_tuple(maker):
    with pytest.raises(TypeError, match="Shape must be a tuple"):
        maker(shape=[None] * maker().ndim)


@pytest.mark.parametrize(
    ("dtype", "bounds"), [("int64", (-5, 7, 3)), ("float64", (0.5, 3.1, 0.7)), ("int32", (9, 2, -2))]
)
def test_a_range_can_be_made_by_its_op(dtype, bounds):
    start, stop, step = variables = [pt.scalar(dtype=dtype) for _ in range(3)]
    found = engine.function(variables, pt.ARange(dtype)(start, stop, step))(*bounds)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.arange(*bounds, dtype=dtype))


@pytest.mark.parametrize("bounds", [(0, 7, 2.0), (5.0, -1, -2), (-3.0, 3.0, 1.0), (2, 1, 1.0)])
def test_a_range_of_integers_between_whole_floats_is_counted_in_integers(bounds):
    found = pt.arange(*bounds, dtype="int32")
    np.testing.assert_array_equal(found.eval(), np.arange(*bounds, dtype="int32"))
    start, stop = pt.iscalar(), pt.iscalar()
    assert pt.arange(start, stop, 2.0, dtype="int64").owner.op == pt.ARange("int64")
    assert pt.arange(start, stop, 2.5, dtype="int64").owner.op != pt.ARange("int64")


def test_elements_that_are_not_given_are_zeros():
    n = pt.iscalar("n")
    found = engine.function([n], AllocEmpty("float32")(n, 3))(2)
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, np.zeros((2, 3)))
    with pytest.raises(TypeError, match="a length must be an integer"):
        AllocEmpty("float32")(2.5)
