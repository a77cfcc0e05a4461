"""The compiled code that all programs of a process have in common: the machine, and the fast call."""

from __future__ import annotations

from collections.abc import Callable

from cachegraph.named_tuples import NamedTuple
from engine.codegen.fast_call.compile import compile_fast_call
from engine.codegen.fast_call.source import fast_call_source
from engine.codegen.machine import compile_machine, machine_source


class CommonCode(NamedTuple):
    """One of the two: `compile(symbol, level)` returns the object code of `source()` for a CPU level."""

    name: str
    source: Callable[[], str]
    compile: Callable[[str, str], bytes]


COMMON_CODE = (
    CommonCode("machine", machine_source, compile_machine),
    CommonCode("fast call", fast_call_source, compile_fast_call),
)
"""In the order in which a program names them (runtime/program.py)."""
