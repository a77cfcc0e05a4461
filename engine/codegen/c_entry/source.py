"""The C entry as LLVM IR text.

    int64 symbol(int64 which)        the address of one of the functions of runtime/c_entry.py

The functions find all that belongs to a program through their last argument, so the text has no address,
and its code serves every program of a process. They allocate by the C library's functions, whose
addresses the context has, and use nothing of Python's.
"""

from __future__ import annotations

from string import Template

from engine.codegen.arrays import ARRAYS
from engine.codegen.c_entry.entries import ENTRIES
from engine.codegen.c_entry.running import RUNNING
from engine.codegen.c_entry.states import STATES
from engine.codegen.fast_call.source import reader
from engine.runtime import c_entry
from engine.runtime.instructions import HALTED, PAUSED, YIELDED

ENTRY = "c_entry"
"""The name of the one function that the source shows."""

_SHOWN = f"""
define i64 @{ENTRY}(i64 %which) {{
  %is.density = icmp eq i64 %which, {c_entry.DENSITY}
  %is.expand = icmp eq i64 %which, {c_entry.EXPAND}
  %others = select i1 %is.expand, i64 ptrtoint (ptr @expand to i64), i64 ptrtoint (ptr @dispose to i64)
  %address = select i1 %is.density, i64 ptrtoint (ptr @density to i64), i64 %others
  ret i64 %address
}}
"""


def c_entry_source() -> str:
    """Return the text."""
    constants = {
        "HALTED": HALTED,
        "YIELDED": YIELDED,
        "PAUSED": PAUSED,
        "DATA": c_entry.DATA,
        "RANK": c_entry.RANK,
        "LENGTHS": c_entry.LENGTHS,
        "ARRAY_SIZE": 8 * c_entry.ARRAY_WORDS,
        "SLOTS": c_entry.SLOTS,
        "SLOT_WORDS": c_entry.SLOT_WORDS,
        "REFUSED": c_entry.REFUSED,
        "DENSITY_FAILED": c_entry.DENSITY_FAILED,
        "GRADIENT_NOT_FINITE": c_entry.GRADIENT_NOT_FINITE,
        "DENSITY_NOT_FINITE": c_entry.DENSITY_NOT_FINITE,
        "EXPANSION_FAILED": c_entry.EXPANSION_FAILED,
    }
    return "\n".join(
        (
            _SHOWN,
            *(reader(f"context.{name}", kind, k) for k, (name, kind) in enumerate(c_entry.CONTEXT.items())),
            *(Template(part).substitute(constants) for part in (ENTRIES, ARRAYS, RUNNING, STATES)),
        )
    )
