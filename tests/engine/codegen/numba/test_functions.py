"""User functions as operations of kernels: any dtype, with all that they call, deterministic, or refused."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from cachegraph.object_code.elf import read_symbols
from engine.codegen.compile import compile_kernel
from engine.errors import FunctionRefused
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.statements import Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import FUNCTION_RAISED, OK
from engine.runtime.target import process_level
from engine.scalar.embedded import embedded
from engine.scalar.op import ScalarOp

ROOT = Path(__file__).resolve().parents[4]
FLAT = NestOperand("float64", (False,))


class Given(ScalarOp):
    """An Op computed by the function that it is made with."""

    __props__ = ("function",)

    def __init__(self, function, nin=1):
        self.function, self.nin, self.name = function, nin, "given"

    def _signature(self, dtypes):
        return dtypes, dtypes[0]

    def numba_function(self, node):
        return self.function


def statement(function, *dtypes, result=None):
    op = embedded(Given(function, len(dtypes)), dtypes, result or dtypes[0])
    return Statement(op, tuple(("input", n) for n in range(len(dtypes))), result or dtypes[0])


def kernel_of(function, *dtypes, result=None):
    operands = [NestOperand(dtype, (False,)) for dtype in dtypes]
    return elementwise(operands, [statement(function, *dtypes, result=result)], [("value", 0)], 1)


def logistic(x):
    return 1 / (1 + math.exp(-x))


@numba.njit
def clipped(x, low):
    return low if x < low else x


@numba.njit(fastmath=True)
def quick(x):
    total = 0.0
    for n in range(8):
        total += clipped(x * n, 0.5)
    return total


TABLE = np.array([0.5, 2.0, 8.0])


def looked_up(x):
    found = 0.0
    for n in range(len(TABLE)):
        if x > n:
            found = TABLE[n]
    return found


def scaled_by(number):
    return lambda x: x * number


X = np.linspace(-3, 3, 13)


@pytest.mark.parametrize(
    ("function", "due"),
    [
        (logistic, 1 / (1 + np.exp(-X))),
        (quick, sum(np.maximum(X * n, 0.5) for n in range(8))),
        (looked_up, np.select([X > 2, X > 1, X > 0], [8.0, 2.0, 0.5], 0.0)),
        (scaled_by(2.5), X * 2.5),
        (numba.njit(scaled_by(0.5)), X * 0.5),
        (lambda x: 3, np.full(13, 3.0)),
    ],
)
def test_functions_with_calls_loops_tables_and_captured_numbers(run, function, due):
    found = np.empty(13)
    assert run(kernel_of(function, "float64"), [X], [found], (13,)) == OK
    np.testing.assert_allclose(found, due, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_every_dtype_is_passed_and_given_back(run, dtype):
    values = np.array([0, 1, 1, 0, 1]).astype(dtype)
    found = np.empty(5, dtype)
    assert (
        run(
            kernel_of(lambda x, y: x if x > y else y, dtype, dtype),
            [values, values[::-1].copy()],
            [found],
            (5,),
        )
        == OK
    )
    np.testing.assert_array_equal(found, np.maximum(values, values[::-1]))


def test_a_result_of_a_lesser_kind_becomes_what_is_due(run):
    found = np.empty(13)
    assert run(kernel_of(lambda x: x > 0, "float64"), [X], [found], (13,)) == OK
    np.testing.assert_array_equal(found, (X > 0) * 1.0)
    whole = np.empty(13, "bool")
    assert run(kernel_of(lambda x: x > 0, "float64", result="bool"), [X], [whole], (13,)) == OK
    np.testing.assert_array_equal(whole, X > 0)


def test_an_exception_ends_the_kernel_and_division_by_0_is_none_in_a_plain_function(run):
    def careful(x):
        if x > 2:
            raise ValueError("too large")
        return 1 / x

    found = np.empty(3)
    assert run(kernel_of(careful, "float64"), [np.array([1.0, 0.0, 2.0])], [found], (3,)) == OK
    np.testing.assert_array_equal(found, [1.0, np.inf, 0.5])
    assert run(kernel_of(careful, "float64"), [np.array([1.0, 3.0, 2.0])], [found], (3,)) == FUNCTION_RAISED
    strict = kernel_of(numba.njit(lambda x: 1 / x), "float64")
    assert run(strict, [np.array([1.0, 0.0, 2.0])], [found], (3,)) == FUNCTION_RAISED


def test_a_reduction_has_functions_in_its_loop(run):
    body = [statement(logistic, "float64")]
    kernel = reduction(
        "sum", [NestOperand("float64", (False, False))], body, ("value", 0), 2, (1,), "float64", "float64"
    )
    values, found = np.random.default_rng(1).normal(size=(3, 50)), np.empty(3)
    assert run(kernel, [values], [found], (3, 50)) == OK
    np.testing.assert_allclose(found, (1 / (1 + np.exp(-values))).sum(1), rtol=1e-13)


def test_functions_of_one_name_are_told_apart_in_one_kernel(run):
    def make(number):
        @numba.njit
        def inner(x):
            return x + number

        def outer(x):
            return inner(x) * 2

        return outer

    body = [statement(make(n), "float64") for n in (1, 2)]
    found = np.empty(13), np.empty(13)
    assert run(elementwise([FLAT], body, [("value", 0), ("value", 1)], 1), [X], found, (13,)) == OK
    np.testing.assert_allclose(found, [(X + 1) * 2, (X + 2) * 2])


def test_object_code_shows_nothing_of_a_function_and_is_the_same_in_every_process():
    program = (
        "import sys, hashlib; from tests.engine.codegen.numba.test_functions import *\n"
        "numba.njit(lambda x: x)(1)\n"
        * 2
        + "code = compile_kernel(kernel_of(quick, 'float64'), 'k_quick', process_level())\n"
        "print(hashlib.sha256(code).hexdigest())"
    )
    digests = set()
    for lines in (program, program.replace("numba.njit(lambda x: x)(1)\n", "")):
        done = subprocess.run(
            [sys.executable, "-c", lines],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
    code = compile_kernel(kernel_of(quick, "float64"), "k_quick", process_level())
    assert read_symbols(code).defined == {"k_quick"}


def test_what_the_key_says_changes_with_code_options_captured_values_and_dtypes():
    one, other = (lambda x: x + 1), (lambda x: x + 2)
    functions = [one, other, numba.njit(one), numba.njit(fastmath=True)(one), scaled_by(1.0), scaled_by(2.0)]
    keys = {kernel_of(function, "float64").encoding() for function in functions}
    assert len(keys) == len(functions)
    assert kernel_of(one, "float32").encoding() not in keys
    assert kernel_of(lambda x: x + 1, "float64").encoding() in keys


def test_functions_that_are_not_fit_for_kernels_are_refused():
    large, labs = np.ones(200_000), ctypes.CDLL(None).labs
    labs.argtypes, labs.restype = [ctypes.c_long], ctypes.c_long

    def allocates(x):
        return np.full(3, x).sum() + x

    def calls_the_runtime(x):
        return math.gamma(x)

    def is_not_compiled(x):
        return open(str(x))

    def gives_no_number(x):
        return (x, x)

    def gives_another_kind(x):
        return x + 1j

    def reads_large_data(x):
        return x + large[3]

    for function, found in (
        (allocates, "NRT_"),
        (calls_the_runtime, "numba_gamma"),
        (is_not_compiled, "TypingError"),
        (gives_no_number, "instead of float64"),
        (gives_another_kind, "complex128 instead of float64"),
        (reads_large_data, "large arrays"),
    ):
        with pytest.raises(FunctionRefused, match=found):
            compile_kernel(kernel_of(function, "float64"), "k_refused", process_level())
    with pytest.raises(FunctionRefused, match="float64 instead of int64"):
        compile_kernel(kernel_of(lambda x: x * 0.5, "int64"), "k_refused", process_level())


def test_an_op_that_gives_something_else_is_refused():
    with pytest.raises(TypeError, match=r"numba_function\(\) gave a int; return a Python function"):
        embedded(Given(3), ("float64",), "float64")
    with pytest.raises(FunctionRefused, match="none for these types"):
        embedded(Given(None), ("float64",), "float64")
    symbol = numba.types.ExternalFunction("labs", numba.types.int64(numba.types.int64))
    with pytest.raises(FunctionRefused, match="cannot fingerprint"):
        embedded(Given(lambda x: symbol(x)), ("int64",), "int64")


def test_a_function_of_other_dtypes_than_it_was_made_for_is_no_kernel():
    body = statement(logistic, "float32")
    with pytest.raises(InvalidKernel, match="given"):
        compile_kernel(elementwise([FLAT], [body], [("value", 0)], 1), "k_wrong", process_level())
