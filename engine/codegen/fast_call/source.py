"""The fast call as LLVM IR text: a builtin function of Python that runs a program on the machine.

It follows CPython's convention METH_FASTCALL | METH_KEYWORDS. Its block, which also has the address of the
machine (codegen/machine.py), and when it leaves a call to Python, are described in runtime/fast_call.py. It
runs with the interpreter's lock, which it gives up around the machine only if a call may take long: if the
last one did, or if the arguments have many elements.

C functions are found in a table (runtime/python_api.py), so the text has none of a process's addresses.
It runs once a call, so its code is generated fast (decision 0206).
"""

from __future__ import annotations

from functools import cache
from string import Template

from engine.codegen.arrays import ARRAYS
from engine.codegen.clock import clock_source
from engine.codegen.fast_call.arguments import GATHER
from engine.codegen.fast_call.call import CALL
from engine.codegen.fast_call.leaving import LEAVING
from engine.codegen.fast_call.numbers import NUMBERS
from engine.codegen.fast_call.results import RESULTS
from engine.runtime.fast_call import BLOCK, NUMBER_KINDS, RETURNS_DICT, RETURNS_LIST
from engine.runtime.instructions import HALTED, MAX_RANK, MOST, NOT_BOUND, YIELDED
from engine.runtime.python_api import FUNCTIONS, OBJECT_HEAD, OBJECTS, TUPLE_HEAD

ENTRY = "call"
"""The name of the one function that the source shows."""
MANY_ELEMENTS = 1 << 14
"""Arguments of more elements in all may take long."""

_SIGNATURES = {
    "Py_IncRef": "void ptr",
    "Py_DecRef": "void ptr",
    "PyList_New": "ptr i64",
    "PyList_Size": "i64 ptr",
    "PyList_GetItem": "ptr ptr i64",
    "PyList_SetItem": "i32 ptr i64 ptr",
    "PyList_SetSlice": "i32 ptr i64 i64 ptr",
    "PyList_Append": "i32 ptr ptr",
    "PySequence_GetSlice": "ptr ptr i64 i64",
    "PyFloat_AsDouble": "double ptr",
    "PyLong_AsLongLongAndOverflow": "i64 ptr ptr",
    "PyLong_FromLongLong": "ptr i64",
    "PyErr_Clear": "void",
    "PyObject_Vectorcall": "ptr ptr ptr i64 ptr",
    "PyEval_SaveThread": "ptr",
    "PyEval_RestoreThread": "void ptr",
    "PyArray_NewFromDescr": "ptr ptr ptr i32 ptr ptr ptr i32 ptr",
}
"""The type of each function's result, and those of its parameters."""


@cache
def fast_call_source() -> str:
    """Return the text."""
    constants = {
        "TYPE": OBJECT_HEAD - 8,
        "DATA": OBJECT_HEAD,
        "RANK": OBJECT_HEAD + 8,
        "LENGTHS": OBJECT_HEAD + 16,
        "TUPLE_HEAD": TUPLE_HEAD,
        "HALTED": HALTED,
        "YIELDED": YIELDED,
        "NOT_BOUND": NOT_BOUND,
        "MAX_RANK": MAX_RANK,
        "MOST": MOST,
        "MANY": MANY_ELEMENTS,
        "LIST": RETURNS_LIST,
        "DICT": RETURNS_DICT,
        "TICKS": list(BLOCK).index("ticks"),
        **{dtype.upper(): kind for dtype, (kind, _, _) in NUMBER_KINDS.items()},
    }
    parts = (CALL, GATHER, ARRAYS, NUMBERS, RESULTS, LEAVING)
    return "\n".join(
        (
            *(_function(position, name) for position, name in enumerate(FUNCTIONS)),
            *(reader(f"object.{name}", "pointer", len(FUNCTIONS) + k) for k, name in enumerate(OBJECTS)),
            *(reader(f"block.{name}", kind, k) for k, (name, kind) in enumerate(BLOCK.items())),
            *(Template(part).substitute(constants) for part in parts),
            clock_source(),
            "",
        )
    )


def _function(position: int, name: str) -> str:
    """Define a function that calls the one at `position` of the table, which it takes first."""
    result, *parameters = _SIGNATURES[name].split()
    taken = ["ptr %api", *(f"{kind} %{k}" for k, kind in enumerate(parameters, 1))]
    given = ", ".join(taken[1:])
    call = f"call {result} %function({given})"
    ends = (
        (f"  {call}", "  ret void")
        if result == "void"
        else (f"  %result = {call}", f"  ret {result} %result")
    )
    return "\n".join(
        (
            f"define internal {result} @{name}({', '.join(taken)}) alwaysinline {{",
            f"  %at = getelementptr ptr, ptr %api, i64 {position}",
            "  %function = load ptr, ptr %at",
            *ends,
            "}",
        )
    )


def reader(name: str, kind: str, position: int) -> str:
    """Define a function that reads a word: a pointer, a number, or a place, of which it gives the address."""
    loaded = "ptr" if kind == "pointer" else "i64"
    result = "i64" if kind == "number" else "ptr"
    found = "  %found = getelementptr i64, ptr %words, i64 %word" if kind == "place" else ""
    return "\n".join(
        (
            f"define internal {result} @{name}(ptr %words) alwaysinline {{",
            f"  %at = getelementptr i64, ptr %words, i64 {position}",
            f"  %word = load {loaded}, ptr %at",
            found,
            f"  ret {result} {'%found' if found else '%word'}",
            "}",
        )
    )
