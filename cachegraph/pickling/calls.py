"""Checks of the calls and states in a pickle: Python and numpy objects are made only as `dumps`
writes them.

Each check raises InvalidPickle. numpy's own functions trust their arguments: a dtype whose fields
lie outside its items, or an array that changes under its views, would give access to foreign
memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from math import prod
from typing import Any

from cachegraph.pickling.errors import InvalidPickle

_DTYPE = re.compile(r"[biufcSUV]\d{1,9}|[mM]8|O8")
_BYTE_ORDERS = ("<", ">", "|", "=")
_ALIGNED = 128  # NPY_ALIGNED_STRUCT
Check = Callable[[tuple[Any, ...]], None]


def of_python(arguments: tuple[Any, ...]) -> None:
    """Check the arguments of a complex number, a slice or a range."""
    plain = all(isinstance(item, int | float | str | tuple | None) for item in arguments)
    _require(plain and len(arguments) <= 3, "parts", arguments)


def of_partial(arguments: tuple[Any, ...]) -> None:
    """Check the argument of a partial: a function that is no partial itself."""
    _require(len(arguments) == 1 and not isinstance(arguments[0], functools.partial), "a partial", arguments)


def of_dtype(arguments: tuple[Any, ...]) -> None:
    """Check the arguments of a dtype: the name of a plain one."""
    name = arguments[0] if arguments[1:] == (False, True) else None
    plain = (
        isinstance(name, str) and _DTYPE.fullmatch(name) and all(type(item) is bool for item in arguments[1:])
    )
    _require(bool(plain), "a dtype", arguments)


def of_array(arguments: tuple[Any, ...]) -> None:
    """Check the arguments of an empty array, whose state follows."""
    _require(arguments[1:] == ((0,), b"b") and type(arguments[0]) is type, "an array", arguments)


def of_buffer(arguments: tuple[Any, ...]) -> None:
    """Check the arguments of an array on the memory of bytes: content, dtype, shape and order."""
    _require(len(arguments) == 4, "an array", arguments)
    content, dtype, shape, order = arguments
    fits = _is_dtype(dtype) and isinstance(content, bytes | bytearray) and _is_shape(shape)
    _require(fits and order in ("C", "F"), "an array", arguments)
    _require(len(content) == prod(shape) * dtype.itemsize, "an array", (len(content), dtype, shape))


def of_scalar(arguments: tuple[Any, ...]) -> None:
    """Check the arguments of a numpy scalar: a dtype, and its bytes or an array."""
    _require(len(arguments) == 2 and _is_any_dtype(arguments[0]), "a scalar", arguments)
    dtype, content = arguments
    if isinstance(content, bytes):
        fits = not dtype.hasobject and len(content) == dtype.itemsize
    else:  # a record with objects: an array of it alone
        fits = dtype.kind == "V" and getattr(content, "dtype", None) == dtype and content.shape == ()
    _require(fits, "a scalar", arguments)


def state_of_dtype(dtype: Any, state: Any) -> None:
    """Check the state for a new `dtype`: it must be the one that numpy gives a dtype made of the same
    parts."""
    _require(isinstance(state, tuple) and len(state) in (8, 9) and state[1] in _BYTE_ORDERS, "a dtype", state)
    _, order, within, names, _, size, _, flags, *_ = state
    if dtype.kind in "mM":
        unit = state[-1] if len(state) == 9 else None
        _require(_is_unit(unit), "a dtype", state)
        due = (*dtype.newbyteorder(order).__reduce__()[2][:-1], unit)
    elif within is not None or names is not None:
        due = _compound(state).__reduce__()[2]
        _require(size == dtype.itemsize, "a dtype", state)
    else:
        due = dtype.newbyteorder(order).__reduce__()[2]
    _require(state == due and type(flags) is int, "a dtype", state)


def _compound(state: tuple[Any, ...]) -> Any:
    """Return the record or subarray dtype that `state` describes, made and checked by numpy."""
    import numpy as np  # loaded already by whoever has a dtype

    _, _, within, names, fields, size, _, flags = state
    if within is not None:
        base, shape = within
        _require(_is_dtype(base) and _is_shape(shape), "a dtype", state)
        return np.dtype((base, shape))
    parts = [fields[name] for name in names]
    _require(all(len(part) == 2 and isinstance(part[0], np.dtype) for part in parts), "a dtype", state)
    formats, offsets = zip(*parts, strict=True) if parts else ((), ())
    described: Any = {
        "names": list(names),
        "formats": list(formats),
        "offsets": list(offsets),
        "itemsize": size,
    }
    return np.dtype(described, align=bool(flags & _ALIGNED))


def state_of_array(state: Any) -> int:
    """Check the state for a new array, and return how many bytes it holds."""
    _require(isinstance(state, tuple) and len(state) == 5 and state[0] == 1, "an array", state)
    _, shape, dtype, in_fortran_order, content = state
    holds = list if getattr(dtype, "hasobject", False) else bytes
    fits = _is_any_dtype(dtype) and _is_shape(shape) and isinstance(in_fortran_order, bool)
    _require(fits and isinstance(content, holds), "an array", state[:4])
    due = prod(shape) * (1 if holds is list else dtype.itemsize)
    _require(len(content) == due, "an array", (len(content), dtype, shape))
    return len(content) if holds is bytes else 0


def state_of_partial(partial: functools.partial[Any], state: Any) -> None:
    """Check the state for a new partial: it must have the same function."""
    fits = isinstance(state, tuple) and len(state) == 4 and state[0] is partial.func
    _require(fits and isinstance(state[1], tuple) and isinstance(state[2], dict | None), "a partial", state)


def _is_dtype(value: Any) -> bool:
    """Return True if `value` is a dtype without objects."""
    return _is_any_dtype(value) and not value.hasobject


def _is_any_dtype(value: Any) -> bool:
    return any((cls.__module__, cls.__name__) == ("numpy", "dtype") for cls in type(value).__mro__)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(extent) is int and extent >= 0 for extent in value)


def _is_unit(metadata: Any) -> bool:
    """Return True if `metadata` is what numpy gives time dtypes: no user metadata, and (unit, number, 1,
    1)."""
    if not isinstance(metadata, tuple) or len(metadata) != 2 or metadata[0]:
        return False
    unit = metadata[1]
    return (
        isinstance(unit, tuple) and [type(item) for item in unit[:2]] == [bytes, int] and unit[2:] == (1, 1)
    )


def _require(fits: bool, made: str, found: object) -> None:
    if not fits:
        parts = (
            [type(part).__name__ for part in found] if isinstance(found, tuple) else [type(found).__name__]
        )
        raise InvalidPickle(f"{made} made of ({', '.join(parts[:9])}), as none is that was written")


NUMPY: dict[tuple[str, str], Check] = {
    (f"{root}.{module}", name): check
    for root in ("numpy.core", "numpy._core")
    for module, name, check in (
        ("multiarray", "_reconstruct", of_array),
        ("multiarray", "scalar", of_scalar),
        ("numeric", "_frombuffer", of_buffer),
    )
}
CALLED: dict[tuple[str, str], Check] = {
    **NUMPY,
    ("numpy", "dtype"): of_dtype,
    ("functools", "partial"): of_partial,
    **{("builtins", name): of_python for name in ("complex", "slice", "range")},
}
"""Functions and classes that every pickle may call, with the checks of their arguments."""
HELD = frozenset((("numpy", "ndarray"),))
"""Classes that every pickle may hold but not call: the class of an array."""
