"""Compilation of a kernel to object code, one object per CPU level.

The kernel is printed as LLVM IR, the functions of user Ops are linked in, and everything but the
kernel's symbol is made internal. That module is then optimized and emitted for each level, with the CPU
and features of that level and nothing of this host. The symbols of each object are checked, because
code generation adds some (memset, sincos) that the module never declared.
"""

# mypy: disable-error-code="no-untyped-call,misc"
from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager

from cachegraph.object_code.elf import read_symbols
from engine.codegen.llvm.printer import KernelText, entry_name, print_kernel
from engine.lowering.loops import Kernel
from engine.runtime.errors import KernelCompileError
from engine.runtime.externals import is_allowed
from engine.runtime.target import compiled_levels, process_triple


class _FreedPasses(ModulePassManager):
    """A pass manager that is freed; llvmlite's inherits an empty `_dispose`, and leaks 80 kB each."""

    _dispose = NewPassManager._dispose


def compile_kernel(kernel: Kernel, symbol: str) -> dict[str, bytes]:
    """Return level -> object code of `kernel` under the name `symbol`, the weakest level first.

    Raises InvalidKernel if the kernel contradicts itself, KernelCompileError if LLVM refuses it or its
    code needs more than libm and its externals, and FunctionRefused if a user function in it does.
    """
    printed = print_kernel(kernel, symbol)
    functions = _compiled_functions(printed)
    try:
        objects = {level: _emitted(printed.text, functions, symbol, level) for level in compiled_levels()}
    except Exception as error:
        raise KernelCompileError("compiling", kernel.summary, f"{type(error).__name__}: {error}") from error
    for level, code in objects.items():
        _check_symbols(code, symbol, f"{kernel.summary} for {level}")
    return objects


def _compiled_functions(printed: KernelText) -> list[bytes]:
    """Return the bitcode of the user functions that the kernel calls; raises FunctionRefused."""
    if not printed.functions:
        return []
    from engine.codegen.numba.functions import entry_bitcode  # numba, which no other kernel needs

    return [entry_bitcode(function, entry_name(function)) for function in printed.functions]


def _emitted(text: str, functions: list[bytes], symbol: str, level: str) -> bytes:
    # Types and constants are freed with this context, before which modules must be closed.
    context = llvm.create_context()
    with closing(llvm.parse_assembly(text, context)) as module:
        for bitcode in functions:
            with closing(llvm.parse_bitcode(bitcode, context)) as function:
                module.link_in(function)
        isolate(module, symbol)
        code: bytes = optimize(module, level).emit_object(module)
    return code


def isolate(module: Any, symbol: str) -> None:
    """Make everything in `module` internal but `symbol`.

    numba puts counters into the names of other definitions. They are numbered here instead, so that one
    kernel is the same bytes in every process.
    """
    named = [*module.functions, *module.global_variables]
    for number, value in enumerate(value for value in named if not value.is_declaration):
        is_entry = value.name == symbol
        value.linkage = "external" if is_entry else "internal"
        if not is_entry:
            value.name = f"{symbol}.{number}"


def optimize(module: Any, level: str) -> Any:
    """Verify and optimize `module` for `level`; return the target machine that emits its code."""
    module.triple = process_triple()
    machine = _target().create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="default", jit=True
    )
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    if type(passes)._dispose is ObjectRef._dispose:
        passes.__class__ = _FreedPasses
    passes.add_refprune_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return machine


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(process_triple())


def _check_symbols(code: bytes, symbol: str, subject: str) -> None:
    symbols = read_symbols(code)
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise KernelCompileError("compiling", subject, f"its code needs {', '.join(refused)}")
    if symbols.defined != {symbol}:
        found = f"its code defines {', '.join(sorted(symbols.defined))}"
        raise KernelCompileError("compiling", subject, found)
