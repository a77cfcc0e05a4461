"""Chains of equal `OpFromGraph`s become loops, so that 200 equal layers cost what 50 do.

A chain is rerolled if each further input is one variable for all nodes, or a row of a tensor whose rows
are read one after the other, forward or back: what a chain computes that became a loop before, or a tensor
that is known to be long enough. A loop's states keep their lengths, so each is shown to stay the same. A sum
of what all nodes compute, as the gradient by a common input is, is accumulated in the loop.

A loop needs what the first node of its chain needs, and loops that compute some of that. So no loop comes to
depend on itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cachegraph.named_tuples import NamedTuple
from engine.graph import Apply, FrozenFunctionGraph, FunctionGraph, Variable, rebuild
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder, State
from engine.rewriting.chains import Chain, chains_of
from engine.rewriting.passes.shapes import equal_axes, length_elsewhere
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.scalar import add
from engine.tensor import Elemwise, Subtensor
from engine.tensor.conversion import number
from engine.tensor.creation import alloc
from engine.tensor.elemwise import apply_elemwise
from engine.tensor.index_entries import INTEGER
from engine.tensor.matching import scalar_value, tensor_type_of
from engine.tensor.shape import expand_dims, folded_shape_i

FEWEST = 8
"""Chains of fewer nodes stay: a loop would save little, and has kernels of its own."""


class LoopRow(NamedTuple):
    """A row of the tensor `rows`; not `is_computed` if it is what a loop starts from."""

    rows: Variable
    position: int
    is_computed: bool


class RunningSum(NamedTuple):
    """The nodes that add one output of each node of a chain, in order, to the sum `before` (None: to 0)."""

    nodes: Sequence[Apply]
    before: Variable | None


class LayerSteps(NamedTuple):
    """The nodes of a chain that become the steps of a loop, and what they read, by position.

    `links` has the output of the node before for each state; all nodes read the variables `constants`, and
    each reads a row of `sequences`.
    """

    graph: FrozenFunctionGraph
    nodes: Sequence[Apply]
    links: dict[int, int]
    constants: dict[int, Variable]
    sequences: dict[int, Any]


LoopRows = dict[Variable, list[LoopRow]]
"""Variables of the graph that are rows, of a loop that will be there."""


class RerollLayers(GraphRewriter):
    """The replacement of chains of equal OpFromGraphs by Scans."""

    name = "reroll_layers"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        loops = _Loops(fgraph)
        for chain in chains_of(fgraph, FEWEST):
            steps = _steps_of(chain, loops.rows)
            if steps is not None:
                loops.add(steps)
                report.count(self.name)
        loops.replace(self.name)


def _steps_of(chain: Chain, known: LoopRows) -> LayerSteps | None:
    """Return the steps of a loop that does what `chain` does, but for a node at either end; None if there
    are none.
    """
    for nodes in (chain.nodes, chain.nodes[1:], chain.nodes[:-1], chain.nodes[1:-1]):
        steps = _reading(chain, nodes, known)
        if steps is None:
            continue
        if all(_keeps_lengths(steps, p, q, ()) for p, q in steps.links.items()):
            return steps
        if all(_keeps_lengths(steps, p, q, steps.constants) for p, q in steps.links.items()):
            return _reading(chain, nodes[1:], known)  # each after the first is as long as what all read
    return None


def _keeps_lengths(steps: LayerSteps, state: int, output: int, constants: Collection[int]) -> bool:
    """Return True if `output` is as long as the input `state`, or as inputs at the positions `constants`."""
    new, old = steps.graph.outputs[output], steps.graph.inputs[state]
    if new.type != old.type:
        return False
    fixed = {steps.graph.inputs[p] for p in constants}
    return all(
        length is not None or any(axis == (old, dim) or axis[0] in fixed for axis in equal_axes(new, dim))
        for dim, length in enumerate(tensor_type_of(new).shape)
    )


def _reading(chain: Chain, nodes: Sequence[Apply], known: LoopRows) -> LayerSteps | None:
    """Return `nodes` as steps; None if they are too few, or one reads something else than its neighbours."""
    if len(nodes) < FEWEST:
        return None
    links = dict(chain.links)
    steps = LayerSteps(chain.graph, nodes, links, {}, {})
    for p, first in enumerate(nodes[0].inputs):
        if p in links:
            continue
        read = [node.inputs[p] for node in nodes]
        if all(variable is first for variable in read):
            steps.constants[p] = first
            continue
        sequence = _sequence_of(read, known)
        if sequence is None:
            return None
        steps.sequences[p] = sequence
    return steps


def _sequence_of(variables: Sequence[Variable], known: LoopRows) -> Any:
    """Return the tensor whose rows `variables` are, in order; None if they are not the rows of one."""
    found = [{row.rows: row.position for row in _rows_of(variable, known)} for variable in variables]
    for rows, first, is_computed in _rows_of(variables[0], known):
        if not is_computed:
            continue  # the first step would need what it does not need now
        places = [of_variable.get(rows) for of_variable in found]
        if places == list(range(first, first + len(places))):
            return rows[first : first + len(places)]  # type: ignore[index]
        if places == list(range(first, first - len(places), -1)):
            return rows[first - len(places) + 1 : first + 1][::-1]  # type: ignore[index]
    return None


def _rows_of(variable: Variable, known: LoopRows) -> Sequence[LoopRow]:
    """Return what `variable` is known to be a row of; a tensor that may be too short refuses other things
    as a sequence than as an array that is indexed.
    """
    node = variable.owner
    if node is None or not isinstance(node.op, Subtensor) or node.op.entries != (INTEGER,):
        return known.get(variable, ())
    position, length = scalar_value(node.inputs[1]), tensor_type_of(node.inputs[0]).shape[0]
    if position is None or length is None or not 0 <= position < length:
        return known.get(variable, ())
    return [LoopRow(node.inputs[0], position, True), *known.get(variable, ())]


class _Loops:
    """The loops that are to be in a graph, and the variables of the graph that they compute (`rows`)."""

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph
        self.rows: LoopRows = {}
        self.dropped: set[Apply] = set()
        self.sums: list[tuple[Variable, Variable]] = []
        """The result of each RunningSum, and what replaces it."""
        self.read: set[Variable] = set()
        """The variables of the graph that new nodes read."""

    def add(self, steps: LayerSteps) -> None:
        """Make the loop that does `steps`."""
        step = _Rerolled(self.fgraph, steps)
        found = step.loop.apply(Scan)
        self._read_by([*found.buffers, *found.mapped][0].owner)
        for (p, q), buffer in zip(steps.links.items(), found.buffers, strict=False):
            self._know(steps.nodes[0].inputs[p], LoopRow(buffer, 0, False))
            self._know_all([node.outputs[q] for node in steps.nodes], buffer, 1)
        for q, rows in zip(step.mapped, found.mapped, strict=True):
            self._know_all([node.outputs[q] for node in steps.nodes], rows, 0)
        for added, buffer in zip(step.sums, found.buffers[len(steps.links) :], strict=True):
            total = buffer[-1]
            last = added.nodes[-1].outputs[0]
            self.sums.append(
                (last, total if added.before is None else apply_elemwise(add, added.before, total))
            )
            self.dropped.update(added.nodes)
        self.dropped.update(steps.nodes)

    def _know_all(self, variables: Sequence[Variable], rows: Variable, first: int) -> None:
        for position, variable in enumerate(variables, first):
            self._know(variable, LoopRow(rows, position, True))

    def _know(self, variable: Variable, row: LoopRow) -> None:
        self.rows.setdefault(variable, []).append(row)

    def replace(self, reason: str) -> None:
        """Replace in the graph what the loops compute and others read."""
        rows = [
            (variable, row.rows[row.position])  # type: ignore[index]
            for variable, known in self.rows.items()
            if variable.owner in self.dropped and self._is_read(variable)
            for row in known
            if row.is_computed
        ]
        self.fgraph.replace_all([*rows, *self.sums], reason)
        # Loops that have come into the graph may read what was replaced before.
        self.fgraph.replace_all([pair for pair in rows if pair[0] in self.fgraph.variables], reason)

    def _is_read(self, variable: Variable) -> bool:
        clients = self.fgraph.clients[variable]
        return variable in self.read or any(client not in self.dropped for client, _ in clients)

    def _read_by(self, node: Apply) -> None:
        """Note what `node`, and new nodes that compute its inputs, read in the graph."""
        for variable in node.inputs:
            if variable in self.fgraph.variables:
                self.read.add(variable)
            elif variable.owner is not None:
                self._read_by(variable.owner)


class _Rerolled:
    """The loop over `steps`: a state for each link, then for each of `sums`, and the outputs `mapped`."""

    def __init__(self, fgraph: FunctionGraph, steps: LayerSteps) -> None:
        self.steps = steps
        inner = [variable.type.make_variable() for variable in steps.graph.inputs]
        self.inner = inner
        self.results = steps.graph.bind(inner)
        self.loop = ScanBuilder(number(len(steps.nodes), "int64"))
        self.loop.sequences = [(sequence, inner[p]) for p, sequence in steps.sequences.items()]
        self.loop.non_sequences = [(variable, inner[p]) for p, variable in steps.constants.items()]
        first = steps.nodes[0].inputs
        self.loop.states = [
            State(expand_dims(first[p], 0), (-1,), [inner[p]], self.results[q])
            for p, q in steps.links.items()
        ]
        self.sums: list[RunningSum] = []
        self.mapped: list[int] = []
        for q in range(len(steps.graph.outputs)):
            if q not in steps.links.values():
                self._return(fgraph, q)

    def _return(self, fgraph: FunctionGraph, q: int) -> None:
        """Have the loop return the outputs `q` of the nodes, or their sum."""
        computed = [node.outputs[q] for node in self.steps.nodes]
        if not any(fgraph.clients[variable] for variable in computed):
            return
        found = _sum_of(fgraph, computed)
        if found is None:
            self.mapped.append(q)
            self.loop.mapped.append(self.results[q])
            return
        total = computed[0].type.make_variable()
        new = apply_elemwise(add, total, self.results[q])
        zeros = alloc(number(0, tensor_type_of(total).dtype), *self._lengths(q))
        self.loop.states.append(State(expand_dims(zeros, 0), (-1,), [total], new, keep=1))
        self.sums.append(found)

    def _lengths(self, q: int) -> list[Variable]:
        """Return the lengths of the first node's output `q`, from its inputs."""
        result = self.results[q]
        lengths = [
            folded_shape_i(result, axis) if known is None else known
            for axis in range(tensor_type_of(result).ndim)
            for known in (length_elsewhere(result, axis),)
        ]
        return rebuild(lengths, dict(zip(self.inner, self.steps.nodes[0].inputs, strict=True)))


def _sum_of(fgraph: FunctionGraph, terms: Sequence[Variable]) -> RunningSum | None:
    """Return the nodes that add up `terms` in order, each the only user of its term and of the sum before."""
    adders = [_adder_of(fgraph, term) for term in terms]
    if adders[0] is None:
        return None
    is_start = adders[0] is not adders[1]
    total = adders[0].outputs[0] if is_start else terms[0]
    for term, adder in zip(terms[1:], adders[1:], strict=True):
        if adder is None or _adder_of(fgraph, total) is not adder or set(adder.inputs) != {total, term}:
            return None
        total = adder.outputs[0]
    nodes: Any = adders if is_start else adders[1:]
    before = next((v for v in nodes[0].inputs if v is not terms[0]), None) if is_start else None
    return None if is_start and before is None else RunningSum(nodes, before)


def _adder_of(fgraph: FunctionGraph, term: Variable) -> Apply | None:
    """Return the only user of `term` if it adds one more variable to it, and keeps its type."""
    clients = fgraph.clients[term]
    node = clients[0][0] if len(clients) == 1 else None
    if node is None or not isinstance(node.op, Elemwise) or node.op.scalar_op != add:
        return None
    return node if len(node.inputs) == 2 and node.outputs[0].type == term.type else None
