"""Process-wide counters."""

from __future__ import annotations

import os
import threading

import pytest

from cachegraph.caching.counters import Counters, Tally, counters
from cachegraph.key import LEVELS


def test_nothing_happened_yet() -> None:
    counted = Tally().snapshot()
    assert counted.levels == {level: {"hits": 0, "misses": 0} for level in LEVELS}
    assert (counted.misses, counted.bypasses, counted.store_failures) == ({}, {}, {})
    assert (counted.seconds_saved, counted.seconds_spent) == (0.0, 0.0)


def test_a_snapshot_does_not_change() -> None:
    tally = Tally()
    tally.miss("op", "never-seen", 1.0)
    before = tally.snapshot()
    tally.miss("op", "never-seen", 1.0)
    tally.store_failure("full")
    assert before.levels["op"]["misses"] == 1
    assert before.misses == {"never-seen": 1}
    assert before.store_failures == {}


def test_threads_lose_no_count() -> None:
    tally = Tally()

    def work() -> None:
        for _ in range(2000):
            tally.hit("kernel", 0.5)
            tally.miss("function", "never-seen", 0.25)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = tally.snapshot()
    assert counted.levels["kernel"]["hits"] == counted.levels["function"]["misses"] == 8000
    assert (counted.seconds_saved, counted.seconds_spent) == (4000.0, 2000.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_while_a_thread_counts_starts_with_none() -> None:
    tally = Tally()
    tally.bypass("profiling")
    with tally._locked():  # as if another thread were counting at the moment of the fork
        child = os.fork()
        if child == 0:
            os._exit(len(tally.snapshot().bypasses))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tally.snapshot().bypasses == {"profiling": 1}


def test_counters_is_the_snapshot_of_this_process() -> None:
    assert isinstance(counters(), Counters)
