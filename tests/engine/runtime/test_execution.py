"""A linked program as it is called: its registers, its memory, and what it holds on to."""

from __future__ import annotations

import gc
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.runtime import execution
from engine.runtime.execution import Execution
from engine.runtime.failures import describe_failure

pytestmark = pytest.mark.usefixtures("kernels_once")


class Tracked(np.ndarray):
    """An array that can be referred to weakly."""


@pytest.fixture
def x():
    return pt.vector("x")


def runner_of(f) -> Execution:
    return f._compiled.runner


def test_a_call_holds_on_to_no_argument_and_no_result(x):
    f = engine.function([x], [pt.exp(x), pt.dot(x, x) + x])
    value = np.arange(5.0)
    before = sys.getrefcount(value)
    result = f(value)[0]
    assert sys.getrefcount(value) == before
    reference = weakref.ref(result)
    del result
    gc.collect()
    assert reference() is None


def test_a_failed_call_holds_on_to_nothing(x):
    y = pt.vector("y")
    f = engine.function([x, y], x + y)
    value = np.arange(5.0)
    before = sys.getrefcount(value)
    for _ in range(3):
        with pytest.raises(ValueError, match="length"):
            f(value, np.ones(4))
    gc.collect()
    assert sys.getrefcount(value) == before


def test_a_converted_argument_is_given_up_after_the_call(x):
    f = engine.function([x], x * 2)
    value = np.arange(5.0).view(Tracked)
    f(value)
    reference = weakref.ref(value)
    del value
    gc.collect()
    assert reference() is None


def test_an_array_that_is_as_it_should_be_is_not_converted(x, monkeypatch):
    f = engine.function([x], x * 2)
    monkeypatch.setattr(runner_of(f), "_convert", None)
    np.testing.assert_array_equal(f(np.arange(3.0)), [0.0, 2.0, 4.0])


def test_scratch_grows_with_what_is_asked_and_is_used_again(x):
    f = engine.function([x], pt.sum(pt.exp(x - pt.max(x))) + pt.dot(pt.exp(x - pt.max(x)), x))
    states = runner_of(f)._pool
    sizes = []
    for length in (10, 1000, 10, 1000):
        f(np.ones(length))
        assert len(states) == 1
        sizes.append(sum(s.nbytes for s in states[0].scratch if s is not None))
    assert sizes[0] < sizes[1] == sizes[2] == sizes[3]


def test_memory_that_cannot_be_had_is_numpys_error(x):
    y = pt.vector("y")
    f = engine.function([x, y], x.dimshuffle(0, "x") * y.dimshuffle("x", 0))
    huge = np.broadcast_to(np.float64(1.0), (1 << 20,))
    row = np.ones(1 << 20)
    with pytest.raises(MemoryError):
        engine.function([x, y], _outer_three(x, y))(huge.copy(), row)
    np.testing.assert_array_equal(f([1.0], [2.0]), [[2.0]])


def _outer_three(x, y):
    return x.dimshuffle(0, "x", "x") * y.dimshuffle("x", 0, "x") * x.dimshuffle("x", "x", 0)


def test_data_of_another_shape_or_dtype_is_refused(x):
    f = engine.function([x], x * pt.constant(np.arange(40.0)))
    row = runner_of(f).program.bound[0]
    for wrong in (np.arange(41.0), np.arange(40), np.arange(40.0).reshape(4, 10)):
        with pytest.raises(ValueError, match=r"Binding data 0 .*float64 of shape \(40,\) is due"):
            execution._bound_array(runner_of(f).program, row, [wrong])


def test_a_stop_that_no_instruction_accounts_for_is_an_error_too(x):
    f = engine.function([x], x * 2)
    error = describe_failure(runner_of(f).program, "model", 77, [12345, 0, 0, 0])
    assert isinstance(error, RuntimeError)
    assert "model" in str(error)
    assert "77" in str(error)


def test_a_kernels_own_status_is_said_when_nothing_is_known_of_it(x):
    f = engine.function([x], x * 2)
    site = next(s for s in runner_of(f).program.sites if s.kind == "kernel")
    error = describe_failure(runner_of(f).program, "model", 6, [site.pc, 99, 0, 0, 0, 0, 0, 0])
    assert "status 99" in str(error)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_arrays_of_any_length_go_through_every_kind_of_kernel(x, length):
    m = pt.matrix("m")
    f = engine.function([x, m], [x + 1, pt.sum(x), pt.dot(m, x), m.T, pt.sum(m, axis=0), x])
    value, matrix = np.arange(float(length)), np.ones((3, length))
    expected = [value + 1, value.sum(), matrix @ value, matrix.T, matrix.sum(0), value]
    for found, due in zip(f(value, matrix), expected, strict=True):
        np.testing.assert_allclose(found, due)


def test_lengths_whose_sizes_no_int64_holds_are_errors_that_name_them():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("huge_lengths.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    shapes = {
        "sort": "(2305843009213693952,)",
        "sort constant": "(2305843009213693952,)",
        "scan": "(2305843009213693969,)",
        "set": "(2305843009213693952,)",
        "concatenate": "(9223372036854775807, 0)",
        "reshape": "(274177, 67280421310721)",
        "too much": "(288230376151711744,)",
    }
    for name, shape in shapes.items():
        kind = "MemoryError" if name == "too much" else "ValueError"
        assert found[name].startswith(kind), found[name]
        assert shape in found[name]


def test_a_signal_while_scratch_memory_grows_leaves_no_address_of_memory_that_is_gone():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("signal_storm.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls, interrupted = map(int, re.findall(r"\d+", done.stdout))
    assert interrupted > calls // 4


class Alarm(Exception):
    """Raised by a signal's handler."""


@pytest.fixture
def alarm(monkeypatch):
    if not hasattr(signal, "setitimer"):
        pytest.skip("there is no timer that signals")

    def ring(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def seconds_until_the_alarm(alarm, f, *arguments):
    begin = time.perf_counter()
    alarm()
    with pytest.raises(Alarm):
        f(*arguments)
    return time.perf_counter() - begin


def test_a_long_loop_is_interrupted_soon_and_leaves_everything_as_it_was(x, alarm):
    n, total = pt.lscalar("n"), engine.shared(np.zeros(3))
    states = engine.scan(lambda a: a * 0.5 + 1.0, outputs_info=x, n_steps=n, return_updates=False)
    f = engine.function([x, n], states[-1], updates={total: total + states[-1]})
    assert seconds_until_the_alarm(alarm, f, np.zeros(3), 400_000_000) < 1.5
    np.testing.assert_array_equal(total.get_value(), np.zeros(3))
    np.testing.assert_array_equal(f(np.zeros(3), 60), np.full(3, 2.0))
    np.testing.assert_array_equal(total.get_value(), np.full(3, 2.0))


def test_a_long_call_is_interrupted_between_its_steps(x, alarm):
    ordered = x
    for _ in range(40):
        ordered = pt.sort(pt.cumsum(pt.cos(ordered) * 1e6))
    f = engine.function([x], ordered)
    f(np.ones(3))
    values = np.random.default_rng(3).normal(size=300_000)
    assert seconds_until_the_alarm(alarm, f, values) < 1.0


def test_the_code_of_a_function_is_there_until_the_last_that_uses_it_is_gone(x):
    functions = [engine.function([x], pt.exp(x) * 3.25), engine.function([x], pt.exp(x) * 3.25)]
    kernel = weakref.ref(runner_of(functions[0]).kernels[0])
    assert kernel() is runner_of(functions[1]).kernels[0]
    copied = functions[0].copy()
    functions.clear()
    gc.collect()
    np.testing.assert_allclose(copied(np.zeros(2)), [3.25, 3.25])
    del copied
    gc.collect()
    assert kernel() is None


def test_code_stays_while_another_thread_runs_it(x):
    n, done = pt.lscalar("n"), []
    states = engine.scan(lambda a: a * 0.5 + 1.0, outputs_info=x, n_steps=n, return_updates=False)
    f = engine.function([x, n], states[-1])
    f(np.zeros(3), 1)
    thread = threading.Thread(target=lambda f: done.append(f(np.zeros(3), 20_000_000)), args=(f,))
    thread.start()
    kernel = weakref.ref(runner_of(f).kernels[0])
    del f
    gc.collect()
    assert kernel() is not None
    thread.join()
    np.testing.assert_array_equal(done[0], np.full(3, 2.0))
