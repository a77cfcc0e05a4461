"""Type rules: the dtypes in which scalar operations compute. They are numpy's, but for functions of reals.

A rule maps the argument dtypes to the dtypes that they are cast to, and to the result's dtype. It
raises `NoRule` with the reason if there is none. Of bools and integers, functions of reals are float64:
numpy makes float16 of 8 bits, and float32 of 16. Complex numbers are never cast to reals: `real`, `imag`,
`abs` and `angle` say what is meant.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
DISCRETE = ("bool", *INTEGERS)
DTYPES = DISCRETE + INEXACT
COMPILED_FLOATS = ("float32", "float64")
COMPILED = DISCRETE + COMPILED_FLOATS
"""The dtypes that kernels compute with. Elements of the others are only moved: numpy computes with them."""
ROUNDED = ("float16", "float32", "complex64")
"""The dtypes for which a Python number may be rounded."""

Signature = tuple[tuple[str, ...], str]


def integer_range(dtype: str) -> range:
    """Return the numbers of an integer dtype."""
    bits = 8 * np.dtype(dtype).itemsize
    return range(2**bits) if dtype in UNSIGNED else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


class NoRule(TypeError):
    """An operation does not take arguments of these dtypes; the message is the reason."""


@lru_cache(maxsize=256)
def common_dtype(first: str, second: str) -> str:
    """Return numpy's smallest dtype that holds both's values; float64 for int64 and a float or uint64."""
    return np.result_type(first, second).name


@lru_cache(maxsize=256)
def common(dtypes: tuple[str, ...]) -> str:
    """Return the smallest dtype that holds the values of all `dtypes`, at least one."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = common_dtype(result, dtype)
    return result


def same(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common dtype, which is also the result's."""
    dtype = common(dtypes)
    return (dtype,) * len(dtypes), dtype


def arithmetic(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`, with int8 in place of bool."""
    dtype = common(dtypes)
    dtype = "int8" if dtype == "bool" else dtype
    return (dtype,) * len(dtypes), dtype


def numbers(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for bools, as numpy does."""
    if common(dtypes) == "bool":
        raise NoRule("of bools is not defined; cast to an integer, or use xor or invert")
    return same(dtypes)


def inexact(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common float or complex dtype; integers and bools become
    float64.
    """
    dtype = common(dtypes)
    dtype = dtype if dtype in INEXACT else "float64"
    return (dtype,) * len(dtypes), dtype


def floating(dtypes: tuple[str, ...]) -> Signature:
    """Return `inexact`. Raises NoRule for complex numbers."""
    _refuse_complex(dtypes)
    return inexact(dtypes)


def of_reals(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for complex numbers."""
    _refuse_complex(dtypes)
    return same(dtypes)


def dividing(dtypes: tuple[str, ...]) -> Signature:
    """Return `arithmetic`. Raises NoRule for complex numbers, of which there is no whole quotient."""
    _refuse_complex(dtypes)
    return arithmetic(dtypes)


def _refuse_complex(dtypes: tuple[str, ...]) -> None:
    if any(dtype in COMPLEX for dtype in dtypes):
        raise NoRule("of complex numbers is not defined; take real, imag, abs or angle first")


def part_of(dtype: str) -> str:
    """Return the dtype of the real and the imaginary part of `dtype`: `dtype` itself if it is not complex."""
    return _PARTS.get(dtype, dtype)


_PARTS = {"complex64": "float32", "complex128": "float64"}


def in_parts(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common dtype with a real number as result."""
    arguments, dtype = same(dtypes)
    return arguments, part_of(dtype)


def of_complex(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for real numbers."""
    if any(dtype not in COMPLEX for dtype in dtypes):
        raise NoRule("takes complex numbers; a real one is its own real part and conjugate")
    return same(dtypes)


def part_of_complex(dtypes: tuple[str, ...]) -> Signature:
    """Return `in_parts`. Raises NoRule for real numbers."""
    of_complex(dtypes)
    return in_parts(dtypes)


def of_parts(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule that makes complex numbers of real parts: complex64 of at most 32 bits of float and 16
    of integer. Raises NoRule for complex parts.
    """
    _refuse_complex(dtypes)
    dtype = inexact(dtypes)[1] if common(dtypes) in FLOATS else common(dtypes)
    is_small = dtype in ("float16", "float32", "bool") or np.can_cast(dtype, "int16") or dtype == "uint16"
    part = "float32" if is_small else "float64"
    return (part,) * len(dtypes), "complex64" if is_small else "complex128"


def bits(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for floats and complex numbers."""
    if common(dtypes) in INEXACT:
        raise NoRule("of floats is not defined; it takes bools and integers")
    return same(dtypes)


def shifting(dtypes: tuple[str, ...]) -> Signature:
    """Return `bits`, with int8 in place of bool."""
    bits(dtypes)
    return arithmetic(dtypes)


def comparing(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common dtype with a bool as result.

    A signed integer and a uint64 are compared as they are: in float64 they would be rounded.
    """
    if "uint64" in dtypes and any(dtype in SIGNED for dtype in dtypes):
        return tuple(["uint64" if dtype == "uint64" else "int64" for dtype in dtypes]), "bool"
    return same(dtypes)[0], "bool"


def choosing(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule for a condition, cast to bool, followed by values of one common dtype.

    Raises NoRule for a complex condition.
    """
    _refuse_complex(dtypes[:1])
    arguments, dtype = same(dtypes[1:])
    return ("bool", *arguments), dtype


def last(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule without casts, with the last argument's dtype as result."""
    return dtypes, dtypes[-1]


def weak_dtype(value: bool | int | float | complex, strong: tuple[str, ...]) -> str:
    """Return the dtype of a Python number next to arguments of the dtypes `strong` (NEP 50).

    An int takes their common dtype, a float too if that is a float or complex, and a complex number if that
    is complex; next to floats it is made of such. Otherwise they are int64, float64 and complex128. Raises
    OverflowError for an integer that does not fit.
    """
    if isinstance(value, bool):
        return "bool"
    dtype = common(strong) if strong else "bool"
    if isinstance(value, float):
        return dtype if dtype in INEXACT else "float64"
    if isinstance(value, complex):
        return (
            dtype if dtype in COMPLEX else common_dtype("complex64", dtype if dtype in FLOATS else "float64")
        )
    dtype = "int64" if dtype == "bool" else dtype
    if dtype in INTEGERS and value not in integer_range(dtype):
        raise OverflowError(
            f"Using the Python integer {value} as {dtype}: it is out of bounds; use a wider dtype"
        )
    return dtype


def upcast(*dtypes: str) -> str:
    """Return the smallest dtype that holds the values of all `dtypes`, at least one."""
    return common(tuple([np.dtype(dtype).name for dtype in dtypes]))
