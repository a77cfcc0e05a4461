"""The functions and objects of Python and numpy that compiled calls use, as a table of addresses.

Stored code has no address of a process in it: it finds them in this table, at the positions of
`FUNCTIONS` and `OBJECTS`. All of the functions have kept their signatures since Python 3.9 and numpy 2.0.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np

FUNCTIONS = (
    "Py_IncRef",
    "Py_DecRef",
    "PyList_New",
    "PyList_Size",
    "PyList_GetItem",
    "PyList_SetItem",
    "PyList_SetSlice",
    "PyList_Append",
    "PySequence_GetSlice",
    "PyFloat_AsDouble",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyErr_Clear",
    "PyObject_Vectorcall",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyArray_NewFromDescr",
)
OBJECTS = {"ndarray": np.ndarray, "float": float, "int": int, "None": None}

OBJECT_HEAD = object.__basicsize__
TUPLE_HEAD = tuple.__basicsize__
"""The offset of the first item in a tuple."""

_ARRAY_FUNCTIONS = {"PyArray_NewFromDescr": 94}
"""Positions in numpy's own table, which never change."""
_VERSION, _ARRAY_TYPE = 0, 2
_NUMPY_ABI = 2
_PLAIN_HEAD = 16


@cache
def api_table() -> np.ndarray | None:
    """Return the table, or None where compiled code may not handle objects.

    That is so in interpreters other than CPython, and where objects begin with more than a count of
    references and a type: without the global lock, counting them takes more.
    """
    if sys.implementation.name != "cpython" or OBJECT_HEAD != _PLAIN_HEAD:
        return None
    table = numpy_table(max(_ARRAY_FUNCTIONS.values()) + 1)
    if table is None:
        return None
    functions = [
        table[_ARRAY_FUNCTIONS[name]] if name in _ARRAY_FUNCTIONS else _address(name) for name in FUNCTIONS
    ]
    return np.array([*functions, *map(id, OBJECTS.values())], dtype=np.int64)


def _address(name: str) -> int:
    return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))


def numpy_table(size: int) -> ctypes.Array[ctypes.c_size_t] | None:
    """Return the first `size` words of numpy's table of its C API; None if another is found."""
    capsule = getattr(sys.modules.get("numpy._core._multiarray_umath"), "_ARRAY_API", None)
    if capsule is None:
        return None
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = (ctypes.c_size_t * size).from_address(get_pointer(capsule, None))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[_VERSION])()
    is_known = version >> 24 == _NUMPY_ABI and table[_ARRAY_TYPE] == id(np.ndarray)
    return table if is_known else None
