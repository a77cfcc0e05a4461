"""Space for the frames of a compiler, in one piece.

CPython (from 3.11) keeps the frames of Python functions in chunks of 16 KiB. It maps a new chunk
when a call does not fit the last one, and unmaps it when that call returns. Code that makes many
calls where a chunk ends maps and unmaps one per call. numba's compiler, which calls short functions
millions of times, then takes up to 1.5 times as long, depending only on how deep it was called. A
frame too large for a chunk gets one of the next power of two, and the calls it makes use the rest
of that chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

_SLOTS = 2**16 + 2**10
"""The stack size of `in_one_frame_chunk` in words of 8 bytes: just over half a MiB, so that its chunk has a
MiB.

Almost half of it is left: space for a thousand frames, Python's default recursion limit. Unused memory is
never touched.
"""


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


in_one_frame_chunk = FunctionType(
    _call.__code__.replace(co_stacksize=_SLOTS), globals(), "in_one_frame_chunk"
)
in_one_frame_chunk.__doc__ = (
    "Return `function(*arguments)`, called where its frames, and those of what it calls, are in one piece."
)
