"""Signatures such as "(n),(n,n)->(n)": the axes of one draw, of its parameters and of its result.

They are those of numpy's generalized ufuncs (NEP 5 and 20), but there may be no parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Axes = tuple[str, ...]

_LIST = r"(?:\w+(?:,\w+)*)?"
_OPERANDS = rf"\({_LIST}\)(?:,\({_LIST}\))*"
_SIGNATURE = re.compile(rf"({_OPERANDS})?->\(({_LIST})\)")


def parsed_signature(signature: str) -> tuple[tuple[Axes, ...], Axes]:
    """Return the names of the axes of each parameter, and those of the result; raises ValueError for anything
    but a signature with one result."""
    found = _SIGNATURE.fullmatch(re.sub(r"\s+", "", signature))
    if found is None:
        raise ValueError(
            f"Reading the signature {signature!r}: it must be like '(n),(n,n)->(n)', with one result"
        )
    parameters, result = found.groups()
    return tuple(map(_names, re.findall(rf"\(({_LIST})\)", parameters or ""))), _names(result)


def signature_of(ndims_params: Sequence[int], ndim_supp: int) -> str:
    """Return a signature of parameters with `ndims_params` axes and a result with `ndim_supp`, all
    different."""
    parameters = [_written(f"i{number}", ndim) for number, ndim in enumerate(ndims_params)]
    return f"{','.join(parameters)}->{_written('o0', ndim_supp)}"


def _names(listed: str) -> Axes:
    return tuple(listed.split(",")) if listed else ()


def _written(prefix: str, ndim: int) -> str:
    return f"({','.join(f'{prefix}{axis}' for axis in range(ndim))})"
