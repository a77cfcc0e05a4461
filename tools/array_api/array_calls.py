"""The calls of functions that make and rearrange arrays, and of those on dtypes and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from examples import (
    COMPLEX,
    DTYPES,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REAL,
    Array,
    EagerCall,
    examples,
    numbers,
    promotable,
)


def arranging() -> Iterator[EagerCall]:
    """Yield the calls of functions that rearrange elements."""
    for dtype in DTYPES:
        x, matrix, row = (numbers(dtype, shape) for shape in ((2, 3, 4), (2, 3), (5,)))
        empty, number = numbers(dtype, (0, 3)), numbers(dtype, ())
        listed: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("broadcast_to", (row, (3, 5)), {}),
            ("broadcast_to", (number, (2, 0)), {}),
            ("broadcast_arrays", (matrix[:, :1], row, number), {}),
            ("concat", ([matrix, matrix],), {"axis": -1}),
            ("concat", ([matrix, empty],), {"axis": 0}),
            ("concat", ([matrix, row, number[None]],), {"axis": None}),
            ("expand_dims", (matrix,), {"axis": -1}),
            ("expand_dims", (matrix,), {"axis": (0, 2)}),
            ("flip", (x,), {}),
            ("flip", (x,), {"axis": (0, -1)}),
            ("flip", (number,), {}),
            ("moveaxis", (x, 0, -1), {}),
            ("moveaxis", (x, (0, 1), (-1, 0)), {}),
            ("permute_dims", (x, (2, 0, 1)), {}),
            ("repeat", (matrix, 2), {}),
            ("repeat", (matrix, np.array([1, 0, 2])), {"axis": 1}),
            ("repeat", (row, np.array(3)), {}),
            ("reshape", (x, (4, -1)), {}),
            ("reshape", (empty, (0, 5)), {}),
            ("reshape", (number, (1, 1)), {"copy": True}),
            ("roll", (x, 2), {}),
            ("roll", (x, (1, -2)), {"axis": (0, 2)}),
            ("roll", (empty, -1), {"axis": 1}),
            ("roll", (row, 7), {"axis": 0}),
            ("squeeze", (x[:1, :, :1],), {"axis": (0, -1)}),
            ("stack", ([matrix, matrix],), {"axis": -1}),
            ("stack", ([number, number],), {}),
            ("tile", (matrix, (2, 1, 2)), {}),
            ("tile", (row, (0,)), {}),
            ("tile", (x, (2,)), {}),
            ("unstack", (x,), {"axis": -1}),
            ("unstack", (empty,), {}),
            ("tril", (x,), {"k": 1}),
            ("triu", (matrix,), {"k": -1}),
            ("matrix_transpose", (x,), {}),
            ("linalg.matrix_transpose", (matrix,), {}),
            ("linalg.diagonal", (x,), {"offset": 1}),
            ("linalg.diagonal", (matrix,), {"offset": -3}),
            ("meshgrid", (row, row[:2]), {}),
            ("meshgrid", (row, row[:2], row[:3]), {"indexing": "ij"}),
            ("meshgrid", (row,), {}),
            ("meshgrid", (), {}),
        ]
        yield from (EagerCall(name, args, options, (dtype,)) for name, args, options in listed)


def joining() -> Iterator[EagerCall]:
    """Yield the calls of functions that put arrays together, and of differences, which have edges."""
    for dtype in NUMERIC:
        for x in examples(dtype, ((1,), (5,), (2, 3), (0, 3))):
            yield EagerCall("diff", (x,), {}, (dtype,))
        x = numbers(dtype, (2, 3))
        yield EagerCall("diff", (x,), {"axis": 0, "n": 3}, (dtype,))
        yield EagerCall("diff", (x,), {"axis": 0, "prepend": x[:1], "append": x}, (dtype,))
        yield EagerCall("diff", (x,), {"axis": 1, "n": 2, "append": x[:, :1]}, (dtype,))
    for first, second in promotable(DTYPES):
        yield EagerCall("concat", ([numbers(first, (2, 3)), numbers(second, (1, 3))],), {}, (first, second))
        yield EagerCall(
            "stack", ([numbers(first, (2,)), numbers(second, (2,))],), {"axis": 1}, (first, second)
        )


def creating() -> Iterator[EagerCall]:
    """Yield the calls of functions that make arrays."""
    for dtype in DTYPES:
        to = np.dtype(dtype)
        for name, shape in product(("zeros", "ones", "empty"), ((), 3, (2, 0), (2, 3))):
            yield EagerCall(name, (shape,), {"dtype": to}, (dtype,))
        for shape, value in product(((), (2, 3)), (True, 3, -1.5, 2j)):
            yield EagerCall("full", (shape, value), {}, (np.result_type(type(value)).name,))
            if np.can_cast(type(value), to) or (dtype in INTEGERS and value == 3):
                yield EagerCall("full", (shape, value), {"dtype": to}, (dtype,))
                yield EagerCall("full_like", (numbers("bool", (2, 1)), value), {"dtype": to}, (dtype,))
        for name in ("zeros_like", "ones_like", "empty_like"):
            for x in examples(dtype):
                yield EagerCall(name, (x,), {}, (dtype,))
            yield EagerCall(name, (numbers("int8", (2, 3)),), {"dtype": to}, (dtype,))
        yield EagerCall("full_like", (numbers(dtype, (2, 3)), 1), {}, (dtype,))
        for args, k in product(((3,), (3, 4), (0,)), (0, 1, -2)):
            yield EagerCall("eye", args, {"k": k, "dtype": to}, (dtype,))
        for x in examples(dtype):
            yield EagerCall("asarray", (x,), {}, (dtype,))
            yield EagerCall("from_dlpack", (x,), {}, (dtype,))
            for target in DTYPES:
                if dtype not in COMPLEX or target in COMPLEX:
                    yield EagerCall("astype", (_convertible(x, target), np.dtype(target)), {}, (dtype,))
    yield from spaced()
    for value in (True, 3, -1.5, 2j, [1, 2], [[1.5, 2], [3, 4]], [True, False], [1j, 2], []):
        yield EagerCall("asarray", (value,), {}, ())
        yield EagerCall("asarray", (value,), {"dtype": np.dtype("complex64")}, ("complex64",))


def _convertible(x: Array, target: str) -> Array:
    """Return an array like `x` whose elements the dtype `target` has, as far as the standard says: floats
    may be rounded.
    """
    if x.dtype.name not in FLOATS or target in INEXACT or target == "bool":
        return x
    return np.asarray(np.abs(np.nan_to_num(x, posinf=1, neginf=2)) % 100, x.dtype)


def spaced() -> Iterator[EagerCall]:
    """Yield the calls that make numbers at equal distances."""
    for dtype in REAL:
        for args in ((5,), (1, 7), (1, 9, 3), (7, 1, -2), (3, 3), (5, 1)):
            if dtype[0] != "u" or args[-1] > 0:
                yield EagerCall("arange", args, {"dtype": np.dtype(dtype)}, (dtype,))
    for args in ((5,), (2.5,), (0, 1, 0.25), (1, -1, -0.5), (-3, 3)):
        yield EagerCall("arange", args, {}, ("float64",))
    for args, ends in product(((0, 1, 5), (1.5, -2, 3), (0, 1, 1), (0, 0, 0), (1j, 2, 4)), (True, False)):
        yield EagerCall("linspace", args, {"endpoint": ends}, ("complex128" if args[0] == 1j else "float64",))
        if args[0] != 1j:
            yield EagerCall("linspace", args, {"endpoint": ends, "dtype": np.dtype("float32")}, ("float32",))


def on_dtypes() -> Iterator[EagerCall]:
    """Yield the calls of functions that compute with dtypes and shapes."""
    for dtype in map(np.dtype, DTYPES):
        for kind in (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
        ):
            yield EagerCall("isdtype", (dtype, kind), {}, (dtype.name,))
        yield EagerCall("isdtype", (dtype, (np.dtype("int8"), "bool")), {}, (dtype.name,))
        for other in map(np.dtype, DTYPES):
            yield EagerCall("can_cast", (dtype, other), {}, (dtype.name, other.name))
            yield EagerCall("result_type", (dtype, other), {}, (dtype.name, other.name))
            yield EagerCall("result_type", (numbers(dtype.name, (2,)), other), {}, (dtype.name, other.name))
        for weak in (True, 3, 1.5, 2j):
            yield EagerCall("result_type", (dtype, weak), {}, (dtype.name,))
        if dtype.name in INTEGERS:
            yield EagerCall("iinfo", (dtype,), {}, (dtype.name,))
            yield EagerCall("iinfo", (numbers(dtype.name, (2,)),), {}, (dtype.name,))
        if dtype.name in INEXACT:
            yield EagerCall("finfo", (dtype,), {}, (dtype.name,))
            yield EagerCall("finfo", (numbers(dtype.name, (2,)),), {}, (dtype.name,))
    for shapes in (((2, 1), (3,)), (), ((), (0,)), ((1, 4), (2, 1, 1), (1,)), ((2,), (3,))):
        yield EagerCall("broadcast_shapes", shapes, {}, ())
