"""Operators and methods of tensor variables: what each builds, with numbers and arrays on either side."""

import operator

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph.reference import evaluate
from engine.tensor.variable import _UFUNCS as UFUNCS
from tests.engine.special_values import DTYPES, same

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("other", [2, 2.5, np.float32(2), np.array([2.0, 3.0]), np.array([2, 3], "int32")])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
def test_operators_compute_and_promote_as_numpys_on_either_side(op, other, dtype):
    x, value = pt.vector("x", dtype=dtype), np.array([5, 3], dtype)
    for found, expected in [(op(x, other), op(value, other)), (op(other, x), op(other, value))]:
        assert same(evaluate([x], [found], [value])[0], expected)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64"])
def test_bitwise_operators_are_numpys_on_either_side(op, dtype):
    x, value, other = pt.vector("x", dtype=dtype), np.array([1, 0], dtype), np.array([1, 1], dtype)
    for found, expected in [(op(x, other), op(value, other)), (op(other, x), op(other, value))]:
        assert same(evaluate([x], [found], [value])[0], expected)


def test_unary_operators_are_numpys():
    x, value = pt.lvector("x"), np.array([3, -4])
    for op in (operator.neg, operator.pos, abs, operator.invert):
        assert same(evaluate([x], [op(x)], [value])[0], op(value))


def test_matmul_is_dot():
    x, value = pt.dmatrix("x"), np.arange(4.0).reshape(2, 2)
    assert same(evaluate([x], [x @ value], [value])[0], value @ value)
    assert same(evaluate([x], [value @ x], [value])[0], value @ value)
    assert same(evaluate([x], [x.dot(x)], [value])[0], value @ value)


METHODS = {
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(),
    "max": lambda x: x.max(axis=1),
    "min": lambda x: x.min(axis=-1, keepdims=True),
    "astype": lambda x: x.astype("int32"),
    "transpose": lambda x: x.transpose(1, 0),
    "transpose of a tuple": lambda x: x.transpose((1, 0)),
    "T": lambda x: x.T,
    "reshape": lambda x: x.reshape(3, 2),
    "reshape to a tuple": lambda x: x.reshape((-1, 2)),
    "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.ravel(),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name):
    x, value = pt.dmatrix("x"), np.array([[3.0, 1, 2], [6, 4, 5]])
    assert same(evaluate([x], [METHODS[name](x)], [value])[0], METHODS[name](value))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tanh"])
def test_functions_are_methods_too(name):
    x, value = pt.dvector("x"), np.array([0.5, 2])
    assert same(evaluate([x], [getattr(x, name)()], [value])[0], getattr(np, name)(value))


def test_zeros_and_ones_in_the_shape_of_a_tensor():
    x, value = pt.fmatrix("x"), np.full((2, 3), 7, "float32")
    found = evaluate([x], [x.zeros_like(), x.ones_like(), x.ones_like("int32")], [value])
    assert all(
        same(f, e) for f, e in zip(found, [value * 0, value * 0 + 1, np.ones((2, 3), "int32")], strict=True)
    )


def test_eq_and_neq_compare_elements_and_the_operator_identity():
    x, value = pt.dvector("x"), np.array([1.0, 2.0])
    assert (x == x) is True
    assert (x == pt.dvector("x")) is False
    found = evaluate([x], [x.eq(1), x.neq(1)], [value])
    assert [f.tolist() for f in found] == [[True, False], [False, True]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_variable_knows_its_type(dtype):
    x = pt.tensor("x", dtype, (1, None))
    assert (x.dtype, x.ndim, x.broadcastable, str(x)) == (dtype, 2, (True, False), "x")


def test_a_variable_has_no_truth_no_length_and_no_elements_to_iterate_over():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match="no value yet"):
        bool(x < 1)
    with pytest.raises(TypeError, match="shape_i"):
        len(x)
    with pytest.raises(TypeError, match="index it instead"):
        iter(x)


def test_variables_are_keys_by_identity():
    x, y = pt.dscalar("x"), pt.dscalar("x")
    assert {x: 1, y: 2}[x] == 1


def test_float32_stays_float32_beside_python_floats():
    x = pt.fvector("x")
    expressions = [x * 0.1, 1 / x, x**2, pt.where(x > 0.5, x, 0.0), pt.maximum(x, 0.5), 2.5 - x, x // 2]
    assert {e.dtype for e in expressions} == {"float32"}


def test_integers_keep_their_width_beside_python_integers():
    x = pt.ivector("x")
    assert {e.dtype for e in (x + 1, 3 * x, pt.minimum(x, 7), x % 2, x**2)} == {"int32"}
    assert {e.dtype for e in (x + 0.5, x / 2)} == {"float64"}
    with pytest.raises(OverflowError, match="use a wider dtype"):
        x + 2**40


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_numpys_functions_are_operations_on_variables(name: str) -> None:
    function, x = getattr(np, name), pt.dvector("x")
    is_bitwise = name.startswith("bitwise") or name in ("invert", "left_shift", "right_shift")
    variable = x.astype("int64" if is_bitwise else "complex128" if name == "conjugate" else "float64")
    given = [variable, 2][: function.nin]
    if name == "matmul":
        given = [np.ones(3), variable]
    output = function(*given)
    assert output.owner.op == getattr(pt, UFUNCS[name])(*given).owner.op


def test_numpys_functions_with_options_are_refused_and_equality_is_identity() -> None:
    x, array = pt.dvector("x"), np.ones(3)
    with pytest.raises(TypeError):
        np.add(array, x, out=array)
    with pytest.raises(TypeError):
        np.add.reduce(x)
    assert (array == x) is False
    assert [array, x].index(x) == 1
