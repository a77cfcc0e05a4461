"""User Ops in programs: what `perform` gets and may return, in both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph import Apply, Op
from engine.scalar import ScalarOp
from engine.scalar.promotion import arithmetic, floating
from engine.tensor.elemwise import Elemwise

MODES = ("NUMBA", "NUMPY")
pytestmark = pytest.mark.usefixtures("kernels_once")


class OnVectors(Op):
    """An Op from a vector to a vector, computed by the function that it is made with."""

    __props__ = ("function",)
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def __init__(self, function: Any) -> None:
        self.function = function

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.function(*inputs)


def computed(outputs: Any, mode: str, *values: Any, inputs: Any = None) -> Any:
    """Return the values of a function in `mode` for `values` of x, its only input unless `inputs` says so."""
    return engine.function(inputs or [x], outputs, mode=mode)(*values)


x = pt.vector("x")
VALUE = np.array([3.0, 1.0, 2.0])


class Several(Op):
    """The largest element, its position, a bool for all being positive, and the sorted elements."""

    __props__ = ()
    default_output = 3

    def make_node(self, given: Any) -> Apply:
        types = [pt.dscalar().type, pt.lscalar().type, pt.scalar(dtype="bool").type, given.type]
        return Apply(self, [given], [type.make_variable() for type in types])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (value,) = inputs
        results = (np.max(value), int(np.argmax(value)), bool(np.all(value > 0)), np.sort(value))
        for cell, result in zip(output_storage, results, strict=True):
            cell[0] = result


@pytest.mark.parametrize("mode", MODES)
def test_an_op_may_have_several_outputs_of_any_dtype_and_rank(mode: str) -> None:
    outputs = Several()(x, return_list=True)
    found = computed([*outputs, outputs[0] * 2, outputs[1] + 1, x[outputs[1]]], mode, VALUE)
    assert [str(value.dtype) for value in found[:4]] == ["float64", "int64", "bool", "float64"]
    for value, due in zip(found, (3.0, 0, True, [1.0, 2.0, 3.0], 6.0, 1, 3.0), strict=True):
        np.testing.assert_array_equal(value, due)
    np.testing.assert_array_equal(computed(Several()(x), mode, -VALUE), [-3.0, -2.0, -1.0])


@pytest.mark.parametrize("mode", MODES)
def test_only_the_result_may_tell_how_long_it_is(mode: str) -> None:
    positive = OnVectors(lambda value: value[value > 1])(x)
    found = computed([positive.shape[0], pt.sum(positive), positive * 2, pt.exp(x)], mode, VALUE)
    for value, due in zip(found, (2, 5.0, [6.0, 4.0], np.exp(VALUE)), strict=True):
        np.testing.assert_allclose(value, due)
    assert computed(positive.shape[0], mode, VALUE[:0]) == 0


@pytest.mark.parametrize("mode", MODES)
def test_strided_repeated_and_empty_inputs_are_shown_as_they_are(mode: str) -> None:
    rows = pt.matrix("rows")
    seen: list[Any] = []
    op = OnVectors(lambda value: seen.append(value) or value * 2)
    columns = engine.function([rows], op(rows[:, 1]) + op(rows[::-1, 0]), mode=mode)
    value = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(columns(value), 2 * value[:, 1] + 2 * value[::-1, 0])
    np.testing.assert_array_equal(columns(value[:0]), [])
    assert all(array.flags.carray and array.flags.owndata for array in seen)


# Results are right whatever an Op does with its inputs and outputs


class Remembering:
    """An Op that keeps its inputs, and returns the last result again if it gets the same inputs."""

    def __init__(self) -> None:
        self.shown: Any = None
        self.calls = 0

    def __call__(self, value: Any) -> Any:
        if self.shown is None or not np.array_equal(self.shown, value):
            self.shown, self.result = value, value * 10
            self.calls += 1
        return self.result


class Reusing:
    """An Op that returns the same array every time."""

    def __init__(self) -> None:
        self.result = np.empty(3)

    def __call__(self, value: Any) -> Any:
        np.multiply(value, 10, out=self.result)
        return self.result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [Remembering(), Reusing()], ids=["remembering", "reusing"])
def test_an_op_may_keep_what_it_was_shown_and_what_it_gave(function: Any, mode: str) -> None:
    op = OnVectors(function)
    twice = engine.function([x], [op(pt.exp(x)), op(pt.sin(x))], mode=mode)
    first, second = twice(VALUE), twice(VALUE + 1)
    for found, value in ((first, VALUE), (second, VALUE + 1)):
        np.testing.assert_allclose(found[0], 10 * np.exp(value))
        np.testing.assert_allclose(found[1], 10 * np.sin(value))


@pytest.mark.parametrize("mode", MODES)
def test_an_op_may_give_back_what_it_was_shown_or_a_part_of_it(mode: str) -> None:
    whole, part = OnVectors(lambda value: value)(pt.exp(x)), OnVectors(lambda value: value[::2])(x)
    found = computed([whole, whole[:1].set(0.0), part, part[:1].set(0.0), x], mode, VALUE)
    exp = np.exp(VALUE)
    due = [exp, [0, *exp[1:]], VALUE[::2], [0.0, 2.0], VALUE]
    for value, expected in zip(found, due, strict=True):
        np.testing.assert_allclose(value, expected)


class Overwriting(OnVectors):
    destroy_map = {0: [0]}

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        inputs[0] *= 2
        output_storage[0][0] = inputs[0]


@pytest.mark.parametrize("mode", MODES)
def test_an_op_that_overwrites_its_input_harms_nothing_that_reads_it(mode: str) -> None:
    between = pt.exp(x)
    found = computed([Overwriting(None)(between), between + 1, pt.sum(between)], mode, VALUE)
    exp = np.exp(VALUE)
    for value, due in zip(found, (2 * exp, exp + 1, exp.sum()), strict=True):
        np.testing.assert_allclose(value, due)


@pytest.mark.parametrize("mode", MODES)
def test_an_op_may_overwrite_what_nothing_else_may(mode: str) -> None:
    """It overwrites an input, a constant, what another overwrites, and what rewriting makes."""
    value, large = VALUE.copy(), np.arange(50.0)
    op = Overwriting(None)
    between = pt.exp(x) * 1
    found = computed(
        [op(x), op(x * 1), op(pt.constant(large)), op(between), op(between), between], mode, value
    )
    exp = np.exp(VALUE)
    for result, due in zip(found, (2 * VALUE, 2 * VALUE, 2 * large, 2 * exp, 2 * exp, exp), strict=True):
        np.testing.assert_allclose(result, due)
    np.testing.assert_array_equal(value, VALUE)


def test_an_op_that_overwrites_has_its_shape_and_is_found_again() -> None:
    class Inferred(Overwriting):
        def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
            return input_shapes

        def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
            if type(node.op) is not type(self):  # and no assert, which pytest makes read locals()
                raise TypeError(node.op)
            super().perform(node, inputs, output_storage)

    def fail(value: Any) -> Any:
        raise AssertionError

    class Unasked(Inferred):
        perform = fail

    assert computed(Unasked(None)(x).shape[0], "NUMBA", VALUE) == 3
    for _ in range(2):
        f = engine.function([x], Inferred(None)(pt.exp(x)) + 1)
        np.testing.assert_allclose(f(VALUE), 2 * np.exp(VALUE) + 1)
    assert f.cache_info.outcome == "hit"
    assert "Inferred" in engine.dprint(f, file="str")


@pytest.mark.parametrize("mode", MODES)
def test_an_op_may_overwrite_without_saying_so(mode: str) -> None:
    class Silent(Overwriting):
        destroy_map = {}

    value = VALUE.copy()
    doubled, same = computed([Silent(None)(x), x + 0], mode, value)
    np.testing.assert_array_equal(doubled, 2 * VALUE)
    np.testing.assert_array_equal(same, VALUE)
    np.testing.assert_array_equal(value, VALUE)


# Invalid results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (None, TypeError, r"OnVectors.*output 0 was not given"),
        (np.ones(2, "float32"), TypeError, r"OnVectors.*output 0.*float32"),
        (np.ones((2, 2)), TypeError, r"OnVectors.*output 0.*dimensions"),
        ("text", TypeError, r"OnVectors.*output 0"),
        (np.ma.masked_array([1.0]), TypeError, r"OnVectors.*output 0"),
    ],
)
def test_what_is_no_result_is_refused_and_the_op_named(
    result: Any, error: Any, message: str, mode: str
) -> None:
    with pytest.raises(error, match=message):
        computed(OnVectors(lambda value: result)(x), mode, VALUE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("result", [[1.0, 2.0], (1, 2), range(1, 3)])
def test_lists_of_numbers_are_results(result: Any, mode: str) -> None:
    np.testing.assert_array_equal(computed(OnVectors(lambda value: result)(x), mode, VALUE), [1.0, 2.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_result_of_another_length_than_the_type_has_is_refused(mode: str) -> None:
    class OfTwo(OnVectors):
        otypes = (pt.TensorType("float64", (2,)),)

    np.testing.assert_array_equal(computed(OfTwo(lambda value: value[:2])(x) + 1, mode, VALUE), VALUE[:2] + 1)
    with pytest.raises(TypeError, match=r"OfTwo.*output 0.*length 2"):
        computed(OfTwo(lambda value: value)(x), mode, VALUE)


@pytest.mark.parametrize("mode", MODES)
def test_what_perform_raises_comes_through_with_a_note_that_names_the_op(mode: str) -> None:
    def fail(value: Any) -> Any:
        raise ArithmeticError("not today")

    with pytest.raises(ArithmeticError, match="not today") as caught:
        computed(OnVectors(fail)(x), mode, VALUE)
    assert any("OnVectors" in note for note in caught.value.__notes__)


# Shapes


class Counted(OnVectors):
    """An Op that counts its calls."""

    def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
        return [(input_shapes[0][0] + 1,)]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
def test_what_only_has_its_shape_asked_is_never_computed_where_infer_shape_tells_it(mode: str) -> None:
    calls: list[Any] = []
    op = Counted(lambda value: calls.append(value) or np.append(value, 0.0))
    assert computed(op(x).shape[0], mode, VALUE) == 4
    assert computed(pt.zeros_like(op(op(x))).shape[0], mode, VALUE) == 5
    assert calls == []
    np.testing.assert_array_equal(computed(op(x), mode, VALUE), [*VALUE, 0.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_shape_that_is_not_known_is_that_of_the_result(mode: str) -> None:
    class Unsure(Counted):
        def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
            return [None] if self.function is None else [(None,)]

        def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = inputs[0][:2]

    for function in (None, len):
        assert computed(Unsure(function)(x).shape[0], mode, VALUE) == 2


@pytest.mark.parametrize("shapes", [[], [(1,), (2,)], [(1, 2)]])
def test_shapes_of_other_outputs_are_refused(shapes: Any) -> None:
    class Wrong(Counted):
        def infer_shape(self, fgraph: Any, node: Apply, input_shapes: Any) -> Any:
            return shapes

    with pytest.raises(ValueError, match=r"Wrong.*infer_shape"):
        computed(Wrong(len)(x).shape[0], "NUMBA", VALUE)


# Inside loops and inner graphs


@pytest.mark.parametrize("mode", MODES)
def test_an_op_runs_in_every_step_of_a_loop(mode: str) -> None:
    op = OnVectors(lambda value: np.cumsum(value))
    rows = pt.matrix("rows")
    states = engine.scan(
        lambda row, state: op(state) + row, sequences=[rows], outputs_info=[x], return_updates=False
    )
    f = engine.function([rows, x], [states[-1], pt.sum(states)], mode=mode)
    value, due = np.arange(12.0).reshape(4, 3), VALUE
    every = []
    for row in value:
        due = np.cumsum(due) + row
        every.append(due)
    found = f(value, VALUE)
    np.testing.assert_allclose(found[0], due)
    np.testing.assert_allclose(found[1], np.sum(every))


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_loop_may_have_a_length_that_only_the_op_tells(mode: str) -> None:
    rows = pt.matrix("rows")
    op = OnVectors(lambda value: value[value > 0])
    mapped = engine.scan(lambda row: op(row), sequences=[rows], return_updates=False)
    f = engine.function([rows], mapped, mode=mode)
    value = np.array([[1.0, -1.0, 2.0], [-1.0, 3.0, 4.0]])
    np.testing.assert_array_equal(f(value), [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match=r"shape|length"):
        f(np.abs(value) * [[1], [-1]])


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_loop_may_be_what_a_state_becomes_whose_length_is_checked(mode: str) -> None:
    op = OnVectors(lambda value: value * 2)

    def step(state: Any) -> Any:
        new = op(state)
        return new + 1, new

    _, rows = engine.scan(step, outputs_info=[x, None], n_steps=2, return_updates=False)
    np.testing.assert_array_equal(computed(rows, mode, VALUE), [2 * VALUE, 4 * VALUE + 2])
    longer = OnVectors(lambda value: np.append(value, 0.0))
    states = engine.scan(lambda state: longer(state), outputs_info=[x], n_steps=2, return_updates=False)
    with pytest.raises(ValueError, match=r"shape|length"):
        computed(states, mode, VALUE)


@pytest.mark.parametrize("mode", MODES)
def test_what_overwrites_in_a_loop_overwrites_no_state(mode: str) -> None:
    states = engine.scan(
        lambda state: Overwriting(None)(state), outputs_info=[x], n_steps=3, return_updates=False
    )
    changed = engine.scan(
        lambda state: Overwriting(None)(state)[:1].inc(1.0), outputs_info=[x], n_steps=2, return_updates=False
    )
    np.testing.assert_array_equal(computed(changed[-1], mode, VALUE), 4 * VALUE + [3, 0, 0])
    np.testing.assert_array_equal(computed(states, mode, VALUE), [2 * VALUE, 4 * VALUE, 8 * VALUE])


@pytest.mark.parametrize("mode", MODES)
def test_an_op_within_an_objective_runs_in_the_function_that_the_solver_calls(mode: str) -> None:
    from engine.tensor.optimize import minimize

    op = OnVectors(lambda value: (value - 2) ** 2)
    solution, success = minimize(pt.sum(op(x) + x * 0), x, jac=False, method="Nelder-Mead")
    found, is_solved = computed([solution, success], mode, np.zeros(2))
    assert is_solved
    np.testing.assert_allclose(found, 2.0, atol=1e-3)


def test_what_an_op_computes_from_constants_is_computed_in_every_call() -> None:
    calls: list[Any] = []
    op = OnVectors(lambda value: value + len(calls.append(value) or calls))
    layer = engine.OpFromGraph([x], [op(x)])
    constant = pt.as_tensor_variable(np.zeros(2))
    f = engine.function([], [op(constant), layer(constant)])
    before = len(calls)
    assert [value.tolist() for value in f()] != [value.tolist() for value in f()]
    assert len(calls) > before + 1


# Element by element


class Sawtooth(ScalarOp):
    rule = staticmethod(floating)

    def _impl(self, a: Any) -> Any:
        return a - np.floor(a)

    def partial(self, index: int, inputs: Any, output: Any, cotangent: Any, apply: Any) -> Any:
        return cotangent


class Clipped(ScalarOp):
    nin = 2
    rule = staticmethod(arithmetic)

    def _impl(self, a: Any, b: Any) -> Any:
        return np.where(a > b, b, a)


sawtooth, clipped = Elemwise(Sawtooth()), Elemwise(Clipped())


@pytest.mark.parametrize("mode", MODES)
def test_an_elementwise_op_runs_on_whole_arrays_of_any_shape(mode: str) -> None:
    m, k = pt.matrix("m"), pt.lmatrix("k")
    column, number = pt.col("column"), pt.scalar("number")
    inputs = [m, k, column, number]
    outputs = [
        sawtooth(m * 2) + 1,
        pt.sum(sawtooth(m), axis=0),
        sawtooth(number),
        clipped(m, column),
        clipped(k, 2),
        clipped(column, m.T) * number,
        sawtooth(m).shape[1],
        clipped(m, pt.sum(m)),
    ]
    value, whole = np.linspace(-1, 2, 6).reshape(2, 3), np.arange(6).reshape(2, 3)
    col, scalar = np.array([[0.5], [1.0]]), 1.75

    def saw(a: Any) -> Any:
        return a - np.floor(a)

    due = [
        saw(value * 2) + 1,
        saw(value).sum(0),
        saw(scalar),
        np.minimum(value, col),
        np.minimum(whole, 2),
        3,
        np.minimum(value, value.sum()),
    ]
    f = engine.function(inputs, [*outputs[:5], *outputs[6:]], mode=mode, on_unused_input="ignore")
    found = f(value, whole, col, scalar)
    for one, other in zip(found, due, strict=True):
        np.testing.assert_allclose(one, other)
    assert found[4].dtype == "int64"
    square = engine.function([m, column, number], outputs[5], mode=mode)
    np.testing.assert_allclose(square(value[:, :2], col, scalar), np.minimum(col, value[:, :2].T) * scalar)
    assert f(value[:0], whole[:0], col[:0], scalar)[0].shape == (0, 3)


@pytest.mark.parametrize("mode", MODES)
def test_lengths_that_do_not_fit_an_elementwise_op_are_refused(mode: str) -> None:
    y = pt.vector("y")
    with pytest.raises(ValueError, match="length"):
        engine.function([x, y], clipped(x, y), mode=mode)(np.ones(3), np.ones(2))


def test_an_op_named_as_one_of_the_engines_is_not_taken_for_it() -> None:
    class Exp(ScalarOp):
        name = "exp"
        rule = staticmethod(floating)

        def _impl(self, a: Any) -> Any:
            return a * 2

    f = engine.function([x], [Elemwise(Exp())(x) + 1, pt.sum(Elemwise(Exp())(x)), Elemwise(Exp())(x) + 0.0])
    for found, due in zip(f(-0.0 * VALUE), (np.ones(3), 0.0, np.zeros(3)), strict=True):
        np.testing.assert_array_equal(found, due)
    np.testing.assert_array_equal(np.signbit(f(-0.0 * VALUE)[2]), False)


# Gradients


class Cubed(OnVectors):
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] ** 3

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [3 * inputs[0] ** 2 * cotangents[0]]


def test_the_gradient_of_an_op_is_its_pullback() -> None:
    engine.verify_grad(lambda v: Cubed(None)(v) * v, [VALUE])
    engine.verify_grad(lambda v: pt.exp(sawtooth(v)), [VALUE + 0.3])
    for mode in MODES:
        gradient = engine.grad(pt.sum(Cubed(None)(x)), x)
        np.testing.assert_allclose(computed(gradient, mode, VALUE), 3 * VALUE**2)


def test_a_wrong_pullback_is_found() -> None:
    class Wrong(Cubed):
        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            return [2 * inputs[0] ** 2 * cotangents[0]]

    with pytest.raises(engine.errors.GradientError):
        engine.verify_grad(Wrong(None), [VALUE])


def test_an_op_without_a_pullback_has_no_gradient_and_one_may_be_unconnected() -> None:
    with pytest.raises(engine.errors.NullGradientError, match="OnVectors"):
        engine.grad(pt.sum(OnVectors(np.exp)(x)), x)

    class Apart(OnVectors):
        def connection_pattern(self, node: Apply) -> list[list[bool]]:
            return [[False]]

    cost = pt.sum(Apart(np.sign)(x) * x)
    np.testing.assert_array_equal(computed(engine.grad(cost, x), "NUMBA", VALUE), [1.0, 1.0, 1.0])
