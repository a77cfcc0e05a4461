"""Calls that several threads share give what one thread gives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.runtime import execution, instructions, parallel
from engine.runtime.errors import InvalidProgram
from engine.runtime.target import process_threads
from tests.engine.runtime.test_execution import runner_of

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def shared_calls(monkeypatch):
    """Let three threads share every call of eight elements or more; return the calls that they shared."""
    monkeypatch.setattr(execution, "MANY", 8)
    monkeypatch.setenv("CACHEGRAPH_NUM_THREADS", "3")
    calls = []
    original = parallel.run_in_parts

    def counted(kernel, operands, registers, keep):
        calls.append(kernel)
        original(kernel, operands, registers, keep)

    monkeypatch.setattr(parallel, "run_in_parts", counted)
    return calls


X, M, W, INDEX = pt.vector("x"), pt.matrix("m"), pt.matrix("w"), pt.lvector("i")
GRAPHS = {
    "elementwise": ([X], [pt.exp(X) * 2.0 + pt.sqr(X), pt.sigmoid(X)]),
    "broadcasting": ([M, X], [M + X, M.T * 2.0]),
    "rows and columns": ([M], [M.sum(axis=0), M.sum(axis=1), M.max(axis=1), M.sum()]),
    "tiles of columns": ([W], [W.sum(axis=0), pt.max(pt.exp(W), axis=0)]),
    "transposed tiles": ([W], [W.T * 2.0]),
    "gathering": ([X, INDEX], [X[INDEX], X[INDEX] + 1.0]),
    "setting a part": ([M, X], [pt.set_subtensor(M[1:, 2], X[0]), pt.inc_subtensor(M[1:, 1:3], 1.5)]),
    "along an axis": ([M], [pt.cumsum(M, axis=1)]),
    "places of extremes": ([M], [pt.argmax(M, axis=1)]),
    "places of sorted elements": ([M], [pt.argsort(pt.round(M), axis=1)]),
    "sorted rows": ([M], [pt.sort(M, axis=1)]),
}
VALUES = {
    "x": np.linspace(-3.0, 3.0, 53),
    "m": np.sin(np.arange(31.0 * 53)).reshape(31, 53),
    "w": np.cos(np.arange(7.0 * 3111)).reshape(7, 3111),
    "i": np.arange(53)[::-1] % 50,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_those_of_one_thread_bit_for_bit(name, shared_calls, monkeypatch):
    inputs, outputs = GRAPHS[name]
    values = [VALUES[variable.name] for variable in inputs]
    found = engine.function(inputs, outputs)(*values)
    assert shared_calls
    monkeypatch.setenv("CACHEGRAPH_NUM_THREADS", "1")
    del shared_calls[:]
    due = engine.function(inputs, outputs)(*values)
    assert not shared_calls
    for one, other in zip(found, due, strict=True):
        assert one.tobytes() == other.tobytes()


def test_calls_of_few_elements_are_not_shared(shared_calls):
    f = engine.function([X], pt.exp(X))
    f(np.ones(7))
    assert not shared_calls
    f(np.ones(8))
    assert len(shared_calls) == 1


def test_the_first_of_several_failures_is_reported(shared_calls):
    f = engine.function([X, INDEX], X[INDEX])
    index = np.zeros(600, dtype=np.int64)
    index[[199, 402, 599]] = 71, 72, 73
    with pytest.raises(IndexError, match="index 71, at position 199"):
        f(np.ones(4), index)
    assert f(np.ones(4), np.zeros(600, dtype=np.int64)).sum() == 600.0


def test_an_array_without_elements_is_fine(shared_calls):
    f = engine.function([M], pt.exp(M))
    assert f(np.ones((0, 5))).shape == (0, 5)
    assert f(np.ones((5, 0))).shape == (5, 0)


def test_fewer_passes_than_parts_are_fine(shared_calls):
    f = engine.function([M, X], M + X)
    assert f(np.ones((2, 53)), VALUES["x"]).tolist() == (np.ones((2, 53)) + VALUES["x"]).tolist()


def test_several_callers_share_the_threads(shared_calls):
    f = engine.function([X], [pt.exp(X), pt.sqr(X).sum()])
    values = [np.full(1000 + n, 0.001 * n) for n in range(40)]
    with ThreadPoolExecutor(4) as callers:
        for value, found in zip(values, callers.map(f, values), strict=True):
            np.testing.assert_allclose(found[0], np.exp(value), rtol=1e-14)


def test_without_other_threads_the_caller_does_it_all(shared_calls, monkeypatch):
    def refused(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    parallel._threads.cache_clear()
    value = np.arange(1000.0)
    assert engine.function([X], X * 3.0)(value).tolist() == (value * 3.0).tolist()
    parallel._threads.cache_clear()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(shared_calls):
    f = engine.function([X], pt.sqr(X))
    value = np.arange(5000.0)
    f(value)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if f(value).tolist() == (value * value).tolist() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_interrupted_call_leaves_a_function_that_works(shared_calls, monkeypatch):
    f = engine.function([X], pt.sqr(X))
    value = np.arange(5000.0)
    f(value)
    original = parallel.wait

    def interrupted(futures):
        original(futures)
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(value)
    monkeypatch.setattr(parallel, "wait", original)
    assert f(value).tolist() == (value * value).tolist()
    assert len(runner_of(f)._pool) <= 1


def test_the_environment_says_how_many_threads_there_are(monkeypatch):
    monkeypatch.delenv("CACHEGRAPH_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert process_threads() == 5
    monkeypatch.setenv("CACHEGRAPH_NUM_THREADS", "2")
    assert process_threads() == 2
    monkeypatch.delenv("CACHEGRAPH_NUM_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # one for each level of nesting
    assert process_threads() == len(os.sched_getaffinity(0))


WORKER = """
import multiprocessing
from engine.runtime.target import process_threads

def threads(_):
    return process_threads()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(process_threads(), *pool.map(threads, [0]))
"""


def test_a_worker_process_uses_one_thread(tmp_path):
    program = tmp_path / "workers.py"
    program.write_text(WORKER)
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, program],
        env=environment,
        cwd=os.getcwd(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(len(os.sched_getaffinity(0))), "1"]


def test_a_program_that_divides_something_else_is_refused(shared_calls):
    f = engine.function([X], pt.sqr(X))
    f(np.ones(8))
    runner = runner_of(f)
    code = runner._code.tolist()
    opcode = instructions.INSTRUCTIONS["PARALLEL"].opcode
    at = next(position for position in instructions._walk(code) if code[position] == opcode)
    runner._code[at + 3] = instructions.INSTRUCTIONS["HALT"].opcode
    with pytest.raises(InvalidProgram, match=f"no call that can be divided at word {at + 3}"):
        f(np.ones(8))
