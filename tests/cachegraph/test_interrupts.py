"""An interrupt at any point of a build comes through, and leaves nothing that others would wait for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 12):
    pytest.skip(
        "sys.monitoring, by which code is interrupted, came with Python 3.12", allow_module_level=True
    )

from cachegraph.store.entry import Hit
from tests.cachegraph.interrupted import Caches, count_points, interrupt

TRIED = 60
"""Points tried here; tools/stress/interrupt.py tries all of them, and signals at any time."""


def test_an_interrupt_at_any_point_of_a_build_leaves_nothing_that_others_wait_for(tmp_path: Path) -> None:
    caches = Caches(tmp_path)
    caches.build("imports what is imported when it is first needed")
    caches.build("opens the index, which the first build has made, for reading")
    points = count_points(lambda: caches.build("counted"))
    came_through = 0
    for point in range(1, points, points // TRIED):
        came_through += interrupt(lambda name=str(point): caches.build(name), point)  # type: ignore[misc]
        assert caches.fault_after(str(point)) is None, f"interrupted at point {point} of {points}"
    assert came_through > 0.8 * TRIED  # a later build has a few points fewer


def test_an_interrupt_while_a_hit_is_read_leaves_the_next_one_a_hit(tmp_path: Path) -> None:
    caches = Caches(tmp_path)
    caches.build("found")
    points = count_points(lambda: caches.build("found"))
    for point in range(1, points):
        interrupt(lambda: caches.build("found"), point)
        assert isinstance(caches.cache.lookup(caches.key_of("found")), Hit)
        assert caches.build("found") == b"found"
