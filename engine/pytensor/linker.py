"""PyTensor's linker "engine", and the program that a function made with it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pytensor.link.basic import JITLinker
from pytensor.scalar.basic import ScalarType

import engine
import engine.tensor as pt
from cachegraph.named_tuples import NamedTuple
from cachegraph.pytensor.code.linking import plain_thunk
from engine.graph.traversal import graph_inputs
from engine.pytensor.nodes import NodesStep, Places, Values
from engine.pytensor.scope import Requirement
from engine.pytensor.stages import EngineStage, Stage, read_later, stages_of

MODE = engine.Mode().excluding("stabilize")
"""PyTensor's stable forms are made already: two kinds in one graph would not cancel as one does."""


class EngineLinker(JITLinker):
    """Links a graph to functions of the engine. What the engine has no rule for, PyTensor computes."""

    companions = ("engine.pytensor.nutpie",)
    required_rewrites = ("minimum_compile", "scan_save_mem_no_prealloc")
    incompatible_rewrites = (
        "cxx_only",
        "BlasOpt",
        "fusion",
        "inplace",
        "local_careduce_fusion",
        "scan_reduce_trace_prealloc",
    )
    """Rewrites that the engine makes itself, or that only other backends understand."""

    def fgraph_convert(
        self,
        fgraph: Any,
        order: Any,
        input_storage: Any,
        output_storage: Any,
        storage_map: Any,
        **kwargs: Any,
    ) -> Any:
        return StagedProgram(fgraph, order)

    def jit_compile(self, fn: Any) -> Any:
        return fn

    def create_jitable_thunk(self, *arguments: Any, **named: Any) -> Any:
        """Return what PyTensor asks for. The thunk is our own: errors that come from it name their node."""
        [given], nodes, program = super().create_jitable_thunk(*arguments, **named)
        thunk = plain_thunk(program, given.inputs, given.outputs)
        thunk.__dict__.update(given.__dict__)
        return [thunk], nodes, program

    def create_thunk_inputs(self, storage_map: dict[Any, list[Any]]) -> list[list[Any]]:
        return [storage_map[variable] for variable in self.fgraph.inputs]


class StagedProgram:
    """The stages of a graph, run one after the other.

    Values have places, the inputs the first ones. `outputs` are the places of the outputs.
    """

    def __init__(self, fgraph: Any, order: Sequence[Any]) -> None:
        self.stages: list[Any] = stages_of(fgraph, order)
        self.places = Places(fgraph.inputs)
        self.steps = [
            self._step(fgraph, stage, outputs)
            for stage, outputs in zip(self.stages, read_later(self.stages, fgraph.outputs), strict=True)
        ]
        self.outputs = [self.places(variable) for variable in fgraph.outputs]
        self._whole = self._only_step(len(fgraph.inputs))

    def __call__(self, *inputs: Any) -> list[Any]:
        if self._whole is not None:
            try:
                return self._whole.results(inputs)
            except Exception as error:
                values = self.places.values(inputs)
                self._whole.by_pytensor(values, error)
        else:
            values = self.places.values(inputs)
            for step in self.steps:
                step(values)
        return [values[place] for place in self.outputs]

    def _only_step(self, n_inputs: int) -> EngineStep | None:
        """Return the engine's step if it is all that there is to do."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], EngineStep):
            return None
        step = self.steps[0]
        return step if step.is_plain(list(range(n_inputs)), self.outputs) else None

    def _step(self, fgraph: Any, stage: Stage, outputs: list[Any]) -> Callable[[Values], None]:
        if isinstance(stage, EngineStage):
            return EngineStep(fgraph, stage, outputs, self.places)
        return NodesStep(fgraph, stage.nodes, self.places)


class StagePart(NamedTuple):
    """The part of PyTensor's graph that a step computes: `results` from `sources`.

    `places` are those of the program.
    """

    fgraph: Any
    nodes: Sequence[Any]
    sources: Sequence[Any]
    results: Sequence[Any]
    places: Places


class EngineStep:
    """Runs one stage as a function of the engine.

    It takes the values at the places `inputs`, and gives those at `outputs`. If there are `requirements`, the
    function has two outputs more: whether each holds, and whether all do.

    If it raises an error, PyTensor computes the nodes: it raises its own error, or takes what the engine
    refuses, such as an increment that broadcasts. `repeats` counts the latter, by the engine's error.
    """

    part: StagePart
    requirements: Sequence[Requirement]

    def __init__(self, fgraph: Any, stage: EngineStage, outputs: Sequence[Any], places: Places) -> None:
        self.repeats: Counter[str] = Counter()
        self.part = StagePart(fgraph, stage.nodes, list(stage.sources), outputs, places)
        results = [stage.values[variable] for variable in outputs]
        self.requirements = list(stage.requirements)
        if self.requirements:
            held = pt.stack([requirement.condition for requirement in self.requirements])
            results += [held, pt.all(held)]
        leaves = set(graph_inputs(results))
        sources = [(variable, inner) for variable, inner in stage.sources.items() if inner in leaves]
        # In the order of the graph's inputs, so that a whole graph's values are passed on as they come.
        sources.sort(key=lambda pair: places(pair[0]))
        self.function = engine.function([inner for _, inner in sources], results, mode=MODE)
        self.inputs = [places(variable) for variable, _ in sources]
        self.outputs = [places(variable) for variable in outputs]
        self.scalars = [places(variable) for variable in outputs if isinstance(variable.type, ScalarType)]

    def is_plain(self, inputs: list[int], outputs: list[int]) -> bool:
        """Return True if the step takes exactly the values at `inputs` and gives those at `outputs`."""
        return self.inputs == inputs and self.outputs == outputs and not self.scalars

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the values of the outputs, as the engine gives them.

        Raises the error of the first requirement that is not met.
        """
        results = self.function(*inputs)
        if self.requirements:
            if not results.pop():
                first = self.requirements[int(results.pop().argmin())]
                raise first.error(first.message)
            results.pop()
        return results

    def __call__(self, values: Values) -> None:
        try:
            results = self.results([values[place] for place in self.inputs])
        except Exception as error:
            self.by_pytensor(values, error)
            return
        for place, result in zip(self.outputs, results, strict=True):
            values[place] = result
        for place in self.scalars:
            values[place] = values[place][()]

    def by_pytensor(self, values: Values, error: Exception) -> None:
        """Set the results in `values`, as PyTensor computes them; `error` is why the engine did not.

        Raises PyTensor's error; `error` if memory ran out.
        """
        if isinstance(error, MemoryError):
            raise error
        step, places, wanted = self._same_nodes
        place_of = self.part.places
        found = places.values([values[place_of(variable)] for variable in self.part.sources])
        step(found)
        self.repeats[str(error)] += 1
        for place, number in zip(self.outputs, wanted, strict=True):
            values[place] = found[number]

    @cached_property
    def _same_nodes(self) -> tuple[NodesStep, Places, list[int]]:
        """The stage by PyTensor's code, and the places in it: first of what it reads; and of the results."""
        part = self.part
        places = Places(part.sources)
        step = NodesStep(part.fgraph, part.nodes, places)
        return step, places, [places(variable) for variable in part.results]
