"""Tests of rewriting that differ for a reason (decision 0142)."""

from __future__ import annotations

from explanations.difference import difference
from pytensor_tests.explained import ExplainedDifference

MATH = "tests/tensor/rewriting/test_math.py::"
BASIC = "tests/tensor/rewriting/test_basic.py::"
SUBTENSOR = "tests/tensor/rewriting/test_subtensor.py::"

LAST_WRITE = "a place that is written twice has the last value"
NAN = "x * 0 is NaN where x is infinite, so it stays"
SIGNED_ZERO = "adding 0.0 makes 0.0 of -0.0, so it stays"

WRONG = {
    f"{MATH}test_local_zero_div*": "0 / x is NaN where x is 0 or NaN, as in numpy; it is not always 0",
    f"{MATH}TestIntDivByOne::test[23]": "y // 1 of floats is floor(y), as in numpy; it is not y",
    f"{MATH}TestLocalSwitchSink::test_local_*_switch_sink": NAN,
    f"{BASIC}TestLocalSwitchSink::test_local_mul_switch_sink": NAN,
    f"{MATH}TestExpLog::test_exp_log1mexp*": "1 - exp(x) has no digits left where x is next to 0",
    f"{MATH}test_sign_reciprocal": "the sign of 1 / 0 is 1, and that of 0 is 0",
    f"{MATH}test_sign_div_constant?*_num?": "the sign of c / 0 is that of infinity, and that of 0 is 0",
    f"{MATH}TestFuncInverse::test": "cosh(arccosh(x)) is NaN below 1, and not x",
    f"{SUBTENSOR}TestReadOfWriteSameIndices::test_set?float32-float32?": LAST_WRITE,
    f"{SUBTENSOR}TestReadOfWriteSameIndices::test_set?float64-*": LAST_WRITE,
    f"{SUBTENSOR}TestSubtensorAllocRewrites::test_*incsubtensor*_allocs0t": SIGNED_ZERO,
    f"{SUBTENSOR}TestWriteOfWriteSameIndices::test_inc_of_inc_basic_slice": "a + b may overflow alone",
    f"{SUBTENSOR}test_local_join_subtensors?0-<lambda>-2_[12]?": "x[1:k] and x[k:] are not x[1:] if k is 0",
}
"""Tests for rewrites of PyTensor's that give other numbers than what was written."""

INTERNAL: tuple[ExplainedDifference, ...] = ()

EXPLAINED: tuple[ExplainedDifference, ...] = tuple(
    difference(tests, "", reason) for tests, reason in WRONG.items()
)
