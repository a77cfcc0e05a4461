"""Callbacks: what a program has Python do where no kernel can, as a plain record, and how that becomes something to call.

A record is a kind, a version, options (canonical JSON) and the graphs of the functions that the callback calls. Each of
these is compiled as a function of its own; the stored program names it by its key (program.py, CallbackUse). Users' Ops are
in no program: a record names them, and who loads the program has them from the graph at hand.

Version history of the kinds
    optimize 1    a solver of SciPy's, on one function (engine/inner/solvers.py)
    perform 1     the perform() of a user's Op (rules/callbacks.py)
    compiled 1    the numba_function() of a user's Op (rules/callbacks.py)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.op import Op
from engine.runtime.program import CallbackUse, Invocation, ProgramFormatError

OF_USERS = ("perform", "compiled")
"""The kinds that run users' code."""

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


def build_callback(use: CallbackUse, functions: Sequence[Function], ops: Mapping[str, Op]) -> Run:
    """The callback of that record, on its functions and on the users' Ops `ops`, by name.

    Raises ProgramFormatError for a kind or a version of none, and for an Op that is not among `ops`.
    """
    build = _BUILDERS.get((use.kind, use.version))
    if build is None:
        raise ProgramFormatError(
            f"a callback of kind {use.kind!r}, version {use.version}, which this release has not"
        )
    return build(json.loads(use.options), functions, ops)


def check_site(use: CallbackUse, site: Invocation) -> None:
    """Refuse (ProgramFormatError) a place where a user's Op is shown, or is to give, other arrays than its record says."""
    if use.kind not in OF_USERS:
        return
    options = json.loads(use.options)
    said = [[(dtype, len(shape)) for dtype, shape in options[name]] for name in ("inputs", "outputs")]
    if said != [[(row.dtype, len(row.dims)) for row in rows] for rows in (site.inputs, site.outputs)]:
        raise ProgramFormatError("an Op that is shown, or is to give, other arrays than its record says")


def _optimize(options: Any, functions: Sequence[Function], ops: Mapping[str, Op]) -> Run:
    from engine.inner.solvers import Solver

    return Solver(functions[0], **options)


def _perform(options: Any, functions: Sequence[Function], ops: Mapping[str, Op]) -> Run:
    from engine.graph.reference import computed

    node = _node(options, ops)
    return lambda arrays: computed(node, arrays)


def _compiled(options: Any, functions: Sequence[Function], ops: Mapping[str, Op]) -> Run:
    """numba is loaded by the first call: a function may be made, or found, and never called."""
    node, call = _node(options, ops), None

    def run(arrays: Arrays) -> Arrays:
        nonlocal call
        if call is None:
            from engine.codegen.numba.calls import compiled_call

            call = compiled_call(node)
        return call(arrays)

    return run


def _node(options: Any, ops: Mapping[str, Op]) -> Apply:
    """The node that the callback computes: the Op at hand, applied to variables of the types that it had."""
    from engine.tensor.type import tensor_type

    op = ops.get(options["op"])
    if op is None:
        raise ProgramFormatError(f"an Op {options['op']!r}, which the function that is made has not")
    inputs, outputs = (
        [tensor_type(dtype, tuple(shape)).make_variable() for dtype, shape in options[name]]
        for name in ("inputs", "outputs")
    )
    return Apply(op, inputs, outputs)


Build = Callable[[Any, Sequence[Function], Mapping[str, Op]], Run]
_BUILDERS: dict[tuple[str, int], Build] = {
    ("optimize", 1): _optimize,
    ("perform", 1): _perform,
    ("compiled", 1): _compiled,
}
