"""Tests of PyTensor's that are no measure of the engine's language, and differences that stay.

Each has its reason. `INTERNAL` tests ask for internals: linkers, C code, memory that is overwritten in
place, data structures behind PyTensor's interface. A difference is `EXPLAINED` where PyTensor's behaviour
is a defect, or where the engine's is another on purpose.
"""

from __future__ import annotations

from explanations import (
    compiling,
    graphs,
    indexing,
    internals,
    linear_algebra,
    loops,
    one_by_one,
    other_forms,
    rewriting,
    scalars_and_elements,
)
from explanations.left_out import left_out

__all__ = ["EXPLAINED", "INTERNAL", "left_out"]

_AREAS = (
    *(internals, graphs, compiling, scalars_and_elements, indexing, linear_algebra, loops, rewriting),
    *(other_forms, one_by_one),
)
INTERNAL = tuple(each for area in _AREAS for each in area.INTERNAL)
EXPLAINED = tuple(each for area in _AREAS for each in area.EXPLAINED)
