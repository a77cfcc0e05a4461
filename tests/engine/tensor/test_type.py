"""What values a TensorType takes, and which types hold the values of which."""

import pickle

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.compile.builders import OpFromGraph
from engine.tensor import TensorType, constant, dvector, is_data, tensor_type
from tests.engine.special_values import DTYPES


def filtered(dtype, value, shape=None, **options):
    shape = (None,) * np.ndim(value) if shape is None else shape
    return TensorType(dtype, shape).filter(value, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_of_the_dtype_passes_as_it_is(dtype):
    value = np.ones((2, 3), dtype)[:, ::2]
    assert filtered(dtype, value) is value
    assert filtered(dtype, value, strict=True) is value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("found", [*DTYPES, "int8", "uint16", "float16", ">f8", ">i4"])
def test_an_array_is_converted_if_its_dtype_fits_and_refused_otherwise(found, dtype):
    value = np.ones(3, found)
    if np.promote_types(found, dtype) == np.dtype(dtype):
        result = filtered(dtype, value)
        assert result.dtype == dtype
        assert result.dtype.isnative
    else:
        with pytest.raises(TypeError, match=rf"dtype {dtype} is expected, {value.dtype} was found"):
            filtered(dtype, value)
        assert filtered(dtype, value, allow_downcast=True).dtype == dtype


def test_strict_converts_nothing():
    for value in (np.ones(2, "float32"), [1.0, 2.0], np.ones(2, ">f8")):
        with pytest.raises(TypeError, match="must be an array of dtype float64 as it is"):
            filtered("float64", value, strict=True)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 3),
        ("float32", 0.5),
        ("float64", [1, 2]),
        ("bool", [True, False]),
        ("int64", [1.0, -0.0]),
        ("float64", True),
    ],
)
def test_numbers_and_lists_are_converted_if_they_are_held_exactly(dtype, value):
    result = filtered(dtype, value)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 2.5),
        ("int32", 2**40),
        ("bool", 2),
        ("int64", [0.5]),
        ("float32", [0.1]),
        ("int32", float("nan")),
        ("float32", np.float64(0.1)),
    ],
)
def test_numbers_and_lists_that_are_not_held_exactly_are_refused(dtype, value):
    with pytest.raises(TypeError, match=f"dtype {dtype} is expected"):
        filtered(dtype, value)


def test_a_python_float_is_taken_as_float32_unless_downcasts_are_forbidden():
    assert filtered("float32", 0.1) == np.float32(0.1)
    assert np.isnan(filtered("float32", float("nan")))
    with pytest.raises(TypeError, match="could lose digits"):
        filtered("float32", 0.1, allow_downcast=False)


def test_another_rank_is_refused():
    with pytest.raises(TypeError, match="1 dimensions are expected, 2 were found"):
        filtered("float64", np.ones((2, 2)), (None,))


def test_another_length_than_the_static_one_is_refused():
    with pytest.raises(TypeError, match="length 1 is expected along axis 1, 3 was found"):
        filtered("float64", np.ones((2, 3)), (None, 1))


def test_a_misaligned_array_is_copied():
    value = np.zeros(17, "uint8")[1:].view("float64")
    assert filtered("float64", value).flags.aligned


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ma.masked_array([1.0], [True]), "masked"),
        ("text", "not of numbers"),
        (np.ones(2, "complex128"), "imaginary part would be lost"),
        ([[1], [1, 2]], "numpy makes no array"),
        (dvector("x"), "a variable of a graph"),
        (None, "not of numbers"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(value, text):
    with pytest.raises(TypeError, match=text):
        TensorType("float64", (None,)).filter(value)


def test_an_array_of_another_class_is_taken_as_it_is(tmp_path):
    value = np.memmap(tmp_path / "values", "float64", "w+", shape=3)
    value[:] = [1.0, 2.0, 3.0]
    assert filtered("float64", value) is value
    assert TensorType("float64", (None,)).filter(value, strict=True) is value
    assert type(pt.constant(value).data) is np.ndarray
    assert pt.dot(pt.constant(value), value).eval(mode="NUMPY") == 14


def test_an_array_of_another_class_is_converted_as_any_other(tmp_path):
    value = np.memmap(tmp_path / "values", "int32", "w+", shape=3)
    assert filtered("float64", value).dtype == "float64"
    with pytest.raises(TypeError, match="masked"):
        filtered("float64", np.ma.array([1.0]))


class WithoutOperators(np.ndarray):
    """An array that refuses arithmetic."""

    def __array_ufunc__(self, *_, **__):
        raise TypeError("no arithmetic")


@pytest.mark.parametrize("mode", ["NUMPY", "FAST_RUN"])
def test_operators_of_other_classes_are_not_used(mode):
    x = pt.dvector("x")
    value = np.array([1.0, 2.0]).view(WithoutOperators)
    assert (x * x).eval({x: value}, mode=mode).tolist() == [1.0, 4.0]
    assert (pt.constant(value) + x).eval({x: value}, mode=mode).tolist() == [2.0, 4.0]
    assert (engine.shared(value) + x).eval({x: value}, mode=mode).tolist() == [2.0, 4.0]


def test_types_are_equal_by_dtype_and_shape():
    assert TensorType("float64", (None, 1)) == tensor_type("float64", (None, 1))
    assert TensorType("float64", (None,)) != TensorType("float32", (None,))
    assert TensorType("float64", (None,)) != TensorType("float64", (1,))
    assert TensorType(np.float64, [None]) == TensorType("float64", (None,))


def test_a_type_is_itself_after_pickling():
    kind = tensor_type("float64", (None, 1))
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_a_type_knows_what_broadcasts():
    kind = TensorType("int32", (1, None, 3))
    assert (kind.ndim, kind.broadcastable, kind.numpy_dtype) == (3, (True, False, False), np.dtype("int32"))
    assert str(kind) == "Tensor3(int32, shape=(1, ?, 3))"


def test_a_less_specific_shape_holds_the_values_of_a_more_specific_one():
    general, special = TensorType("float64", (None, 3)), TensorType("float64", (2, 3))
    assert general.is_super(special)
    assert not special.is_super(general)
    assert not general.is_super(TensorType("float32", (2, 3)))
    assert not general.is_super(TensorType("float64", (2,)))


def test_a_variable_of_a_more_specific_type_may_be_used():
    variable = tensor_type("float64", (2,))("x")
    assert dvector().type.filter_variable(variable) is variable
    with pytest.raises(TypeError, match="convert it first"):
        variable.type.filter_variable(dvector(), allow_convert=False)
    with pytest.raises(TypeError, match="convert it first"):
        variable.type.filter_variable(TensorType("float64", (3,))())


@pytest.mark.parametrize("dtype", ["longdouble", "object", "nothing"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(
        TypeError,
        match=r"the engine has bool, int8, .* uint64, float16, float32, float64, complex64, complex128;",
    ):
        TensorType(dtype, ())


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="use None if unknown"):
        TensorType("float64", (-1,))


@pytest.mark.parametrize("size", [4, 40000])
def test_constants_are_one_by_dtype_shape_and_bits(size):
    kind = TensorType("float64", (None,))
    value = np.arange(size, dtype="float64")
    other = value.copy()
    other[-1] = np.nextafter(other[-1], 0)
    strided = np.stack([value, value], axis=1)[:, 0]
    assert kind.data_key(value) == kind.data_key(strided)
    assert kind.same_data(value, strided)
    assert kind.data_key(value) != kind.data_key(other)
    assert not kind.same_data(value, other)
    assert kind.data_key(value) != kind.data_key(value.reshape(2, -1))
    assert kind.data_key(value) != kind.data_key(value.view("int64"))
    assert kind.data_key(value * 0) != kind.data_key(value * -0.0)


def test_data_is_a_constant_of_more_than_32_elements():
    assert not is_data(constant(np.zeros((4, 8))))
    assert is_data(constant(np.zeros(33)))
    assert constant(np.zeros(33)).is_data


def test_the_values_that_are_of_two_types_have_what_both_know():
    def of(*shape, dtype="float64"):
        return tensor_type(dtype, shape)

    assert of(None, 3).intersection(of(2, None)) == of(2, 3)
    assert of(2, 3).intersection(of(2, None)) == of(2, 3)
    for other in (of(4, 3), of(2), of(2, 3, dtype="float32")):
        assert of(2, None).intersection(other) is None


def test_a_variable_is_converted_to_the_lengths_of_both_types():
    wide, known = TensorType("float64", (None, None)), TensorType("float64", (1, None))
    variable = wide("x")
    assert wide.convert_variable(variable) is variable
    assert known.convert_variable(variable).type == known
    assert known.convert_variable(TensorType("float64", (None, 3))()).type.shape == (1, 3)
    assert known.convert_variable(TensorType("float64", (2, None))()) is None
    assert known.filter_variable(variable).type == known
    with pytest.raises(TypeError, match="convert it first"):
        known.filter_variable(variable, allow_convert=False)


def test_the_lengths_of_a_variable_of_a_wider_type_are_checked_when_a_function_runs():
    x, wide = TensorType("float64", (2, None))("x"), TensorType("float64", (None, None))("wide")
    inner = OpFromGraph([x], [x * 2])
    found = [
        engine.function([wide], inner(wide)),
        engine.function([wide], x + 1, givens={x: wide}),
        engine.function([wide], engine.graph.clone_replace(x - 1, {x: wide})),
    ]
    assert [f(np.ones((2, 3))).shape for f in found] == [(2, 3)] * 3
    for f in found:
        with pytest.raises(AssertionError, match="SpecifyShape"):
            f(np.ones((3, 2)))


def test_types_of_one_class_broadcast_alike():
    assert TensorType("float64", (None, 3)).in_same_class(TensorType("float64", (2, None)))
    assert not TensorType("float64", (None, 3)).in_same_class(TensorType("float64", (1, 3)))
    assert not TensorType("float64", (3,)).in_same_class(TensorType("float32", (3,)))


def test_values_are_compared_up_to_rounding():
    equal = TensorType.values_eq_approx
    value = np.array([1.0, np.inf, np.nan])
    assert equal(value, value + 1e-9)
    assert not equal(value, value, allow_remove_nan=False)
    assert not equal(value, np.array([1.0, 2.0, np.nan]))
    assert equal(value, np.array([1.0, 2.0, np.nan]), allow_remove_inf=True)
    assert not equal(value, value.astype("float32"))
    assert not equal(np.array([1, 2]), np.array([1, 3]))
    assert not equal(value, [1.0])


def test_memory_is_shared_by_arrays_alone():
    value = np.zeros((2, 3))
    assert TensorType.may_share_memory(value, value[0])
    assert not TensorType.may_share_memory(value, value.copy())
    assert not TensorType.may_share_memory(value, None)


def test_a_name_is_no_dtype_and_a_shape_fits_its_maker():
    for name in ("float64", "floatX", np.int64):
        with pytest.raises(ValueError, match="looks like a dtype"):
            pt.tensor(name, shape=(None,))
    with pytest.raises(ValueError, match="The first dimension of a `row` must have shape 1, got 2"):
        pt.row(shape=(2, 5))
    with pytest.raises(ValueError, match="The second dimension of a `col` must have shape 1, got 5"):
        pt.col(shape=(2, 5))
    with pytest.raises(ValueError, match="Shape must be a tuple of length 2"):
        pt.matrix(shape=(2,))
    with pytest.raises(TypeError, match="Shape entries must be None or integer"):
        pt.vector(shape=(1.0,))


def test_broadcastable_is_an_older_word_for_lengths_of_1():
    with pytest.warns(DeprecationWarning, match="`broadcastable`"):
        row = TensorType("float64", broadcastable=(True, False))
    assert row.shape == (1, None)
    with pytest.warns(DeprecationWarning, match="`broadcastable`"):
        assert row.clone(broadcastable=(False, True)).shape == (None, 1)
    with pytest.warns(DeprecationWarning, match="`broadcastable`"):
        assert pt.tensor("x", broadcastable=(True,)).type.shape == (1,)


@pytest.mark.parametrize("shape", [(True, False), [np.True_, False], np.array([True, False])])
def test_truth_values_in_a_shape_tell_which_axes_broadcast(shape):
    assert TensorType("float64", shape) == TensorType("float64", (1, None))
    assert pt.tensor(dtype="float64", shape=shape).type.shape == (1, None)


@pytest.mark.parametrize(
    ("shape", "text"),
    [((), "Scalar(int8, shape=())"), ((1, None), "Matrix(int8, shape=(1, ?))")],
)
def test_a_type_is_named_by_its_rank(shape, text):
    assert str(TensorType("int8", shape)) == text


def test_values_are_equal_in_dtype_shape_and_elements():
    equal = TensorType.values_eq
    assert equal(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    assert equal(np.array([1, 2]), np.array([1, 2]))
    assert not equal(np.array([1.0]), np.array([1], "float32"))
    assert not equal(np.array([1.0]), np.array([[1.0]]))
    assert not equal(np.array([1.0]), np.array([1.0 + 1e-15]))


@pytest.mark.parametrize("shape", [(4, 5), (None, 5), (3, 5, None)])
def test_a_variable_of_a_type_keeps_the_lengths_that_the_type_knows(shape):
    with pytest.raises(ValueError, match="lengths"):
        pt.tensor(shape=(3, None)).type(shape=shape)
    assert pt.tensor(shape=(3, None)).type(shape=(3, 5)).type.shape == (3, 5)
