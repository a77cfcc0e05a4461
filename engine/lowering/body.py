"""`Body`: an inner graph lowered inside a loop of the program, next to the graph around it.

Both share registers, constants and kernels. A value whose final place is known (`targets`) is computed
there. What is the same in every pass is computed once, before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.graph.apply import Apply
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.user_ops import is_user_op
from engine.graph.variables import Constant, Variable
from engine.inner.from_graph import inlined
from engine.lowering.lower import Lowering
from engine.lowering.steps import LoopStep, Value

Target = Callable[[Sequence[int]], "Value | None"]
"""Returns where an array of these lengths is to be written, or None; demands that the lengths fit."""


class InnerGraph(Struct, frozen=True):
    """An inner graph as it is lowered: without OpFromGraph, its nodes in an order in which they can run."""

    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    nodes: Sequence[Apply]


def inner_graph(fgraph: FrozenFunctionGraph) -> InnerGraph:
    """Return `fgraph` as it is lowered."""
    return fgraph.computed("lowered", _inlined)


def _inlined(fgraph: FrozenFunctionGraph) -> InnerGraph:
    nodes, outputs = inlined(fgraph.nodes, fgraph.inputs, fgraph.outputs)
    return InnerGraph(fgraph.inputs, outputs, nodes)


class Body(Lowering):
    """The state of lowering `graph` as the work of every pass of `loop`.

    Before the nodes are lowered, each input is declared: as a value that each pass finds somewhere else
    (`declare`), or as a variable of the graph `around` (`declare_outer`).
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
        """Declare where each pass finds the value of an input."""
        self.values[variable] = value
        self.dims[variable] = value.dims
        self._roots.add(variable)

    def declare_outer(self, variable: Variable, outer: Variable) -> None:
        """Declare that an input is the variable `outer` in every pass."""
        self._outer[variable] = outer
        self.dims[variable] = self.around.dims_of(outer)
        register = self.around.scalars.get(outer)
        if register is not None and self.table.stage((register,)) <= self.loop.stage:
            self.scalars[variable] = register

    def bind(self, constant: Variable) -> Value:
        return self.around.value_of(self._outer.get(constant, constant))

    def scalar_of(self, variable: Variable) -> int:
        if variable not in self.scalars and not isinstance(variable, Constant):
            value = self.value_of(variable)
            if variable in self._outer or self.loop.stage <= value.stage < self.loop.floor:
                # It is in memory written before the loop, but in no register when the loop begins.
                written = replace(value, stage=self.loop.floor)
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
        """Have `variable` written to `place`, C-contiguous and of its lengths, unless it is there."""
        value = self.value_of(variable)
        if value.pointer != place.pointer or value.strides is not None:
            self.copy(value, replace(place, stage=max(place.stage, value.stage)))


def _destroyed(nodes: Sequence[Apply]) -> Iterator[Variable]:
    """Yield the variables whose memory the nodes overwrite."""
    origins: dict[Variable, Variable] = {}
    for node in nodes:
        destroyed: Mapping[int, Sequence[int]] = {} if is_user_op(node.op) else node.op.destroy_map
        for output, inputs in {**node.op.view_map, **destroyed}.items():
            source = node.inputs[inputs[0]]
            origins[node.outputs[output]] = origins.get(source, source)
        for inputs in destroyed.values():
            yield from (origins.get(node.inputs[i], node.inputs[i]) for i in inputs)
