"""LLVM's linker in this process: object code becomes functions at addresses (LLVM's LLJIT).

Whoever calls this has checked the code (cachegraph/object_code/elf.py): LLVM ends the process on objects of
forms that it does not expect.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_size_t,
    c_uint8,
    c_uint64,
    c_void_p,
)
from weakref import finalize

from cachegraph.object_code.llvm_library import TEXT_OUT, LLVMFunctions, with_text

_OBJECT_CODE = 2


class _LinkElement(Structure):
    _fields_ = (("element_kind", c_uint8), ("value", c_char_p), ("value_len", c_size_t))


class _SymbolAddress(Structure):
    _fields_ = (("name", c_char_p), ("address", c_uint64))


LLVM = LLVMFunctions(
    {
        "LLVMPY_InitializeNativeTarget": (None,),
        "LLVMPY_InitializeNativeAsmPrinter": (None,),
        "LLVMPY_CreateLLJITCompiler": (c_void_p, c_void_p, c_bool, c_bool, TEXT_OUT),
        "LLVMPY_LLJITDispose": (None, c_void_p),
        "LLVMPY_LLJIT_Link": (
            *(c_void_p, c_void_p, c_char_p, POINTER(_LinkElement), c_size_t),
            *(POINTER(_SymbolAddress), c_size_t, POINTER(_SymbolAddress), c_size_t, TEXT_OUT),
        ),
        "LLVMPY_LLJIT_Dylib_Tracker_Dispose": (c_bool, c_void_p, TEXT_OUT),
    }
)


class LinkedObjects:
    """Object code in the memory of this process, which is freed with this object.

    `addresses` has the address of each symbol that was exported.
    """

    __slots__ = ("__weakref__", "addresses")

    def __init__(self, tracker: int, addresses: dict[str, int]) -> None:
        self.addresses = addresses
        # At the end of the process the system frees the memory.
        finalize(self, with_text, LLVM.LLVMPY_LLJIT_Dylib_Tracker_Dispose, tracker).atexit = False


class JITLinker:
    """A linker of objects. Code that it linked outlives it. One thread may use it at a time."""

    def __init__(self) -> None:
        LLVM.LLVMPY_InitializeNativeTarget()
        LLVM.LLVMPY_InitializeNativeAsmPrinter()
        self._names = itertools.count()
        self._jit, message = with_text(LLVM.LLVMPY_CreateLLJITCompiler, None, True, False)
        if not self._jit:
            raise RuntimeError(message)
        finalize(self, LLVM.LLVMPY_LLJITDispose, self._jit).atexit = False

    def link(
        self, objects: Sequence[bytes], imports: Mapping[str, int], exports: Sequence[str]
    ) -> LinkedObjects:
        """Return `objects`, linked with each other and with the addresses in `imports`.

        Nothing else of the process is found by them. Raises RuntimeError with LLVM's message if a symbol is
        missing, or is defined twice.
        """
        elements = (_LinkElement * len(objects))(
            *(_LinkElement(_OBJECT_CODE, code, len(code)) for code in objects)
        )
        known = (_SymbolAddress * len(imports))(
            *(_SymbolAddress(name.encode(), address) for name, address in imports.items())
        )
        wanted = (_SymbolAddress * len(exports))(*(_SymbolAddress(name.encode()) for name in exports))
        name = f"objects_{next(self._names)}".encode()
        tables = (elements, len(elements), known, len(known), wanted, len(wanted))
        tracker, message = with_text(LLVM.LLVMPY_LLJIT_Link, self._jit, name, *tables)
        if not tracker:
            raise RuntimeError(message)
        return LinkedObjects(tracker, {symbol.name.decode(): symbol.address for symbol in wanted})
