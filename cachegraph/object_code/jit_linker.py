"""LLVM's linker in this process (LLJIT), for processors whose relocations linker.py does not know.

LLVM ends the process on objects of forms that it does not expect: elf.py has refused them.
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
from functools import cache
from typing import Any
from weakref import finalize

from cachegraph.errors import ObjectLinkError
from cachegraph.object_code.elf import ObjectFile
from cachegraph.object_code.linked import LinkedObjects
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
        "LLVMPY_LLJIT_Link": (
            *(c_void_p, c_void_p, c_char_p, POINTER(_LinkElement), c_size_t),
            *(POINTER(_SymbolAddress), c_size_t, POINTER(_SymbolAddress), c_size_t, TEXT_OUT),
        ),
        "LLVMPY_LLJIT_Dylib_Tracker_Dispose": (c_bool, c_void_p, TEXT_OUT),
    }
)


class _Tracker:
    """The memory of one call of LLVM's linker, which LLVM frees when this object is gone."""

    __slots__ = ("__weakref__",)

    def __init__(self, tracker: int) -> None:
        # At the end of the process the system frees the memory.
        finalize(self, with_text, LLVM.LLVMPY_LLJIT_Dylib_Tracker_Dispose, tracker).atexit = False


def link_by_llvm(
    objects: Sequence[ObjectFile], imports: Mapping[str, int], exports: Sequence[str]
) -> LinkedObjects:
    """Return `objects`, linked with each other and with the addresses in `imports`.

    Nothing else of the process is found by them. Raises ObjectLinkError with LLVM's message if a symbol is
    missing, or is defined twice.
    """
    contents = [found.content for found in objects]
    elements = (_LinkElement * len(contents))(
        *(_LinkElement(_OBJECT_CODE, code, len(code)) for code in contents)
    )
    known = (_SymbolAddress * len(imports))(
        *(_SymbolAddress(name.encode(), address) for name, address in imports.items())
    )
    wanted = (_SymbolAddress * len(exports))(*(_SymbolAddress(name.encode()) for name in exports))
    name = f"objects_{next(_names)}".encode()
    tables = (elements, len(elements), known, len(known), wanted, len(wanted))
    tracker, message = with_text(LLVM.LLVMPY_LLJIT_Link, _jit(), name, *tables)
    if not tracker:
        raise ObjectLinkError("linking", ", ".join(exports), message)
    return LinkedObjects({symbol.name.decode(): symbol.address for symbol in wanted}, _Tracker(tracker))


_names = itertools.count()


@cache
def _jit() -> Any:
    """Return LLVM's linker of this process; calls to libllvmlite follow each other (llvm_library.py)."""
    LLVM.LLVMPY_InitializeNativeTarget()
    LLVM.LLVMPY_InitializeNativeAsmPrinter()
    jit, message = with_text(LLVM.LLVMPY_CreateLLJITCompiler, None, True, False)
    if not jit:
        raise ObjectLinkError("starting", "LLVM's linker", message)
    return jit
