"""Calls that take axes, orders, shapes and indices, in every form that users have them: numpy's result, or words at the call.

What is refused is refused where it is called, by a TypeError, ValueError or IndexError that the engine raises itself.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.exceptions import AxisError
from scipy import special

import engine
import engine.tensor as pt
from engine.graph.reference import evaluate

X = np.random.default_rng(0).permutation(24).astype(float).reshape(2, 3, 4)
x, n, numbers = pt.tensor3("x"), pt.lscalar("n"), pt.lvector("numbers")


def value_of(result: Any) -> np.ndarray:
    (found,) = evaluate([x], [result], [X])
    return found


def refuses(call: Callable[[], Any], *kinds: type[Exception]) -> Exception:
    """The error of `call`, which the engine itself raises."""
    with pytest.raises(kinds or (TypeError, ValueError, IndexError)) as caught:
        call()
    raised = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert "/engine/" in raised.filename, caught.value
    assert "raise" in (raised.line or ""), caught.value
    return caught.value


# Axes

ONE = [
    (0, 0),
    (2, 2),
    (-1, 2),
    (-3, 0),
    (np.int8(1), 1),
    (np.array(1), 1),
    (np.array(-3), 0),
    (pt.constant(1), 1),
]
SEVERAL = [
    ((0,), (0,)),
    ((0, 1), (0, 1)),
    ((2, 0), (2, 0)),
    ((0, -1), (0, 2)),
    ([1, 2], (1, 2)),
    ((), ()),
    ([], ()),
    (np.array([0, 2]), (0, 2)),
    ((np.int64(0), np.array(1)), (0, 1)),
    (range(2), (0, 1)),
    (pt.constant([0, 2]), (0, 2)),
]
OUTSIDE = [3, -4, (0, 3), 10**30, np.array(5), pt.constant(7)]
TWICE = [(0, 0), (0, -3), np.array([1, 1])]
NO_AXES: list[Any] = [
    True,
    np.True_,
    1.0,
    np.float64(1),
    "0",
    "x",
    {0},
    n,
    numbers,
    (0, n),
    ((0,),),
    np.array([[0]]),
    b"0",
]


def position_over(find: Callable[..., Any]) -> Callable[..., Any]:
    def found(value: np.ndarray, axis: Any) -> Any:
        if not isinstance(axis, tuple):
            return find(value, axis=axis)
        axes = sorted(axis)
        rest = [a for a in range(value.ndim) if a not in axes]
        rows = value.transpose(rest + axes).reshape([*[value.shape[a] for a in rest], -1])
        return find(rows, axis=-1)

    return found


OVER_AXES: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sum", "prod", "mean", "max", "min", "all", "any", "var", "std")},
    **{name: position_over(getattr(np, name)) for name in ("argmax", "argmin")},
    **{name: getattr(special, name) for name in ("softmax", "log_softmax", "logsumexp")},
}
ALONG_AN_AXIS = {name: getattr(np, name) for name in ("sort", "argsort", "cumsum", "cumprod")}
OPS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "Max": (lambda axis: pt.Max(axis)(x), np.max),
    "Min": (lambda axis: pt.Min(axis=axis)(x), np.min),
    "Sum": (lambda axis: pt.Sum(axis, "float64", "float64")(x), np.sum),
    "Softmax": (lambda axis: pt.Softmax(axis=axis)(x), special.softmax),
    "LogSoftmax": (lambda axis: pt.LogSoftmax(axis=axis)(x), special.log_softmax),
    "LogSumExp": (lambda axis: pt.LogSumExp(axis=axis)(x), special.logsumexp),
    "Argmax": (lambda axis: pt.Argmax(axis)(x), position_over(np.argmax)),
    "Argmin": (lambda axis: pt.Argmin(axis)(x), position_over(np.argmin)),
}
OPS_ALONG: dict[str, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    "CumOp": (lambda axis: pt.CumOp(axis)(x), np.cumsum),
    "join": (lambda axis: pt.join(axis, x, x), lambda value, axis: np.concatenate([value, value], axis)),
    "concatenate": (
        lambda axis: pt.concatenate([x, x], axis=axis),
        lambda value, axis: np.concatenate([value, value], axis),
    ),
    "shape_i": (lambda axis: pt.shape_i(x, axis), lambda value, axis: np.array(value.shape[axis])),
}


def _function(name: str) -> Callable[[Any], Any]:
    return lambda axis: getattr(pt, name)(x, axis=axis)


CALLS = {**{name: (_function(name), numpys) for name, numpys in OVER_AXES.items()}, **OPS}
CALLS_ALONG = {**{name: (_function(name), numpys) for name, numpys in ALONG_AN_AXIS.items()}, **OPS_ALONG}


@pytest.mark.parametrize("name", [*CALLS, *CALLS_ALONG])
def test_one_axis_comes_in_every_form(name):
    call, numpys = {**CALLS, **CALLS_ALONG}[name]
    for given, axis in ONE:
        np.testing.assert_allclose(value_of(call(given)), numpys(X, axis=axis), err_msg=repr(given))
    for given in OUTSIDE:
        error = refuses(
            lambda g=given: call(g), AxisError, TypeError if isinstance(given, tuple) else AxisError
        )
        assert "out of bounds for array of dimension 3" in str(error) or isinstance(given, tuple)
    for given in NO_AXES:
        if name not in ("sort", "argsort") or not hasattr(given, "owner"):
            refuses(lambda g=given: call(g), TypeError)


@pytest.mark.parametrize("name", CALLS)
def test_several_axes_come_in_every_form(name):
    call, numpys = CALLS[name]
    for given, axes in SEVERAL:
        if name in OVER_AXES or axes:
            np.testing.assert_allclose(value_of(call(given)), numpys(X, axis=axes), err_msg=repr(given))
    np.testing.assert_allclose(value_of(call(None)), numpys(X, axis=None))
    for given in TWICE:
        assert "repeated axis" in str(refuses(lambda g=given: call(g), ValueError))


@pytest.mark.parametrize("name", CALLS_ALONG)
def test_several_axes_are_refused_where_there_is_one(name):
    for given, _ in SEVERAL:
        refuses(lambda g=given: CALLS_ALONG[name][0](g), TypeError)


def test_the_axes_that_are_kept_are_those_over_which_it_is_reduced():
    for name in ("sum", "prod", "mean", "max", "min", "all", "any", "var", "logsumexp"):
        for given, axes in SEVERAL:
            found = value_of(getattr(pt, name)(x, axis=given, keepdims=True))
            np.testing.assert_allclose(found, OVER_AXES[name](X, axis=axes, keepdims=True))
    for given, axes in SEVERAL:
        found = value_of(pt.argmax(x, axis=given, keepdims=True))
        assert found.shape == X.sum(axis=axes, keepdims=True).shape


def test_positions_over_several_axes_are_compiled_and_found_again_by_equal_ops(kernels_once):
    f = engine.function([x], [pt.argmax(x, axis=(0, 2)), pt.argmin(x, axis=()), pt.Softmax(axis=-1)(x)])
    expected = [X.transpose(1, 0, 2).reshape(3, 8).argmax(-1), np.zeros_like(X), special.softmax(X, -1)]
    for found, due in zip(f(X), expected, strict=True):
        np.testing.assert_allclose(found, due, 1e-14)
    assert pt.Min(axis=-1)(x).owner.op == pt.Min(axis=(2,))(x).owner.op == pt.min(x, axis=2).owner.op


# Orders of axes

ORDERS = [
    ((2, 1, 0), (2, 1, 0)),
    ([0, 2, 1], (0, 2, 1)),
    (np.array([1, 0, 2]), (1, 0, 2)),
    ((-1, 0, 1), (2, 0, 1)),
    ((np.int8(2), np.array(0), 1), (2, 0, 1)),
    (pt.constant([2, 0, 1]), (2, 0, 1)),
]
NO_ORDERS: list[Any] = [(0, 0, 1), (0, 1, 3), (0, 1.0, 2), (True, 0, 2), numbers, ("a", 0, 1), (0, 1, n)]
TRANSPOSES: list[Callable[[Any], Any]] = [
    lambda order: pt.transpose(x, order),
    lambda order: x.transpose(order),
    lambda order: x.dimshuffle(order),
]


@pytest.mark.parametrize("call", TRANSPOSES, ids=["transpose", "x.transpose", "x.dimshuffle"])
def test_an_order_of_axes_comes_in_every_form(call):
    for given, order in ORDERS:
        np.testing.assert_array_equal(value_of(call(given)), X.transpose(order))
        if not isinstance(given, pt.TensorVariable):
            np.testing.assert_array_equal(value_of(x.transpose(*given)), X.transpose(order))
            np.testing.assert_array_equal(value_of(x.dimshuffle(*given)), X.transpose(order))
    for given in NO_ORDERS:
        refuses(lambda g=given: call(g), TypeError, ValueError)


def test_an_order_of_too_few_axes_is_refused_and_none_is_the_reverse():
    for call in TRANSPOSES[:2]:
        np.testing.assert_array_equal(value_of(call(None)), X.T)
        for given in ((), (0, 1), [0]):
            refuses(lambda c=call, g=given: c(g), ValueError)
    np.testing.assert_array_equal(value_of(x.transpose()), X.T)


def test_axes_of_length_one_are_put_in_and_taken_out():
    for given in (*(g for g, _ in [*ONE, *SEVERAL]), -4, (0, 4), 3):
        axes = np.asarray(given.data if isinstance(given, pt.TensorConstant) else given, int).tolist()
        expected = np.expand_dims(X, tuple(axes) if isinstance(axes, list) else axes)
        np.testing.assert_array_equal(value_of(pt.expand_dims(x, given)), expected)
    for given in (*TWICE[:1], (0, -5), 5, -5, *NO_AXES, None):
        refuses(lambda g=given: pt.expand_dims(x, g))
    one, value = pt.reshape(x, (1, 24, 1)), X.reshape(1, 24, 1)
    for given, axes in [(0, 0), (np.array(-1), 2), ((0, -1), (0, 2)), ((), ()), (None, None), ([2], (2,))]:
        np.testing.assert_array_equal(value_of(pt.squeeze(one, given)), np.squeeze(value, axes))
    for given in (3, (0, 0), *NO_AXES):
        refuses(lambda g=given: pt.squeeze(one, g))
    for given, axis in [
        *(row for row in ONE if isinstance(row[0], int) and row[0] >= 0),
        (3, 3),
        (-4, 0),
        (np.array(-1), 3),
    ]:
        np.testing.assert_array_equal(value_of(pt.stack([x, x], axis=given)), np.stack([X, X], axis))
    for given in (4, -5, (0,), *NO_AXES):
        refuses(lambda g=given: pt.stack([x, x], axis=g))


# Shapes

SHAPES = [
    (2, (2,)),
    (0, (0,)),
    ((2, 3), (2, 3)),
    ([2, 3], (2, 3)),
    ((), ()),
    (np.array([2, 3]), (2, 3)),
    (np.array(2), (2,)),
    (np.int8(2), (2,)),
    ((np.int64(2), np.array(3), pt.constant(1)), (2, 3, 1)),
    (pt.constant(2), (2,)),
    (pt.constant([2, 3]), (2, 3)),
    (range(3), (0, 1, 2)),
    (np.zeros(0, int), ()),
]
NO_SHAPES: list[Any] = [
    *(2.0, (2.0,), "2", ("2",), None, (None,), True, (True,), np.array([2.0, 3.0]), np.array([True]), {2}),
    *(((2,), 3), np.array([[2]]), numbers, 10**30, (10**30,), 2**63, np.uint64(2**63), pt.constant(2.0), x),
]
MAKERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "zeros": (pt.zeros, np.zeros),
    "ones": (lambda shape: pt.ones(shape, "int32"), lambda shape: np.ones(shape, "int32")),
    "full": (lambda shape: pt.full(shape, 2.5), lambda shape: np.full(shape, 2.5)),
    "alloc": (lambda shape: pt.alloc(2.5, shape), lambda shape: np.full(shape, 2.5)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_shape_comes_in_every_form(name):
    call, numpys = MAKERS[name]
    for given, shape in SHAPES:
        made = call(given)
        assert made.type.shape == shape, given
        np.testing.assert_array_equal(value_of(made), numpys(shape))
    for given in (*NO_SHAPES, -1, (2, -1)):
        refuses(lambda g=given: call(g), TypeError, ValueError)


def test_a_new_shape_comes_in_every_form():
    for given, shape in [(s, t) for s, t in SHAPES if np.prod(t) == 6] + [(-1, (24,)), ((-1, 3), (8, 3))]:
        source, value = (x, X) if -1 in np.atleast_1d(given) else (x[0, :2, :3], X[0, :2, :3])
        for found in (pt.reshape(source, given), source.reshape(given)):
            np.testing.assert_array_equal(value_of(found), value.reshape(shape))
    for given in (*NO_SHAPES, (-1, -1), -2):
        refuses(lambda g=given: pt.reshape(x, g), TypeError, ValueError)
    for given in (0, 4, 1.0, True, "1", (1,), None, n):
        refuses(lambda g=given: pt.flatten(x, g), TypeError, ValueError)


def test_the_shape_of_another_tensor_is_a_shape():
    np.testing.assert_array_equal(value_of(pt.alloc(2.5, x.shape)), np.full(X.shape, 2.5))
    np.testing.assert_array_equal(value_of(pt.zeros(x.shape[1:])), np.zeros((3, 4)))


def test_a_declared_shape_has_lengths_and_none():
    for given, shape in [((2, None), (2, None)), ([np.int8(2), np.array(3)], (2, 3)), (range(2), (0, 1))]:
        assert pt.tensor("t", shape=given).type.shape == pt.TensorType("float64", given).shape == shape
    for given in (2, None, "2", (2.0,), ("2",), ((2,),), n, (n,), (-1,)):
        refuses(lambda g=given: pt.tensor("t", shape=g), TypeError, ValueError)
        refuses(lambda g=given: pt.TensorType("float64", g), TypeError, ValueError)


def test_the_number_of_a_diagonal_is_whole():
    matrix, value = x[0], X[0]
    for given, k in [(1, 1), (-1, -1), (np.int8(1), 1), (np.array(-2), -2), (pt.constant(1), 1), (9, 9)]:
        for name in ("tril", "triu", "diagonal", "diag"):
            np.testing.assert_array_equal(
                value_of(getattr(pt, name)(matrix, given)), getattr(np, name)(value, k)
            )
        np.testing.assert_array_equal(value_of(pt.diag(matrix[0], given)), np.diag(value[0], k))
        np.testing.assert_array_equal(value_of(pt.eye(3, 4, given)), np.eye(3, 4, k))
        np.testing.assert_array_equal(value_of(pt.tri(3, 4, given)), np.tri(3, 4, k))
    calls: list[Callable[[Any], Any]] = [lambda k: pt.eye(3, 4, k), lambda k: pt.tri(3, k=k)]
    calls += [lambda k, f=f: f(matrix, k) for f in (pt.tril, pt.triu, pt.diagonal, pt.diag)]
    for call in calls:
        for given in (1.0, True, "1", (1,), [1], None, np.array([1]), numbers, pt.dscalar("d")):
            refuses(lambda c=call, g=given: c(g), TypeError)
    for sizes in ((2.0,), (-1,), (2, 2.0), (2, -1), ("2",), (True,), ((2, 2),)):
        refuses(lambda s=sizes: pt.eye(*s), TypeError, ValueError)


def test_what_a_variance_is_divided_by_is_less_a_number():
    for given in (1, 1.5, np.int8(1), np.array(2), np.float32(0.5), 0):
        np.testing.assert_allclose(value_of(pt.var(x, ddof=given)), np.var(X, ddof=given))
    for given in ((1,), [1], np.array([1, 2]), "1", None, numbers):
        refuses(lambda g=given: pt.var(x, ddof=g), TypeError)


# Indices

FULL = slice(None)
INDICES: list[Any] = [
    *((), 0, -1, np.int8(1), np.array(1), np.array([0, 1]), [0, 1], [], (0, 1), (0, (0, 1)), (FULL, ())),
    *((FULL, []), ((), ()), ([], []), [[]], [[0, 1], [1, 0]], np.zeros(0, int), np.zeros((0, 2), int), None),
    *(Ellipsis, (None, 0), (Ellipsis, 0), [True, False], np.array([True, False]), ((True, False),), range(2)),
    *(
        (FULL, [True, False, True]),
        (0, [True, False, True]),
        slice(None, None, -1),
        (FULL, np.array([0, 2], "u1")),
    ),
    *(slice(np.int64(0), np.array(1)), np.uint64(1), np.array([0, 1], np.uint8), ([0, 1], None, [1, 2])),
    *(
        (np.array([0, 1]), FULL, [0, 1]),
        (FULL, [0, 1], [[0], [1]]),
        [[True, False, True], [False, True, True]],
    ),
]
NO_INDICES: list[Any] = [
    *(
        True,
        False,
        np.True_,
        (True, 0),
        1.0,
        [1.0],
        np.array([1.0]),
        np.zeros(0),
        "a",
        ["a"],
        (0, "a"),
        b"a",
        1j,
    ),
    *(
        slice(0, 2.5),
        slice("a"),
        slice(None, None, 0),
        slice([1]),
        slice(0, np.array([1])),
        {0},
        (0, 0, 0, 0),
    ),
    *((FULL,) * 4, (Ellipsis, Ellipsis), np.zeros((2, 3, 4, 1), bool), [[0], [0, 1]], [0, [1]], [0, None]),
    *([slice(0, 1)], 10**30, 2**63, np.array([2**63], np.uint64), np.ma.array([0, 1], mask=[0, 1]), x),
    *(pt.constant(1.5), pt.vector("f"), slice(pt.scalar("g"))),
]


def _numpys(index: Any) -> Any:
    return list(index) if isinstance(index, range) else index


def _changed(index: Any, sets: bool) -> np.ndarray:
    found = X.copy()
    if sets:
        found[_numpys(index)] = 0.5
    else:
        np.add.at(found, _numpys(index), 0.5)
    return found


@pytest.mark.parametrize("position", range(len(INDICES)))
def test_an_index_comes_in_every_form(position):
    index = INDICES[position]
    np.testing.assert_array_equal(value_of(x[index]), X[_numpys(index)])
    np.testing.assert_array_equal(value_of(x[index].set(0.5)), _changed(index, True))
    np.testing.assert_array_equal(value_of(x[index].inc(0.5)), _changed(index, False))


def test_a_list_with_a_variable_is_an_index():
    found = engine.function([x, n], [x[[n, 0]], x[[n, 0]].set(0.5)], mode="NUMPY")(X, 1)
    np.testing.assert_array_equal(found[0], X[[1, 0]])
    np.testing.assert_array_equal(found[1], np.full_like(X, 0.5))


def test_what_is_no_index_is_refused_where_it_is_given():
    for index in NO_INDICES:
        refuses(lambda i=index: x[i], TypeError, ValueError, IndexError, NotImplementedError)


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_mask_of_one_element_is_not_repeated_when_what_it_chooses_is_changed(mode, kernels_once):
    for change in (x[[True]].set(0.5), x[[True]].inc(0.5)):
        f = engine.function([x], change, mode=mode)
        with pytest.raises(IndexError, match="boolean index did not match"):
            f(X)
        assert f(X[:1]).shape == (1, 3, 4)
