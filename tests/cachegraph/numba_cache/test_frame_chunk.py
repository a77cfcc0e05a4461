"""Room for frames: what is called often where CPython would begin a new piece of its stack maps no memory for it."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cachegraph.numba_cache.frame_chunk import in_one_frame_chunk

CALLS = 500


def leaf(n: int) -> int:
    return n


def called_often() -> None:
    for n in range(CALLS):
        leaf(n)


def deeper(depth: int, function: Callable[[], Any]) -> Any:
    return function() if depth == 0 else deeper(depth - 1, function)


def most_faults(call: Callable[..., Any]) -> int:
    """The most pages that were mapped for CALLS calls, of all depths at which these are made."""

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        called_often()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    return max(call(deeper, depth, faults) for depth in range(300))


def test_frames_in_one_piece_map_nothing_when_they_come_and_go() -> None:
    assert most_faults(in_one_frame_chunk) < CALLS / 2


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="another Python has another stack")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="since Python 3.14 a piece is kept")
def test_without_room_there_is_a_depth_at_which_each_call_maps_memory() -> None:
    """If this fails, CPython keeps its pieces, and nobody needs the room."""
    assert most_faults(lambda function, *arguments: function(*arguments)) >= CALLS


def test_results_and_errors_pass() -> None:
    assert in_one_frame_chunk(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        in_one_frame_chunk(divmod, 7, 0)
