"""Only checked code of this machine is linked, once, and it runs in a process that never imports numba."""

import ctypes
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from cachegraph.errors import ObjectFormatError
from cachegraph.object_code.cpu import known_levels, machine_levels
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.statements import Statement
from engine.runtime.container import pack_kernel
from engine.runtime.errors import ForeignTarget, KernelFormatError, LoadError
from engine.runtime.load import Loader
from engine.runtime.target import process_level, process_triple, runnable_levels

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


@pytest.fixture(scope="module")
def kernel(stored):
    operand = NestOperand("float64", (False,))
    body = [
        Statement("exp", (("input", 0),), "float64"),
        Statement("log1p", (("value", 0),), "float64"),
    ]
    return stored(elementwise([operand], body, [("value", 1)], 1))


def packed_source(symbol, source, triple=None):
    """A stored kernel made of any LLVM IR."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    level = process_level()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=level, features="", reloc="pic", codemodel="default", jit=True
    )
    code = target.emit_object(llvm.parse_assembly(source))
    return pack_kernel(symbol, triple or process_triple(), level, code)


def call(kernel, x):
    result = np.empty_like(x)
    words = np.array([x.ctypes.data, x.size, result.ctypes.data], dtype=np.int64)
    assert CALL(kernel.address)(words.ctypes.data) == 0
    return result


def test_a_loaded_kernel_computes(kernel):
    symbol, content = kernel
    loader, x = Loader(), np.linspace(-3, 3, 50)
    np.testing.assert_allclose(call(loader.load(content, symbol), x), np.log1p(np.exp(x)), rtol=1e-14)


def test_a_kernel_is_linked_once(kernel):
    symbol, content = kernel
    loader = Loader()
    linked = loader.load(content, symbol)
    assert loader.load(content, symbol) is linked
    assert loader.load_many({symbol: content})[symbol] is linked


def mapped(address):
    """Tell whether this process has memory at `address` that it may run."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions = line.split()[:2]
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= address < last:
            return "x" in permissions
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the process's memory is not listed")
def test_code_goes_with_the_last_kernel_that_was_linked_with_it():
    sources = {f"k_{n}": f"define i32 @k_{n}(ptr %a) {{ ret i32 {n} }}" for n in range(2)}
    loader = Loader()
    kernels = loader.load_many({symbol: packed_source(symbol, text) for symbol, text in sources.items()})
    address = kernels.pop("k_0").address
    assert CALL(address)(None) == 0
    del loader
    assert CALL(kernels["k_1"].address)(None) == 1
    kernels.clear()
    assert not mapped(address)


def test_a_kernel_that_nothing_holds_any_more_is_linked_again(kernel):
    symbol, content = kernel
    loader = Loader()
    for _ in range(2):
        assert call(loader.load(content, symbol), np.ones(1)) > 1
        with pytest.raises(KeyError):
            loader.linked(symbol)


def test_many_kernels_are_linked_at_once():
    sources = {f"k_{n}": f"define i32 @k_{n}(ptr %a) {{ ret i32 {n} }}" for n in range(20)}
    loader = Loader()
    kernels = loader.load_many({symbol: packed_source(symbol, text) for symbol, text in sources.items()})
    assert [CALL(kernel.address)(None) for kernel in kernels.values()] == list(range(20))


def test_threads_share_a_loader(kernel):
    symbol, content = kernel
    loader, start = Loader(), threading.Barrier(8)

    def load():
        start.wait(10)
        return loader.load(content, symbol)

    with ThreadPoolExecutor(8) as pool:
        found = {future.result() for future in [pool.submit(load) for _ in range(8)]}
    assert len(found) == 1


@pytest.mark.parametrize(
    "wanted", ["system", "PyErr_SetString", "NRT_Allocate", "malloc", "blas_nothing", "numba_gamma"]
)
def test_code_that_asks_for_what_no_kernel_may_have_is_refused(wanted):
    source = f"declare void @{wanted}()\ndefine i32 @k_x(ptr %a) {{ call void @{wanted}() ret i32 0 }}"
    with pytest.raises(LoadError, match=wanted):
        Loader().load(packed_source("k_x", source), "k_x")


def test_code_that_defines_another_name_is_refused():
    source = "define i32 @k_x(ptr %a) { ret i32 0 }\ndefine double @exp(double %x) { ret double 0.0 }"
    with pytest.raises(LoadError, match="exp"):
        Loader().load(packed_source("k_x", source), "k_x")


def test_a_kernel_stored_under_another_symbol_is_refused(kernel):
    with pytest.raises(LoadError):
        Loader().load(kernel[1], "k_other")


def test_a_kernel_of_another_triple_is_foreign():
    content = packed_source("k_x", "define i32 @k_x(ptr %a) { ret i32 0 }", triple="riscv64-unknown-elf")
    with pytest.raises(ForeignTarget, match="riscv64"):
        Loader().load(content, "k_x")


def test_a_kernel_of_no_level_of_this_machine_is_foreign():
    with pytest.raises(ForeignTarget):
        Loader().load(pack_kernel("k_x", process_triple(), "x86-64-v9", b"code"), "k_x")


@pytest.mark.skipif(len(machine_levels()) == 1, reason="this machine has but one CPU level")
def test_a_kernel_of_a_better_level_than_a_process_runs_is_foreign(kernel, monkeypatch):
    better, lesser = machine_levels()[:2]
    symbol, content = kernel
    monkeypatch.setenv("CACHEGRAPH_CPU", lesser)
    with pytest.raises(ForeignTarget, match=f"it is for {better}; this process runs {lesser}"):
        Loader().load(content, symbol)


def test_a_damaged_kernel_is_refused_and_the_loader_goes_on(kernel):
    symbol, content = kernel
    loader = Loader()
    for position in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        with pytest.raises(KernelFormatError):
            loader.load(bytes(damaged), symbol)
    assert call(loader.load(content, symbol), np.ones(1)) > 1


def test_bytes_that_are_no_object_are_refused():
    content = pack_kernel("k_x", process_triple(), process_level(), b"not an object at all")
    with pytest.raises(ObjectFormatError):
        Loader().load(content, "k_x")


def test_one_bad_kernel_of_many_leaves_none_linked(kernel):
    symbol, content = kernel
    loader = Loader()
    with pytest.raises(KernelFormatError):
        loader.load_many({symbol: content, "k_bad": b"damaged"})
    with pytest.raises(LoadError):
        loader.load(content, "k_other")
    assert call(loader.load(content, symbol), np.ones(1)) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_uses_its_parents_code_and_links_more(kernel):
    symbol, content = kernel
    loader = Loader()
    linked = loader.load(content, symbol)
    more = packed_source("k_more", "define i32 @k_more(ptr %a) { ret i32 42 }")
    child = os.fork()
    if child == 0:
        answer = loader.load(more, "k_more")
        right = call(linked, np.zeros(2))[1] == np.log(2) and CALL(answer.address)(None) == 42
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_kernel_runs_in_a_process_without_numba(kernel, tmp_path):
    symbol, content = kernel
    (tmp_path / "kernel").write_bytes(content)
    script = f"""
import ctypes, pathlib, sys
import numpy as np
from engine.runtime.load import process_loader
content = pathlib.Path({str(tmp_path / "kernel")!r}).read_bytes()
kernel = process_loader().load(content, {symbol!r})
f = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(kernel.address)
x, result = np.zeros(4), np.empty(4)
assert f(np.array([x.ctypes.data, 4, result.ctypes.data]).ctypes.data) == 0
assert np.allclose(result, np.log(2))
assert not {{"numba", "scipy", "sqlalchemy"}} & set(sys.modules)
"""
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True, timeout=60)


def test_the_best_level_comes_first_and_the_weakest_is_always_there():
    levels = runnable_levels()
    assert levels[-1] == known_levels()[0]
    assert set(levels) <= set(known_levels())


_ASKING = """
import logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
import numpy._core._multiarray_umath as numpy_core
numpy_core.__cpu_features__.clear()  # what numpy says of the CPU changes from release to release
import engine, engine.tensor as pt
from engine.runtime import load
taken = set()
known = load.unpack_kernel
load.unpack_kernel = lambda content: (stored := known(content), taken.add(stored.level))[0]
import cachegraph.object_code.cpu as cpu
present = cpu.host_features()
cpu.host_features = lambda: present - {lacking}
x = pt.vector("x")
assert engine.function([x], pt.exp(x) + 1)([0.0]) == 2
print(taken)
"""


NOT_USED = "the CPU level that is asked for is not used: reading CACHEGRAPH_CPU: found"


@pytest.mark.skipif(len(known_levels()) == 1, reason="there is but one level here")
@pytest.mark.parametrize(
    ("lacking", "asked", "expected"),
    [
        (set(), "x86-64-v4", "{'x86-64-v4'}"),
        (set(), "x86-64-v3", "{'x86-64-v3'}"),
        (set(), "x86-64", "{'x86-64'}"),
        ({"avx512vl"}, "", "{'x86-64-v3'}"),
        ({"avx2", "avx512vl"}, "", "{'x86-64'}"),
        (
            {"avx512vl"},
            "x86-64-v4",
            f"{NOT_USED} 'x86-64-v4'; set it to one of x86-64-v3, x86-64, or unset it\n{{'x86-64-v3'}}",
        ),
        (
            {"avx2", "avx512vl"},
            "x86-64-v3",
            f"{NOT_USED} 'x86-64-v3'; set it to x86-64, or unset it\n{{'x86-64'}}",
        ),
    ],
)
def test_code_of_a_level_that_the_machine_has_not_is_never_run(
    lacking, asked, expected, kernels_once, monkeypatch
):
    used = expected.split("'")[-2]
    if used not in machine_levels():
        pytest.skip(f"this machine has no {used}")
    monkeypatch.setenv("CACHEGRAPH_CPU", asked)
    command = [sys.executable, "-c", _ASKING.format(lacking=lacking)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == expected
