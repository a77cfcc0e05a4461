"""Collections of garbage are rare within a block, and as before behind it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from cachegraph.garbage import SELDOM, kept_for_good, seldom_collected

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


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """What the tests have frozen (conftest.py) is for a while as in other processes."""
    gc.unfreeze()
    yield
    gc.freeze()


def is_old(item: object) -> bool:
    return any(each is item for each in gc.get_objects(generation=2))


@pytest.mark.usefixtures("unfrozen")
def test_what_is_kept_for_good_is_old_when_the_block_ends_and_no_garbage_was_looked_for() -> None:
    looked: list[str] = []
    with kept_for_good():
        assert now() == SELDOM[0]
        gc.callbacks.append(lambda phase, _: looked.append(phase))
        made = [[number] for number in range(1000)]
        assert not is_old(made[0])
    gc.callbacks.pop()
    assert not looked
    assert now() == OWN[0]
    assert is_old(made[0])
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("unfrozen")
def test_garbage_that_was_kept_for_good_is_collected_with_everything() -> None:
    class Item:
        pass

    with kept_for_good():
        item = Item()
        item.itself = item  # type: ignore[attr-defined]
        gone = weakref.ref(item)
        del item
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_what_somebody_has_frozen_stays_frozen() -> None:
    frozen: list[object] = []
    gc.freeze()
    with kept_for_good():
        made: list[object] = []
    assert not any(each is frozen for each in gc.get_objects())
    assert not is_old(made)


@pytest.mark.usefixtures("unfrozen")
def test_after_an_error_nothing_is_taken_for_old() -> None:
    block = kept_for_good()
    block.__enter__()
    made: list[object] = []
    assert not block.__exit__(ValueError, ValueError(), None)
    assert not is_old(made)
    assert now() == OWN[0]
