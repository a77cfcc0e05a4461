"""Powers beside mpmath, in every regime, and the values of C99 for special numbers."""

import math

import mpmath
import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.object_code.cpu import machine_levels
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.statements import Statement
from tests.engine.codegen.llvm.calls_of_operations import calling, calling_kernel, error_in_ulps

BOUNDS = {"float64": 1.5, "float32": 2.0}
"""The greatest errors in ulps, as the emitter's docstring has them."""
INFINITY, NAN = math.inf, math.nan
LEVELS = pytest.mark.parametrize("level", machine_levels())
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])

SPECIAL = [  # C99, F.9.4.4
    *((0.0, y, INFINITY) for y in (-1.0, -3.0, -2.0, -0.5, -1e30, -INFINITY)),
    *((-0.0, y, -INFINITY) for y in (-1.0, -3.0)),
    *((-0.0, y, INFINITY) for y in (-2.0, -0.5, -1e30, -INFINITY)),
    *((0.0, y, 0.0) for y in (1.0, 3.0, 2.0, 0.5, 1e-30, INFINITY)),
    *((-0.0, y, -0.0) for y in (1.0, 3.0)),
    *((-0.0, y, 0.0) for y in (2.0, 0.5, 1e30, INFINITY)),
    *((-1.0, y, 1.0) for y in (INFINITY, -INFINITY, 2.0, 1e30, 0.0)),
    *((-1.0, y, -1.0) for y in (1.0, -1.0, 3.0)),
    *((1.0, y, 1.0) for y in (NAN, INFINITY, -INFINITY, 0.0, -0.5, 1e30)),
    *((x, y, 1.0) for x in (NAN, 0.0, -0.0, INFINITY, -INFINITY, -2.5) for y in (0.0, -0.0)),
    *((x, y, NAN) for x in (-2.0, -0.5, -1.0, -1e-30) for y in (0.5, -0.5, 1.5, -2.5, 1e-30)),
    *((x, -INFINITY, INFINITY) for x in (0.5, -0.5, 1e-30, -0.0)),
    *((x, -INFINITY, 0.0) for x in (2.0, -2.0, -1.5, INFINITY, -INFINITY)),
    *((x, INFINITY, 0.0) for x in (0.5, -0.5, 1e-30, -0.0)),
    *((x, INFINITY, INFINITY) for x in (2.0, -2.0, -1.5, INFINITY, -INFINITY)),
    *((-INFINITY, y, -0.0) for y in (-1.0, -3.0)),
    *((-INFINITY, y, 0.0) for y in (-2.0, -0.5, -1e30)),
    *((-INFINITY, y, -INFINITY) for y in (1.0, 3.0)),
    *((-INFINITY, y, INFINITY) for y in (2.0, 0.5, 1e30)),
    *((INFINITY, y, 0.0) for y in (-1.0, -0.5, -1e30)),
    *((INFINITY, y, INFINITY) for y in (1.0, 0.5, 1e30)),
    *((NAN, y, NAN) for y in (1.0, -0.5, INFINITY, NAN)),
    *((x, NAN, NAN) for x in (0.0, -0.0, 2.0, -1.0, INFINITY, -INFINITY)),
]


def regimes(dtype):
    """Return bases and exponents: results of every size, bases near 1 and tiny ones."""
    rng, limits = np.random.default_rng(23), np.finfo(dtype)
    overflow, underflow = float(np.log(float(limits.max))), -float(np.log(float(limits.smallest_subnormal)))
    count = 250
    bases = [
        np.exp(rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-6, 0, count) * overflow),
        1 + rng.choice([-1, 1], count) * 10.0 ** rng.uniform(1 + np.log10(limits.eps), -0.4, count),
        rng.uniform(0.5, 2, count),
        limits.tiny * rng.uniform(1e-3, 4, count),
    ]
    bases = np.concatenate(bases).astype(dtype)
    bases = bases[(bases > 0) & (bases != 1)]
    logs = np.log(bases.astype(np.float64))
    wide, at_ends = (
        rng.uniform(-underflow * 1.02, overflow * 1.02, len(bases)),
        rng.choice([-underflow, -float(-np.log(float(limits.tiny))), overflow], len(bases))
        + rng.uniform(-1, 1, len(bases)),
    )
    small, whole = rng.normal(size=len(bases)), np.round(rng.uniform(-40, 40, len(bases)))
    exponents = np.concatenate([wide / logs, at_ends / logs, small, whole]).astype(dtype)
    return np.tile(bases, 4), exponents


@LEVELS
@DTYPES
def test_a_power_is_within_its_bound_in_every_regime(dtype, level):
    bases, exponents = regimes(dtype)
    found = calling("pow", dtype, level)(bases, exponents)
    with mpmath.workprec(200):
        errors = [
            error_in_ulps(value, mpmath.power(mpmath.mpf(float(x)), mpmath.mpf(float(y))), dtype)
            for x, y, value in zip(bases, exponents, found, strict=True)
        ]
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[dtype], (bases[worst], exponents[worst], found[worst])


@LEVELS
@DTYPES
def test_special_numbers_have_the_values_of_c99(dtype, level):
    x, y, expected = (np.array(column, dtype) for column in zip(*SPECIAL, strict=True))
    found = calling("pow", dtype, level)(x, y)
    np.testing.assert_array_equal(found, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@LEVELS
@DTYPES
def test_all_pairs_of_unusual_numbers_have_numpys_values(dtype, level):
    limits = np.finfo(dtype)
    largest_odd = 2.0 ** (limits.nmant + 1) - 1
    sizes = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        1e5,
        1 - float(limits.epsneg),
        1 + float(limits.eps),
        math.inf,
        math.nan,
    ]
    sizes += [largest_odd, largest_odd + 1, largest_odd / 2, float(limits.max), float(limits.tiny)]
    sizes += [float(limits.smallest_subnormal)]
    numbers = np.array([*sizes, *(-size for size in sizes)], dtype)
    x, y = (part.ravel().copy() for part in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    found = calling("pow", dtype, level)(x, y)
    np.testing.assert_allclose(found, expected, rtol=4 * limits.eps, atol=2 * limits.smallest_subnormal)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@LEVELS
@DTYPES
def test_a_pair_gives_the_same_bits_wherever_it_lies(dtype, level):
    bases, exponents = regimes(dtype)
    over_arrays, of_one = calling("pow", dtype, level), calling("pow", dtype, level, rank=0)
    expected = [of_one(bases[n : n + 1], exponents[n : n + 1])[0] for n in range(len(bases))]
    for start, stop in ((0, len(bases)), (1, len(bases) - 3), (5, 12)):
        found = over_arrays(bases[start:stop].copy(), exponents[start:stop].copy())
        np.testing.assert_array_equal(found, np.array(expected[start:stop], dtype))


@LEVELS
@DTYPES
def test_a_negative_base_has_the_power_of_its_size_with_the_sign_of_the_exponent(dtype, level):
    bases, exponents = regimes(dtype)
    exponents = np.round(exponents)
    power = calling("pow", dtype, level)
    sign = np.where(exponents % 2 == 0, 1, -1).astype(dtype)
    np.testing.assert_array_equal(power(-bases, exponents), power(bases, exponents) * sign)


@LEVELS
@DTYPES
def test_unusual_neighbours_change_no_bit(dtype, level):
    bases, exponents = regimes(dtype)
    power = calling("pow", dtype, level)
    alone = power(bases, exponents)
    unusual = [(x, y) for x, y, _ in SPECIAL] + [(-2.0, 3.0), (-1.5, -2.0), (1e30, 1e30), (1e-30, 1e30)]
    among = np.resize(np.array(unusual, dtype), (len(bases), 2))
    x, y = (np.stack([numbers, among[:, k]], axis=1).ravel() for k, numbers in enumerate((bases, exponents)))
    np.testing.assert_array_equal(power(x, y)[::2], alone)


@LEVELS
def test_floats_beside_doubles_have_the_same_powers(level):
    bases, exponents = regimes("float32")
    operands = [NestOperand("float32", (False,))] * 2
    statements = [
        Statement("pow", (("input", 0), ("input", 1)), "float32"),
        Statement("cast", (("value", 0),), "float64"),
    ]
    wide = calling_kernel(elementwise(operands, statements, [("value", 1)], 1), "k_wide_powers", level)
    expected = calling("pow", "float32", level)(bases, exponents)
    np.testing.assert_array_equal(wide(bases, exponents, result="float64"), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loop_with_a_constant_exponent_calls_the_variant_for_vectors(dtype, capfd):
    x = pt.vector("x", dtype=dtype)
    exponent = pt.constant(2.5, dtype=dtype)
    f = engine.function([x], [x**exponent, x**exponent + x], mode=engine.Mode())
    points = np.linspace(0.1, 9, 40, dtype=dtype)
    np.testing.assert_allclose(f(points)[0], points**2.5, rtol=2e-6 if dtype == "float32" else 1e-15)
    assert "not vectorized" not in capfd.readouterr().err  # LLVM says so of a loop of a given width
