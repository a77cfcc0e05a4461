"""Where a variable was made: PyTensor's record of the lines of a program, with each line read once.

PyTensor gives each new variable and node the stack of the program that made it, for its errors. It looks
each line of source up again each time, which is a tenth of a warm `pm.sample` until its first draw. A line
of a code object does not change, so here it is looked up once.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

Line = tuple[str, int, str, str | None]
"""The file, the number of the line, the name of the function, and the line itself if there is source."""

MOST_KNOWN = 20_000
"""The most code objects whose lines are kept; a program that makes more of them begins anew."""


class _KnownCode:
    """The lines of one code object that were looked up; it is kept, so that its id stays its own."""

    def __init__(self, code: CodeType, skips: tuple[str, ...]) -> None:
        self.code = code
        self.lines: dict[int, Line] = {}
        file = code.co_filename
        self.is_skipped = any(part in file and "tests" not in file for part in skips)

    def line(self, number: int, context: dict[str, Any]) -> Line:
        text = linecache.getline(self.code.co_filename, number, context)
        found = self.lines[number] = (
            self.code.co_filename,
            number,
            self.code.co_name,
            text.strip() if text else None,
        )
        return found


_known: dict[tuple[str, ...], dict[int, _KnownCode]] = {}
"""The code objects that were seen, by the parts of paths that are skipped, and by their ids."""


def extract_stack(
    f: FrameType | None = None, limit: int | None = None, skips: Sequence[str] | None = None
) -> list[Line]:
    """Return what `pytensor.graph.utils.simple_extract_stack` returns.

    These are the `limit` innermost lines of the stack at `f`, the outermost first, but for the innermost ones
    in files whose path has one of `skips` in it.
    """
    frame: FrameType | None = sys._getframe(1) if f is None else f
    parts = tuple(skips or ())
    codes = _known.setdefault(parts, {})
    if len(codes) > MOST_KNOWN:
        codes.clear()
    most = getattr(sys, "tracebacklimit", None) if limit is None else limit
    left = -1 if most is None else max(most, 0)
    trace: list[Line] = []
    while frame is not None and left != 0:
        code = frame.f_code
        known = codes.get(id(code))
        if known is None:
            known = codes[id(code)] = _KnownCode(code, parts)
        if trace or not known.is_skipped:
            number = frame.f_lineno
            trace.append(known.lines.get(number) or known.line(number, frame.f_globals))
            left -= 1
        frame = frame.f_back
    trace.reverse()
    return trace
