"""Functions on arrays that numba compiles for user Ops: called with copies, with Python as fallback."""

from __future__ import annotations

import logging

import numba
import numpy as np
import pytest

import cachegraph
import engine
import engine.tensor as pt
from engine.compiling.graph_encoding import UserOps
from engine.graph import Apply, Op
from engine.scalar.op import ScalarOp
from engine.scalar.promotion import floating
from engine.tensor.elemwise import Elemwise

X = np.array([3.0, 1.0, 2.0])


class Given(Op):
    """An Op computed by the function that it is made with."""

    __props__ = ("function", "types")

    def __init__(self, function, *types):
        self.function, self.types = function, types

    def make_node(self, *inputs):
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        return Apply(self, inputs, [type.make_variable() for type in self.types])

    def numba_function(self, node):
        return self.function


class Fallback(Given):
    """An Op that Python can compute, too."""

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 100


VECTOR, SCALAR = pt.vector().type, pt.scalar().type


def called(op, *values):
    inputs = [pt.as_tensor_variable(value).type.make_variable() for value in values]
    inputs = [pt.TensorType(v.type.dtype, (None,) * v.type.ndim).make_variable() for v in inputs]
    applied = op(*inputs)
    return engine.function(inputs, applied)(*values)


@numba.njit
def backwards(x):
    return x[::-1] * 1.0


def test_several_results_of_several_ranks_and_functions_that_call_others():
    def reversed_and_summed(x, y):
        return backwards(x), x.sum() + y, x > 1

    op = Given(reversed_and_summed, VECTOR, SCALAR, pt.vector(dtype="bool").type)
    first, second, third = called(op, X, np.float64(0.5))
    np.testing.assert_array_equal(first, [2, 1, 3])
    assert second == 6.5
    np.testing.assert_array_equal(third, [True, False, True])


def test_what_is_around_is_computed_in_kernels():
    x = pt.vector("x")
    f = engine.function([x], pt.exp(Given(backwards, VECTOR)(x * 2)) + 1)
    np.testing.assert_allclose(f(X), np.exp([4.0, 2.0, 6.0]) + 1)


def test_a_function_may_overwrite_and_return_what_it_is_shown():
    def overwrites(x):
        x[0] = -1
        return x

    value = X.copy()
    x = pt.vector("x")
    f = engine.function([x], [Given(overwrites, VECTOR)(x), x + 0])
    overwritten, kept = f(value)
    np.testing.assert_array_equal(overwritten, [-1, 1, 2])
    np.testing.assert_array_equal(kept, X)
    np.testing.assert_array_equal(value, X)


def test_strided_inputs_and_inner_loops():
    matrix = pt.matrix("matrix")
    f = engine.function([matrix], Given(lambda x: x.ravel() * 2, VECTOR)(matrix.T))
    np.testing.assert_array_equal(f(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3).T.ravel() * 2)
    states, _ = engine.scan(lambda row: Given(backwards, VECTOR)(row), sequences=[matrix])
    np.testing.assert_array_equal(
        engine.function([matrix], states)(np.arange(6.0).reshape(2, 3)), [[2, 1, 0], [5, 4, 3]]
    )


def test_what_the_function_raises_comes_through_and_names_the_op():
    def raises(x):
        if x[0] > 0:
            raise ValueError("positive")
        return x

    with pytest.raises(ValueError, match="positive") as raised:
        called(Given(raises, VECTOR), X)
    assert any("Given" in note for note in raised.value.__notes__)


def test_where_numba_compiles_nothing_python_computes(caplog):
    with caplog.at_level(logging.WARNING, "engine"):
        found = called(Fallback(lambda x: np.load(x), VECTOR), X)
    np.testing.assert_array_equal(found, X + 100)
    assert "numba does not compile the function of Fallback" in caplog.text
    np.testing.assert_array_equal(called(Fallback(None, VECTOR), X), X + 100)


def test_another_number_of_results_or_another_type_is_refused():
    with pytest.raises(TypeError, match="returned 1 results instead of 2"):
        called(Given(lambda x: x, VECTOR, VECTOR), X)
    with pytest.raises(TypeError, match="output 0"):
        called(Given(lambda x: x + 1j, VECTOR), X)
    with pytest.raises(TypeError, match="return a Python function"):
        called(Given(3, VECTOR), X)


def test_a_function_that_cannot_be_described_is_compiled_and_not_kept():
    symbol = numba.types.ExternalFunction("labs", numba.types.int64(numba.types.int64))
    before = cachegraph.counters().bypasses.get("unfingerprintable", 0)
    assert called(Given(lambda x: float(symbol(int(x[0]))), SCALAR), -X) == 3.0
    assert cachegraph.counters().bypasses["unfingerprintable"] > before


class Softening(ScalarOp):
    """An Op with its own function for numba, and a derivative made of the engine's operations."""

    __props__ = ()
    name = "softening"
    rule = staticmethod(floating)

    def _impl(self, x):
        return x / (1 + np.abs(x))

    def partial(self, index, inputs, output, cotangent, apply):
        from engine.scalar import abs as absolute
        from engine.scalar import add, sqr, true_div

        return apply(true_div, cotangent, apply(sqr, apply(add, apply(absolute, inputs[0]), 1.0)))

    def numba_function(self, node):
        return lambda x: x / (1 + abs(x))


def test_an_elementwise_op_fuses_broadcasts_and_has_its_gradient():
    x, y = pt.matrix("x"), pt.vector("y")
    soft = Elemwise(Softening())
    cost = pt.sum(soft(x * 2 + y) * x)
    f = engine.function([x, y], [cost, *engine.grad(cost, [x, y])])
    one = engine.function([x, y], soft(x * 2 + y) * x)
    assert sum(one.cache_info.found["kernel"]) == 3  # the machine, the fast call, and all of this
    random = np.random.default_rng(1)
    a, b = random.normal(size=(4, 3)), random.normal(size=3)
    inner = a * 2 + b
    value, slope = inner / (1 + abs(inner)), 1 / (1 + abs(inner)) ** 2
    for found, due in zip(
        f(a, b), ((value * a).sum(), value + 2 * slope * a, (slope * a).sum(0)), strict=True
    ):
        np.testing.assert_allclose(found, due, rtol=1e-12)
    engine.verify_grad(lambda x, y: pt.sum(soft(x * 2 + y) * x), [a, b], rng=random)


def test_an_elementwise_op_within_a_loop():
    x = pt.vector("x")
    states, _ = engine.scan(
        lambda a, total: Elemwise(Softening())(a) + total, sequences=[x], outputs_info=[pt.constant(0.0)]
    )
    f = engine.function([x], states)
    np.testing.assert_allclose(f(X), np.cumsum(X / (1 + X)))


class Hidden(Given):
    """An Op whose function captures something that is in no property."""

    __props__ = ()

    def __init__(self, number):
        super().__init__(None, VECTOR)
        self._number = number

    def numba_function(self, node):
        number = self._number
        return lambda x: x * number


def test_what_a_function_may_capture_is_in_the_key():
    one, again, other = (UserOps().encoding(Hidden(number)) for number in (2.0, 2.0, 3.0))
    assert one == again != other


@pytest.fixture
def no_calls(monkeypatch):
    """Make functions that are called, and not compiled into kernels, fail."""

    def refuse(node):
        raise AssertionError(f"{node.op} is called")

    monkeypatch.setattr("engine.codegen.numba.calls.compiled_call", refuse)


def weighted(x, m, count):
    total = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            total += m[i, j] * x[j]
    return total + count[()]


def test_a_function_of_arrays_that_gives_a_number_is_a_kernel(no_calls):
    op = Given(weighted, SCALAR)
    x, m, count = pt.vector("x"), pt.matrix("m"), pt.scalar("count", dtype="int32")
    f = engine.function([x, m, count], op(pt.exp(x), m.T, count) * 2)
    for rows in (0, 1, 4):
        a, b = np.array([0.5, 1.5, -1.0]), np.random.default_rng(rows).normal(size=(3, rows))
        np.testing.assert_allclose(f(a, b, np.int32(7)), 2 * ((b.T @ np.exp(a)).sum() + 7), rtol=1e-13)
    states, _ = engine.scan(lambda row, *others: op(row, *others), sequences=[m], non_sequences=[m, count])
    g = engine.function([m, count], states)
    b = np.random.default_rng(1).normal(size=(3, 3))
    np.testing.assert_allclose(g(b, np.int32(1)), [(b @ row).sum() + 1 for row in b], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_arrays_of_every_dtype_and_rank_are_passed_to_kernels(no_calls, dtype, rank):
    def last(x):
        found = False
        for value in x.flat:
            found = value
        return found

    value = np.arange(2**rank).reshape((2,) * rank).astype(dtype)
    found = called(Given(last, pt.scalar(dtype=dtype).type), value)
    assert found.dtype == dtype
    assert found == value.ravel()[-1]


def test_what_may_raise_allocates_or_overwrites_is_called_and_not_a_kernel():
    def raises(x):
        if x[0] > 2:
            raise ValueError("too large")
        return x[0]

    def overwrites(x):
        x[0] = 7
        return x.sum()

    with pytest.raises(ValueError, match="too large"):
        called(Given(raises, SCALAR), X)
    assert called(Given(overwrites, SCALAR), X) == 10.0
    assert called(Given(lambda x: np.sqrt(x * 2).sum(), SCALAR), X) == np.sqrt(X * 2).sum()
    assert called(Given(lambda x: x.sum() > 3, pt.scalar(dtype="bool").type), X)


class Halves(ScalarOp):
    """An Op with two results, which no function in a kernel has: Python computes them."""

    __props__ = ()
    name = "halves"
    nout = 2
    rule = staticmethod(floating)

    def result_dtypes(self, dtypes):
        return (dtypes[0], dtypes[0])

    def _impl(self, x):
        return np.floor(x), x - np.floor(x)

    def numba_function(self, node):
        return lambda x: (x, x)


def test_an_elementwise_op_of_two_results_is_computed_by_python():
    x = pt.vector("x")
    below, rest = Elemwise(Halves())(x * 1.25)
    f = engine.function([x], [below + 1, rest])
    np.testing.assert_array_equal(f(X), [np.floor(X * 1.25) + 1, X * 1.25 - np.floor(X * 1.25)])


class Choosy(Softening):
    """An Op whose function is for float64 alone."""

    __props__ = ("number",)

    def __init__(self, number):
        self.number = number

    def numba_function(self, node):
        return super().numba_function(node) if node.inputs[0].type.dtype == "float64" else None


def test_an_op_without_a_function_for_some_types_is_computed_by_python_there():
    x, y = pt.vector("x"), pt.vector("y", dtype="float32")
    f = engine.function([x, y], [Elemwise(Choosy(1))(x), Elemwise(Choosy(1))(y + 1)])
    soft, narrow = f(X, X.astype("float32"))
    np.testing.assert_allclose(soft, X / (1 + X))
    np.testing.assert_allclose(narrow, (X + 1) / (2 + X), rtol=1e-6)
    assert narrow.dtype == "float32"
    again = engine.function([x], Elemwise(Choosy(1))(x + 1) * 3)
    assert sum(again.cache_info.found["kernel"]) == 3  # it still fuses where it has a function


class Careful(Softening):
    """An Op whose function raises."""

    def numba_function(self, node):
        def careful(x):
            if x > 2:
                raise ValueError("too large")
            return x / (1 + abs(x))

        return careful


def test_an_exception_within_a_kernel_names_the_op():
    x = pt.vector("x")
    f = engine.function([x], Elemwise(Careful())(x) * 2)
    np.testing.assert_allclose(f(X - 1), 2 * (X - 1) / X)
    with pytest.raises(RuntimeError, match=r"softening.*numba_function\(\) raised an exception"):
        f(X)
