"""LLVM modules: parsed from text or bitcode, optimized for a CPU level, and emitted as object code.

The functions of libllvmlite are called without llvmlite's Python package, whose import takes longer than
compiling several kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_void_p, string_at
from functools import cache
from typing import Any

from cachegraph.object_code.llvm_library import TEXT_OUT, LLVMFunctions, with_text
from engine.runtime.target import process_triple

LLVM = LLVMFunctions(
    {
        "LLVMPY_InitializeNativeTarget": (None,),
        "LLVMPY_InitializeNativeAsmPrinter": (None,),
        "LLVMPY_InitializeNativeAsmParser": (None,),
        "LLVMPY_ContextCreate": (c_void_p,),
        "LLVMPY_ContextDispose": (None, c_void_p),
        "LLVMPY_ParseAssembly": (c_void_p, c_void_p, c_char_p, TEXT_OUT),
        "LLVMPY_ParseBitcode": (c_void_p, c_void_p, c_char_p, c_size_t, TEXT_OUT),
        "LLVMPY_DisposeModule": (None, c_void_p),
        "LLVMPY_SetTarget": (None, c_void_p, c_char_p),
        "LLVMPY_SetDataLayout": (None, c_void_p, c_char_p),
        "LLVMPY_VerifyModule": (c_bool, c_void_p, TEXT_OUT),
        "LLVMPY_PrintModuleToString": (None, c_void_p, TEXT_OUT),
        "LLVMPY_GetTargetFromTriple": (c_void_p, c_char_p, TEXT_OUT),
        "LLVMPY_CreateTargetMachine": (
            *(c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int),
            *(c_char_p, c_char_p, c_int, c_int, c_char_p),
        ),
        "LLVMPY_CreateTargetMachineData": (c_void_p, c_void_p),
        "LLVMPY_CopyStringRepOfTargetData": (None, c_void_p, TEXT_OUT),
        "LLVMPY_DisposeTargetData": (None, c_void_p),
        "LLVMPY_TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, TEXT_OUT),
        "LLVMPY_GetBufferStart": (c_void_p, c_void_p),
        "LLVMPY_GetBufferSize": (c_size_t, c_void_p),
        "LLVMPY_DisposeMemoryBuffer": (None, c_void_p),
        "LLVMPY_CreatePipelineTuningOptions": (c_void_p,),
        "LLVMPY_PTOSetLoopVectorization": (None, c_void_p, c_bool),
        "LLVMPY_PTOSetSLPVectorization": (None, c_void_p, c_bool),
        "LLVMPY_PTOSetLoopInterleaving": (None, c_void_p, c_bool),
        "LLVMPY_DisposePipelineTuningOptions": (None, c_void_p),
        "LLVMPY_CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
        "LLVMPY_buildPerModuleDefaultPipeline": (c_void_p, c_void_p, c_int),
        "LLVMPY_DisposePassBuilder": (None, c_void_p),
        "LLVMPY_RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
        "LLVMPY_AddRefPrunePass_module": (None, c_void_p, c_int, c_size_t),
        "LLVMPY_module_AddGlobalDCEPass": (None, c_void_p),
        "LLVMPY_DisposeNewModulePassManger": (None, c_void_p),
    }
)

INLINING, KERNELS, USERS_FUNCTIONS = 0, 1, 3
"""Levels of LLVM's pipeline. The first inlines what must be. For kernels the levels above take longer and
give the same code."""
FAST_CODE, GOOD_CODE = 0, 2
"""Levels of LLVM's code generator. The first is for what runs once a call: it takes a fifth of the time, and
keeps every value in memory."""
_ALL_SUBPASSES, _SUBGRAPH_LIMIT = 0b1111, 1000
"""llvmlite's defaults for the pass that removes numba's counts of references."""
_OBJECT, _ASSEMBLY = 1, 0


class Module:
    """A module of LLVM, in a context of its own that is freed with it, for a CPU level.

    It must be closed; `open_module` does.
    """

    def __init__(self, module: int, level: str, code_level: int) -> None:
        self._module = module
        self._target = _target_machine(level, code_level)
        LLVM.LLVMPY_SetTarget(module, process_triple().encode())
        LLVM.LLVMPY_SetDataLayout(module, _data_layout(level))
        is_wrong, message = with_text(LLVM.LLVMPY_VerifyModule, module)
        if is_wrong:
            raise RuntimeError(message)

    def optimize(self, speed_level: int) -> None:
        """Run LLVM's passes of that level, and its loop vectorizer. Nothing of this host's CPU is used."""
        with ExitStack() as stack:
            own = stack.enter_context
            options = own(
                _owned(LLVM.LLVMPY_CreatePipelineTuningOptions(), LLVM.LLVMPY_DisposePipelineTuningOptions)
            )
            LLVM.LLVMPY_PTOSetLoopVectorization(options, True)
            # In kernels it makes gathers and shuffles, which take longer than what they replace
            # (decision 0105).
            LLVM.LLVMPY_PTOSetSLPVectorization(options, speed_level == USERS_FUNCTIONS)
            LLVM.LLVMPY_PTOSetLoopInterleaving(options, True)
            builder = own(
                _owned(LLVM.LLVMPY_CreatePassBuilder(self._target, options), LLVM.LLVMPY_DisposePassBuilder)
            )
            pipeline = LLVM.LLVMPY_buildPerModuleDefaultPipeline(builder, speed_level)
            passes = own(_owned(pipeline, LLVM.LLVMPY_DisposeNewModulePassManger))
            if speed_level == USERS_FUNCTIONS:
                LLVM.LLVMPY_AddRefPrunePass_module(passes, _ALL_SUBPASSES, _SUBGRAPH_LIMIT)
                LLVM.LLVMPY_module_AddGlobalDCEPass(passes)
            LLVM.LLVMPY_RunNewModulePassManager(passes, self._module, builder)

    def object_code(self) -> bytes:
        """Return the module as position-independent object code; raises RuntimeError if LLVM refuses it."""
        return self._emitted(_OBJECT)

    def assembly(self) -> str:
        """Return the module as assembly; raises RuntimeError if LLVM refuses it."""
        return self._emitted(_ASSEMBLY).decode()

    def __str__(self) -> str:
        return with_text(LLVM.LLVMPY_PrintModuleToString, self._module)[1]

    def _emitted(self, form: int) -> bytes:
        buffer, message = with_text(LLVM.LLVMPY_TargetMachineEmitToMemory, self._target, self._module, form)
        if not buffer:
            raise RuntimeError(message)
        with _owned(buffer, LLVM.LLVMPY_DisposeMemoryBuffer):
            return string_at(LLVM.LLVMPY_GetBufferStart(buffer), LLVM.LLVMPY_GetBufferSize(buffer))


@contextmanager
def open_module(source: str | bytes, level: str, code_level: int = GOOD_CODE) -> Iterator[Module]:
    """Return the module that `source`, IR as text or bitcode, describes, for the CPU level `level`. Its code
    is generated at `code_level`.

    Raises RuntimeError with LLVM's message if it is not valid.
    """
    with _owned(LLVM.LLVMPY_ContextCreate(), LLVM.LLVMPY_ContextDispose) as context:
        if isinstance(source, str):
            module, message = with_text(LLVM.LLVMPY_ParseAssembly, context, source.encode())
        else:
            module, message = with_text(LLVM.LLVMPY_ParseBitcode, context, source, len(source))
        if not module:
            raise RuntimeError(message)
        with _owned(module, LLVM.LLVMPY_DisposeModule):
            yield Module(module, level, code_level)


def compiled_ir(source: str, level: str, code_level: int = GOOD_CODE) -> bytes:
    """Return the object code of the IR `source` for the CPU level `level`, generated at `code_level`.

    What must be is inlined; no other pass runs.

    Raises RuntimeError with LLVM's message if it is not valid.
    """
    with open_module(source, level, code_level) as module:
        module.optimize(INLINING)
        return module.object_code()


@contextmanager
def _owned(handle: int, dispose: Callable[[int], Any]) -> Iterator[int]:
    try:
        yield handle
    finally:
        dispose(handle)


@cache
def _target() -> int:
    LLVM.LLVMPY_InitializeNativeTarget()
    LLVM.LLVMPY_InitializeNativeAsmPrinter()
    LLVM.LLVMPY_InitializeNativeAsmParser()  # users' functions may have inline assembly
    target, message = with_text(LLVM.LLVMPY_GetTargetFromTriple, process_triple().encode())
    if not target:
        raise RuntimeError(message)
    return int(target)


@cache
def _target_machine(level: str, code_level: int) -> int:
    """Return what emits code of `level`, without features of this host. It lives as long as the process."""
    text = (process_triple().encode(), level.encode(), b"")
    found = LLVM.LLVMPY_CreateTargetMachine(_target(), *text, code_level, b"pic", b"default", 0, 1, b"")
    if not found:
        raise RuntimeError(f"LLVM has no target machine for {process_triple()}, {level}")
    return int(found)


@cache
def _data_layout(level: str) -> bytes:
    with _owned(
        LLVM.LLVMPY_CreateTargetMachineData(_target_machine(level, GOOD_CODE)), LLVM.LLVMPY_DisposeTargetData
    ) as data:
        return with_text(LLVM.LLVMPY_CopyStringRepOfTargetData, data)[1].encode()
