"""Updates of shared variables: which are made, by default or on demand, and that all of a call are made or none."""

from __future__ import annotations

import gc
import pickle
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

import numpy as np
import pytest

import engine.tensor as pt
from engine import function, scan, shared
from engine.errors import MissingInputError
from engine.runtime import fast_call

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def counter():
    found = shared(0.0, name="counter")
    found.default_update = found + 1
    return found


# Default updates


@pytest.mark.parametrize("mode", ["FAST_RUN", "NUMPY"])
def test_a_variable_that_is_used_is_updated_by_default(counter, mode):
    f = function([], counter * 10, mode=mode)
    assert [float(f()), float(f()), float(counter.get_value())] == [0, 10, 2]


def test_a_variable_that_is_not_used_is_not_updated(counter):
    function([], pt.constant(1.0))()
    assert counter.get_value() == 0


def test_an_update_that_is_asked_for_is_made_instead(counter):
    function([], counter * 10, updates=[(counter, counter + 5)])()
    assert counter.get_value() == 5


def test_no_default_updates_leaves_out_all_or_those_in_a_list(counter):
    other = shared(0.0)
    other.default_update = other + 1
    for excluded, expected in [(True, [0, 0]), ([counter], [0, 1]), ([], [1, 2]), (False, [2, 3])]:
        function([], counter + other, no_default_updates=excluded)()
        assert [float(counter.get_value()), float(other.get_value())] == expected


@pytest.mark.parametrize("excluded", [None, 1, "counter", ()])
def test_no_default_updates_that_is_neither_a_truth_nor_a_list_is_refused(counter, excluded):
    with pytest.raises(TypeError, match=r"no_default_updates is .*; it must be True, False or a list"):
        function([], counter, no_default_updates=excluded)


def test_what_only_another_update_uses_is_updated_by_default_too(counter):
    second, third, total = shared(0.0), shared(0.0), shared(0.0)
    second.default_update = second + counter
    third.default_update = third + second
    f = function([], [], updates={total: total + third})
    for _ in range(4):
        f()
    found = [float(v.get_value()) for v in (counter, second, third, total)]
    assert found == [4, 6, 4, 1]


def test_an_update_that_excludes_itself_leaves_out_what_only_it_uses(counter):
    second = shared(0.0)
    second.default_update = second + counter
    function([], second, no_default_updates=[second])()
    assert counter.get_value() == 0


def test_default_updates_see_givens_and_what_givens_bring_is_updated(counter):
    x, second = pt.scalar("x"), shared(1.0)
    second.default_update = second + x
    function([], second, givens={x: counter})()
    function([], second, givens={x: counter})()
    assert [float(second.get_value()), float(counter.get_value())] == [2, 2]


def test_a_variable_that_givens_replace_is_not_updated(counter):
    assert function([], counter * 2, givens={counter: pt.constant(4.0)})() == 8
    assert counter.get_value() == 0


def test_a_variable_behind_an_input_is_not_updated(counter):
    between = counter * 2
    function([between], between + 1)(3.0)
    assert counter.get_value() == 0


def test_a_default_update_that_needs_an_input_has_it_given(counter):
    x = pt.scalar("x")
    counter.default_update = counter + x
    with pytest.raises(MissingInputError, match="x"):
        function([], counter)
    function([x], counter)(2.5)
    assert counter.get_value() == 2.5


def test_a_default_update_is_cleared_by_none_and_must_have_the_type(counter):
    with pytest.raises(
        TypeError, match=r"Setting a default update: the update of counter must have its type .*; found"
    ):
        counter.default_update = pt.vector("v")
    counter.default_update = 3.0
    function([], counter)()
    counter.default_update = None
    function([], counter)()
    assert counter.get_value() == 3


def test_a_loop_uses_the_value_before_the_update(counter):
    rows, updates = scan(lambda row: row * counter, sequences=pt.arange(3.0))
    f = function([], rows, updates=updates)
    assert [f().tolist(), f().tolist()] == [[0, 0, 0], [0, 1, 2]]
    assert counter.get_value() == 2


def test_default_updates_live_on_in_copies_and_pickles(counter):
    f = function([], counter * 10)
    still = f.copy(delete_updates=True)
    again, its_counter = pickle.loads(pickle.dumps((f.copy(), counter)))
    assert [float(again()), float(again()), float(its_counter.get_value())] == [0, 10, 2]
    assert [float(still()), float(still()), float(counter.get_value())] == [0, 0, 0]
    other = shared(7.0)
    f.copy(swap={counter: other})()
    assert [float(other.get_value()), float(counter.get_value())] == [8, 0]
    assert its_counter.default_update.owner.inputs[0] is its_counter


_SCRIPT = """
import engine, sys
counter = engine.shared(0.0)
counter.default_update = counter + 1
f = engine.function([], counter * 10, no_default_updates=eval(sys.argv[1]))
print(f.cache_info.outcome, [float(f()), float(f()), float(counter.get_value())])
"""


def test_another_process_hits_and_updates_as_it_is_asked_to(cache_directory, monkeypatch):
    monkeypatch.setenv("CACHEGRAPH_DIR", str(cache_directory))  # an empty one

    def run(excluded: str) -> str:
        command = [sys.executable, "-c", _SCRIPT, excluded]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run("False") == "miss [0.0, 10.0, 2.0]"
    assert run("True") == "miss [0.0, 0.0, 0.0]"
    assert run("False") == "hit [0.0, 10.0, 2.0]"
    assert run("[counter]") == "hit [0.0, 0.0, 0.0]"


# All or none


class _Interrupt(Exception):
    pass


def _counters(count: int) -> tuple[list[Any], Any]:
    found = [shared(0.0) for _ in range(count)]
    return found, function([], found[0] * 2, updates={variable: variable + 1 for variable in found})


def _interrupted_before(instruction: int, call: Any) -> bool:
    """Whether `call` came so far that an exception could be raised before its instruction of that number."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == instruction:
                raise _Interrupt
        return trace

    gc.disable()  # Python ignores what is raised while it collects
    sys.settrace(trace)
    try:
        call()
    except _Interrupt:
        return True
    finally:
        sys.settrace(None)
        gc.enable()
    return False


def test_an_interrupt_at_any_instruction_leaves_all_values_old_or_all_new(monkeypatch):
    monkeypatch.setattr(fast_call, "api_table", lambda: None)  # a fast call has no instructions of Python
    variables, f = _counters(5)
    f()
    value, instruction = 1.0, 0
    is_interrupted = True
    while is_interrupted:
        instruction += 1
        is_interrupted = _interrupted_before(instruction, f)
        found = {float(variable.get_value()) for variable in variables}
        assert found in ({value}, {value + 1}), f"before instruction {instruction}"
        value = found.pop()
    assert instruction > 30


def test_a_storm_of_signals_leaves_all_values_old_or_all_new():
    variables, f = _counters(200)
    f()

    def interrupt(*_: Any) -> None:
        raise _Interrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    interrupted, end, rng = 0, time.monotonic() + 1, np.random.default_rng(0)
    try:
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))
                for _ in range(100):
                    f()
            except _Interrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len({float(variable.get_value()) for variable in variables}) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert interrupted > 20
