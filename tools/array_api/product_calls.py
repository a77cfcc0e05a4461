"""The calls of products, linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from examples import (
    AXES,
    COMPLEX,
    FLOATS,
    INEXACT,
    NUMERIC,
    EagerCall,
    hermitian,
    matrices,
    numbers,
    promotable,
    specials,
    wide,
)


def products() -> Iterator[EagerCall]:
    """Yield the calls of products."""
    shapes = (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((2, 2, 3), (3, 4)),
        ((2, 0), (0, 3)),
    )
    for first, second in promotable(NUMERIC):
        for prefix, (one, other) in product(("", "linalg."), shapes):
            yield EagerCall(
                f"{prefix}matmul", (numbers(first, one), numbers(second, other, 1)), {}, (first, second)
            )
        for prefix, axes in product(("", "linalg."), (0, 1, ((1, 0), (0, 1)))):
            x, y = numbers(first, (2, 3)), numbers(second, (3, 2), 1)
            yield EagerCall(f"{prefix}tensordot", (x, y), {"axes": axes}, (first, second))
            yield EagerCall(f"{prefix}vecdot", (x, x[0].astype(second)), {}, (first, second))
            yield EagerCall(f"{prefix}vecdot", (x, y.T[:, :1]), {"axis": -2}, (first, second))
        yield EagerCall("linalg.outer", (numbers(first, (2,)), numbers(second, (3,), 1)), {}, (first, second))
        yield EagerCall(
            "linalg.cross", (numbers(first, (2, 3)), numbers(second, (3,), 1)), {}, (first, second)
        )
        yield EagerCall(
            "linalg.cross",
            (numbers(first, (3, 2)), numbers(second, (3, 1), 1)),
            {"axis": -2},
            (first, second),
        )


def decompositions() -> Iterator[EagerCall]:
    """Yield the calls of linear algebra."""
    for dtype in INEXACT:
        given = (dtype,)
        for shape in ((3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2)):
            square, definite = matrices(dtype, shape), hermitian(dtype, shape)
            for name in ("det", "inv", "slogdet", "eig", "eigvals"):
                yield EagerCall(f"linalg.{name}", (square,), {}, given)
            for name in ("eigh", "eigvalsh", "cholesky"):
                yield EagerCall(f"linalg.{name}", (definite,), {}, given)
            yield EagerCall("linalg.cholesky", (definite,), {"upper": True}, given)
            for power in (0, 1, 3, -2):
                yield EagerCall("linalg.matrix_power", (square, power), {}, given)
            yield EagerCall("linalg.solve", (square, numbers(dtype, (*shape[:-1], 2))), {}, given)
            yield EagerCall("linalg.solve", (square, numbers(dtype, shape[-1:])), {}, given)
        for shape in ((3, 2), (2, 3), (2, 3, 3), (0, 3)):
            x = matrices(dtype, shape)
            for option in (True, False):
                yield EagerCall("linalg.svd", (x,), {"full_matrices": option}, given)
                yield EagerCall("linalg.qr", (x,), {"mode": "complete" if option else "reduced"}, given)
            for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                yield EagerCall("linalg.matrix_norm", (x,), {"ord": order, "keepdims": order == 1}, given)
            for name in ("svdvals", "matrix_rank", "pinv"):
                yield EagerCall(f"linalg.{name}", (x,), {}, given)
            for name in ("matrix_rank", "pinv"):
                yield EagerCall(f"linalg.{name}", (x,), {"rtol": 0.5}, given)
                yield EagerCall(
                    f"linalg.{name}", (x,), {"rtol": np.full(x.shape[:-2], 0.9, "float32")}, given
                )
        for options in (*AXES[:5], {"axis": -1}):
            for order in (2, 1, 0, 3, -1, np.inf, -np.inf):
                yield EagerCall(
                    "linalg.vector_norm", (numbers(dtype, (2, 3)),), {**options, "ord": order}, given
                )
        yield EagerCall("linalg.vector_norm", (numbers(dtype, ()),), {}, given)
        yield EagerCall("linalg.vector_norm", (specials(dtype)[3:6],), {}, given)
        singular = np.ones((2, 2), dtype)
        for name in ("det", "slogdet", "eigvals", "matrix_rank", "inv", "cholesky"):
            yield EagerCall(f"linalg.{name}", (singular,), {}, given)
    for dtype in NUMERIC:
        for x, options in product((numbers(dtype, (2, 3)), numbers(dtype, (2, 3, 3))), ({}, {"offset": 1})):
            yield EagerCall("linalg.trace", (x,), options, (dtype,))
        yield EagerCall("linalg.trace", (numbers(dtype, (3, 3)),), {"dtype": np.dtype(wide(dtype))}, (dtype,))
    for first, second in promotable(INEXACT):
        yield EagerCall(
            "linalg.solve", (matrices(first, (2, 2)), numbers(second, (2, 1))), {}, (first, second)
        )


def transforms() -> Iterator[EagerCall]:
    """Yield the calls of Fourier transforms."""
    norms = ("backward", "ortho", "forward")
    along: tuple[dict[str, Any], ...] = (
        {},
        {"axis": 0},
        {"n": 5},
        {"n": 2, "axis": -2},
        *({"norm": n} for n in norms),
    )
    several: tuple[dict[str, Any], ...] = (
        {},
        {"axes": (0,)},
        {"s": (3, 5)},
        {"s": (5, 2), "axes": (1, 0)},
        {"s": (7,), "axes": (-1,)},
        *({"norm": n} for n in norms),
    )
    takes = {"rfft": FLOATS, "rfftn": FLOATS, "ihfft": FLOATS}
    for name, options in product(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), along):
        for dtype, shape in product(takes.get(name, COMPLEX), ((3, 4), (4, 3))):
            yield EagerCall(f"fft.{name}", (numbers(dtype, shape),), options, (dtype,))
    for name, options in product(("fftn", "ifftn", "rfftn", "irfftn"), several):
        for dtype, shape in product(takes.get(name, COMPLEX), ((3, 4), (4, 3))):
            given = {**options, "axes": (0, 1)} if "s" in options and "axes" not in options else options
            yield EagerCall(f"fft.{name}", (numbers(dtype, shape),), given, (dtype,))
    for name, axes, dtype in product(("fftshift", "ifftshift"), (None, 0, (0, 1)), INEXACT):
        yield EagerCall(f"fft.{name}", (numbers(dtype, (3, 4)),), {"axes": axes}, (dtype,))
    for name, n, d in product(("fftfreq", "rfftfreq"), (1, 4, 5), (1.0, 0.25)):
        yield EagerCall(f"fft.{name}", (n,), {"d": d}, ("float64",))
        yield EagerCall(f"fft.{name}", (n,), {"d": d, "dtype": np.dtype("float32")}, ("float32",))
