"""The machine: a small compiled executor that runs a program's code (instructions.py), and the fast call,
which runs it when Python calls a function (fast_call.py).

    int64 machine(int64 items, int64 *registers, int64 *code, int64 pc)
    PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)

`items` is the address of an array of PyObject*, which only BIND reads; `pc` is the word to begin at. It
returns a status; unless that is HALTED, register 0 is the word that it stopped at (for YIELDED, the
word to resume at). It repeats none of the checks of check_code.

BIND reads numpy's array struct (codegen/machine.py): `is_usable` compares what it finds there with what
numpy reports.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from engine.runtime.errors import LoadError
from engine.runtime.instructions import HALTED, RESERVED, Assembler
from engine.runtime.load import LinkedKernel
from engine.runtime.python_api import OBJECT_HEAD, TUPLE_HEAD

DTYPE_WORD = OBJECT_HEAD + 8
"""The offset in a dtype of the eight bytes that hold its kind, character, byte order and type number."""


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef: a builtin function, which needs it for as long as it lives."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METH_FASTCALL_KEYWORDS = 0x80 | 0x02
_DOC = b"call($self, /, *args, **kwargs)\n--\n\nRun the function on a value per input."


class Machine:
    """A linked machine and the fast call that runs it, linked from `kernels`: `run` takes the addresses of
    items, registers and code, and the word to begin at; it is the function at `address`. `method` is the fast
    call."""

    def __init__(self, machine: LinkedKernel, fast_call: LinkedKernel) -> None:
        self.kernels = (machine, fast_call)
        self.address = machine.address
        self.run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(self.address)
        self.method = MethodDefinition(b"call", fast_call.address, METH_FASTCALL_KEYWORDS, _DOC)

    @property
    def is_usable(self) -> bool:
        """True if the machine reads this process's arrays correctly."""
        return _finds_arrays(self.run)


@cache
def process_machine(kernel: LinkedKernel, fast_call: LinkedKernel) -> Machine:
    """Return the machine in `kernel`, with its fast call; raises LoadError if it does not read this process's
    arrays correctly."""
    machine = Machine(kernel, fast_call)
    if not machine.is_usable:
        raise LoadError("trying", "the machine", "it does not read this process's arrays as numpy does")
    return machine


def dtype_word(dtype: np.dtype) -> int:
    """Return the word that BIND compares: the kind, character, byte order and type number of `dtype`,
    as numpy stores them.

    It is equal for a dtype and its copies (an unpickled array has a copy), and differs for another byte
    order.
    """
    return ctypes.c_int64.from_address(id(dtype) + DTYPE_WORD).value


def items_address(items: tuple[object, ...]) -> int:
    """Return the address of the array of PyObject* in a tuple. The tuple must outlive its use."""
    return id(items) + TUPLE_HEAD


def _finds_arrays(run: Any) -> bool:
    arrays = (np.arange(6.0).reshape(2, 3), np.zeros((0, 4)), np.array(1.5), np.ones((2, 3), order="F"))
    return all(_found(run, array) == _expected(array) for array in arrays)


def _expected(array: np.ndarray) -> list[int] | None:
    if not array.flags.c_contiguous:
        return None
    return [array.__array_interface__["data"][0], *array.shape]


def _found(run: Any, array: np.ndarray) -> list[int] | None:
    assembler = Assembler()
    first = RESERVED + 2
    assembler.emit("BIND", first, 0, RESERVED, RESERVED + 1, array.ndim)
    assembler.emit("HALT")
    code = np.array(assembler.code, dtype=np.int64)
    registers = np.zeros(first + 1 + array.ndim, dtype=np.int64)
    registers[RESERVED : RESERVED + 2] = id(np.ndarray), dtype_word(np.dtype(np.float64))
    items = (array,)
    if run(items_address(items), registers.ctypes.data, code.ctypes.data, 0) != HALTED:
        return None
    return registers[first:].tolist()
