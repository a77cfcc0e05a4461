"""The program of a graph: its stages, the prologue's first; and the program on one function's storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.stored.large_constants import DataCell
from engine.pytensor.nodes import NodesStep, NodeStage, Places, Values
from engine.pytensor.room import room_for
from engine.pytensor.steps import EngineStep

if TYPE_CHECKING:
    from engine.pytensor.stages import Stage

Step = EngineStep | NodesStep
Cell = list[Any]
"""A list of one value: the storage that PyTensor's functions share."""


def data_places(cells: Sequence[Cell]) -> list[int]:
    """Return the places of the inputs whose values never change."""
    return [place for place, cell in enumerate(cells) if isinstance(cell, DataCell)]


class StagedProgram:
    """The stages of a graph, run one after the other.

    Values have places, the inputs the first ones; `data` are those of the inputs that never change.
    `once_steps` run `once_stages`, the prologue, and give the values at the places `kept`; `steps` run
    `stages` at each call, and give those at `outputs`, the places of the outputs.
    """

    def __init__(self, fgraph: Any, order: Sequence[Any], data: Sequence[int] = ()) -> None:
        from engine.pytensor.prologue import cut  # and with it the rules: a program that is found needs none

        self.data = list(data)
        parts = cut(fgraph, order, [fgraph.inputs[place] for place in data])
        self.places = Places(fgraph.inputs)
        self.once_stages: list[Any] = parts.once
        self.stages: list[Any] = parts.stages
        self.once_steps = self._steps(fgraph, parts.once, parts.kept)
        self.kept = [self.places(variable) for variable in parts.kept]
        self.steps = self._steps(fgraph, parts.stages, fgraph.outputs)
        self.outputs = [self.places(variable) for variable in fgraph.outputs]

    def bound(self, cells: Sequence[Cell]) -> BoundProgram:
        """Return the program on the storage of the inputs of a function."""
        return BoundProgram(self, cells)

    def only_step(self) -> EngineStep | None:
        """Return the engine's step if it is all that there is to do at a call."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], EngineStep):
            return None
        step = self.steps[0]
        return step if step.outputs == self.outputs and not step.scalars else None

    def _steps(self, fgraph: Any, stages: Sequence[Stage], outputs: Sequence[Any]) -> list[Step]:
        """Return the steps of `stages`, whose caller reads `outputs`."""
        from engine.pytensor.stages import read_later

        return [
            NodesStep(fgraph, stage.nodes, self.places)
            if isinstance(stage, NodeStage)
            else EngineStep(fgraph, stage, results, self.places)
            for stage, results in zip(stages, read_later(stages, outputs), strict=True)
        ]


class Ready(NamedTuple):
    """The start of a call: the values behind the inputs, and the storage that the only step reads."""

    behind: Values
    read: list[Cell]


class BoundProgram:
    """A program on the storage of one function: a call reads the inputs there and returns the outputs.

    The first call runs the prologue. If that raises an error, the next call runs it again; so does each call
    if the storage of the data is not of the kind that refuses other values, or if there is no room for what
    the prologue gives.
    """

    def __init__(self, program: StagedProgram, cells: Sequence[Cell]) -> None:
        self._program = program
        self._cells = list(cells)
        self._only = program.only_step()
        self._outputs = program.outputs
        self._is_fixed = all(isinstance(cells[place], DataCell) for place in program.data)
        self._ready: Ready | None = None

    def __call__(self) -> list[Any]:
        ready = self._ready or self._begin()
        if self._only is not None:
            try:
                return self._only.results([cell[0] for cell in ready.read])
            except Exception as error:
                values = self._values(ready)
                self._only.by_pytensor(values, error)
        else:
            values = self._values(ready)
            for step in self._program.steps:
                step(values)
        return [values[place] for place in self._outputs]

    def lasting(self) -> dict[int, Any]:
        """Return the values that are the same at each call, data and what is kept, by place."""
        program, ready = self._program, self._ready or self._begin()
        values = self._values(ready)
        return {place: values[place] for place in (*program.data, *program.kept)}

    def _values(self, ready: Ready) -> Values:
        return [*[cell[0] for cell in self._cells], *ready.behind]

    def _begin(self) -> Ready:
        """Run the prologue; keep what it gives if the data cannot change."""
        program, places = self._program, self._program.places
        values = places.values([cell[0] for cell in self._cells])
        for step in program.once_steps:
            step(values)
        kept = set(program.kept)
        behind = [values[place] if place in kept else blank for place, blank in places.behind()]
        cells = [*self._cells, *([value] for value in behind)]
        ready = Ready(behind, [cells[place] for place in (self._only.inputs if self._only else ())])
        data, made = (
            sum(getattr(values[place], "nbytes", 0) for place in part)
            for part in (program.data, program.kept)
        )
        if self._is_fixed and made <= room_for(data):
            self._ready = ready
        return ready
