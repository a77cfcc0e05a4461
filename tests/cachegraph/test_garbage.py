"""Collections of garbage are rare within a block, and as before behind it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from cachegraph.garbage import SELDOM, seldom_collected

OWN = (123, 7, 9)


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*before)


def now() -> int:
    return gc.get_threshold()[0]


def test_collections_are_seldom_until_the_block_ends() -> None:
    with seldom_collected():
        assert now() == SELDOM[0]
        with seldom_collected():
            assert now() == SELDOM[0]
        assert now() == SELDOM[0]
    assert now() == OWN[0]


def test_an_error_or_an_interrupt_ends_the_block() -> None:
    for kind in (ValueError, KeyboardInterrupt):
        with pytest.raises(kind), seldom_collected():
            raise kind
        assert now() == OWN[0]


def test_a_block_that_an_interrupt_keeps_from_beginning_changes_nothing() -> None:
    block = seldom_collected()
    block.__enter__()
    assert now() == SELDOM[0]
    del block
    assert now() == OWN[0]


def test_thresholds_that_are_set_meanwhile_stay() -> None:
    with seldom_collected():
        gc.set_threshold(321)
    assert now() == 321


@pytest.mark.parametrize("rare", [0, SELDOM[0], 10**6])
def test_a_collector_that_is_off_or_seldom_stays_so(rare: int) -> None:
    gc.set_threshold(rare)
    with seldom_collected():
        assert now() == rare
    assert now() == rare


def test_of_two_threads_the_first_one_counts() -> None:
    is_within, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with seldom_collected():
            is_within.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with seldom_collected():
        thread.start()
        assert is_within.wait(10)
    assert now() == OWN[0]
    may_end.set()
    thread.join()
    assert now() == OWN[0]
