"""`Body`: an inner graph lowered inside a loop of the program, beside the graph around it.

Registers, constants and kernels are shared with the graph around. What a step computes is written straight to where
it is to stay, if that is known by then (`targets`); what no pass changes is computed once before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.user_ops import is_users
from engine.graph.variables import Variable
from engine.inner.from_graph import inlined
from engine.lowering.lower import Lowering
from engine.lowering.steps import LoopStep, Value

Target = Callable[[Sequence[int]], "Value | None"]
"""Where an array of these lengths is to be written, if that is known already; it demands that the lengths fit."""


@dataclass(frozen=True, slots=True)
class InnerGraph:
    """An inner graph as it is lowered: its nodes, in an order that they may be computed in, hold no OpFromGraph."""

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    nodes: Sequence[Apply]


def inner_graph(fgraph: FrozenFunctionGraph) -> InnerGraph:
    """`fgraph` as it is lowered."""
    return fgraph.computed("lowered", _inlined)


def _inlined(fgraph: FrozenFunctionGraph) -> InnerGraph:
    nodes, outputs = inlined(fgraph.nodes, fgraph.inputs, fgraph.outputs)
    return InnerGraph(fgraph.inputs, outputs, nodes)


class Body(Lowering):
    """What is known of each variable of `graph` while it is lowered as what every pass of `loop` does.

    Its inputs are declared first: as what each pass finds somewhere else (`declare`), or what a variable of the graph
    `around` is (`declare_outer`).
    """

    def __init__(
        self,
        around: Lowering,
        loop: LoopStep,
        graph: InnerGraph,
        outputs: Sequence[Variable],
        destroyable: Sequence[Variable],
    ) -> None:
        self.around = around
        self.loop = loop
        self.graph = graph
        self.targets: dict[Variable, Target] = {}
        self._outer: dict[Variable, Variable] = {}
        self._destroyed = set(_destroyed(graph.nodes))
        nodes, table = graph.nodes, around.table
        super().__init__(
            around.rule_of, graph.inputs, nodes, outputs, (), (), table, destroyable, around.name_of
        )

    def declare(self, variable: Variable, value: Value) -> None:
        """Say where each pass finds the value of an input."""
        self.values[variable] = value
        self.dims[variable] = value.dims
        self._roots.add(variable)

    def declare_outer(self, variable: Variable, outer: Variable) -> None:
        """Say that an input is `outer`, in every pass."""
        self._outer[variable] = outer
        self.dims[variable] = self.around.dims_of(outer)
        register = self.around.scalars.get(outer)
        if register is not None and self.table.stage((register,)) <= self.loop.stage:
            self.scalars[variable] = register

    def bind(self, constant: Variable) -> Value:
        return self.around.value_of(self._outer.get(constant, constant))

    def scalar_of(self, variable: Variable) -> int:
        if variable in self._outer and variable not in self.scalars:
            # The graph around has it in no register yet, but in memory that was written before the loop.
            written = replace(self.value_of(variable), stage=self.loop.floor)
            self.scalars[variable] = self.table.load(written, at_once=False)
        return super().scalar_of(variable)

    def first_stage(self, variable: Variable) -> int:
        together = [variable] if variable.owner is None else variable.owner.outputs
        is_for_each_pass = any(v in self.targets or v in self._destroyed for v in together)
        return self.loop.first if is_for_each_pass else self.loop.floor

    def array(self, variable: Variable, dims: Sequence[int], stage: int) -> Value:
        target = self.targets.get(variable)
        place = None if target is None else target(dims)
        if place is None:
            return super().array(variable, dims, stage)
        found = self.values[variable] = replace(place, stage=max(stage, self.first_stage(variable)))
        return found

    def write(self, variable: Variable, place: Value) -> None:
        """Have the value of `variable` written to `place`, C-contiguous and of its lengths, unless it is there."""
        value = self.value_of(variable)
        if value.pointer != place.pointer or value.strides is not None:
            self.copy(value, replace(place, stage=max(place.stage, value.stage)))


def _destroyed(nodes: Sequence[Apply]) -> Iterator[Variable]:
    """What the nodes overwrite: the variables that have the memory from the beginning."""
    origins: dict[Variable, Variable] = {}
    for node in nodes:
        destroyed: Mapping[int, Sequence[int]] = {} if is_users(node.op) else node.op.destroy_map
        for output, inputs in {**node.op.view_map, **destroyed}.items():
            source = node.inputs[inputs[0]]
            origins[node.outputs[output]] = origins.get(source, source)
        for inputs in destroyed.values():
            yield from (origins.get(node.inputs[i], node.inputs[i]) for i in inputs)
