"""LLVM modules: made to show one symbol only, optimized for a CPU level, and emitted as object code."""

# mypy: disable-error-code="no-untyped-call,misc"
from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager

from engine.runtime.target import process_triple


class FreedPasses(ModulePassManager):
    """A pass manager that is freed. llvmlite's inherits an empty `_dispose`, so each leaves 80 kB behind."""

    _dispose = NewPassManager._dispose


def isolate(module: Any, symbol: str) -> None:
    """Make everything in `module` internal but `symbol`.

    Other definitions may have names made of numba's counters. They are numbered, so that the same kernel is
    the same bytes in every process.
    """
    named = [*module.functions, *module.global_variables]
    for number, value in enumerate(value for value in named if not value.is_declaration):
        is_entry = value.name == symbol
        value.linkage = "external" if is_entry else "internal"
        if not is_entry:
            value.name = f"{symbol}.{number}"


def optimize(module: Any, level: str) -> Any:
    """Verify and optimize `module` for `level`; return the target machine that emits its code.

    Nothing of this host's CPU is used. Raises RuntimeError if LLVM refuses the module.
    """
    module.triple = process_triple()
    machine = target_machine(level)
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    if type(passes)._dispose is ObjectRef._dispose:
        passes.__class__ = FreedPasses
    passes.add_refprune_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return machine


def target_machine(level: str) -> Any:
    """Return a target machine for position-independent code of `level`, without features of this host."""
    return _target().create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="default", jit=True
    )


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # the machine has inline assembly
    return llvm.Target.from_triple(process_triple())
