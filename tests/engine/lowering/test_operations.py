"""Every scalar operation on every dtype gives what numpy gives, special values included."""

from functools import partial

import numpy as np
import pytest
from scipy import special

from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.operations import (
    DTYPES,
    FLOATS,
    INTEGERS,
    OPERATIONS,
    SIGNATURES,
    SIGNED,
    UNSIGNED,
    check_operation,
)
from engine.lowering.statements import Statement
from engine.runtime.errors import InvalidKernel
from engine.runtime.kernel_interface import NEGATIVE_POWER, OK
from engine.scalar.special import SPECIAL_FUNCTIONS


def in_double(op: str, *arguments: np.ndarray) -> np.ndarray:
    """Return SciPy's function of the arguments as doubles, in their dtype."""
    return getattr(special, op)(*[x.astype("float64") for x in arguments]).astype(arguments[0].dtype)


UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "true_div": np.true_divide,
    "floor_div": np.floor_divide,
    "mod": np.mod,
    "neg": np.negative,
    "pow": np.power,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sqr": lambda x: np.multiply(x, x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "log1mexp": lambda x: np.where(x < -0.69, np.log1p(-np.exp(x)), np.log(-np.expm1(x))).astype(x.dtype),
    "abs": np.abs,
    "sign": np.sign,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "maximum_of_numbers": np.maximum,
    "minimum_of_numbers": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "neq": np.not_equal,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "invert": np.invert,
    "identity": np.positive,
    "isnan": np.isnan,
    "reciprocal": np.reciprocal,
    "isinf": np.isinf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda x: np.rint(x) if x.dtype.kind == "f" else x,
    "exp2": np.exp2,
    "log2": np.log2,
    "log10": np.log10,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "signbit": np.signbit,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "gamma": special.gamma,
    "gammaln": lambda x: np.where(x == 5e-324, -np.log(x), special.gammaln(x)),
    "psi": special.psi,
    "tri_gamma": lambda x: special.polygamma(1, x).astype(x.dtype),
    **{op: partial(in_double, op) for op in SPECIAL_FUNCTIONS},
}
OF_NUMBERS = ("maximum_of_numbers", "minimum_of_numbers")
INEXACT = set(
    "pow exp expm1 log log1p sin cos tanh sigmoid softplus log1mexp exp2 log2 log10 tan arcsin arccos arctan "
    "arctan2 sinh cosh arcsinh arccosh arctanh erf erfc gamma gammaln psi tri_gamma".split()
)

ABSOLUTE = {"psi": 2e-15}
"""Errors near a zero of the function that no float is equal to."""


def special_values(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([False, True])
    if dtype in UNSIGNED:
        most = np.iinfo(dtype).max
        return np.array([0, 1, 2, 3, 7, 40, most // 2, most // 2 + 1, most - 1, most], dtype)
    if dtype in SIGNED:
        limits = np.iinfo(dtype)
        return np.array([0, 1, -1, 2, -2, 3, 7, -7, 40, limits.max, limits.min, limits.min + 1], dtype=dtype)
    limits = np.finfo(dtype)
    ordinary = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 7.5, -1000.0, 20.0, 1e-30, 33.4, -40.0]
    odd = [np.nan, np.inf, -np.inf, limits.max, limits.tiny, limits.smallest_subnormal]
    return np.array(ordinary + odd, dtype=dtype)


def kernel_of_all(dtype: str, arity: int):
    """Return one kernel that computes every operation of this arity on this dtype."""
    names = [op for op, s in SIGNATURES.items() if s.arity == arity and dtype in s.dtypes and op != "pow"]
    if arity == 2 and dtype in FLOATS:
        names.append("pow")
    refs = tuple(("input", i) for i in range(arity))
    body = [Statement(op, refs, "bool" if SIGNATURES[op].compares else dtype) for op in names]
    operands = [NestOperand(dtype, (False,)) for _ in range(arity)]
    return names, elementwise(operands, body, [("value", j) for j in range(len(body))], 1)


def expected_of(op: str, *arguments: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if arguments[0].dtype == bool:
            op = {"abs": "identity", "sqr": "identity"}.get(op, op)
            if op == "identity":
                return arguments[0]
        return UFUNCS[op](*arguments)


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_operation_gives_what_numpy_gives(run, dtype, arity):
    names, kernel = kernel_of_all(dtype, arity)
    values = special_values(dtype)
    grid = [axis.ravel() for axis in np.meshgrid(*[values] * arity)]
    outputs = [np.empty(grid[0].shape, s.dtype) for s in _results(names, dtype)]
    assert run(kernel, grid, outputs, grid[0].shape) == OK
    for op, found in zip(names, outputs, strict=True):
        expected = expected_of(op, *grid)
        assert found.dtype == expected.dtype, op
        if op in OF_NUMBERS:
            found = np.where(np.isnan(expected), np.nan, found)
        if op not in INEXACT or dtype not in FLOATS:
            np.testing.assert_array_equal(found, expected, err_msg=op)
            if dtype in FLOATS and op not in ("maximum", "minimum", *OF_NUMBERS):
                finite = ~np.isnan(expected)
                np.testing.assert_array_equal(
                    np.signbit(found)[finite], np.signbit(expected)[finite], err_msg=op
                )
        else:
            np.testing.assert_allclose(
                found,
                expected,
                rtol=1e-6 if dtype == "float32" else 1e-14,
                atol=ABSOLUTE.get(op, 0),
                err_msg=op,
            )


def _results(names, dtype):
    return [np.empty(0, "bool" if SIGNATURES[op].compares else dtype) for op in names]


def test_every_operation_is_compared_with_numpy():
    assert set(UFUNCS) == OPERATIONS - {"cast", "where"}


@pytest.mark.parametrize("source", DTYPES)
def test_a_cast_gives_what_numpy_gives(run, source):
    body = [Statement("cast", (("input", 0),), target) for target in DTYPES]
    kernel = elementwise([NestOperand(source, (False,))], body, [("value", j) for j in range(len(DTYPES))], 1)
    values = special_values(source)
    if source in FLOATS:
        near = [2147483647.5, -2147483648.5, 2.0**31, 2.0**63, -(2.0**63), 1e10, 0.9, -0.9]
        values = np.concatenate([values, np.array(near, dtype=source)])
    outputs = [np.empty(values.shape, target) for target in DTYPES]
    assert run(kernel, [values], outputs, values.shape) == OK
    for target, found in zip(DTYPES, outputs, strict=True):
        np.testing.assert_array_equal(found, c_cast(values, target), err_msg=target)


def c_cast(values: np.ndarray, target: str) -> np.ndarray:
    """Return numpy's cast and, where C leaves it open, what operations.py says."""
    if values.dtype.kind != "f" or target not in INTEGERS:
        return values.astype(target)
    if target == "uint64":
        is_large = values >= 2.0**63
        large = to_signed(values - values.dtype.type(2.0**63), "int64") ^ np.int64(-(2**63))
        return np.where(is_large, large, to_signed(values, "int64")).astype(target)
    through = "int64" if target in ("int64", "uint32") else "int32"
    return to_signed(values, through).astype(target)


def to_signed(values: np.ndarray, target: str) -> np.ndarray:
    """Return the floats truncated, and the smallest integer for those that `target` cannot hold."""
    limits = np.iinfo(target)
    with np.errstate(all="ignore"):
        whole = np.trunc(values.astype("float64"))
        fits = (whole >= float(limits.min)) & (whole < -float(limits.min))
        return np.where(fits, values.astype(target), limits.min)


@pytest.mark.parametrize("order", [("int64", "uint64"), ("uint64", "int64")])
def test_an_int64_and_a_uint64_compare_as_the_numbers_they_are(run, order):
    grid = [axis.ravel() for axis in np.meshgrid(*map(special_values, order))]
    names = ["lt", "le", "gt", "ge", "eq", "neq"]
    body = [Statement(op, (("input", 0), ("input", 1)), "bool") for op in names]
    operands = [NestOperand(dtype, (False,)) for dtype in order]
    outputs = [np.empty(grid[0].shape, bool) for _ in names]
    kernel = elementwise(operands, body, [("value", j) for j in range(len(body))], 1)
    assert run(kernel, grid, outputs, grid[0].shape) == OK
    for op, found in zip(names, outputs, strict=True):
        expected = [UFUNCS[op](int(x), int(y)) for x, y in zip(*grid, strict=True)]
        np.testing.assert_array_equal(found, expected, err_msg=op)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers_wrap_as_numpys_do(run, dtype):
    kernel = power_kernel(dtype)
    bases, exponents = (
        a.ravel() for a in np.meshgrid(special_values(dtype), np.array([0, 1, 2, 3, 31, 64, 65], dtype))
    )
    found = np.empty(bases.shape, dtype)
    assert run(kernel, [bases, exponents], [found], bases.shape) == OK
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.power(bases, exponents))


@pytest.mark.parametrize("dtype", SIGNED)
def test_an_integer_to_a_negative_power_stops_the_kernel(run, dtype):
    bases, exponents = np.array([2, 1], dtype), np.array([3, -1], dtype)
    assert run(power_kernel(dtype), [bases, exponents], [np.empty(2, dtype)], (2,)) == NEGATIVE_POWER


def power_kernel(dtype):
    operands = [NestOperand(dtype, (False,))] * 2
    return elementwise(operands, [Statement("pow", (("input", 0), ("input", 1)), dtype)], [("value", 0)], 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_chooses_element_by_element(run, dtype):
    values = special_values(dtype)
    condition = np.arange(values.size) % 3 == 0
    operands = [NestOperand("bool", (False,)), NestOperand(dtype, (False,)), NestOperand(dtype, (False,))]
    body = [Statement("where", (("input", 0), ("input", 1), ("input", 2)), dtype)]
    found = np.empty(values.shape, dtype)
    inputs = [condition, values, values[::-1].copy()]
    assert run(elementwise(operands, body, [("value", 0)], 1), inputs, [found], values.shape) == OK
    np.testing.assert_array_equal(found, np.where(*inputs))


@pytest.mark.parametrize(
    "bits", ["7ff8000000000123", "8000000000000000", "fff0000000000000", "3ff0000000000001"]
)
def test_a_constant_keeps_its_bits(run, bits):
    value = int(bits, 16).to_bytes(8, "little")
    found = np.empty(3)
    assert run(elementwise([], [], [("constant", "float64", value)], 1), [], [found], (3,)) == OK
    assert found.tobytes() == value * 3


@pytest.mark.parametrize(
    ("op", "arguments", "result"),
    [
        ("sub", ("bool", "bool"), "bool"),
        ("true_div", ("int64", "int64"), "float64"),
        ("add", ("int32", "int64"), "int64"),
        ("add", ("float64", "float64"), "float32"),
        ("lt", ("float64", "float64"), "float64"),
        ("where", ("int64", "float64", "float64"), "float64"),
        ("exp", ("float64", "float64"), "float64"),
        ("zeta", ("float64",), "float64"),
        ("cast", ("float64",), "float16"),
    ],
)
def test_an_operation_refuses_dtypes_it_is_not_defined_for(op, arguments, result):
    with pytest.raises(InvalidKernel):
        check_operation(op, arguments, result)
