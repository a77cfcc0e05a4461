"""A function that PyTensor made on the engine, as a function of C."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import engine
import engine.tensor as pt
from engine.compiling.c_entry import CEntry, EntryInterface, EntryRefused, SharedInput, c_entry
from engine.pytensor.program import StagedProgram, data_places
from engine.pytensor.steps import EngineStep

_LONG = 80
"""Of the name of an Op: a scalar loop's has its whole graph."""


def entry_of(function: Any, which: int, dim: int, expanded: int, shared: Mapping[Any, SharedInput]) -> CEntry:
    """Return a function of C that computes what `function` computes from a point and shared variables.

    `which`, `dim` and `expanded` are those of EntryInterface; `shared` says where the user data have each
    shared variable but data, which C finds where they are. Raises EntryRefused if a part of it needs Python,
    with the Op, or if what it computes of its data alone fails.
    """
    program = function.vm.jit_fn
    if not isinstance(program, StagedProgram):
        raise _refused(function, f"its linker is {type(function.maker.linker).__name__}, not the engine's")
    lasting = _lasting(function, program)
    sources: dict[int, Any] = {0: None, **lasting}
    sources.update(
        (place, shared[variable])
        for place, variable in enumerate(function.get_shared(), 1)
        if place not in lasting
    )
    if not program.steps and program.outputs == [0]:
        return c_entry(_identity(dim), EntryInterface(which, dim, expanded, [None], [0], None))
    step = _only_step(function, program)
    _try(function, step, dim, lasting)
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


def shared_variables(function: Any) -> list[Any]:
    """Return the shared variables of a function, without its data, which nobody can change."""
    data = data_places([container.storage for container in function.input_storage])
    return [variable for place, variable in enumerate(function.get_shared(), 1) if place not in data]


def _lasting(function: Any, program: StagedProgram) -> dict[int, Any]:
    """Return the data of a function, and what it computes of them alone, by place."""
    cells = [container.storage for container in function.input_storage]
    if data_places(cells) != program.data:
        raise _refused(function, "its data can be changed")
    try:
        return {place: np.asarray(value) for place, value in program.bound(cells).lasting().items()}
    except Exception as error:
        raise _refused(function, f"what it computes of its data alone fails ({error})") from error


def _try(function: Any, step: EngineStep, dim: int, lasting: Mapping[int, Any]) -> None:
    """Raise EntryRefused if the engine refuses what PyTensor computes, as an increment that broadcasts."""
    values: dict[int, Any] = dict(enumerate(container.storage[0] for container in function.input_storage))
    values.update({0: np.zeros(dim), **lasting})
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
