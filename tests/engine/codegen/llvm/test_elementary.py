"""Elementary functions beside mpmath, in every regime: within their bounds, the same bits everywhere."""

import math

import mpmath
import numpy as np
import pytest

from cachegraph.object_code.cpu import machine_levels
from engine.codegen.llvm.elementary.library import ELEMENTARY
from tests.engine.codegen.llvm.calls_of_operations import calling, error_in_ulps

BOUNDS = {
    "arctan": 2.0,
    "cos": 1.5,
    "cosh": 2.5,
    "erf": 3.0,
    "erfc": 6.0,
    "exp": 1.5,
    "exp2": 1.5,
    "expm1": 2.5,
    "log": 1.0,
    "log10": 2.0,
    "log1mexp": 2.5,
    "log1p": 1.0,
    "log2": 2.0,
    "sigmoid": 3.0,
    "sin": 1.5,
    "sinh": 3.0,
    "softplus": 2.0,
    "tan": 3.0,
    "tanh": 3.0,
}
"""The greatest errors in ulps, as the emitters' docstrings have them."""
EXACT = {
    "arctan": mpmath.atan,
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log1mexp": lambda x: mpmath.log(-mpmath.expm1(x)) if x > -1 else mpmath.log1p(-mpmath.exp(x)),
    "softplus": lambda x: max(x, 0) + mpmath.log1p(mpmath.exp(-min(abs(x), 2000))),
}
LOGARITHMS = ("log", "log2", "log10")
CASES = [
    (op, dtype, level)
    for op in sorted(BOUNDS)
    for dtype in ("float64", "float32")
    for level in machine_levels()
]


def regimes(op, dtype):
    """Return numbers of every size, dense where functions turn, overflow, underflow or vanish."""
    rng, limits = np.random.default_rng(17), np.finfo(dtype)
    overflow = float(np.log(float(limits.max)))
    underflow = -float(np.log(float(limits.smallest_subnormal)))
    count = 150
    low, high = np.log10(float(limits.smallest_subnormal)), np.log10(float(limits.max))
    sizes = 10.0 ** rng.uniform(low, high - 1e-3, count)
    parts = [
        np.concatenate([sizes, -sizes]),
        rng.normal(size=count),
        rng.uniform(-30, 30, count),
        rng.uniform(-underflow - 2, overflow + 2, 2 * count),
        overflow + rng.uniform(-1, 1, count),
        -underflow + rng.uniform(-1, 1, count),
        rng.uniform(-underflow, -float(-np.log(float(limits.tiny))), count),  # subnormal results
        rng.uniform(limits.minexp - limits.nmant - 1, limits.maxexp + 1, count),
        1 + 10.0 ** rng.uniform(-8, 0, count) * rng.choice([-1, 1], count),
        -1 + 10.0 ** rng.uniform(-8, 0, count),
        rng.uniform(0.4, 1.5, count),
        rng.uniform(0.5, math.sqrt(underflow) + 0.1, 2 * count),
        limits.tiny * rng.uniform(0, 4, count),
        np.round(rng.uniform(-1e6, 1e6, count)) * (math.pi / 2),  # zeros and poles
        (1.6e6 if dtype == "float64" else 2e5)
        * rng.uniform(0.99, 1.01, count),  # from here on libm computes sines
    ]
    with np.errstate(over="ignore"):
        numbers = np.concatenate(parts).astype(dtype)
    numbers = numbers[np.isfinite(numbers)]
    if op in LOGARITHMS:
        return np.abs(numbers[numbers != 0])
    if op == "log1mexp":
        return numbers[numbers < 0]
    return numbers[numbers > -1] if op == "log1p" else numbers


def exact(op, x):
    """Return the function's value in 140 bits, of which saturated ones need not be computed."""
    if op in ("exp", "expm1", "sinh", "cosh", "sigmoid", "tanh", "erf", "erfc", "exp2", "log1mexp"):
        x = min(max(x, -1300.0), 1300.0)
        if op in ("erf", "erfc"):
            x = min(max(x, -40.0), 40.0)
    return EXACT.get(op, getattr(mpmath, op, None))(mpmath.mpf(x))


@pytest.mark.parametrize(("op", "dtype", "level"), CASES)
def test_a_function_is_within_its_bound_in_every_regime(op, dtype, level):
    numbers = regimes(op, dtype)
    found = calling(op, dtype, level)(numbers)
    with mpmath.workprec(140):
        errors = [
            error_in_ulps(value, exact(op, float(x)), dtype) for x, value in zip(numbers, found, strict=True)
        ]
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[op], (numbers[worst], found[worst])


@pytest.mark.parametrize(("op", "dtype", "level"), CASES)
def test_a_number_gives_the_same_bits_wherever_it_lies(op, dtype, level):
    numbers = np.concatenate([regimes(op, dtype), np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)])
    over_arrays, of_one = calling(op, dtype, level), calling(op, dtype, level, rank=0)
    expected = np.array([of_one(numbers[n : n + 1])[0] for n in range(len(numbers))], dtype)
    for start in (0, 1, 5):
        for stop in (len(numbers), len(numbers) - 3, start + 7):
            found = over_arrays(numbers[start:stop].copy())
            wanted = expected[start:stop]
            np.testing.assert_array_equal(found, wanted)
            is_number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


@pytest.mark.parametrize(
    ("op", "of_minus_infinity", "of_infinity", "of_minus_zero"),
    [
        ("arctan", -math.pi / 2, math.pi / 2, -0.0),
        ("cos", math.nan, math.nan, 1.0),
        ("cosh", math.inf, math.inf, 1.0),
        ("erf", -1.0, 1.0, -0.0),
        ("erfc", 2.0, 0.0, 1.0),
        ("exp", 0.0, math.inf, 1.0),
        ("exp2", 0.0, math.inf, 1.0),
        ("expm1", -1.0, math.inf, -0.0),
        ("log", math.nan, math.inf, -math.inf),
        ("log10", math.nan, math.inf, -math.inf),
        ("log1mexp", 0.0, math.nan, -math.inf),
        ("log1p", math.nan, math.inf, -0.0),
        ("log2", math.nan, math.inf, -math.inf),
        ("sigmoid", 0.0, 1.0, 0.5),
        ("sin", math.nan, math.nan, -0.0),
        ("sinh", -math.inf, math.inf, -0.0),
        ("softplus", 0.0, math.inf, math.log(2.0)),
        ("tan", math.nan, math.nan, -0.0),
        ("tanh", -1.0, 1.0, -0.0),
    ],
)
@pytest.mark.parametrize("level", machine_levels())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_numbers_have_their_values(op, of_minus_infinity, of_infinity, of_minus_zero, dtype, level):
    payload = np.array([0x7FF8000000000ABC], np.uint64).view(np.float64)[0]
    numbers = np.array([-np.inf, np.inf, -0.0, np.nan, -np.nan, payload], dtype)
    found = calling(op, dtype, level)(numbers)
    expected = np.array([of_minus_infinity, of_infinity, of_minus_zero], dtype)
    np.testing.assert_array_equal(found[:3], expected)
    np.testing.assert_array_equal(np.signbit(found[:3])[expected == 0], np.signbit(expected)[expected == 0])
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize("level", machine_levels())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_logarithm_is_infinite_at_its_pole_and_no_number_below(dtype, level):
    tiny = -np.finfo(dtype).smallest_subnormal
    for op, pole in (("log", 0.0), ("log2", 0.0), ("log10", 0.0), ("log1p", -1.0)):
        below = np.nextafter(np.array(pole, dtype), np.array(-np.inf, dtype))
        found = calling(op, dtype, level)(np.array([pole, below, -3.0], dtype))
        assert found[0] == -np.inf, op
        assert np.isnan(found[1:]).all(), op
    assert np.isnan(calling("log", dtype, level)(np.array([tiny], dtype)))[0]


@pytest.mark.parametrize("level", machine_levels())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_powers_of_two_are_exact(dtype, level):
    limits = np.finfo(dtype)
    exponents = np.arange(limits.minexp - limits.nmant, limits.maxexp, dtype=dtype)
    powers = np.ldexp(np.ones_like(exponents), exponents.astype(np.int32))
    np.testing.assert_array_equal(calling("exp2", dtype, level)(exponents), powers)
    np.testing.assert_array_equal(calling("log2", dtype, level)(powers), exponents)


def test_every_function_has_a_bound():
    assert set(BOUNDS) == ELEMENTARY - {"pow"}  # see test_power.py
