"""Compilation of the C entry to object code."""

from __future__ import annotations

from engine.codegen.c_entry.source import ENTRY, c_entry_source
from engine.codegen.llvm.modules import compiled_ir


def compile_c_entry(symbol: str, level: str) -> bytes:
    """Return the object code of the entry for the CPU level `level`, under the name `symbol`."""
    return compiled_ir(c_entry_source().replace(f"@{ENTRY}(", f"@{symbol}("), level)
