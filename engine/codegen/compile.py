"""Compilation of a kernel to object code for a CPU level.

The kernel is printed as LLVM IR, the functions of user Ops are linked in, and everything but the kernel's
symbol is made internal. The module is then optimized and emitted. The symbols of the object are checked,
because code generation adds some (memset, sincos) that the module never declared.
"""

from __future__ import annotations

from cachegraph.object_code.elf import read_symbols
from engine.codegen.llvm.modules import KERNELS, USERS_FUNCTIONS, open_module
from engine.codegen.llvm.printer import KernelText, entry_name, print_kernel
from engine.lowering.loops import Kernel
from engine.runtime.errors import KernelCompileError
from engine.runtime.externals import is_allowed


def compile_kernel(kernel: Kernel, symbol: str, level: str) -> bytes:
    """Return the object code of `kernel` for the CPU level `level`, under the name `symbol`.

    Raises InvalidKernel if the kernel contradicts itself, KernelCompileError if LLVM refuses it or its code
    needs more than libm and its externals, FunctionRefused if that is so for the function of a user Op in it.
    """
    printed = print_kernel(kernel, symbol)
    text = printed.module(level)
    source = _with_functions(printed, text, symbol) if printed.functions else text
    try:
        with open_module(source, level) as module:
            if printed.functions:
                module.optimize(USERS_FUNCTIONS)
            elif printed.has_loops:  # other code is as fast without passes
                module.optimize(KERNELS)
            code = module.object_code()
    except Exception as error:
        raise KernelCompileError("compiling", kernel.summary, f"{type(error).__name__}: {error}") from error
    _check_symbols(code, symbol, f"{kernel.summary} for {level}")
    return code


def _with_functions(printed: KernelText, text: str, symbol: str) -> bytes:
    """Return the bitcode of the module `text` and of the functions of user Ops; raises FunctionRefused."""
    from engine.codegen.numba.functions import entry_bitcode  # numba, which no other kernel needs
    from engine.codegen.numba.linking import linked_bitcode

    functions = [entry_bitcode(function, entry_name(function)) for function in printed.functions]
    return linked_bitcode(text, functions, symbol)


def _check_symbols(code: bytes, symbol: str, subject: str) -> None:
    symbols = read_symbols(code)
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise KernelCompileError("compiling", subject, f"its code needs {', '.join(refused)}")
    if symbols.defined != {symbol}:
        found = f"its code defines {', '.join(sorted(symbols.defined))}"
        raise KernelCompileError("compiling", subject, found)
