"""numpy's functions that order numbers, as C functions that kernels call.

Each dtype of numpy has a table of C functions (`PyArray_ArrFuncs`, the same in all of numpy's ABI 2), among
them those of `ndarray.sort`, `argsort`, `argmax` and `argmin`. They use no object of Python, need no memory
and never fail. Where a release has none (it need not), a function of the same signature calls the method of
an array, with the interpreter's lock.

    int sort(void *elements, intptr_t count, void *unused)
    int argsort(void *elements, intptr_t *positions, intptr_t count, void *unused)
    int argmax(void *elements, intptr_t count, intptr_t *position, void *unused)

Sorts put NaN last and leave the order of equal elements open. Of extremes the first counts; NaN is one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from engine.runtime.kernel_interface import COMPUTED
from engine.runtime.python_api import numpy_table

_FUNCTIONS_OF_DTYPE = 365
"""The position, in numpy's table of its C API, of the function that returns the table of a dtype."""
_POSITIONS = {"sort": 33, "argsort": 36, "argmax": 26, "argmin": 46}
"""The positions in the table of a dtype; those of sorts are of the default kind."""
_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_ssize_t
_SIGNATURES = {
    "sort": (_POINTER, _COUNT, _POINTER),
    "argsort": (_POINTER, _POINTER, _COUNT, _POINTER),
    "argmax": (_POINTER, _COUNT, _POINTER, _POINTER),
    "argmin": (_POINTER, _COUNT, _POINTER, _POINTER),
}

NUMPY_FUNCTIONS = {
    f"numpy_{method}_{dtype}": len(types) for method, types in _SIGNATURES.items() for dtype in COMPUTED
}
"""The names under which kernels call them, with the number of their arguments."""


@cache
def numpy_function(name: str) -> int:
    """Return the address of the function that `NUMPY_FUNCTIONS` has under `name`."""
    _, method, dtype = name.split("_")
    return _from_numpy(method, dtype) or _address(calling_method(method, dtype))


def _from_numpy(method: str, dtype: str) -> int | None:
    table = numpy_table(_FUNCTIONS_OF_DTYPE + 1)
    if table is None:
        return None
    functions_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_FUNCTIONS_OF_DTYPE])
    functions = (ctypes.c_size_t * (max(_POSITIONS.values()) + 1)).from_address(functions_of(np.dtype(dtype)))
    return functions[_POSITIONS[method]] or None


@cache
def calling_method(method: str, dtype: str) -> Any:
    """Return a C function that calls `method` of an array; it lives as long as the process."""

    def sort(elements: int, count: int, _: object) -> int:
        _array(elements, count, dtype).sort()
        return 0

    def argsort(elements: int, positions: int, count: int, _: object) -> int:
        _array(positions, count, "int64")[:] = _array(elements, count, dtype).argsort()
        return 0

    def extreme(elements: int, count: int, position: int, _: object) -> int:
        _array(position, 1, "int64")[0] = getattr(_array(elements, count, dtype), method)()
        return 0

    functions: dict[str, Callable[..., int]] = {"sort": sort, "argsort": argsort}
    return ctypes.CFUNCTYPE(ctypes.c_int, *_SIGNATURES[method])(functions.get(method, extreme))


def _array(address: int, count: int, dtype: str) -> np.ndarray[Any, Any]:
    if count == 0:  # nothing may be at the address
        return np.empty(0, dtype)
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), dtype)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
