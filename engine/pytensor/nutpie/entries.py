"""A function that PyTensor made on the engine, as a function of C."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.compiling.c_entry import CEntry, EntryInterface, EntryRefused, SharedInput, c_entry
from engine.pytensor.linker import EngineStep, StagedProgram

_LONG = 80
"""Of the name of an Op: a scalar loop's has its whole graph."""


def entry_of(function: Any, which: int, dim: int, expanded: int, shared: Mapping[Any, SharedInput]) -> CEntry:
    """Return a function of C that computes what `function` computes from a point and shared variables.

    `which`, `dim` and `expanded` are those of EntryInterface; `shared` says where the user data have each
    shared variable. Raises EntryRefused if a part of it needs Python, with the Op.
    """
    program = function.vm.jit_fn
    if not isinstance(program, StagedProgram):
        raise _refused(function, f"its linker is {type(function.maker.linker).__name__}, not the engine's")
    sources = [None, *(shared[variable] for variable in function.get_shared())]
    if not program.steps and program.outputs == [0]:
        return c_entry(_identity(dim), EntryInterface(which, dim, expanded, [None], [0], None))
    step = _only_step(function, program)
    _try(function, step, dim)
    positions = [step.outputs.index(place) for place in program.outputs]
    held = len(step.outputs) + 1 if step.requirements else None
    inputs = [sources[place] for place in step.inputs]
    return c_entry(step.function, EntryInterface(which, dim, expanded, inputs, positions, held))


def _only_step(function: Any, program: StagedProgram) -> EngineStep:
    """Return the step that computes all outputs; raises EntryRefused if there is more to do."""
    for stage, step in zip(program.stages, program.steps, strict=True):
        if not isinstance(step, EngineStep):
            raise _refused(function, f"PyTensor computes {str(stage.nodes[0].op)[:_LONG]}")
    if len(program.steps) != 1:
        raise _refused(function, f"it has {len(program.steps)} stages")
    (step,) = program.steps
    assert isinstance(step, EngineStep)
    if not set(program.outputs) <= set(step.outputs):
        raise _refused(function, "an output of it is an input, or constant")
    return step


def _try(function: Any, step: EngineStep, dim: int) -> None:
    """Raise EntryRefused if the engine refuses what PyTensor computes, as an increment that broadcasts."""
    values = [np.zeros(dim), *(variable.get_value(borrow=True) for variable in function.get_shared())]
    try:
        step.function(*[values[place] for place in step.inputs])
    except Exception as error:  # nutpie gets a code if it is one of PyTensor's, too
        with suppress(Exception):
            function(values[0])
        if step.repeats:
            raise _refused(function, f"PyTensor computes what the engine refuses ({error})") from error


def _identity(dim: int) -> engine.Function:
    point = pt.vector("point", shape=(dim,))
    return engine.function([point], [point])


def _refused(function: Any, found: str) -> EntryRefused:
    return EntryRefused("making a C entry for", str(function.name or "a function of PyTensor's"), found)
