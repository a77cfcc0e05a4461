"""The calls of functions that compute with elements, reduce, sort and choose them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from examples import (
    AXES,
    BOOL,
    COMPLEX,
    DTYPES,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REAL,
    EagerCall,
    examples,
    numbers,
    pairs,
    promotable,
    specials,
    weak_numbers,
    wide,
)

UNARY = {
    DTYPES: "",
    NUMERIC: "abs conj isfinite isinf isnan negative positive real round sign square",
    REAL: "ceil floor trunc",
    INEXACT: "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal "
    "sin sinh sqrt tan tanh",
    FLOATS: "signbit",
    COMPLEX: "imag",
    (*BOOL, *INTEGERS): "bitwise_invert",
    BOOL: "logical_not",
}
BINARY = {
    DTYPES: "equal not_equal",
    NUMERIC: "add multiply pow subtract",
    REAL: "floor_divide greater greater_equal less less_equal maximum minimum remainder",
    INEXACT: "divide",
    FLOATS: "atan2 copysign hypot logaddexp nextafter",
    INTEGERS: "bitwise_left_shift bitwise_right_shift",
    (*BOOL, *INTEGERS): "bitwise_and bitwise_or bitwise_xor",
    BOOL: "logical_and logical_or logical_xor",
}
"""The functions by the dtypes that they take."""


def elementwise() -> Iterator[EagerCall]:
    """Yield the calls of functions of one and of two numbers."""
    for dtypes, names in UNARY.items():
        for name in names.split():
            yield from unary(name, dtypes)
    for dtypes, names in BINARY.items():
        for name in names.split():
            yield from binary(name, dtypes)


def unary(name: str, dtypes: tuple[str, ...]) -> Iterator[EagerCall]:
    """Yield the calls of a function of one number."""
    for dtype in dtypes:
        for x in examples(dtype):
            yield EagerCall(name, (x,), {}, (dtype,))


def binary(name: str, dtypes: tuple[str, ...]) -> Iterator[EagerCall]:
    """Yield the calls of a function of two numbers, of which one may be a Python number."""
    for first, second in promotable(dtypes):
        for x, y in pairs(first, second):
            y = np.asarray(np.abs(y) % 70, second) if "shift" in name else y
            yield EagerCall(name, (x, y), {}, (first, second))
        if first == second:
            for weak in weak_numbers(first):
                yield EagerCall(name, (specials(first), weak), {}, (first,))
                if "shift" not in name:
                    yield EagerCall(name, (weak, numbers(first, (2, 3))), {}, (first,))


def statistics() -> Iterator[EagerCall]:
    """Yield the calls of reductions, and of sums and products up to each element."""
    for name in ("sum", "prod"):
        for dtype in NUMERIC:
            wider = [
                {"dtype": np.dtype(to)} for to in ("float64", "complex128", "int64") if _keeps(dtype, to)
            ]
            yield from reductions(name, (dtype,), (*AXES, *wider))
    for name in ("all", "any"):
        yield from reductions(name, DTYPES, AXES)
    for name in ("max", "min"):
        yield from reductions(name, REAL, AXES)
    yield from reductions("mean", INEXACT, AXES)
    yield from reductions("count_nonzero", DTYPES, AXES)
    for name in ("std", "var"):
        yield from reductions(name, FLOATS, (*AXES, {"correction": 1.0}, {"correction": 0.5, "axis": 0}))
    for name in ("argmax", "argmin"):
        yield from reductions(
            name, REAL, tuple(each for each in AXES if not isinstance(each.get("axis"), tuple))
        )
    for name, dtype in product(("cumulative_sum", "cumulative_prod"), NUMERIC):
        options = (
            {"axis": -1},
            {"axis": 0, "include_initial": True},
            {"axis": -1, "dtype": np.dtype(wide(dtype))},
        )
        yield from reductions(name, (dtype,), options)
        yield EagerCall(name, (numbers(dtype, (4,)),), {}, (dtype,))


def reductions(
    name: str, dtypes: tuple[str, ...], options: tuple[dict[str, Any], ...]
) -> Iterator[EagerCall]:
    """Yield the calls with each of `options` that fits the array."""
    for dtype, given in product(dtypes, options):
        for x in examples(dtype):
            axis = given.get("axis")
            if x.ndim >= (len(axis) if isinstance(axis, tuple) else 0 if axis is None else 1):
                yield EagerCall(name, (x,), given, (dtype,))


def _keeps(dtype: str, to: str) -> bool:
    return np.can_cast(dtype, to)


def choosing() -> Iterator[EagerCall]:
    """Yield the calls of functions that search, sort and choose."""
    for dtype in REAL:
        for x in examples(dtype, ((0,), (1,), (5,), (2, 3), (0, 3), (2, 1, 3))):
            for name, axis, down in product(("sort", "argsort"), (-1, 0), (False, True)):
                yield EagerCall(name, (x,), {"axis": axis, "descending": down}, (dtype,))
            yield EagerCall("sort", (x,), {"stable": False}, (dtype,))
        ordered, sought = np.sort(specials(dtype)), specials(dtype)
        for side in ("left", "right"):
            yield EagerCall("searchsorted", (ordered, sought), {"side": side}, (dtype,))
            yield EagerCall("searchsorted", (numbers(dtype, (0,)), sought), {"side": side}, (dtype,))
        x = numbers(dtype, (5,))
        yield EagerCall("searchsorted", (x, numbers(dtype, (2, 2), 3)), {"sorter": np.argsort(x)}, (dtype,))
        yield EagerCall("searchsorted", (ordered, 2), {}, (dtype,))
    for dtype in DTYPES:
        for x in examples(dtype):
            for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"):
                yield EagerCall(name, (x,), {}, (dtype,))
        for axis, kind in product((0, 1, -1), ("int64", "int8", "uint64")):
            at = np.array([1, 0, 1], kind)
            yield EagerCall("take", (numbers(dtype, (2, 3)), at), {"axis": axis}, (dtype, kind))
            yield EagerCall(
                "take_along_axis", (numbers(dtype, (2, 3)), at[:2, None]), {"axis": -1}, (dtype, kind)
            )
        yield EagerCall("take", (numbers(dtype, (4,)), np.array([-1, 3])), {}, (dtype,))
        yield EagerCall(
            "take_along_axis", (numbers(dtype, (2, 3)), np.array([[1, 0, -1]])), {"axis": 0}, (dtype,)
        )
    for first, second in promotable(DTYPES):
        for condition in (np.array(True), np.array([[True], [False]])):
            yield EagerCall(
                "where", (condition, numbers(first, (3,)), numbers(second, (2, 1), 1)), {}, (first, second)
            )
    for dtype in DTYPES:
        for weak in weak_numbers(dtype):
            yield EagerCall("where", (specials(dtype) == 1, specials(dtype), weak), {}, (dtype,))
    for first, second in promotable(INTEGERS):
        for x, y in pairs(first, second):
            yield EagerCall("isin", (x, y), {}, (first, second))
    for first, second in promotable(REAL):
        yield EagerCall("clip", (numbers(first, (2, 3)), numbers(second, (3,), 1), None), {}, (first, second))
        yield EagerCall("clip", (numbers(first, (2, 1)), None, numbers(second, (3,), 1)), {}, (first, second))
    for dtype in REAL:
        for low, high in ((1, 3), (None, 2), (2, None), (None, None), (1, np.array(3, dtype))):
            yield EagerCall("clip", (specials(dtype), low, high), {}, (dtype,))
