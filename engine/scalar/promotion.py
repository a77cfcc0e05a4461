"""Type rules: the dtypes in which scalar operations compute. They are numpy's, restricted to five dtypes.

A rule maps the argument dtypes to the dtypes that they are cast to, and to the result's dtype. It
raises `NoRule` with the reason if there is none. Where numpy would use a dtype that the engine
lacks (int8 for `True ** True`, float16 for `exp(True)`), the rules use int32 and float64.
"""

from __future__ import annotations

from functools import lru_cache

DTYPES = ("bool", "int32", "int64", "float32", "float64")
FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
DISCRETE = ("bool", "int32", "int64")

Signature = tuple[tuple[str, ...], str]

_BOUNDS = {"int32": 2**31, "int64": 2**63}


class NoRule(TypeError):
    """An operation does not take arguments of these dtypes; the message is the reason."""


def common_dtype(first: str, second: str) -> str:
    """Return the smallest dtype that holds the values of both; float64 for float32 and an integer."""
    if first == second:
        return first
    low, high = sorted((first, second), key=DTYPES.index)
    return "float64" if high == "float32" and low != "bool" else high


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
    """Return `same`, with int32 in place of bool."""
    dtype = common(dtypes)
    dtype = "int32" if dtype == "bool" else dtype
    return (dtype,) * len(dtypes), dtype


def numbers(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for bools, as numpy does."""
    if common(dtypes) == "bool":
        raise NoRule("of bools is not defined; cast to an integer, or use xor or invert")
    return same(dtypes)


def floating(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common float dtype; integers and bools become float64."""
    dtype = common(dtypes)
    dtype = dtype if dtype in FLOATS else "float64"
    return (dtype,) * len(dtypes), dtype


def bits(dtypes: tuple[str, ...]) -> Signature:
    """Return `same`. Raises NoRule for floats."""
    if common(dtypes) in FLOATS:
        raise NoRule("of floats is not defined; it takes bools and integers")
    return same(dtypes)


def comparing(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule of computing in the common dtype with a bool as result."""
    return same(dtypes)[0], "bool"


def choosing(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule for a condition, cast to bool, followed by values of one common dtype."""
    arguments, dtype = same(dtypes[1:])
    return ("bool", *arguments), dtype


def last(dtypes: tuple[str, ...]) -> Signature:
    """Return the rule without casts, with the last argument's dtype as result."""
    return dtypes, dtypes[-1]


def weak_dtype(value: bool | int | float, strong: tuple[str, ...]) -> str:
    """Return the dtype of a Python number next to arguments of the dtypes `strong` (NEP 50).

    An int takes their common dtype, and a float too if that is a float; otherwise int64 and float64.
    Raises OverflowError for an integer that does not fit.
    """
    if isinstance(value, bool):
        return "bool"
    dtype = common(strong) if strong else "bool"
    if isinstance(value, float):
        return dtype if dtype in FLOATS else "float64"
    dtype = "int64" if dtype == "bool" else dtype
    bound = _BOUNDS.get(dtype)
    if bound is not None and not -bound <= value < bound:
        raise OverflowError(
            f"Using the Python integer {value} as {dtype}: it is out of bounds; use a wider dtype"
        )
    return dtype
