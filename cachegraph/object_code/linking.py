"""Linking of object code into this process: functions at addresses."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cachegraph.object_code.elf import ObjectFile

if TYPE_CHECKING:
    from cachegraph.object_code.linked import LinkedObjects


def link(objects: Sequence[ObjectFile], imports: Mapping[str, int], exports: Sequence[str]) -> LinkedObjects:
    """Return `objects`, linked with each other and with the addresses in `imports`.

    Nothing else of the process is found by them. Raises ObjectLinkError if a symbol is missing, or is defined
    twice, or if the system gives no memory for code; LLVMLibraryError if LLVM is needed and not usable.
    """
    if platform.machine() == "x86_64":
        from cachegraph.object_code.linker import link_for_x86_64

        return link_for_x86_64(objects, imports, exports)
    from cachegraph.object_code.jit_linker import link_by_llvm

    return link_by_llvm(objects, imports, exports)
