"""Quotients by a divisor that a loop repeats: those of a division, to the last bit."""

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.object_code.cpu import machine_levels
from engine.codegen.llvm.printer import print_kernel
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.statements import Statement
from tests.engine.codegen.llvm.calls_of_operations import calling

LEVELS = pytest.mark.parametrize("level", machine_levels())
LIMITS = np.finfo("float64")
SPECIAL = np.array(
    [0.0, 1.0, 3.0, 1 / 3, 1e-300, 1e300, np.inf, np.nan, LIMITS.tiny, LIMITS.max, LIMITS.smallest_subnormal]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL, [2.0**-1023, 1.5 * 2.0**-1030, 2.0**1023]])


def of_any_size(rng, count):
    """Return floats whose bits are random: all exponents are as likely."""
    return rng.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)


def bits(numbers):
    """Return the bits of `numbers`, of NaN always the same ones."""
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)


@LEVELS
def test_quotients_are_the_nearest_numbers(level):
    divide, rng = calling("true_div", "float64", level, last_is_repeated=True), np.random.default_rng(5)
    for divisor in [*SPECIAL, *of_any_size(rng, 200), *rng.normal(size=200)]:
        with np.errstate(all="ignore"):
            dividends = np.concatenate([SPECIAL, of_any_size(rng, 500), rng.normal(size=500) * divisor])
            due = dividends / divisor
        found = divide(dividends, np.array([divisor]))
        is_tiny = np.abs(due) < 2.0**-899
        np.testing.assert_array_equal(bits(found[~is_tiny]), bits(due[~is_tiny]), str(divisor))
        assert np.all(np.abs(bits(found[is_tiny]) - bits(due[is_tiny])) <= 2)


@LEVELS
def test_float32_is_divided(level):
    rng = np.random.default_rng(6)
    dividends, divisor = rng.normal(size=100).astype("float32"), np.array([0.7], "float32")
    divide = calling("true_div", "float32", level, last_is_repeated=True)
    np.testing.assert_array_equal(divide(dividends, divisor), dividends / divisor)


def test_many_quotients_leave_functions_inlined():
    operands = [NestOperand("float64", (False,)), NestOperand("float64", (True,))]
    statements = [Statement("exp", (("input", 0),), "float64")]
    statements += [Statement("true_div", (("value", n), ("input", 1)), "float64") for n in range(40)]
    kernel = elementwise(operands, statements, [("value", 40)], 1)
    text = print_kernel(kernel, "k").module("x86-64-v3")
    assert "attributes #0 = { alwaysinline }" in text


def test_a_divisor_of_an_outer_loop_serves_the_inner_one(kernels_once):
    m, v = pt.dmatrix(), pt.dvector()
    divided = engine.function([m, v], [m / v[:, None], m / v[None, :]])
    rng = np.random.default_rng(7)
    matrix, vector = rng.normal(size=(5, 5)), rng.normal(size=5)
    found = divided(matrix, vector)
    np.testing.assert_array_equal(found[0], matrix / vector[:, None])
    np.testing.assert_array_equal(found[1], matrix / vector)
