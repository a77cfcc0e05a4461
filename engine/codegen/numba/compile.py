"""Compilation of a kernel to object code, one object for each CPU level, with numba's own pipeline.

numba's front end runs once and gives one LLVM module without Python or cfunc wrappers, with one
exported function `int32 symbol(int64 *arguments)`; everything else is internal. It is then optimized
and emitted for each level, with the CPU and features of that level and nothing of this host. The
symbols of each object are checked, because code generation adds some (memset, sincos) that the module
never declared.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import IRLegalization, NativeLowering, NoPythonBackend, NopythonTypeInference
from numba.core.untyped_passes import FixupArgs, IRProcessing, TranslateByteCode

from cachegraph.object_code.elf import read_symbols
from engine.codegen.numba.contexts import contexts, freed
from engine.codegen.numba.intrinsics import function_of
from engine.codegen.numba.printer import FUNCTION_NAME, Source, print_kernel
from engine.lowering.loops import Kernel
from engine.runtime.errors import KernelCompileError
from engine.runtime.externals import is_allowed
from engine.runtime.target import compiled_levels, process_triple
from engine.scalar.embedded import Embedded

_fit: set[str] = set()
"""The names of the user functions compiled in this process that may be parts of kernels."""
_RETURNED = re.compile(r"^\s*ret i32 (\S+)", re.MULTILINE)
"""A function that numba compiles returns a status: 0 unless it raised an exception."""
_ARGUMENTS = types.CPointer(types.int64)


def compile_kernel(kernel: Kernel, symbol: str) -> dict[str, bytes]:
    """Return level -> object code of `kernel` under the name `symbol`, the weakest level first.

    Raises InvalidKernel if the kernel contradicts itself, KernelCompileError if the compiler refuses it
    or its code needs more than libm and its externals, and FunctionRefused if a user function in it
    does.
    """
    source = print_kernel(kernel)
    _compile_functions(source.functions)
    try:
        with global_compiler_lock:
            bitcode = _linked(_lowered(source), symbol)
            objects = {level: _emitted(bitcode, level) for level in compiled_levels()}
    except Exception as error:
        raise KernelCompileError("compiling", kernel.summary, f"{type(error).__name__}: {error}") from error
    for level, code in objects.items():
        _check_symbols(code, symbol, f"{kernel.summary} for {level}")
    return objects


def _compile_functions(functions: Sequence[Embedded]) -> None:
    """Compile the user functions of a kernel; raises FunctionRefused."""
    unknown = [function for function in functions if function.name not in _fit]
    if not unknown:
        return
    # numba's full contexts, which no other kernel needs
    from engine.codegen.numba.functions import compile_function

    with global_compiler_lock:
        for function in unknown:
            compiled = compile_function(function)
            _check_function(function, compiled.library._final_module.clone(), compiled.fndesc.llvm_func_name)
            _fit.add(function.name)


def _check_function(function: Embedded, module: Any, symbol: str) -> None:
    """Raise FunctionRefused if the code under `symbol` in `module` is not fit for a kernel.

    A function on arrays must not raise: a kernel could not pass its exception on to the caller.
    """
    module, machine = _optimized(_isolated(module, symbol), compiled_levels()[0])
    returned = set(_RETURNED.findall(str(module.get_function(symbol))))
    symbols = read_symbols(machine.emit_object(module))
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise function.refused(f"its code needs {', '.join(refused)}")
    if function.ranks is not None and returned != {"0"}:
        raise function.refused("it may raise an exception")


class _KernelCompiler(compiler.CompilerBase):
    """numba's passes from bytecode to LLVM, without those for what printed kernels never contain.

    There are no array expressions, closures, literals to unroll, or variables of two types: 0.7 of the
    time in the front end.
    """

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for step in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            NopythonTypeInference,
            IRLegalization,
            NativeLowering,
            NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


def _lowered(source: Source) -> Any:
    scope = {intrinsic.name: function_of(intrinsic) for intrinsic in source.intrinsics}
    exec(compile(source.text, "<kernel>", "exec"), scope)
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    flags.error_model = "numpy"
    typing, target = contexts()
    function = scope[FUNCTION_NAME]
    return compiler.compile_extra(
        typing, target, function, (_ARGUMENTS,), types.int32, flags, {}, pipeline_class=_KernelCompiler
    )


def _linked(compiled: Any, symbol: str) -> bytes:
    """Return the bitcode of the compiled function behind an entry named `symbol`, the only visible name."""
    _add_entry(compiled, symbol)
    library = compiled.library
    module = library._final_module
    for dependency in library._linking_libraries:
        module.link_in(dependency._get_module_for_linking(), preserve=True)
    return _isolated(module.clone(), symbol)


def _isolated(module: Any, symbol: str) -> bytes:
    """Return the bitcode of `module` with nothing visible but `symbol`.

    numba puts counters into the names that user functions bring along. They are numbered here instead,
    so that one kernel is the same bytes in every process.
    """
    named = [*module.functions, *module.global_variables]
    for number, value in enumerate(value for value in named if not value.is_declaration):
        is_entry = value.name == symbol
        value.linkage = "external" if is_entry else "internal"
        if not is_entry:
            value.name = f"{symbol}.{number}"
    bitcode: bytes = module.as_bitcode()
    return bitcode


def _add_entry(compiled: Any, symbol: str) -> None:
    described, target = compiled.fndesc, compiled.target_context
    convention = target.call_conv
    module = target.create_module("entry")
    function_type = convention.get_function_type(described.restype, described.argtypes)
    callee = ir.Function(module, function_type, described.llvm_func_name)
    entry_type = ir.FunctionType(ir.IntType(32), [ir.IntType(64).as_pointer()])
    builder = ir.IRBuilder(ir.Function(module, entry_type, symbol).append_basic_block("entry"))
    status = builder.alloca(function_type.args[0].pointee)
    exception = builder.alloca(function_type.args[1].pointee)
    builder.call(callee, [status, exception, *builder.function.args])
    builder.ret(builder.load(status))
    compiled.library.add_ir_module(module)


def _emitted(bitcode: bytes, level: str) -> bytes:
    module, machine = _optimized(bitcode, level)
    code: bytes = machine.emit_object(module)
    return code


def _optimized(bitcode: bytes, level: str) -> tuple[Any, Any]:
    """Return the module in `bitcode`, optimized for `level`, and the machine that emits its code."""
    module = llvm.parse_bitcode(bitcode)
    module.verify()
    machine = llvm.Target.from_triple(process_triple()).create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="default", jit=True
    )
    _optimize(module, machine)
    return module, machine


def _optimize(module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, options)
    passes = freed(builder.getModulePassManager())
    passes.add_refprune_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def _check_symbols(code: bytes, symbol: str, subject: str) -> None:
    symbols = read_symbols(code)
    refused = sorted(name for name in symbols.undefined if not is_allowed(name))
    if refused:
        raise KernelCompileError("compiling", subject, f"its code needs {', '.join(refused)}")
    if symbols.defined != {symbol}:
        raise KernelCompileError(
            "compiling", subject, f"its code defines {', '.join(sorted(symbols.defined))}"
        )
