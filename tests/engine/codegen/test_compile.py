"""Object code: one object per CPU level, only allowed symbols, and the same bytes every time."""

import platform
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cachegraph.object_code.cpu import known_levels
from cachegraph.object_code.elf import read_symbols
from engine.codegen import compile as compiler
from engine.codegen.compile import compile_kernel
from engine.codegen.llvm import modules
from engine.codegen.llvm.ir_text import WIDTH_OF_64_BITS
from engine.codegen.llvm.modules import KERNELS, open_module
from engine.codegen.llvm.printer import print_kernel
from engine.lowering.kernels.dot import matrix_matrix
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.operations import SIGNATURES
from engine.lowering.statements import Statement
from engine.runtime.errors import KernelCompileError
from engine.runtime.externals import is_allowed
from engine.runtime.target import process_level

TWO = ("constant", "float64", np.float64(2).tobytes())
FLAT = NestOperand("float64", (False,))


def everything():
    """Return a kernel with every operation of floats."""
    names = [op for op, signature in SIGNATURES.items() if "float64" in signature.dtypes]
    body = [
        Statement(
            op,
            (("input", 0), TWO, TWO, TWO)[: SIGNATURES[op].arity],
            "bool" if SIGNATURES[op].compares else "float64",
        )
        for op in names
    ]
    return elementwise([FLAT], body, [("value", j) for j in range(len(body))], 1)


@pytest.mark.parametrize("level", known_levels())
def test_only_the_kernels_symbol_is_seen_at_each_level(level):
    symbols = read_symbols(compile_kernel(everything(), "k_everything", level))
    assert symbols.defined == {"k_everything"}
    assert all(is_allowed(name) for name in symbols.undefined)
    assert {"lgamma", "tgamma"} <= symbols.undefined


@pytest.mark.parametrize(("kind", "has_width"), [("sum", True), ("prod", False)])
def test_only_what_is_added_in_any_order_is_told_how_wide_vectors_are(kind, has_width):
    body = [Statement("exp", (("input", 0),), "float64")]
    kernel = reduction(kind, [FLAT], body, ("value", 0), 1, (0,), "float64", "float64")
    loops = [line for line in print_kernel(kernel, "k").text.splitlines() if " = distinct !{" in line]
    assert any(f"{WIDTH_OF_64_BITS}}}" in line for line in loops) == has_width


def test_externals_are_asked_for_by_name():
    code = compile_kernel(matrix_matrix("float32", False, True), "k_dot", process_level())
    assert read_symbols(code).undefined - {"memset"} == {"blas_sgemm"}


def test_the_same_kernel_compiles_to_the_same_bytes():
    first, second = (compile_kernel(everything(), "k_same", process_level()) for _ in range(2))
    assert first == second


def test_code_that_needs_more_than_is_allowed_is_not_accepted(monkeypatch):
    monkeypatch.setattr(compiler, "is_allowed", lambda symbol: symbol != "tgamma")
    with pytest.raises(KernelCompileError, match="tgamma"):
        compile_kernel(everything(), "k_everything", process_level())


def assembly(kernel, level):
    with open_module(print_kernel(kernel, "k_x").module(level), level) as module:
        module.optimize(KERNELS)
        return module.assembly()


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


def test_passes_run_for_loops_only(monkeypatch):
    body = [Statement("exp", (("input", 0),), "float64")]
    scalar, vector = (
        elementwise([NestOperand("float64", (False,) * n)], body, [("value", 0)], n) for n in (0, 1)
    )
    optimized = []
    monkeypatch.setattr(modules.Module, "optimize", lambda module, level: optimized.append(level))
    assert read_symbols(compile_kernel(scalar, "k_scalar", process_level())).defined == {"k_scalar"}
    assert optimized == []
    compile_kernel(vector, "k_vector", process_level())
    assert optimized == [KERNELS]


MADE = ("ContextCreate", "ParseAssembly", "CreatePipelineTuningOptions", "CreatePassBuilder")
MADE += ("buildPerModuleDefaultPipeline", "TargetMachineEmitToMemory")


def test_llvms_objects_are_freed_when_a_kernel_is_compiled(monkeypatch):
    made, freed = [], []
    compile_kernel(everything(), "k_everything", process_level())
    for name in modules.LLVM.signatures:
        call = getattr(modules.LLVM, name)
        if "Dispose" in name:
            monkeypatch.setattr(modules.LLVM, name, lambda it, call=call: (freed.append(it), call(it)))
        if name.removeprefix("LLVMPY_") in MADE:
            kept = partial(lambda call, *given: (made.append(it := call(*given)), it)[1], call)
            monkeypatch.setattr(modules.LLVM, name, kept)
    compile_kernel(everything(), "k_everything", process_level())
    assert sorted(made) == sorted(freed)
    assert len(made) == len(MADE)


def test_a_kernel_without_functions_of_user_ops_is_compiled_without_numba():
    script = """
import sys
from tests.engine.codegen.test_compile import compile_kernel, everything, process_level
compile_kernel(everything(), "k_everything", process_level())
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=True)
