"""PyTensor's linker "engine", and the program that a function made with it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.link.basic import JITLinker
from pytensor.link.utils import raise_with_op
from pytensor.scalar.basic import ScalarType

import engine
import engine.tensor as pt
from engine.graph.traversal import graph_inputs
from engine.pytensor.representation import engine_dtype
from engine.pytensor.stages import EngineStage, NodeStage, Stage, read_later, stages_of

Values = list[Any]
"""The values of a call: one place for each variable that crosses stages."""


_MODE = engine.Mode().excluding("stabilize")
"""PyTensor's stable forms are made already: two kinds in one graph would not cancel as one does."""


class EngineLinker(JITLinker):
    """Links a graph to functions of the engine. What the engine has no rule for, PyTensor computes."""

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

    def create_thunk_inputs(self, storage_map: dict[Any, list[Any]]) -> list[list[Any]]:
        return [storage_map[variable] for variable in self.fgraph.inputs]


class StagedProgram:
    """The stages of a graph, run one after the other."""

    def __init__(self, fgraph: Any, order: Sequence[Any]) -> None:
        self.stages = stages_of(fgraph, order)
        self._places: dict[Any, int] = {variable: place for place, variable in enumerate(fgraph.inputs)}
        self._blank: Values = []
        self.steps = [
            self._step(fgraph, stage, outputs)
            for stage, outputs in zip(self.stages, read_later(self.stages, fgraph.outputs), strict=True)
        ]
        self._outputs = [self._place(variable) for variable in fgraph.outputs]
        self._whole = self._only_step(len(fgraph.inputs))

    def __call__(self, *inputs: Any) -> list[Any]:
        if self._whole is not None:
            return self._whole.results(inputs)
        values = [*inputs, *self._blank]
        for step in self.steps:
            step(values)
        return [values[place] for place in self._outputs]

    def _only_step(self, n_inputs: int) -> EngineStep | None:
        """Return the engine's step if it is all that there is to do."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], EngineStep):
            return None
        step = self.steps[0]
        return step if step.is_plain(list(range(n_inputs)), self._outputs) else None

    def _place(self, variable: Any) -> int:
        """Return the place of the value of `variable` in a call; a constant is there already."""
        known = isinstance(variable, Constant)
        # By identity: constants of PyTensor's that are equal may differ in the sign of a zero.
        key = id(variable) if known else variable
        if key not in self._places:
            self._places[key] = len(self._places)
            self._blank.append(variable.data if known else None)
        return self._places[key]

    def _step(self, fgraph: Any, stage: Stage, outputs: list[Any]) -> Callable[[Values], None]:
        if isinstance(stage, EngineStage):
            return EngineStep(stage, outputs, self._place)
        return NodesStep(fgraph, stage, self._place)


class EngineStep:
    """Runs one stage as a function of the engine."""

    def __init__(self, stage: EngineStage, outputs: Sequence[Any], place: Callable[[Any], int]) -> None:
        results = [stage.values[variable] for variable in outputs]
        self.requirements = list(stage.requirements)
        if self.requirements:
            held = pt.stack([requirement.condition for requirement in self.requirements])
            results += [held, pt.all(held)]
        leaves = set(graph_inputs(results))
        sources = [(variable, inner) for variable, inner in stage.sources.items() if inner in leaves]
        self.function = engine.function([inner for _, inner in sources], results, mode=_MODE)
        self._inputs = [place(variable) for variable, _ in sources]
        self._outputs = [place(variable) for variable in outputs]
        conversions = [(place(variable), _conversion(variable.type)) for variable in outputs]
        self._converted = [(number, convert) for number, convert in conversions if convert is not None]

    def is_plain(self, inputs: list[int], outputs: list[int]) -> bool:
        """Return True if the step takes exactly the values at `inputs` and gives those at `outputs`."""
        return self._inputs == inputs and self._outputs == outputs and not self._converted

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
        results = self.results([values[place] for place in self._inputs])
        for place, result in zip(self._outputs, results, strict=True):
            values[place] = result
        for place, convert in self._converted:
            values[place] = convert(values[place])


def _conversion(type: Any) -> Callable[[Any], Any] | None:
    """Return what makes the engine's array a value of that type of PyTensor's, or None if it is one."""
    if isinstance(type, ScalarType):
        return lambda array: array.astype(type.dtype)[()]
    if engine_dtype(type.dtype) != type.dtype:
        return lambda array: array.astype(type.dtype)
    return None


class NodesStep:
    """Runs nodes by PyTensor's own code, in storage of its own."""

    def __init__(self, fgraph: Any, stage: NodeStage, place: Callable[[Any], int]) -> None:
        self._fgraph = fgraph
        self._calls = [_NodeCall(node, place) for node in stage.nodes]

    def __call__(self, values: Values) -> None:
        for call in self._calls:
            try:
                call(values)
            except Exception:
                raise_with_op(self._fgraph, call.node, call.thunk)


class _NodeCall:
    """One node, its thunk and where its values are."""

    def __init__(self, node: Any, place: Callable[[Any], int]) -> None:
        self.node = node
        variables = dict.fromkeys([*node.inputs, *node.outputs])
        storage: dict[Any, list[Any]] = {variable: [None] for variable in variables}
        computed = {variable: [True] for variable in variables}
        self.thunk = node.op.make_thunk(node, storage, computed, [], impl="py")
        self.thunk.inputs = [storage[variable] for variable in node.inputs]
        self.thunk.outputs = [storage[variable] for variable in node.outputs]
        self._reads = [(storage[v], place(v)) for v in dict.fromkeys(node.inputs)]
        self._writes = [(storage[v], place(v)) for v in node.outputs]

    def __call__(self, values: Values) -> None:
        for cell, place in self._reads:
            cell[0] = values[place]
        # A perform may reuse what its last call left, which the caller may hold.
        for cell, _ in self._writes:
            cell[0] = None
        self.thunk()
        for cell, place in self._writes:
            values[place] = cell[0]
