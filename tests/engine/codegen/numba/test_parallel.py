"""Many kernels compile in several processes if that pays, with the same objects even if a worker fails."""

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from engine.codegen.numba import parallel
from engine.codegen.numba.compile import compile_kernel
from engine.codegen.numba.parallel import LEAST_SHARE, RESULT, START_COST, compile_kernels, share_out
from engine.codegen.numba.worker import compile_for_parent
from engine.lowering.kernels.elementwise import elementwise
from engine.lowering.kernels.nest import NestOperand
from engine.lowering.loops import Kernel
from engine.lowering.statements import Statement
from engine.runtime.errors import KernelCompileError

ROOT = Path(__file__).parents[4]


def small(op):
    operand = NestOperand("float64", (False,))
    return elementwise([operand], [Statement(op, (("input", 0),), "float64")], [("value", 0)], 1)


@pytest.fixture(scope="module")
def requests():
    return [(small(op), f"k_{op}") for op in ("exp", "neg", "sqrt")]


@pytest.fixture(scope="module")
def objects(requests):
    return [compile_kernel(*request) for request in requests]


@pytest.fixture
def cheap_workers(monkeypatch):
    """Make workers pay from the first kernel on."""
    monkeypatch.setattr(parallel, "START_COST", 0.0)
    monkeypatch.setattr(parallel, "LEAST_SHARE", 0.5)


def test_workers_give_what_this_process_gives(requests, objects, cheap_workers, monkeypatch):
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(a) or real(*a, **k))
    compiled_here = []
    monkeypatch.setattr(
        "engine.codegen.numba.compile.compile_kernel",
        lambda kernel, symbol: compiled_here.append(symbol) or compile_kernel(kernel, symbol),
    )
    assert compile_kernels(requests, processes=2) == objects
    assert len(started) == 1
    assert 0 < len(compiled_here) < len(requests)


@pytest.mark.parametrize("executable", ["", None, "/no/such/python", "/bin/false", "/usr/sbin/application"])
def test_a_worker_that_cannot_start_costs_no_result(
    requests, objects, cheap_workers, monkeypatch, executable
):
    monkeypatch.setattr(sys, "executable", executable)
    assert compile_kernels(requests, processes=3) == objects


@pytest.mark.parametrize(
    "script",
    [
        "import sys; sys.exit(3)",
        "print('noise and no result')",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import time; time.sleep(60)",
    ],
)
def test_a_worker_that_dies_or_hangs_or_babbles_costs_no_result(
    requests, objects, cheap_workers, monkeypatch, script
):
    real = subprocess.Popen
    monkeypatch.setattr(parallel, "_WAIT_SECONDS", 0.5)
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **options: real([command[0], "-c", script], **options)
    )
    assert compile_kernels(requests, processes=2) == objects


def test_what_others_print_does_not_disturb_the_result(requests, objects):
    target = io.BytesIO(b"")
    compile_for_parent(io.BytesIO(pickle.dumps(requests)), target)
    before, marker, result = (b"a warning\n" + target.getvalue()).partition(RESULT)
    assert (before, marker) == (b"a warning\n", RESULT)
    assert pickle.loads(result) == objects


def test_a_kernel_that_does_not_compile_raises_its_own_error(requests, cheap_workers, monkeypatch):
    def refuse(kernel: Kernel, symbol: str):
        if symbol == "k_sqrt":
            raise KernelCompileError("compiling", kernel.summary, "it is refused in this test")
        return compile_kernel(kernel, symbol)

    monkeypatch.setattr("engine.codegen.numba.compile.compile_kernel", refuse)
    monkeypatch.setattr(parallel, "_is_interpreter", lambda executable: False)
    with pytest.raises(KernelCompileError, match="refused in this test"):
        compile_kernels(requests, processes=2)


def test_a_script_without_a_main_guard_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
with open({str(tmp_path / "runs")!r}, "a") as runs:
    runs.write("x")
from engine.lowering.kernels.elementwise import copy
from engine.codegen.numba import parallel
parallel.START_COST = parallel.LEAST_SHARE = 0.0
kernels = [copy("float64", (False,), strided) for strided in (False, True)]
found = parallel.compile_kernels([(k, f"k_{{n}}") for n, k in enumerate(kernels)], processes=2)
assert all(found)
""")
    subprocess.run([sys.executable, str(script)], check=True, timeout=120, cwd=tmp_path, env={**os.environ})
    assert (tmp_path / "runs").read_text() == "x"


def test_few_kernels_are_compiled_in_this_process():
    assert share_out([1.0] * 10, 8) == [list(range(10))]
    assert share_out([], 4) == [[]]
    assert share_out([5.0], 4) == [[0]]


def test_many_kernels_are_shared_so_that_all_end_together():
    costs = [1.0 + n % 3 for n in range(200)]
    shares = share_out(costs, 4)
    assert sorted(position for share in shares for position in share) == list(range(200))
    assert len(shares) == 4
    ends = [sum(costs[n] for n in share) + START_COST * (k > 0) for k, share in enumerate(shares)]
    assert max(ends) - min(ends) <= 3.0


def test_a_worker_is_started_only_for_enough_work():
    for count in range(1, 120):
        for share in share_out([1.0] * count, 8)[1:]:
            assert len(share) >= LEAST_SHARE
