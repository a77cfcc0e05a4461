"""What a user of `function` meets: arguments, results, updates, givens, and errors that say what was wrong."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import function, shared
from engine.errors import ArgumentError, MissingInputError, UnusedInputError

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def x():
    return pt.vector("x")


@pytest.fixture
def y():
    return pt.vector("y")


# What comes back


def test_one_output_comes_as_an_array_and_several_as_a_list(x):
    value = np.arange(3.0)
    assert type(function([x], x * 2)(value)) is np.ndarray
    assert [type(r) for r in function([x], [x * 2])(value)] == [np.ndarray]
    assert len(function([x], [x * 2, x * 2 + 1])(value)) == 2


def test_a_scalar_comes_as_an_array_of_no_dimensions(x):
    found = function([x], pt.sum(x))(np.arange(3.0))
    assert type(found) is np.ndarray
    assert (found.shape, found.dtype, float(found)) == ((), "float64", 3.0)


def test_no_outputs_give_an_empty_list(x):
    assert function([x], [], on_unused_input="ignore")(np.ones(2)) == []
    assert function([], None)() == []


def test_a_constant_can_be_an_output():
    small, large = function([], [pt.constant(2.5), pt.constant(np.arange(100.0))])()
    assert (float(small), small.shape) == (2.5, ())
    np.testing.assert_array_equal(large, np.arange(100.0))


def test_numbers_and_arrays_can_be_outputs(x):
    found = function([x], [x * 2, 3, np.ones(2)])(np.ones(2))
    assert [r.tolist() for r in found] == [[2.0, 2.0], 3, [1.0, 1.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m,
        lambda m: m.T,
        lambda m: m.ravel(),
        lambda m: m.dimshuffle("x", 0, 1),
        lambda m: pt.identity(m),
        lambda m: pt.cast(m, "float64"),
    ],
    ids=["itself", "transposed", "reshaped", "with another axis", "identity", "cast to its dtype"],
)
def test_a_result_never_shares_memory_with_an_argument(make):
    m = pt.matrix("m")
    value = np.arange(6.0).reshape(2, 3)
    found = function([m], make(m))(value)
    assert not np.shares_memory(found, value)
    assert found.flags.writeable
    assert found.flags.c_contiguous
    found[...] = -1
    np.testing.assert_array_equal(value, np.arange(6.0).reshape(2, 3))


def test_results_never_share_memory_with_each_other(x):
    e = pt.exp(x)
    outputs = [e, e, e.dimshuffle("x", 0), e.dimshuffle(0, "x").T, e.reshape((-1, 2)), e.reshape((4,)), x, x]
    found = function([x], outputs)(np.arange(4.0))
    for position, result in enumerate(found):
        assert not any(np.shares_memory(result, other) for other in found[:position])
    assert [r.shape for r in found] == [(4,), (4,), (1, 4), (1, 4), (2, 2), (4,), (4,), (4,)]
    for result in found[:6]:
        np.testing.assert_allclose(result.ravel(), np.exp(np.arange(4.0)))


def test_a_view_before_what_it_is_a_view_of_is_right_too(x):
    e = pt.exp(x)
    reshaped, whole = function([x], [e.reshape((2, -1)), e])(np.arange(4.0))
    np.testing.assert_allclose(reshaped, np.exp(np.arange(4.0)).reshape(2, 2))
    np.testing.assert_allclose(whole, np.exp(np.arange(4.0)))
    assert not np.shares_memory(reshaped, whole)


def test_a_constant_that_is_returned_can_be_written_to():
    f = function([], [pt.constant(np.arange(50.0)), pt.constant([1.0, 2.0])])
    for result in f():
        result[...] = -1
    data, small = f()
    np.testing.assert_array_equal(data, np.arange(50.0))
    np.testing.assert_array_equal(small, [1.0, 2.0])


def test_the_results_of_two_calls_are_independent(x):
    f = function([x], [pt.exp(x) + pt.sum(x), pt.sum(x)])
    first, total = f(np.zeros(3))
    f(np.ones(3))
    np.testing.assert_array_equal(first, np.ones(3))
    assert total == 0.0


def test_lengths_may_change_from_call_to_call(x, y):
    f = function([x, y], [pt.exp(x - pt.max(x)), pt.dot(x, y), (x * y).sum()])
    for length in (5, 1, 100, 3, 1000, 2):
        a, b = np.linspace(-1, 1, length), np.linspace(0, 2, length)
        softened, product, total = f(a, b)
        np.testing.assert_allclose(softened, np.exp(a - a.max()))
        np.testing.assert_allclose([product, total], a @ b)


def test_arrays_of_a_million_elements(x):
    value = np.linspace(-1.0, 1.0, 1_000_003)
    found, total = function([x], [pt.tanh(x) * 2, pt.sum(pt.tanh(x) * 2)])(value)
    np.testing.assert_allclose(found, np.tanh(value) * 2, rtol=1e-14)
    np.testing.assert_allclose(total, found.sum(), rtol=1e-10, atol=1e-9)


# What arguments may be


def test_arguments_come_by_position_or_by_name(x, y):
    f = function([x, y], x - y)
    a, b = np.array([3.0]), np.array([1.0])
    assert f(a, b) == f(a, y=b) == f(x=a, y=b) == f(y=b, x=a) == [2.0]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(8.0)[::2],
        np.arange(4.0)[::-1] * 1,
        np.arange(4.0)[::-1],
        np.arange(4, dtype=">f8"),
        np.arange(4, dtype="f4"),
        np.arange(4, dtype="i4"),
        np.arange(4).astype(bool),
        np.frombuffer(b"\0" + np.arange(4.0).tobytes(), "u1")[1:].view("f8"),
        np.asarray(np.arange(8.0).reshape(4, 2), order="F")[:, 1],
        np.broadcast_to(np.float64(2.5), (4,)),
        np.array([], "f8"),
        np.arange(4.0).view(np.recarray),
        np.arange(4, dtype=np.dtype("f8", metadata={"unit": "m"})),
        [1.0, 2.0, 3.0],
        [1, 2, 3],
        (1.0, 2),
        [],
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_may_lie_as_it_likes(x, value):
    found = function([x], x * 2 + 1)(value)
    np.testing.assert_array_equal(found, np.asarray(value, dtype="f8") * 2 + 1)


def test_an_integer_of_the_same_size_under_another_name_is_taken():
    k = pt.lvector("k")
    f = function([k], k * 2)
    for dtype in (np.longlong, ">i8", "i4", "i2", "u1", "?"):
        np.testing.assert_array_equal(f(np.arange(2).astype(dtype)), [0, 2])


def test_matrices_in_fortran_order_and_read_only_are_right():
    m = pt.matrix("m")
    f = function([m], [m + 1, m.T, pt.sum(m, axis=0), pt.dot(m, m.T)])
    value = np.arange(12.0).reshape(3, 4)
    frozen = value.copy()
    frozen.flags.writeable = False
    for given in (
        np.asfortranarray(value),
        frozen,
        value[::-1][::-1],
        np.broadcast_to(value[:1], (3, 4)),
        value[:, ::2],
    ):
        expected = [given + 1, given.T, given.sum(0), given @ given.T]
        for found, due in zip(f(given), expected, strict=True):
            np.testing.assert_allclose(found, due)


def test_numbers_are_scalars():
    a, b = pt.scalar("a"), pt.lscalar("b")
    f = function([a, b], a * b)
    assert (
        f(2, 3) == f(2.0, np.int64(3)) == f(np.float32(2.0), True + 2) == f(np.array(2.0), np.array(3)) == 6.0
    )


def test_an_object_that_numpy_makes_an_array_of_is_taken(x):
    class Measured:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    np.testing.assert_array_equal(function([x], x * 2)(Measured()), [2.0, 4.0])


def test_an_argument_that_calls_the_function_while_it_is_converted_is_right(x):
    f = function([x], pt.exp(x) * pt.sum(x))

    class Nested:
        def __array__(self, dtype=None, copy=None):
            return f(np.ones(2))

    inner = np.exp(np.ones(2)) * 2
    np.testing.assert_allclose(f(Nested()), np.exp(inner) * inner.sum())


def test_a_python_float_is_taken_as_float32():
    a = pt.fscalar("a")
    found = function([a], a * 2)(0.1)
    assert found.dtype == "float32"
    assert found == np.float32(0.1) * 2


# What they may not be


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros((2, 2)), "an array of float64 with shape (2, 2)"),
        (np.zeros(3, complex), "an array of complex128 with shape (3,)"),
        (2.5, "2.5 (float)"),
        (np.array(["a"]), "an array of <U1 with shape (1,)"),
        ("text", "'text' (str)"),
        (None, "None (NoneType)"),
        ([[1.0], [2.0, 3.0]], "[[1.0], [2.0, 3.0]] (list)"),
        (
            np.ma.masked_array([1.0], [True]),
            "a masked array of float64 with shape (1,) (fill it: its mask would be lost)",
        ),
        ({"a": 1}, "{'a': 1} (dict)"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_should_be_and_what_came(x, y, value, found):
    f = function([x, y], x + y, name="model")
    with pytest.raises(ArgumentError) as caught:
        f(np.zeros(3), value)
    error = caught.value
    assert (error.function, error.argument) == ("model", "1 ('y')")
    assert error.expected == "Vector(float64, shape=(?,))"
    assert error.found == found
    for part in ("model", "1 ('y')", error.expected, found):
        assert part in str(error)


def test_a_wrong_argument_without_a_name_is_named_by_its_position():
    f = function([pt.dvector(), v := pt.fvector()], v * 2, on_unused_input="ignore")
    with pytest.raises(
        ArgumentError, match=r"argument 1 must be Vector\(float32, shape=\(\?,\)\), but an array of float64"
    ):
        f(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: [a, a]], ids=["array", "list"])
def test_masked_arrays_are_refused_and_called_so(wrap, mode, kernels_once):
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    z = pt.tensor("z", "float64", (None,) * np.ndim(wrap(masked)))
    with pytest.raises(
        ArgumentError, match=r"argument 0 \('z'\) must be .* but a (list with a )?masked array .* came"
    ):
        function([z], z * 2, mode=mode)(wrap(masked))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
@pytest.mark.parametrize(("name", "label"), [("w", "'w'"), (None, r"number 0 \(it has no name\)")])
def test_a_shared_variable_that_holds_what_it_must_not_is_named(x, name, label, mode, kernels_once):
    good, bad = shared(np.ones(2), "good"), shared(np.ones(2), name)
    f = function([x], [x + good, x * bad], mode=mode)
    for value in (np.ones((2, 2)), np.ones(2, complex), None, np.ma.ones(2)):
        bad.container.storage[0] = value
        with pytest.raises(
            ArgumentError, match=f"its shared variable {label} must hold .* but holds "
        ) as caught:
            f(np.ones(2))
        assert caught.value.is_shared
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("value", [np.zeros(4), np.zeros(6)[::2], [1.0, 2.0]])
def test_a_wrong_static_length_is_named_however_the_array_lies(value):
    v = pt.tensor("v", "float64", (5,))
    with pytest.raises(ArgumentError, match=r"0 \('v'\) must be Vector\(float64, shape=\(5,\)\)"):
        function([v], v * 2)(value)


def test_a_static_length_of_one_may_not_be_another():
    row = pt.row("r")
    f = function([row], row + np.ones((3, 1)))
    assert f(np.ones((1, 2))).shape == (3, 2)
    with pytest.raises(ArgumentError, match=r"\(1, \?\)"):
        f(np.ones((3, 2)))


def test_integers_are_not_made_of_floats():
    k = pt.lvector("k")
    f = function([k], k + 1)
    with pytest.raises(ArgumentError, match="float64"):
        f(np.array([1.0]))
    np.testing.assert_array_equal(f([1.0, 2.0]), [2, 3])
    with pytest.raises(ArgumentError):
        f([1.5])


def test_float32_is_not_made_of_float64():
    v = pt.fvector("v")
    f = function([v], v + 1)
    with pytest.raises(ArgumentError, match="float64"):
        f(np.ones(3))
    assert f(np.ones(3, "f4")).dtype == "float32"


def test_too_many_arguments_are_refused(x):
    with pytest.raises(TypeError, match="model: it takes 1 arguments, 2 were given"):
        function([x], x + 1, name="model")(np.ones(1), np.ones(1))


def test_missing_arguments_are_named(x, y):
    f = function([x, y], x + y, name="model")
    with pytest.raises(TypeError, match=r"no value was given for 1 \('y'\)"):
        f(np.ones(1))
    with pytest.raises(TypeError, match=r"0 \('x'\), 1 \('y'\)"):
        f()
    with pytest.raises(TypeError, match=r"0 \('x'\)"):
        f(y=np.ones(1))


def test_unknown_and_repeated_names_are_refused(x, y):
    f = function([x, y], x + y)
    with pytest.raises(TypeError, match="no argument z"):
        f(np.ones(1), np.ones(1), z=1)
    with pytest.raises(TypeError, match="no argument x"):
        f(np.ones(1), np.ones(1), x=np.ones(1))


def test_a_name_that_two_inputs_have_cannot_be_used_to_give_them():
    a, b = pt.scalar("same"), pt.scalar("same")
    f = function([a, b], a - b)
    assert f(3.0, 1.0) == 2.0
    with pytest.raises(TypeError, match="same"):
        f(same=1.0)


def test_an_error_leaves_the_function_as_it_was(x, y):
    f = function([x, y], [x + y, pt.sum(x * y)])
    with pytest.raises(ValueError, match="length"):
        f(np.ones(2), np.ones(3))
    with pytest.raises(ArgumentError):
        f(np.ones(2), None)
    found, total = f(np.ones(2), np.ones(2))
    assert (found.tolist(), float(total)) == ([2.0, 2.0], 2.0)


# What is refused while it runs


@pytest.mark.parametrize("mode", [None, "NUMPY"])
class TestRefusedAtRunTime:
    def test_broadcasting_that_the_types_do_not_say(self, mode, x, y):
        f = function([x, y], x + y, mode=mode)
        with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
            f(np.ones(1), np.ones(3))
        with pytest.raises(ValueError, match=r"length (3|1)"):
            f(np.ones(3), np.ones(1))

    def test_lengths_that_do_not_fit(self, mode, x, y):
        with pytest.raises(ValueError, match=r"add.*input 1 has length 4"):
            function([x, y], x + y, mode=mode)(np.ones(3), np.ones(4))

    def test_an_index_out_of_range(self, mode, x):
        k = pt.lvector("k")
        f = function([x, k], x[k], mode=mode)
        np.testing.assert_array_equal(f(np.arange(3.0), [-3, 2]), [0.0, 2.0])
        for wrong in (3, -4):
            with pytest.raises(IndexError, match=rf"index {wrong}.* position 1 .*out of bounds"):
                f(np.arange(3.0), [0, wrong])

    def test_an_index_into_nothing(self, mode, x):
        k = pt.lvector("k")
        f = function([x, k], x[k], mode=mode)
        assert f([], []).shape == (0,)
        with pytest.raises(IndexError):
            f([], [0])

    def test_a_shape_that_the_elements_do_not_fill(self, mode, x):
        n = pt.lscalar("n")
        f = function([x, n], x.reshape((n, 2)), mode=mode)
        assert f(np.ones(6), 3).shape == (3, 2)
        for wrong in (2, 0, -3):
            with pytest.raises(ValueError, match="Reshap"):
                f(np.ones(6), wrong)

    def test_a_shape_whose_free_length_does_not_divide(self, mode, x):
        n = pt.lscalar("n")
        f = function([x, n], x.reshape((-1, n)), mode=mode)
        assert f(np.ones(6), 3).shape == (2, 3)
        assert f([], 3).shape == (0, 3)
        for wrong in (4, 0, -3):
            with pytest.raises(ValueError, match="Reshap"):
                f(np.ones(6), wrong)

    def test_products_whose_lengths_do_not_fit(self, mode, x):
        m = pt.matrix("m")
        f = function([m, x], pt.dot(m, x), mode=mode)
        with pytest.raises(ValueError, match="3 and 2"):
            f(np.ones((2, 3)), np.ones(2))

    @pytest.mark.parametrize("op", [pt.max, pt.min])
    def test_the_extremum_of_nothing(self, mode, op):
        m = pt.matrix("m")
        f = function([m], op(m, axis=1), mode=mode)
        assert f(np.ones((0, 2))).shape == (0,)
        with pytest.raises(ValueError, match="zero-size array"):
            f(np.ones((2, 0)))

    def test_integers_to_negative_powers(self, mode):
        k = pt.lvector("k")
        f = function([k], 2**k, mode=mode)
        np.testing.assert_array_equal(f([0, 3]), [1, 8])
        with pytest.raises(ValueError, match="negative integer powers"):
            f([1, -1])

    def test_an_axis_dropped_that_is_longer_than_one(self, mode):
        m = pt.matrix("m")
        f = function([m], m.dimshuffle(1), mode=mode)
        assert f(np.ones((1, 3))).shape == (3,)
        with pytest.raises(ValueError, match="dropped"):
            f(np.ones((2, 3)))

    def test_updates_are_not_made_when_the_call_fails(self, mode, x):
        count = shared(0, "count")
        f = function([x], x.reshape((2, -1)), updates={count: count + 1}, mode=mode)
        f(np.ones(4))
        with pytest.raises(ValueError, match="Reshap"):
            f(np.ones(3))
        assert count.get_value() == 1


# Shared variables, updates and givens


def test_a_shared_variable_is_an_input_that_keeps_its_value(x):
    w = shared(np.array([1.0, 2.0]), "w")
    f = function([x], x * w)
    np.testing.assert_array_equal(f([1.0, 1.0]), [1.0, 2.0])
    w.set_value([3.0, 4.0])
    np.testing.assert_array_equal(f([1.0, 1.0]), [3.0, 4.0])


def test_updates_happen_after_the_outputs_and_all_at_once():
    a, b = shared(1.0, "a"), shared(10.0, "b")
    f = function([], [a, b], updates=[(a, b), (b, a + 1)])
    assert [float(r) for r in f()] == [1.0, 10.0]
    assert (a.get_value(), b.get_value()) == (10.0, 2.0)
    assert [float(r) for r in f()] == [10.0, 2.0]


def test_what_a_shared_variable_holds_is_no_result_and_no_argument(x):
    state = shared(np.zeros(2), "state")
    f = function([x], state, updates={state: x})
    value = np.ones(2)
    before = f(value)
    value[:] = 5.0
    np.testing.assert_array_equal(state.get_value(borrow=True), [1.0, 1.0])
    after = f(value)
    after[:] = -1
    before[:] = -1
    np.testing.assert_array_equal(state.get_value(), [5.0, 5.0])


def test_an_update_and_an_output_that_are_the_same_are_two_arrays():
    n = shared(np.arange(3.0), "n")
    doubled = n * 2
    found = function([], doubled, updates={n: doubled})()
    assert not np.shares_memory(found, n.get_value(borrow=True))
    np.testing.assert_array_equal(found, n.get_value())


def test_two_functions_share_a_variable():
    n = shared(0, "n")
    increment, read = function([], [], updates={n: n + 1}), function([], n)
    increment()
    increment()
    assert read() == 2


def test_a_shared_variable_may_change_its_length(x):
    w = shared(np.zeros(2), "w")
    f = function([x], pt.sum(w), updates={w: x})
    f(np.ones(5))
    assert f(np.ones(3)) == 5.0


def test_an_update_of_another_dtype_is_refused_when_the_function_is_made():
    n = shared(0, "n")
    with pytest.raises(TypeError, match=r"update of n must have its type .*float64.*cast it first"):
        function([], [], updates={n: n + 0.5})


def test_what_is_not_shared_cannot_be_updated(x):
    with pytest.raises(TypeError, match="only a shared variable"):
        function([x], [], updates={x: x + 1})


def test_a_variable_cannot_be_updated_twice():
    n = shared(0, "n")
    with pytest.raises(ValueError, match="n is updated twice"):
        function([], [], updates=[(n, n + 1), (n, n + 2)])


def test_a_wrong_length_in_a_shared_variable_of_a_static_shape_is_refused_when_it_is_set():
    w = shared(np.zeros(2), "w", shape=(2,))
    with pytest.raises(TypeError):
        w.set_value(np.zeros(3))


def test_givens_are_used_in_the_place_of_variables(x, y):
    z = x * y
    f = function([x], z + 1, givens={y: pt.exp(x)})
    value = np.array([0.0, 1.0])
    np.testing.assert_allclose(f(value), value * np.exp(value) + 1)
    np.testing.assert_array_equal(
        function([x], z, givens=[(y, np.array([2.0, 3.0]))])([1.0, 1.0]), [2.0, 3.0]
    )


def test_givens_reach_updates_too(x):
    w = shared(np.zeros(2), "w")
    z = pt.vector("z")
    function([x], [], updates={w: w + z}, givens={z: x * 3})(np.ones(2))
    np.testing.assert_array_equal(w.get_value(), [3.0, 3.0])


def test_givens_of_another_type_are_refused(x):
    with pytest.raises(TypeError):
        function([], x * 2, givens={x: pt.matrix("m")})


# Making a function


def test_inputs_must_be_a_list_of_variables(x):
    for wrong in (x, None, 3):
        with pytest.raises(TypeError, match="inputs must be a list"):
            function(wrong, x)
    with pytest.raises(TypeError, match="input 0 is 3"):
        function([3], x)
    with pytest.raises(TypeError, match="no constant"):
        function([pt.constant(1.0)], x)
    with pytest.raises(TypeError, match="shared variable"):
        function([w := shared(1.0)], w + 1)


def test_an_input_cannot_come_twice(x):
    with pytest.raises(UnusedInputError, match="twice"):
        function([x, x], x)


def test_an_input_that_nothing_needs_is_refused_unless_that_is_wanted(x, y):
    with pytest.raises(UnusedInputError, match="input y is not used") as caught:
        function([x, y], x + 1)
    assert caught.value.variable is y
    with pytest.warns(UserWarning, match="input y is not used"):
        function([x, y], x + 1, on_unused_input="warn")
    f = function([x, y], x + 1, on_unused_input="ignore")
    assert f([1.0], [1.0, 2.0]) == [2.0]
    with pytest.raises(ArgumentError):
        f([1.0], np.ones((2, 2)))
    with pytest.raises(ValueError, match="on_unused_input='maybe'"):
        function([x, y], x, on_unused_input="maybe")


def test_an_input_of_which_only_the_length_is_needed_is_used(x):
    f = function([x], pt.shape_i(x, 0) * 2)
    assert f(np.ones(7)) == 14
    assert f([]) == 0


def test_a_variable_without_a_value_is_named(x, y):
    with pytest.raises(MissingInputError, match="y") as caught:
        function([x], x + y)
    assert caught.value.variable is y


def test_an_intermediate_variable_can_be_an_input(x):
    e = pt.exp(x)
    assert function([e], e + 1)([1.0]) == [2.0]
    assert function([x, e], x + e)([1.0], [5.0]) == [6.0]


def test_an_unknown_mode_is_refused(x):
    with pytest.raises(ValueError, match="FAST_RUN"):
        function([x], x, mode="QUICK")


def test_a_function_shows_its_name_and_how_it_came_about(x):
    assert repr(function([x], x + 12.25, name="model")) == "<Function model: miss>"
    assert repr(function([x], x + 12.25, name="model")) == "<Function model: hit>"


def test_the_optimized_graph_is_printed_with_the_names_of_the_inputs(x):
    w = shared(np.ones(2), "w")
    for _ in range(2):
        f = function([x], x * w + 2.125)
        text = engine.dprint(f, file="str")
        assert "x [id" in text
        assert "w [id" in text


def test_the_graph_that_a_user_holds_is_not_changed(x):
    z = pt.log(1 + pt.exp(x))
    before = engine.dprint(z, file="str")
    f = function([x], z)
    f.maker.fgraph.toposort()
    assert engine.dprint(z, file="str") == before


def test_a_function_of_a_thousand_operations_one_after_the_other(x):
    z = x
    for k in range(1000):
        z = pt.sin(z) + k % 7
    value = expected = np.linspace(0, 1, 3)
    for k in range(1000):
        expected = np.sin(expected) + k % 7
    np.testing.assert_allclose(function([x], z)(value), expected, rtol=1e-9)


# Threads


def test_threads_may_call_one_function_at_once(x):
    f = function([x], [pt.exp(x - pt.max(x)) / pt.sum(pt.exp(x - pt.max(x))), pt.sum(x)])
    wrong = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(200):
            value = random.normal(size=random.integers(1, 200))
            soft, total = f(value)
            due = np.exp(value - value.max())
            if not (np.allclose(soft, due / due.sum()) and np.isclose(total, value.sum())):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_may_make_functions_at_once(x):
    found: list[float] = []

    def work(number: int) -> None:
        found.append(float(function([x], pt.sum(pt.cos(x) * number))(np.zeros(3))))

    threads = [threading.Thread(target=work, args=(number % 3,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 0.0, 3.0, 3.0, 6.0, 6.0]


# Outputs by name


def test_a_dictionary_of_outputs_gives_a_dictionary_of_arrays(x):
    f = function([x], {"b": x * 2, "a": 3})
    found = f(np.ones(2))
    assert list(found) == ["b", "a"]
    assert (found["b"].tolist(), found["a"].tolist()) == ([2, 2], 3)
    assert function([x], {}, on_unused_input="ignore")(np.ones(2)) == {}


def test_outputs_by_name_live_on_in_copies_pickles_and_hits(x):
    f = function([x], {"a": x * 5, "b": x + 5})
    again = function([x], {"c": x * 5, "d": x + 5})
    assert again.cache_info.outcome == "hit"
    assert {name: value.tolist() for name, value in again(np.ones(1)).items()} == {"c": [5], "d": [6]}
    for other in (f.copy(), copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert {name: value.tolist() for name, value in other(np.ones(1)).items()} == {"a": [5], "b": [6]}


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ({1: pt.scalar()}, "the key 1; the keys of its results must be strings"),
        (3, "outputs is 3; it must be"),
    ],
)
def test_outputs_that_are_neither_variables_nor_named_by_strings_are_refused(outputs, found):
    with pytest.raises(TypeError, match=found):
        function([], outputs)


@pytest.mark.parametrize("pairs", [5, [5], [(1, 2, 3)], {"x": 3}, "FAST_RUN"])
def test_updates_and_givens_that_are_no_pairs_are_refused(x, pairs):
    with pytest.raises(TypeError, match=r"Making a function: updates has .*; give a dictionary, or pairs"):
        function([x], x, updates=pairs)
    with pytest.raises(TypeError, match=r"Making a function: givens has .*; give a dictionary, or pairs"):
        function([x], x, givens=pairs)


def test_eval_ignores_names_that_are_not_needed_if_it_is_told_to():
    x = pt.vector("x")
    assert (x + 1).eval({"x": [1.0], "y": 2.0}, on_unused_input="ignore") == [2.0]
    with pytest.raises(ValueError, match="y not found in graph"):
        (x + 1).eval({"x": [1.0], "y": 2.0})


def test_an_input_of_which_no_value_is_needed_is_not_refused():
    x, v = pt.dscalar("x"), pt.dvector("v", shape=(3,))
    a, b = pt.dscalar("a"), pt.dscalar("b")
    assert function([x], pt.grad(2 * x, x))(5.0) == 2
    assert function([a, b], pt.grad(a * b, a))(5.0, 7.0) == 7
    np.testing.assert_array_equal(function([v], pt.zeros(v.shape))(np.ones(3)), np.zeros(3))
    squared = pt.specify_shape(m := pt.dmatrix("m"), (2, 2)) ** 2
    np.testing.assert_array_equal(function([m], squared.shape)(np.ones((2, 2))), [2, 2])
    rows = engine.scan(
        lambda i, unused: i + 1, pt.arange(3), non_sequences=[c := pt.dvector("c")], return_updates=False
    )
    np.testing.assert_array_equal(function([c], rows)(np.ones(2)), [1, 2, 3])
    t = pt.dmatrix("t")
    np.testing.assert_array_equal(
        function([m, t], engine.gradient.pushforward(m + 1, m, t))(*np.ones((2, 1, 1))), [[1]]
    )
    with pytest.raises(UnusedInputError, match="input y is not used"):
        function([x, pt.dscalar("y")], pt.grad(2 * x, x))


def test_an_unused_input_is_named_before_a_missing_one():
    x, s = pt.dscalar("x"), pt.dscalar("s")
    with pytest.raises(UnusedInputError, match="input s is not used"):
        function([s], x)
    with pytest.raises(MissingInputError):
        function([s], x, on_unused_input="ignore")


def test_outputs_are_the_results_without_updates():
    x, s = pt.dvector("x"), shared(0.0)
    for mode in ("FAST_RUN", "NUMPY"):
        f = function([x], [x > 1, x * 2], updates={s: s + 1}, mode=mode)
        for each in (f, pickle.loads(pickle.dumps(f))):
            assert [output.variable.dtype for output in each.outputs] == ["bool", "float64"]
    assert function([x], x + 1).outputs[0].variable.type == x.type
