"""Object code: one object per CPU level, only allowed symbols, and the same bytes every time."""

import gc
import platform

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite.binding.ffi import ObjectRef

from cachegraph.object_code.elf import read_symbols
from engine.codegen.numba import compile as compiler
from engine.codegen.numba import contexts
from engine.codegen.numba.compile import compile_kernel
from engine.codegen.numba.contexts import freed
from engine.codegen.numba.printer import print_kernel
from engine.lowering.kernels.dot import matrix_matrix
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.operations import SIGNATURES
from engine.lowering.statements import Statement
from engine.runtime.errors import KernelCompileError
from engine.runtime.externals import is_allowed
from engine.runtime.target import compiled_levels, process_triple

TWO = ("constant", "float64", np.float64(2).tobytes())
FLAT = NestOperand("float64", (False,))


def everything():
    """Return a kernel with every operation of floats."""
    names = [op for op, signature in SIGNATURES.items() if "float64" in signature.dtypes]
    body = [
        Statement(
            op, (("input", 0), TWO)[: SIGNATURES[op].arity], "bool" if SIGNATURES[op].compares else "float64"
        )
        for op in names
    ]
    return elementwise([FLAT], body, [("value", j) for j in range(len(body))], 1)


def test_there_is_an_object_for_each_level_and_only_its_symbol_is_seen():
    objects = compile_kernel(everything(), "k_everything")
    assert tuple(objects) == compiled_levels()
    for code in objects.values():
        symbols = read_symbols(code)
        assert symbols.defined == {"k_everything"}
        assert all(is_allowed(name) for name in symbols.undefined)
        assert {"exp", "tanh", "log1p"} <= symbols.undefined


def test_externals_are_asked_for_by_name():
    for code in compile_kernel(matrix_matrix("float32", False, True), "k_dot").values():
        assert read_symbols(code).undefined - {"memset"} == {"blas_sgemm"}


def test_the_same_kernel_compiles_to_the_same_bytes():
    assert compile_kernel(everything(), "k_same") == compile_kernel(everything(), "k_same")


def test_code_that_needs_more_than_is_allowed_is_not_accepted(monkeypatch):
    monkeypatch.setattr(compiler, "is_allowed", lambda symbol: symbol != "tanh")
    with pytest.raises(KernelCompileError, match="tanh"):
        compile_kernel(everything(), "k_everything")


def assembly(kernel, level):
    bitcode = compiler._linked(compiler._lowered(print_kernel(kernel)), "k_x")
    module = llvm.parse_bitcode(bitcode)
    machine = llvm.Target.from_triple(process_triple()).create_target_machine(
        cpu=level, features="", opt=3, reloc="pic", codemodel="default", jit=True
    )
    compiler._optimize(module, machine)
    return machine.emit_assembly(module)


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="looks for x86-64 instructions"
)
@pytest.mark.parametrize(("level", "register"), [("x86-64", "%xmm"), ("x86-64-v3", "%ymm")])
@pytest.mark.parametrize(
    "kernel",
    [
        elementwise(
            [FLAT, FLAT], [Statement("add", (("input", 0), ("input", 1)), "float64")], [("value", 0)], 1
        ),
        reduction("sum", [FLAT], [], ("input", 0), 1, (0,), "float64", "float64"),
        reduction(
            "sum", [NestOperand("float64", (False, False))], [], ("input", 0), 2, (0,), "float64", "float64"
        ),
    ],
    ids=["elementwise", "rows", "columns"],
)
def test_simple_arithmetic_uses_the_levels_vectors(kernel, level, register):
    packed = [line for line in assembly(kernel, level).splitlines() if "addpd" in line]
    assert any(register in line for line in packed)


@pytest.mark.skipif(
    llvm.ModulePassManager._dispose is not ObjectRef._dispose, reason="this llvmlite frees its passes itself"
)
def test_what_llvm_and_numba_make_for_a_kernel_is_freed_when_it_is_compiled(monkeypatch):
    made, disposed = [], []

    def counting(passes):
        result = freed(passes)
        made.append(type(result))
        return result

    for module in (compiler, contexts):
        monkeypatch.setattr(module, "freed", counting)
    for kind in (contexts._ModulePasses, contexts._FunctionPasses):
        dispose = kind._dispose
        monkeypatch.setattr(kind, "_dispose", lambda self, d=dispose: (disposed.append(type(self)), d(self)))
    registries = len(contexts.contexts()[0]._registries)
    compile_kernel(everything(), "k_everything")
    gc.collect()
    assert sorted(map(str, made)) == sorted(map(str, disposed))
    assert {contexts._ModulePasses, contexts._FunctionPasses} <= set(made)
    assert len(contexts.contexts()[0]._registries) == registries
