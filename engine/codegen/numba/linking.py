"""The module of a kernel with the functions of user Ops in it, linked by llvmlite's package."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import llvmlite.binding as llvm


def linked_bitcode(text: str, functions: Iterable[bytes], symbol: str) -> bytes:
    """Return the module `text` with the modules `functions` (bitcode), of which it shows only `symbol`.

    Raises RuntimeError if LLVM refuses one of them.
    """
    # A context of its own frees what the module has interned; modules have to be closed before it.
    context = llvm.create_context()
    with closing(llvm.parse_assembly(text, context)) as module:
        own = {value.name for value in _definitions(module)}
        for bitcode in functions:
            with closing(llvm.parse_bitcode(bitcode, context)) as function:
                module.link_in(function)
        isolate(module, symbol, own)
        content: bytes = module.as_bitcode()
        return content


def isolate(module: Any, symbol: str, own: Iterable[str] = ()) -> None:
    """Make everything in `module` internal but `symbol` and what is the kernel's `own`, which is so already.

    Other definitions may have names made of numba's counters. They are numbered, so that the same kernel is
    the same bytes in every process.
    """
    for number, value in enumerate(_definitions(module)):
        if value.name == symbol:
            value.linkage = "external"
        elif value.name not in own:
            value.linkage = "internal"
            value.name = f"{symbol}.{number}"


def _definitions(module: Any) -> list[Any]:
    named = [*module.functions, *module.global_variables]
    return [value for value in named if not value.is_declaration]
