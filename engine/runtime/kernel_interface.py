"""The interface between kernels and their callers: the dtypes of elements, and the statuses that a
kernel returns."""

from __future__ import annotations

ITEM_SIZES = {
    "float64": 8,
    "float32": 4,
    "int64": 8,
    "int32": 4,
    "bool": 1,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "complex64": 8,
    "complex128": 16,
    "float16": 2,
}
"""The bytes of an element of each dtype."""

MOVED = ("complex64", "complex128", "float16")
"""The dtypes whose elements kernels only move."""

COMPUTED = tuple(dtype for dtype in ITEM_SIZES if dtype not in MOVED)
"""The dtypes that kernels compute with."""

MANY = 2**20
"""The fewest elements of a call for which other threads pay (tools/bench/threads.py)."""

OK = 0
INDEX_OUT_OF_RANGE = 1
"""Details: the position in the index, the index found there, the size of the axis."""
NEGATIVE_POWER = 2
"""An integer was raised to a negative integer power."""
EMPTY_REDUCTION = 3
"""The maximum or minimum of no elements was asked for."""
NOT_POSITIVE_DEFINITE = 4
"""Details: the order of the leading minor that is not positive."""
TOO_LONG = 5
"""An external (BLAS, LAPACK) cannot count a length of 2**31 or more. Details: the length."""
FUNCTION_RAISED = 6
"""A function of a user Op raised an exception."""
