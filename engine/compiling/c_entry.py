"""`c_entry`: a function of C that runs a compiled function, its code found in the cache or compiled."""

from __future__ import annotations

from functools import cache
from time import perf_counter

from cachegraph.cache import Artifact, Correction, Found, default_cache
from cachegraph.fingerprint.encoding import encode
from engine.codegen.c_entry.source import c_entry_source
from engine.compiling.executable import Function
from engine.compiling.load import symbol_of
from engine.compiling.surroundings import kernel_key
from engine.runtime.c_entry import C_ENTRY_VERSION, DENSITY, EXPAND, CEntry, EntryInterface, SharedInput
from engine.runtime.container import pack_kernel
from engine.runtime.errors import EntryRefused
from engine.runtime.execution import Execution
from engine.runtime.load import LinkedKernel, process_loader
from engine.runtime.target import process_level, process_triple

__all__ = ["DENSITY", "EXPAND", "CEntry", "EntryInterface", "EntryRefused", "SharedInput", "c_entry"]


def c_entry(function: Function, interface: EntryInterface) -> CEntry:
    """Return the function of C that `interface` describes, which runs `function` without Python.

    Raises EntryRefused for a function that needs Python, updates a shared variable or gives other things
    than C takes.
    """
    runner = function.runner
    if not isinstance(runner, Execution):
        raise EntryRefused("making a C entry for", function.label, "it is not compiled")
    return CEntry(_entry_code(process_level()), runner, interface)


@cache
def _entry_code(level: str) -> LinkedKernel:
    """Return the code that all entries of a process share, linked."""
    key = kernel_key(encode(("c entry", C_ENTRY_VERSION, c_entry_source())), level)
    symbol = symbol_of(key)

    def build() -> Artifact:
        from engine.codegen.c_entry.compile import compile_c_entry  # LLVM, which a hit does not need

        begin = perf_counter()
        content = pack_kernel(symbol, process_triple(), level, compile_c_entry(symbol, level))
        seconds = {"compile": perf_counter() - begin}
        return Artifact(content, seconds=seconds, summary="the C entry of programs")

    def load(payload: bytes) -> LinkedKernel:
        return process_loader().load(payload, symbol)

    def verify(found: Found[LinkedKernel]) -> Correction[LinkedKernel] | None:
        artifact = build()
        if artifact.payload == found.value.content:
            return None
        process_loader().forget(symbol)
        return Correction("its object code is another", artifact, load(artifact.payload))

    return default_cache().get_or_build(key, build, load, verify).value
