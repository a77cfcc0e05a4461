"""How much scratch memory is kept between calls, and how it goes."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import engine
import engine.tensor as pt
from engine.runtime import call_state
from engine.runtime.call_state import IDLE_LIMIT


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What is small is less than usual, so that quick calls need more."""
    monkeypatch.setattr(call_state, "SMALL", 16 * 2**10)


@pytest.fixture
def functions(kernels_once):
    """Functions whose calls need about 8 bytes of scratch memory an element."""
    x = pt.vector("x")
    e = pt.exp(x - pt.max(x))
    outputs = pt.sum(e) + pt.dot(pt.sort(e), x)
    return [engine.function([x], outputs) for _ in range(3)]


def kept(*functions):
    gc.collect()
    return sum(state.nbytes for f in functions for state in f._compiled.runner._pool)


def test_memory_that_calls_go_on_needing_stays_where_it_is(functions):
    f, *_ = functions
    f(np.ones(30_000))
    [state] = f._compiled.runner._pool
    scratch = list(state.scratch)
    f(np.ones(29_000))
    assert f._compiled.runner._pool == [state]
    assert all(now is before for now, before in zip(state.scratch, scratch, strict=True))


def test_a_call_that_needs_much_less_leaves_little(functions):
    f, *_ = functions
    large = f(np.ones(30_000))
    assert kept(f) > 4 * call_state.SMALL
    assert f(np.ones(3)) == pytest.approx(6.0)
    assert kept(f) <= call_state.SMALL
    assert f(np.ones(30_000)) == large


def test_more_than_all_may_keep_is_freed_at_once(functions, monkeypatch):
    f, *_ = functions
    monkeypatch.setattr(call_state, "IDLE_LIMIT", 2**17)
    large = f(np.ones(30_000))
    assert kept(f) == 0
    assert f(np.ones(30_000)) == large


def test_what_was_used_longest_ago_goes_first(functions, monkeypatch):
    first, second, third = functions
    x = np.ones(30_000)
    first(x)
    monkeypatch.setattr(call_state, "IDLE_LIMIT", 2 * kept(first) + call_state.SMALL)
    for f in (second, first, third):
        f(x)
    assert kept(second) == 0
    assert kept(first) == kept(third) > 0


def test_calls_at_one_time_do_not_each_keep_what_they_needed(functions, monkeypatch):
    f, *_ = functions
    x = np.ones(30_000)
    right = f(x)
    monkeypatch.setattr(call_state, "IDLE_LIMIT", 2 * kept(f) + call_state.SMALL)
    start, found = threading.Barrier(8), []

    def call():
        start.wait(10)
        found.extend(f(x) for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [right] * 40
    assert kept(f) <= call_state.IDLE_LIMIT


def test_a_function_that_is_gone_keeps_nothing(functions):
    others = len(call_state._idle)
    functions[0](np.ones(30_000))
    assert len(call_state._idle) == others + 1
    assert sum(nbytes for _, nbytes in call_state._idle.values()) <= IDLE_LIMIT
    functions.clear()
    gc.collect()
    assert len(call_state._idle) == others
