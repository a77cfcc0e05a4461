"""Callbacks: what a program has Python do where no kernel can, as a plain record, and how that becomes something to call.

A record is a kind, a version, options (canonical JSON) and the graphs of the functions that the callback calls. Each of
these is compiled as a function of its own; the stored program names it by its key (program.py, CallbackUse). So a stored
program is complete: who loads it builds its callbacks from their records, and need not know the graph.

Version history of the kinds
    optimize 1    a solver of SciPy's, on one function (engine/inner/solvers.py)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.backend.program import CallbackUse, ProgramFormatError
from engine.graph.frozen import FrozenFunctionGraph

Arrays = Sequence["np.ndarray[Any, Any]"]
Function = Callable[[tuple[Any, ...]], Arrays]
"""A compiled function: from one array an input, each as its type demands and C-contiguous, to its outputs."""
Run = Callable[[Arrays], Arrays]
"""A callback: from the inputs, which are views of the program's memory, not to be written to and gone once it has
returned, to the outputs, which are the program's from then on. Threads may run one at the same time."""


@dataclass(frozen=True)
class Callback:
    """A callback while a program is made: the record, and the graphs of the functions that it calls."""

    kind: str
    version: int
    options: str
    graphs: tuple[FrozenFunctionGraph, ...]


def build_callback(use: CallbackUse, functions: Sequence[Function]) -> Run:
    """The callback of that record, on its functions; raises ProgramFormatError for a kind or a version of none."""
    build = _BUILDERS.get((use.kind, use.version))
    if build is None:
        raise ProgramFormatError(
            f"a callback of kind {use.kind!r}, version {use.version}, which this release has not"
        )
    return build(json.loads(use.options), functions)


def _optimize(options: Any, functions: Sequence[Function]) -> Run:
    from engine.inner.solvers import Solver

    return Solver(functions[0], **options)


_BUILDERS: dict[tuple[str, int], Callable[[Any, Sequence[Function]], Run]] = {("optimize", 1): _optimize}
