"""Type rules: the dtypes that scalar operations compute in. numpy's, for the five dtypes there are.

A rule takes the dtypes of the arguments and returns the dtypes that they are cast to, and the result's; it raises
`NoRule` with the reason if there is none. Where numpy would compute in a type that the engine lacks (int8 for
`True ** True`, float16 for `exp(True)`), the rules take int32 and float64.
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
    """An operation does not take arguments of these dtypes; the text is the reason."""


def common_dtype(first: str, second: str) -> str:
    """Return the smallest dtype that holds the values of both (float32 and an integer: float64)."""
    if first == second:
        return first
    low, high = sorted((first, second), key=DTYPES.index)
    return "float64" if high == "float32" and low != "bool" else high


@lru_cache(maxsize=256)
def common(dtypes: tuple[str, ...]) -> str:
    """Return the smallest dtype that holds the values of all `dtypes`, of which there is at least one."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = common_dtype(result, dtype)
    return result


def same(dtypes: tuple[str, ...]) -> Signature:
    """Computes in the common dtype and gives it."""
    dtype = common(dtypes)
    return (dtype,) * len(dtypes), dtype


def arithmetic(dtypes: tuple[str, ...]) -> Signature:
    """As `same`, for operations that know no bool: those compute in int32."""
    dtype = common(dtypes)
    dtype = "int32" if dtype == "bool" else dtype
    return (dtype,) * len(dtypes), dtype


def numbers(dtypes: tuple[str, ...]) -> Signature:
    """As `same`; refuses bool as numpy does."""
    if common(dtypes) == "bool":
        raise NoRule("of bools is not defined; cast to an integer, or use xor or invert")
    return same(dtypes)


def floating(dtypes: tuple[str, ...]) -> Signature:
    """Computes in the common float dtype; integers and bools in float64."""
    dtype = common(dtypes)
    dtype = dtype if dtype in FLOATS else "float64"
    return (dtype,) * len(dtypes), dtype


def bits(dtypes: tuple[str, ...]) -> Signature:
    """As `same`; refuses floats."""
    if common(dtypes) in FLOATS:
        raise NoRule("of floats is not defined; it takes bools and integers")
    return same(dtypes)


def comparing(dtypes: tuple[str, ...]) -> Signature:
    """Computes in the common dtype, gives bool."""
    return same(dtypes)[0], "bool"


def choosing(dtypes: tuple[str, ...]) -> Signature:
    """Return a condition, which is cast to bool, then values of the common dtype."""
    arguments, dtype = same(dtypes[1:])
    return ("bool", *arguments), dtype


def last(dtypes: tuple[str, ...]) -> Signature:
    """Casts nothing and gives the dtype of the last argument."""
    return dtypes, dtypes[-1]


def weak_dtype(value: bool | int | float, strong: tuple[str, ...]) -> str:
    """Return the dtype that a Python number takes beside arguments of the dtypes `strong` (NEP 50).

    An int takes theirs, a float theirs if that is a float; otherwise int64 and float64. Raises OverflowError for an
    integer that does not fit.
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
