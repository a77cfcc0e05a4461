"""Calls that run no Python: what they take, what they leave to Python, and what they hold on to."""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.graph.apply import Apply
from engine.graph.op import Op
from engine.runtime import fast_call, python_api
from engine.tensor.type import tensor_type

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def x():
    return pt.vector("x")


def ready(*arguments: Any, **options: Any) -> Any:
    """Return a function with an idle state: the first call is Python's."""
    *values, (inputs, outputs) = arguments
    f = engine.function(inputs, outputs, **options)
    f(*values)
    return f


def python_frames(call: Any, *arguments: Any) -> list[str]:
    """Return the names of the Python functions that a call runs."""
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call(*arguments)
    finally:
        sys.setprofile(None)
    return names


def outcome(call: Any) -> Any:
    """Return what `call` returns, as bytes, or the error that it raises, as text."""
    try:
        result = call()
    except Exception as error:
        return type(error).__name__, str(error)
    return result.dtype.str, result.shape, result.tobytes()


# What a call takes


def test_a_call_with_arrays_or_numbers_runs_no_python(x):
    s, n, total = pt.scalar("s"), pt.iscalar("n"), engine.shared(np.zeros(3))
    f = engine.function([x, s, n], [x * s, s + n], updates={total: total + x})
    value = np.arange(3.0)
    f(value, 2.0, 5)
    for s_value, n_value in itertools.product(
        (np.array(2.0), 2.0, 2, np.float64(2.0)), (np.array(5, "i4"), 5, np.int32(5))
    ):
        assert python_frames(f, value, s_value, n_value) == []
        product, added = f(value, s_value, n_value)
        np.testing.assert_array_equal(product, [0.0, 2.0, 4.0])
        assert added == 7.0
    np.testing.assert_array_equal(total.get_value(), value * 25)


def test_a_call_makes_no_objects_but_its_results(x):
    s = pt.scalar("s")
    f = ready(np.ones(3), 2.0, ([x, s], x * s))
    value = np.arange(3.0)
    kept = [f(value, 2.0) for _ in range(10)]
    before = sys.getallocatedblocks()
    for place in range(10):
        kept[place] = f(value, 2.0)
    assert sys.getallocatedblocks() <= before + 1


class Half(float):
    pass


class Third(int):
    pass


class Own(np.ndarray):
    pass


NUMBERS = (
    [True, False, 0, 3, -3, 2**24, 2**24 + 1, -(2**31), 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63]
    + [10**30, 0.0, -0.0, 1.5, 0.1, -2.0, 1e300, 1e-320, float("inf"), float("nan"), 2.0**60]
    + [
        np.float64(2.5),
        np.float32(1.5),
        np.float16(1.5),
        np.int64(7),
        np.int32(7),
        np.uint8(7),
        np.bool_(True),
    ]
    + [Half(1.5), Third(4), "a", b"a", None, 1j, [1.0], [[1.0]], (), {}, object, np.ma.masked]
    + [
        np.array(value, dtype)
        for value in (1, 3)
        for dtype in ("f8", "f4", "i8", "i4", "?", ">f8", ">i4", "u1")
    ]
    + [np.ones(1), np.ones((1, 1)), np.array(1.5).view(Own), np.ma.array(1.5), np.array("a"), np.array(None)]
)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_numbers_become_what_the_type_makes_of_them(dtype, monkeypatch):
    s = tensor_type(dtype, ()).make_variable("s")
    fast = ready(np.ones((), dtype), ([s], pt.switch(s, s, s)))
    monkeypatch.setattr(fast_call, "api_table", lambda: None)
    slow = engine.function([s], pt.switch(s, s, s))
    assert inspect.ismethod(slow.__call__)
    for value in NUMBERS:
        assert outcome(lambda value=value: fast(value)) == outcome(lambda value=value: slow(value)), value


def unaligned(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shifted = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    shifted[...] = values
    assert not shifted.flags.aligned
    return shifted


def read_only(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.flags.writeable = False
    return values


def arrays() -> list[Any]:
    matrix = np.arange(12.0).reshape(3, 4)
    return [
        matrix,
        np.asfortranarray(matrix),
        matrix[:, ::2],
        matrix[::-1],
        np.broadcast_to(np.arange(4.0), (3, 4)),
        matrix.astype(">f8"),
        matrix.astype("f4"),
        matrix.astype("i8"),
        matrix.view(Own),
        unaligned(matrix),
        read_only(matrix.copy()),
        np.ma.array(matrix, mask=matrix > 3),
        matrix.tolist(),
        np.zeros((0, 4)),
        np.zeros((3, 0)),
        np.zeros((3, 5)),
        np.zeros(4),
        np.zeros((1, 3, 4)),
        1.5,
        3,
        None,
    ]


@pytest.mark.parametrize("shape", [(None, None), (3, 4), (None, 4)])
def test_arrays_of_all_kinds_give_what_they_give_in_python(shape, monkeypatch):
    m = pt.tensor("m", dtype="float64", shape=shape)
    fast = ready(np.ones((3, 4)), ([m], m * 2.0))
    monkeypatch.setattr(fast_call, "api_table", lambda: None)
    slow = engine.function([m], m * 2.0)
    for value in arrays():
        assert outcome(lambda value=value: fast(value)) == outcome(lambda value=value: slow(value)), value


def test_arguments_by_name_and_wrong_numbers_of_them_are_pythons(x):
    s = pt.scalar("s")
    f = ready(np.ones(2), 1.0, ([x, s], x * s))
    value = np.ones(2)
    np.testing.assert_array_equal(f(s=3.0, x=value), [3.0, 3.0])
    np.testing.assert_array_equal(f(np.ones(2), s=3.0), [3.0, 3.0])
    for arguments in ((), (np.ones(2),), (np.ones(2), 1.0, 1.0)):
        with pytest.raises(TypeError, match="Calling function"):
            f(*arguments)
    assert python_frames(lambda: f(s=3.0, x=value)).count("_run") == 0
    assert str(inspect.signature(f)) == "(*args, **kwargs)"


# What a call returns


def test_results_share_no_memory(x):
    f = ready(np.ones(4), ([x], [x, x + 1, x, x[1:], x.reshape((2, 2))]))
    value = np.arange(4.0)
    results = [*f(value), *f(value)]
    for one, other in itertools.combinations([value, *results], 2):
        assert not np.shares_memory(one, other)


def test_no_results_and_results_by_name(x):
    total = engine.shared(np.zeros(2))
    nothing = ready(np.ones(2), ([x], []), updates={total: total + x})
    assert nothing(np.ones(2)) == []
    np.testing.assert_array_equal(total.get_value(), [2.0, 2.0])
    named = ready(np.ones(2), ([x], {"twice": x * 2, "sum": pt.sum(x)}))
    assert named(np.ones(2))["sum"] == 2.0
    assert list(named(np.ones(2))) == ["twice", "sum"]


def test_results_without_their_first_rows_are_views_of_what_was_made(x):
    states = engine.scan(lambda a: a * 0.5, outputs_info=x, n_steps=4, return_updates=False)
    f = ready(np.ones(3), ([x], [states, states[-1]]))
    assert python_frames(f, np.ones(3)) == []
    np.testing.assert_array_equal(f(np.ones(3))[0][:, 0], [0.5, 0.25, 0.125, 0.0625])


# References


@pytest.mark.parametrize("arguments", [(np.arange(3.0), np.array(2.0)), (np.arange(3.0), 2.5)])
def test_calls_leave_no_references(x, arguments):
    s, total = pt.scalar("s"), engine.shared(np.zeros(3))
    states = engine.scan(lambda a: a * 0.5, outputs_info=x, n_steps=3, return_updates=False)
    f = engine.function([x, s], [x * s, states], updates={total: total + x})
    f(*arguments)
    watched = [*arguments, np.dtype("float64"), np.ndarray, f, f.__call__, None, total.container.storage]
    gc.collect()
    counts, blocks = [sys.getrefcount(value) for value in watched], sys.getallocatedblocks()
    for _ in range(100_000):
        f(*arguments)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 100
    for value, before in zip(watched, counts, strict=True):
        # Before Python 3.12 all of the process counts None: other tests' threads and finalizers, too.
        assert abs(sys.getrefcount(value) - before) < (5_000 if value is None else 50)
    latest = total.get_value(borrow=True)
    # its storage, this variable, and the argument, which Python 3.14 borrows
    assert sys.getrefcount(latest) == 3 - (sys.version_info >= (3, 14))


def test_calls_that_fail_or_are_pythons_leave_no_references(x):
    y, total = pt.vector("y"), engine.shared(np.zeros(3))
    f = ready(np.ones(3), np.ones(3), ([x, y], [x + 1, x + y]), updates={total: total + x})
    value, other = np.ones(3), np.ones(4)
    held = total.get_value(borrow=True)

    def wrong() -> None:
        with pytest.raises(ValueError, match="length"):
            f(value, other)
        with pytest.raises(TypeError):
            f(value, "a")

    wrong()
    gc.collect()
    before = [sys.getrefcount(each) for each in (value, other, held)]
    for _ in range(100):
        wrong()
    gc.collect()
    assert [sys.getrefcount(each) for each in (value, other, held)] == before
    before = sys.getrefcount(value)
    f(value, value.tolist())
    assert sys.getrefcount(value) == before


def test_a_function_is_gone_with_its_last_reference(x):
    total = engine.shared(np.zeros(2))
    f = ready(np.ones(2), ([x], x * total), updates={total: total + 1})
    runner, reference = weakref.ref(f._compiled.runner), weakref.ref(f)
    gc.collect()
    gc.disable()
    try:
        del f
        assert reference() is None
        assert runner() is None
    finally:
        gc.enable()


def test_what_is_called_stays_while_the_function_goes(x):
    f = ready(np.ones(2), ([x], x * 3.5))
    call = f.__call__
    del f
    gc.collect()
    np.testing.assert_array_equal(call(np.ones(2)), [3.5, 3.5])


# What is left to Python half way


def test_a_failure_is_said_as_in_python_and_changes_nothing(x, monkeypatch):
    n, total = pt.lscalar("n"), engine.shared(np.zeros(1))
    graph = ([x, n], pt.exp(x)[n])
    f = ready(np.ones(3), 0, graph, updates={total: total + 1}, name="model")
    monkeypatch.setattr(fast_call, "api_table", lambda: None)
    slow = engine.function(*graph, updates={total: total + 1}, name="model")
    failed = outcome(lambda: f(np.ones(3), 7))
    assert failed == outcome(lambda: slow(np.ones(3), 7))
    assert failed[0] == "IndexError"
    assert "model" in failed[1]
    assert total.get_value() == [1.0]
    assert python_frames(f, np.ones(3), 2) == []


def test_scratch_memory_grows_in_the_middle_of_a_call(x):
    e = pt.exp(x - pt.max(x))
    f = ready(np.ones(3), ([x], [pt.sort(e), pt.sum(e) + pt.dot(pt.sort(e), x)]))
    values = np.random.default_rng(1).normal(size=5000)
    due = np.sort(np.exp(values - values.max()))
    for _ in range(2):
        ordered, total = f(values)
        np.testing.assert_allclose(ordered, due, rtol=1e-12)
        np.testing.assert_allclose(total, due.sum() + due @ values, rtol=1e-9)
    assert python_frames(f, values) == []


def test_memory_that_cannot_be_had_is_the_same_error_as_in_python(x, monkeypatch):
    n, m = pt.lscalar("n"), pt.lscalar("m")
    graph = ([x, n, m], [x + 1, pt.alloc(x[0], n, m)])
    f = ready(np.ones(2), 2, 2, graph)
    monkeypatch.setattr(fast_call, "api_table", lambda: None)
    slow = engine.function(*graph)
    value = np.ones(2)
    before = sys.getrefcount(value)
    for lengths in ((2**30, 2**25), (2**40, 2**40), (2**62, 2)):
        failed = outcome(lambda lengths=lengths: f(value, *lengths))
        assert failed[0] in ("MemoryError", "ValueError")
        assert failed == outcome(lambda lengths=lengths: slow(value, *lengths))
    gc.collect()
    assert sys.getrefcount(value) == before
    np.testing.assert_array_equal(f(value, 1, 2)[1], [[1.0, 1.0]])


def test_an_allocation_that_fails_anywhere_in_a_call_is_an_error_and_leaves_everything_as_it_was():
    pytest.importorskip("_testcapi")
    program = Path(__file__).with_name("without_memory.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    calls, failed = map(int, re.findall(r"\d+", done.stdout))
    assert calls // 10 < failed < calls


class Calling(Op):
    """Gives its input, after it has called a function."""

    __props__ = ()

    def __init__(self) -> None:
        self.called: Any = None

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.called(inputs[0])


def test_a_callback_may_call_the_function_that_it_is_in(x):
    op = Calling()
    op.called = np.copy
    f = ready(np.ones(2), ([x], op(x + 1) * 2))
    depths = []

    def deeper(value: Any) -> Any:
        depths.append(value[0])
        return f(value) if value[0] < 5 else value

    op.called = deeper
    np.testing.assert_array_equal(f(np.zeros(2)), np.full(2, 160.0))
    assert depths == [1.0, 2.0, 3.0, 4.0, 5.0]


class Alarm(Exception):
    """Raised by a signal's handler."""


@pytest.fixture
def alarm():
    def ring(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def long_loop(x):
    """A function whose second argument says how many steps it takes: 10**8 take about a second."""
    n, total = pt.lscalar("n"), engine.shared(np.zeros(3))
    states = engine.scan(lambda a: a * 0.5 + 1.0, outputs_info=x, n_steps=n, return_updates=False)
    f = ready(np.zeros(3), 1, ([x, n], states[-1]), updates={total: total + states[-1]})
    for _ in range(3):
        f(np.zeros(3), 1)
    return f, total


def test_a_long_call_is_interrupted_and_leaves_everything_as_it_was(long_loop, alarm):
    f, total = long_loop
    before = total.get_value()
    begin = time.perf_counter()
    alarm()
    with pytest.raises(Alarm):
        f(np.zeros(3), 400_000_000)
    assert time.perf_counter() - begin < 1.5
    np.testing.assert_array_equal(total.get_value(), before)
    np.testing.assert_array_equal(f(np.zeros(3), 60), np.full(3, 2.0))


def test_other_threads_run_during_a_long_call(long_loop):
    f, _ = long_loop
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(f(np.zeros(3), 30_000_000)))
    turns = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert turns > 10
    np.testing.assert_array_equal(done[0], np.full(3, 2.0))


# Many at once


def test_threads_may_share_a_function(x):
    s, total = pt.scalar("s"), engine.shared(np.zeros(50))
    f = ready(np.ones(50), 1.0, ([x, s], [pt.exp(x) * s, pt.sum(x) + total]), updates={total: total * 0})
    start, wrong = threading.Barrier(6), []
    interval = sys.getswitchinterval()

    def call(number: int) -> None:
        values, start_value = np.full(50, number / 10), float(number)
        due = np.exp(values) * number
        start.wait(30)
        for turn in range(3000):
            argument = values.tolist() if turn % 100 == 0 else values
            product, added = f(argument, start_value)
            if not np.allclose(product, due) or not np.allclose(added, 5 * number):
                wrong.append(number)

    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_goes_on_calling(x):
    f = ready(np.ones(2), ([x], x * 2.0))
    child = os.fork()
    if child == 0:
        os._exit(0 if f(np.ones(2)).tolist() == [2.0, 2.0] and not python_frames(f, np.ones(2)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_copies_and_pickles_have_calls_of_their_own(x):
    total, other = engine.shared(np.zeros(2), "total"), engine.shared(np.ones(2), "other")
    f = ready(np.ones(2), ([x], x + total), updates={total: total + 1})
    f.trust_input = True
    copied, loaded = f.copy(swap={total: other}), pickle.loads(pickle.dumps(f))
    for g, first in ((copied, 2.0), (loaded, 2.0), (f, 2.0)):
        assert g.trust_input
        np.testing.assert_array_equal(g(np.ones(2)), np.full(2, first))
        assert python_frames(g, np.ones(2)) == []
        np.testing.assert_array_equal(g(np.ones(2)), np.full(2, first + 2))
    np.testing.assert_array_equal(other.get_value(), np.full(2, 4.0))


# Where there is no fast call


@pytest.mark.parametrize(("name", "value"), [("_PLAIN_HEAD", 32), ("_NUMPY_ABI", 3)])
def test_other_objects_and_other_releases_of_numpy_are_left_to_python(x, name, value, monkeypatch):
    monkeypatch.setattr(python_api, name, value)
    assert python_api.api_table.__wrapped__() is None
    monkeypatch.setattr(fast_call, "api_table", python_api.api_table.__wrapped__)
    f = ready(np.ones(2), ([x], x * 2.0))
    assert "__call__" in python_frames(f, np.ones(2))
    np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])
