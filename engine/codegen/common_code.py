"""The compiled code that all programs of a process have in common: the machine, and the fast call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from cachegraph.named_tuples import NamedTuple
from engine.codegen import machine
from engine.codegen.fast_call import source as fast_call
from engine.codegen.llvm.modules import FAST_CODE, GOOD_CODE, compiled_ir


class CommonCode(NamedTuple):
    """One of the two: IR that shows one function, `entry`, and the level at which its code is generated."""

    name: str
    source: Callable[[], str]
    entry: str
    code_level: int

    def compile(self, symbol: str, level: str) -> bytes:
        """Return the object code for the CPU level `level`, under the name `symbol`.

        It is compiled once in a process, also where nothing is stored.
        """
        return _compiled(self, symbol, level)


@cache
def _compiled(code: CommonCode, symbol: str, level: str) -> bytes:
    # More passes than this would take twice as long, and the machine would run no faster.
    return compiled_ir(code.source().replace(f"@{code.entry}(", f"@{symbol}("), level, code.code_level)


COMMON_CODE = (
    CommonCode("machine", machine.machine_source, machine.ENTRY, GOOD_CODE),
    CommonCode("fast call", fast_call.fast_call_source, fast_call.ENTRY, FAST_CODE),
)
"""In the order in which a program names them (runtime/program.py)."""
