"""The comparison of two results: dtypes, shapes, every bit of integers, floats nearly.

A float may differ by a few units of its last place; where rounding depends on the order of the operations
(sums, products, linear algebra, transforms), by such units of the largest number in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

UNITS = 16
SUMMED = (
    "linalg.",
    "fft.",
    "sum",
    "prod",
    "cumulative_",
    "mean",
    "std",
    "var",
    "matmul",
    "tensordot",
    "vecdot",
)
"""Beginnings of the names of functions that round several times."""
WITHOUT_VALUES = ("empty", "empty_like")


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return what the function returns, or the exception that it raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


def difference(name: str, expected: Any, found: Any) -> str:
    """Return how the outcome `found` of the function `name` differs from `expected`; empty if it does not."""
    refusals = [isinstance(each, Exception) for each in (expected, found)]
    if all(refusals):
        return ""
    if any(refusals):
        who, error = ("array_api_strict", expected) if refusals[0] else ("the engine", found)
        return (
            f"{who} refuses: {type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"
        )
    if name in ("linalg.eig", "linalg.eigh") and isinstance(expected, tuple):
        expected, found = (_of_one_phase(each) for each in (expected, found))
    if isinstance(expected, tuple):
        return _tuples_differ(name, expected, found)
    if isinstance(expected, np.ndarray):
        return _arrays_differ(name, expected, np.asarray(found))
    return "" if type(expected) is type(found) and expected == found else f"{found!r}, not {expected!r}"


def _tuples_differ(name: str, expected: Any, found: Any) -> str:
    if getattr(expected, "_fields", ()) != getattr(found, "_fields", ()) and name not in ("finfo", "iinfo"):
        return f"the fields {getattr(found, '_fields', ())}, not {getattr(expected, '_fields', ())}"
    if len(expected) != len(found):
        return f"{len(found)} results, not {len(expected)}"
    parts = (difference(name, *pair) for pair in zip(expected, found, strict=True))
    return "; ".join(f"result {place}: {part}" for place, part in enumerate(parts) if part)


def _arrays_differ(name: str, expected: Any, found: Any) -> str:
    if expected.dtype != found.dtype:
        return f"{found.dtype}, not {expected.dtype}"
    if expected.shape != found.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if name in WITHOUT_VALUES:
        return ""
    if expected.dtype.kind == "c":
        parts = (
            _wrong(name, expected.real, found.real, expected),
            _wrong(name, expected.imag, found.imag, expected),
        )
        wrong = parts[0] | parts[1]
    else:
        wrong = _wrong(name, expected, found, expected)
    if not wrong.any():
        return ""
    place = np.argwhere(np.atleast_1d(wrong))[0]
    index = tuple(int(each) for each in place) if expected.ndim else ()
    return f"{wrong.sum()} elements; at {index} {found[index]!r}, not {expected[index]!r}"


def _wrong(name: str, expected: Any, found: Any, whole: Any) -> Any:
    """Return a mask of the elements that differ."""
    if expected.dtype.kind != "f":
        return expected != found
    with np.errstate(all="ignore"):
        unit = UNITS * np.finfo(expected.dtype).eps
        sizes = np.abs(whole)
        largest = np.max(sizes, where=np.isfinite(sizes), initial=0.0) if name.startswith(SUMMED) else 0.0
        near = np.abs(expected - found) <= unit * np.maximum(np.abs(expected), largest)
        equal = (expected == found) & (np.signbit(expected) == np.signbit(found))
        both_nan = np.isnan(expected) & np.isnan(found)
    return ~(equal | (near & (expected != 0)) | (near & (largest > 0)) | both_nan)


def _of_one_phase(pairs: Any) -> Any:
    """Return eigenvalues with their vectors, of which the largest element is made a positive number."""
    values, vectors = pairs
    if not vectors.size:
        return pairs
    at = np.argmax(np.abs(vectors).round(3), axis=-2, keepdims=True)
    largest = np.take_along_axis(vectors, at, axis=-2)
    return pairs._make((values, np.asarray(vectors * (np.conj(largest) / np.abs(largest)), vectors.dtype)))
