"""Compilation of the fast call to object code."""

from __future__ import annotations

from engine.codegen.fast_call.source import ENTRY, fast_call_source
from engine.codegen.llvm.modules import FAST_CODE, INLINING, open_module


def compile_fast_call(symbol: str, level: str) -> bytes:
    """Return the object code of the fast call for the CPU level `level`, under the name `symbol`."""
    source = fast_call_source().replace(f"@{ENTRY}(", f"@{symbol}(")
    with open_module(source, level, FAST_CODE) as module:
        module.optimize(INLINING)
        return module.object_code()
