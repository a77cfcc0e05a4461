"""Room for the frames of a compiler, in one piece.

CPython (from 3.11) keeps the frames of Python functions in chunks of 16 KiB: it maps a chunk when a call does not fit the last one and unmaps
it when that call returns. What calls much where a chunk ends maps and unmaps one at each call, and numba's compiler, in which
short functions are called millions of times, then takes up to 1.5 times as long, by an accident of how deep it was called.
A frame that does not fit gets a chunk that it fits, of a power of two; what is called from it goes into the rest of that.
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
