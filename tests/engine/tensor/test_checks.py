"""Checks that a function makes: conditions, with a user's exception, and specified lengths."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine import scalar
from engine.compile.mode import Mode
from engine.errors import LengthError
from engine.graph import equal_computations
from engine.graph.replace import vectorize_graph
from engine.raise_op import Assert, CheckAndRaise, assert_op
from engine.tensor.checks import SpecifyShape

pytestmark = pytest.mark.usefixtures("kernels_once")


class OwnError(ValueError):
    """An exception of a user's."""


X = pt.dvector("x")
MODES = pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])


@MODES
def test_a_false_condition_raises_the_users_exception_and_a_true_one_passes_the_value(mode: str) -> None:
    checked = CheckAndRaise(OwnError, "not positive")(pt.exp(X), pt.all(X > 0), pt.sum(X) < 100)
    f = engine.function([X], [checked * 2, pt.sum(checked)], mode=mode)
    doubled, total = f(np.array([1.0, 2.0]))
    np.testing.assert_allclose(doubled, 2 * np.exp([1, 2]))
    np.testing.assert_allclose(total, np.exp([1, 2]).sum())
    for bad in ([-1.0, 2.0], [1.0, 200.0]):
        with pytest.raises(OwnError, match="not positive"):
            f(np.array(bad))


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY", Mode(optimizer=None)])
def test_a_check_of_numbers_is_a_number(mode: Mode | str) -> None:
    x, t = scalar.float64("x"), pt.dscalar("t")
    checked = CheckAndRaise(OwnError, "not positive")(x, x > 0, x < 100)
    assert checked.type == x.type
    assert [variable.type.dtype for variable in checked.owner.inputs] == ["float64", "bool", "bool"]
    between = CheckAndRaise(OwnError, "not positive")(pt.scalar_from_tensor(t) * 2, t > 0)
    f = engine.function([x], [checked, engine.grad(checked**2, x)], mode=mode)
    g = engine.function([t], pt.tensor_from_scalar(between), mode=mode)
    assert [value.item() for value in f(3.0)] == [3.0, 6.0]
    assert g(3.0) == 6.0
    assert engine.function([x], engine.grad(checked, x), mode=mode)(3.0) == 1.0
    for function in (f, g):
        with pytest.raises(OwnError, match="not positive"):
            function(-1.0)


def test_the_value_of_a_checked_input_is_a_view_and_its_shape_needs_no_check() -> None:
    c = pt.scalar("c")
    checked = assert_op(X, c)
    assert engine.function([c, X], checked.shape[0] + 0, on_unused_input="ignore")(0.0, np.ones(3)) == 3
    f = engine.function([c, X], checked)
    np.testing.assert_array_equal(f(1.0, np.ones(3)), np.ones(3))
    with pytest.raises(AssertionError):
        f(0.0, np.ones(3))


def test_conditions_that_are_true_are_removed_and_one_that_is_false_raises_in_calls() -> None:
    f = engine.function([X], assert_op(X * 2, True, np.bool_(1)))
    assert not f._compiled.runner.program.callbacks
    g = engine.function([X], Assert("never")(X, False))
    with pytest.raises(AssertionError, match="never"):
        g(np.ones(2))


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMPY"])
def test_a_number_is_a_condition_of_a_tensor_as_it_is(mode: str) -> None:
    is_due = scalar.bool("is_due")
    checked = assert_op(X, is_due, pt.all(X < 3), scalar.constant(True))
    assert checked.owner.inputs[:2] == [X, is_due]
    f = engine.function([X, is_due], [2 * checked, checked.shape, engine.grad(checked.sum(), X)], mode=mode)
    for found, due in zip(f([1.0, 2.0], True), ([2.0, 4.0], [2], [1.0, 1.0]), strict=True):
        np.testing.assert_array_equal(found, due)
    with pytest.raises(AssertionError):
        f([1.0, 2.0], False)


def test_a_number_is_a_condition_of_a_batch() -> None:
    is_due, batch = scalar.bool("is_due"), pt.dmatrix("batch")
    checked = vectorize_graph(assert_op(X, is_due, pt.all(X < 3)), {X: batch})
    f = engine.function([batch, is_due], checked)
    np.testing.assert_array_equal(f(np.ones((2, 3)), True), np.ones((2, 3)))
    for given in ((np.ones((2, 3)), False), (np.full((2, 3), 5.0), True)):
        with pytest.raises(AssertionError):
            f(*given)


def test_gradients_pass_through_checks() -> None:
    checked = pt.specify_shape(assert_op(X**2, pt.all(X > 0)), (2,))
    gradient = engine.function([X], engine.grad(pt.sum(checked), X))(np.array([1.0, 3.0]))
    np.testing.assert_allclose(gradient, [2, 6])


def test_the_shape_of_a_batch_is_specified_by_one_op() -> None:
    x, n, batch = pt.dmatrix("x"), pt.lscalar("n"), pt.dtensor3("batch")
    checked = pt.specify_shape(x, (None, n))
    found = vectorize_graph(checked, {x: batch})
    assert equal_computations([found], [pt.specify_shape(batch, (None, None, n))])
    f = engine.function([batch, n], found)
    np.testing.assert_array_equal(f(np.ones((4, 3, 2)), 2), np.ones((4, 3, 2)))
    with pytest.raises(AssertionError, match="SpecifyShape"):
        f(np.ones((4, 2, 3)), 2)
    with pytest.raises(NotImplementedError, match="lengths are a batch"):
        vectorize_graph(checked, {n: pt.lvector()})


def test_a_batch_of_one_length_is_the_length_of_all() -> None:
    x, n, batch, lengths = pt.dmatrix("x"), pt.lscalar("n"), pt.dtensor3("batch"), pt.lvector(shape=(1,))
    f = engine.function(
        [batch, lengths], vectorize_graph(pt.specify_shape(x, (None, n)), {x: batch, n: lengths})
    )
    np.testing.assert_array_equal(f(np.ones((4, 3, 2)), [2]), np.ones((4, 3, 2)))
    with pytest.raises(AssertionError, match="SpecifyShape"):
        f(np.ones((4, 2, 3)), [2])


def test_a_batch_is_checked_as_one() -> None:
    x, c, batch, conditions = pt.dvector("x"), pt.bscalar("c"), pt.dmatrix(), pt.bvector()
    checked = assert_op(x, c)
    one, all_of, both = (
        vectorize_graph(checked, replace)
        for replace in ({x: batch}, {c: conditions}, {x: batch, c: conditions})
    )
    f = engine.function([x, c, batch, conditions], [one, all_of, both])
    rows = np.arange(6.0).reshape(2, 3)
    found = f(rows[0], 1, rows, [1, 1])
    for value, expected in zip(found, (rows, [rows[0], rows[0]], rows), strict=True):
        np.testing.assert_array_equal(value, expected)
    for bad in ((0, [1, 1]), (1, [1, 0])):
        with pytest.raises(AssertionError):
            f(rows[0], bad[0], rows, bad[1])


def test_checks_are_told_apart_print_and_pickle() -> None:
    assert str(CheckAndRaise(OwnError, "text")) == "CheckAndRaise{raises=OwnError, msg='text'}"
    assert str(Assert("m" * 40)) == f"Assert{{msg='{'m' * 27}...'}}"
    assert Assert("a") != Assert("b")
    assert CheckAndRaise(OwnError, "a") != CheckAndRaise(ValueError, "a")
    assert pickle.loads(pickle.dumps(assert_op)) == assert_op
    with pytest.raises(ValueError, match="subclass of Exception"):
        CheckAndRaise(str)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="0 dimensions"):
        assert_op(X, X > 0)


@MODES
def test_specified_lengths_are_static_and_checked(mode: str) -> None:
    x, n = pt.dmatrix("x"), pt.lscalar("n")
    y = pt.specify_shape(x, (n, 3))
    assert y.type.shape == (None, 3)
    f = engine.function([x, n], [pt.exp(y), y.shape[0]], mode=mode)
    found, length = f(np.zeros((2, 3)), 2)
    assert length == 2
    np.testing.assert_array_equal(found, np.ones((2, 3)))
    for value, count in ((np.zeros((2, 4)), 2), (np.zeros((2, 3)), 1)):
        with pytest.raises(AssertionError, match=rf"Got shape .2, {value.shape[1]}., expected .{count}, 3."):
            f(value, count)


@pytest.mark.parametrize(
    ("shape", "static"),
    [((2, ...), (2, None)), ((..., 3), (None, 3)), (np.array([4, 5]), (4, 5)), ([None, 2], (None, 2))],
)
def test_a_shape_has_none_dots_and_vectors(shape: Any, static: Any) -> None:
    assert pt.specify_shape(pt.dmatrix(), shape).type.shape == static


def test_what_is_no_shape_is_refused_and_what_is_known_adds_nothing() -> None:
    x = pt.tensor("x", shape=(2, None))
    assert pt.specify_shape(x, (2, None)) is x
    for shape, error in (
        ((2,), ValueError),
        ((..., ...), ValueError),
        (pt.lvector(), ValueError),
        ((1.5, 2), TypeError),
    ):
        with pytest.raises(error):
            pt.specify_shape(x, shape)
    f = engine.function([x], SpecifyShape([0]).make_node(x, 2).outputs[0] * 2)
    np.testing.assert_array_equal(f(np.ones((2, 1))), np.full((2, 1), 2.0))


def test_a_wrong_length_is_told_with_its_axis_and_is_an_error_of_either_kind():
    x = pt.dmatrix("x")
    said = r"dim 1 of input has shape 4, expected 3[.] Got shape .2, 4., expected .None, 3."
    for kind in (AssertionError, ValueError, LengthError):
        with pytest.raises(kind, match=said):
            engine.function([x], pt.specify_shape(x, (None, 3)))(np.zeros((2, 4)))
