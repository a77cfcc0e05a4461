"""Loops of scalars inside a kernel: carried states, conditions that end them, and refusals."""

import numpy as np
import pytest

from engine.codegen.llvm.printer import print_kernel
from engine.lowering.check import check_kernel
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.loops import Carried, Compute, Kernel, Loop, Number, Place, Pointer, WriteElement
from engine.lowering.statements import ScalarRepeat, Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import NEGATIVE_POWER

I0, I1, I2 = ("input", 0), ("input", 1), ("input", 2)
FLOAT, INTEGER = NestOperand("float64", (False,)), NestOperand("int64", (False,))


def of_float(value):
    return ("constant", "float64", np.float64(value).tobytes())


# s <- s * x + 1, from 0
POLYNOMIAL = ScalarRepeat(
    (I1, of_float(0.0), I0),
    ("float64", "float64"),
    (Statement("mul", (I0, I1), "float64"), Statement("add", (("value", 0), of_float(1.0)), "float64")),
    (("value", 1),),
)


def polynomial(x, steps):
    state = 0.0
    for _ in range(steps):
        state = state * x + 1
    return state


def test_a_state_is_carried_as_often_as_each_element_says(run):
    x, steps, out = np.linspace(-1, 1, 7), np.array([0, 1, 2, 3, 10, -4, 5]), np.empty(7)
    kernel = elementwise([FLOAT, INTEGER], [POLYNOMIAL], [("result", 0, 0)], 1)
    assert run(kernel, [x, steps], [out], [7]) == 0
    np.testing.assert_allclose(out, [polynomial(*pair) for pair in zip(x, steps, strict=True)])


def test_what_follows_uses_the_results(run):
    body = [POLYNOMIAL, Statement("mul", (("result", 0, 0), I0), "float64")]
    x, steps, out = np.linspace(-1, 1, 5), np.full(5, 3), np.empty(5)
    assert run(elementwise([FLOAT, INTEGER], body, [("value", 1)], 1), [x, steps], [out], [5]) == 0
    np.testing.assert_allclose(out, [polynomial(v, 3) * v for v in x])


def test_states_may_exchange_their_values(run):
    # a, b <- b, a + b
    fibonacci = ScalarRepeat(
        (I2, I0, I1), ("int64", "int64"), (Statement("add", (I0, I1), "int64"),), (I1, ("value", 0))
    )
    operands, n = [INTEGER] * 3, 6
    a, b, steps, outs = np.zeros(n, int), np.ones(n, int), np.arange(n), [np.empty(n, int), np.empty(n, int)]
    kernel = elementwise(operands, [fibonacci], [("result", 0, 0), ("result", 0, 1)], 1)
    assert run(kernel, [a, b, steps], outs, [n]) == 0
    assert [out.tolist() for out in outs] == [[0, 1, 1, 2, 3, 5], [1, 1, 2, 3, 5, 8]]


def test_a_condition_ends_the_loop_behind_the_pass_that_makes_it_true(run):
    # s <- s * 2 until s > x
    body = (Statement("mul", (I0, of_float(2.0)), "float64"), Statement("gt", (("value", 0), I1), "bool"))
    doubling = ScalarRepeat(
        (I1, of_float(1.0), I0), ("float64", "float64"), body, (("value", 0),), ("value", 1)
    )
    x, steps = np.array([0.5, 7.0, 8.0, 1e9, 3.0]), np.array([10, 10, 10, 4, 0])
    found, done = np.empty(5), np.empty(5, bool)
    kernel = elementwise([FLOAT, INTEGER], [doubling], [("result", 0, 0), ("result", 0, 1)], 1)
    assert run(kernel, [x, steps], [found, done], [5]) == 0
    assert found.tolist() == [2, 8, 16, 16, 1]
    assert done.tolist() == [True, True, True, False, True]


def test_loops_within_each_other(run):
    outer = ScalarRepeat(
        (I1, of_float(1.0), I0, I1), ("float64", "float64", "int64"), (INNER,), (("result", 0, 0),)
    )
    x, steps, out = np.array([0.5, 0.25]), np.array([2, 3]), np.empty(2)
    assert run(elementwise([FLOAT, INTEGER], [outer], [("result", 0, 0)], 1), [x, steps], [out], [2]) == 0

    def reference(x, n):
        state = 1.0
        for _ in range(n):
            for _ in range(n):
                state = state * x + 1
        return state

    np.testing.assert_allclose(out, [reference(0.5, 2), reference(0.25, 3)])


INNER = ScalarRepeat((I2, I0, I1), ("float64", "float64"), POLYNOMIAL.body, (("value", 1),))


def test_a_reduction_sums_what_loops_compute(run):
    x, steps, out = np.linspace(-1, 1, 30), np.arange(30) % 7, np.empty(())
    kernel = reduction("sum", [FLOAT, INTEGER], [POLYNOMIAL], ("result", 0, 0), 1, (0,), "float64", "float64")
    assert run(kernel, [x, steps], [out], [30]) == 0
    np.testing.assert_allclose(out, sum(polynomial(*pair) for pair in zip(x, steps, strict=True)))


def test_a_power_within_a_loop_may_fail(run):
    power = ScalarRepeat(
        (I1, I0, I1), ("int64", "int64"), (Statement("pow", (I0, I1), "int64"),), (("value", 0),)
    )
    kernel = elementwise([INTEGER] * 2, [power], [("result", 0, 0)], 1)
    out = np.empty(1, int)
    assert run(kernel, [np.array([3]), np.array([2])], [out], [1]) == 0
    assert out.tolist() == [81]
    negative = ScalarRepeat(
        (I1, I0, I0), ("int64", "int64"), (Statement("pow", (I0, I1), "int64"),), (("value", 0),)
    )
    kernel = elementwise([INTEGER] * 2, [negative], [("result", 0, 0)], 1)
    assert run(kernel, [np.array([-3]), np.array([2])], [out], [1]) == NEGATIVE_POWER


@pytest.mark.parametrize("ref", [("value", 0), ("result", 0, 1), ("result", 1, 0), ("result", -1, 0)])
def test_a_result_that_there_is_not_is_refused(ref):
    with pytest.raises(InvalidKernel):
        elementwise([FLOAT, INTEGER], [POLYNOMIAL], [ref], 1)


def test_a_state_that_changes_its_dtype_is_refused():
    changing = ScalarRepeat((I1, I0), ("float64",), (Statement("gt", (I0, I0), "bool"),), (("value", 0),))
    with pytest.raises(InvalidKernel, match="dtype"):
        check_kernel(elementwise([FLOAT, INTEGER], [changing], [("result", 0, 0)], 1))


def looping(until):
    one = Number("one", "int64", (1).to_bytes(8, "little"))
    body = (Compute("next", "add", ("state", "i"), "int64"), Compute("stop", "gt", ("next", "one"), "bool"))
    loop = Loop("i", 0, 9, 1, body, (Carried("state", "one", "next"),), until)
    nodes = (one, loop, WriteElement(Place("y"), "state"))
    return Kernel((Pointer("y", "int64"),), nodes, (("output", 0),), "a test's")


def test_a_loop_that_may_end_early_is_another_kernel_and_is_printed_so():
    assert looping("stop").encoding() != looping("").encoding()
    assert "i1 0, i1 %" in print_kernel(looping("stop"), "k_x").text
    assert "select" not in print_kernel(looping(""), "k_x").text


@pytest.mark.parametrize("until", ["next", "state", "missing", "one"])
def test_a_condition_that_is_no_bool_of_the_loop_is_refused(until):
    with pytest.raises(InvalidKernel):
        check_kernel(looping(until))
