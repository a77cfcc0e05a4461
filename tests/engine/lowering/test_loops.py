"""Kernels are identified by their computation alone, checked before LLVM sees them, and printed alike."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.primitives import digest
from engine.codegen.llvm.printer import print_kernel
from engine.lowering import loops
from engine.lowering.check import check_kernel
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.lowering.loops import (
    Array,
    Carried,
    Compute,
    Fail,
    If,
    Integer,
    Kernel,
    Loop,
    Number,
    Place,
    Pointer,
    ReadElement,
    Reference,
    WriteElement,
)
from engine.lowering.loops import Call as CallNode
from engine.lowering.statements import Statement
from engine.runtime.errors import InvalidKernel, KernelCompileError
from engine.runtime.target import process_level

X, Y, N = Pointer("x", "float64"), Pointer("y", "float64"), Integer("n")
COPY = Loop(
    "i", 0, "n", 1, (ReadElement("a", Place("x", (("i",),))), WriteElement(Place("y", (("i",),)), "a"))
)
DOUBLED = replace(
    COPY,
    body=(
        ReadElement("a", Place("x", (("i",),))),
        Compute("twice", "add", ("a", "a"), "float64"),
        WriteElement(Place("y", (("i",),)), "twice"),
    ),
)
ONE = Number("one", "int64", (1).to_bytes(8, "little"))
TRUE = Number("yes", "bool", b"\1")


def kernel(*nodes, parameters=(X, Y, N)):
    return Kernel(tuple(parameters), tuple(nodes), tuple(("argument",) for _ in parameters), "a test's")


def add(**changes):
    described = {"op": "add", "dtype": "float64", "arguments": (("input", 0), ("input", 1))} | changes
    operands = [NestOperand(described["dtype"], (False,))] * 2
    return elementwise(operands, [Statement(**described)], [("value", 0)], 1)


def test_a_node_is_encoded_as_a_dataclass_of_its_fields():
    @dataclass
    class Place:
        pointer: str
        terms: tuple[tuple[str, ...], ...]

    Place.__module__, Place.__qualname__ = loops.__name__, "Place"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "Place", Place)
        due = encode(Place("x", (("i", "n"),)))
    assert encode(loops.Place("x", (("i", "n"),))) == due


def test_what_is_computed_decides_the_encoding():
    kernels = [
        add(),
        add(op="sub"),
        add(dtype="float32"),
        add(arguments=(("input", 1), ("input", 0))),
        add(arguments=(("input", 0), ("constant", "float64", np.float64(0.0).tobytes()))),
        add(arguments=(("input", 0), ("constant", "float64", np.float64(-0.0).tobytes()))),
        elementwise([NestOperand("float64", (False,), True)] * 2, [], [("input", 0)], 1),
    ]
    assert len({kernel.encoding() for kernel in kernels}) == len(kernels)


def test_what_a_caller_passes_and_a_reader_sees_does_not_decide_it():
    other = Kernel(add().parameters, add().body, tuple(("else",) for _ in add().arguments), "another summary")
    assert other.encoding() == add().encoding()


def test_kernels_of_another_rank_share_code_when_their_loops_are_the_same():
    flat = elementwise([NestOperand("float64", (False,))], [], [("input", 0)], 1)
    cube = elementwise([NestOperand("float64", (False,) * 3)], [], [("input", 0)], 3)
    assert flat.encoding() == cube.encoding()
    assert flat.arguments != cube.arguments


def test_encoding_and_source_are_the_same_in_every_process():
    script = """
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.kernels.reduce import reduction
from engine.codegen.llvm.printer import print_kernel
from cachegraph.fingerprint.primitives import digest
operand = NestOperand("float64", (False, False))
kernel = reduction("sum", [operand], [], ("input", 0), 2, (0,), "float64", "float64")
print(digest(kernel.encoding()).hex(), digest(print_kernel(kernel, 'k_x').text.encode()).hex())
"""
    here = reduction(
        "sum", [NestOperand("float64", (False, False))], [], ("input", 0), 2, (0,), "float64", "float64"
    )
    expected = f"{digest(here.encoding()).hex()} {digest(print_kernel(here, 'k_x').text.encode()).hex()}"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


def test_a_kernel_is_printed_as_one_function():
    assert print_kernel(kernel(COPY), "k_x").text.splitlines() == [
        'define i32 @"k_x"(ptr %arguments) nounwind {',
        "entry:",
        "  br label %start",
        "start:",
        "  %v1 = getelementptr inbounds i64, ptr %arguments, i64 0",
        "  %v2 = load ptr, ptr %v1, align 8",
        "  %v3 = getelementptr inbounds i64, ptr %arguments, i64 1",
        "  %v4 = load ptr, ptr %v3, align 8",
        "  %v5 = getelementptr inbounds i64, ptr %arguments, i64 2",
        "  %v6 = load i64, ptr %v5, align 8",
        "  %v9 = icmp slt i64 0, %v6",
        "  br i1 %v9, label %loop7, label %after8",
        "loop7:",
        "  %v10 = phi i64 [ 0, %start ], [ %v14, %loop7 ]",
        "  %v11 = getelementptr inbounds double, ptr %v2, i64 %v10",
        "  %v12 = load double, ptr %v11, align 8",
        "  %v13 = getelementptr inbounds double, ptr %v4, i64 %v10",
        "  store double %v12, ptr %v13, align 8",
        "  %v14 = add nsw i64 %v10, 1",
        "  %v15 = icmp slt i64 %v14, %v6",
        "  br i1 %v15, label %loop7, label %after8, !llvm.loop !3",
        "after8:",
        "  ret i32 0",
        "}",
        '!2 = !{!"llvm.loop.unroll.runtime.disable"}',
        "!3 = distinct !{!3, !2}",
    ]


def test_the_reads_and_writes_of_an_independent_loop_are_parallel():
    text = print_kernel(kernel(replace(DOUBLED, independent=True)), "k_x").text
    assert text.count(", !llvm.access.group !2") == 2
    assert "label %after8, !llvm.loop !6" in text
    assert text.splitlines()[-5:] == [
        "!2 = distinct !{}",
        '!3 = !{!"llvm.loop.unroll.runtime.disable"}',
        '!4 = !{!"llvm.loop.parallel_accesses", !2}',
        '!5 = !{!"llvm.loop.interleave.count", i32 2}',
        "!6 = distinct !{!6, !3, !4, !5, !0}",
    ]


def test_a_loop_that_is_not_interleaved_says_so():
    text = print_kernel(kernel(replace(COPY, interleaved=False)), "k_x").text
    assert text.splitlines()[-2:] == [
        '!3 = !{!"llvm.loop.interleave.count", i32 1}',
        "!4 = distinct !{!4, !2, !3}",
    ]
    assert text.count("!llvm.loop !4") == 1
    assert "access.group" not in text


def test_only_what_the_passes_of_a_loop_change_in_any_order_is_reassociated():
    text = print_kernel(kernel(*total("add")), "k_x").text
    assert text.count("reassoc") == text.count("fadd") - 1 == 1


def total(op, *more, following="next"):
    body = (
        ReadElement("a", Place("x", (("i",),))),
        Compute("twice", "add", ("a", "a"), "float64"),
        Compute("next", op, ("t", "twice"), "float64"),
        *more,
    )
    zero = Number("zero", "float64", bytes(8))
    return zero, Loop("i", 0, "n", 1, body, (Carried("t", "zero", following, unordered=True),))


@pytest.mark.parametrize(
    "nodes",
    [
        total("sub"),
        total("add", following="twice"),
        total("add", Compute("again", "add", ("t", "a"), "float64")),
    ],
)
def test_what_is_no_sum_cannot_be_computed_in_any_order(nodes):
    with pytest.raises(InvalidKernel, match="in any order"):
        check_kernel(kernel(*nodes))


def test_a_sound_kernel_passes_and_its_names_have_dtypes():
    names = check_kernel(kernel(COPY))
    assert names.values == {"n": "int64", "i": "int64", "a": "float64"}
    assert names.pointers == {"x": "float64", "y": "float64"}


@pytest.mark.parametrize(
    "nodes",
    [
        (ReadElement("a", Place("z")),),
        (ReadElement("a", Place("n")),),
        (ReadElement("a", Place("x", (("i",),))),),
        (ReadElement("a", Place("x", ((),))),),
        (ReadElement("a", Place("x")), ReadElement("a", Place("x"))),
        (ReadElement("x", Place("x")),),
        (ReadElement("a", Place("x")), ReadElement("b", Place("x", (("a",),)))),
        (ReadElement("if", Place("x")),),
        (ReadElement("a b", Place("x")),),
        (ReadElement("", Place("x")),),
        (COPY, WriteElement(Place("y"), "a")),
        (COPY, COPY),
        (WriteElement(Place("y"), "n"),),
        (Number("c", "float64", b"\0" * 4),),
        (Number("c", "float128", b"\0" * 2),),
        (Compute("c", "add", ("n", "n"), "float64"),),
        (Compute("c", "system", ("n",), "int64"),),
        (Loop("i", 0, "x", 1, ()),),
        (Loop("i", -1, "n", 1, ()),),
        (Loop("i", 0, 2**63, 1, ()),),
        (Loop("i", 0, "n", 0, ()),),
        (Loop("n", 0, 3, 1, ()),),
        (ONE, Loop("i", 0, "n", 1, (), (Carried("t", "one", "t"),))),
        (ONE, Loop("i", 0, "n", 1, (), (Carried("t", "one", "nothing"),))),
        (ONE, Loop("i", 0, "n", 1, (ReadElement("f", Place("x")),), (Carried("t", "one", "f"),))),
        (If("n", ()),),
        (TRUE, If("yes", (ONE,)), Compute("c", "neg", ("one",), "int64")),
        (Fail(0),),
        (Fail(1, "x", ("n",)),),
        (Fail(1, "missing", ("n",)),),
        (Array("w", "float64", 0),),
        (Array("x", "float64", 3),),
        (CallNode("system", ()),),
        (CallNode("blas_dgemv", (Reference("x"),) * 11),),
    ],
)
def test_a_kernel_that_contradicts_itself_is_refused(nodes):
    with pytest.raises(InvalidKernel):
        check_kernel(kernel(*nodes))


def test_arguments_and_parameters_must_be_as_many():
    with pytest.raises(InvalidKernel):
        check_kernel(Kernel((X, Y, N), (COPY,), (("argument",),), "a test's"))


def test_nothing_contradictory_reaches_the_compiler():
    from engine.codegen.compile import compile_kernel

    with pytest.raises(InvalidKernel):
        compile_kernel(kernel(WriteElement(Place("y"), "n")), "k_x", process_level())


def test_a_compiler_that_fails_says_which_kernel(monkeypatch):
    from engine.codegen import compile as compiler

    def fail(*arguments, **options):
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(compiler, "open_module", fail)
    with pytest.raises(KernelCompileError) as caught:
        compiler.compile_kernel(kernel(COPY), "k_x", process_level())
    assert caught.value.subject == "a test's"
    assert "out of ideas" in caught.value.found
