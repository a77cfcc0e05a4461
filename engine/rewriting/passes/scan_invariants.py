"""What does not change from step to step is computed once, before the loop.

It is computed then even if no step is done: what raises raises.
"""

from __future__ import annotations

from engine.graph.replace import rebuild
from engine.rewriting.opened_scans import OpenedScan


def push_out_invariants(scan: OpenedScan) -> None:
    """Make non-sequences of what is computed from non-sequences alone."""
    loop = scan.loop
    found = loop.invariants()
    outside = rebuild(found, {inner: outer for outer, inner in loop.non_sequences})
    loop.non_sequences += zip(outside, found, strict=True)
