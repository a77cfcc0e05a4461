"""Lazy branches: what only one branch of an `ifelse` needs becomes a loop of one pass or none.

Such a loop is a Scan with a mapped output for each value of the branch; the values it reads are its
sequences, of one row each, so that no later rewrite moves the work out of the loop. Of two such loops
one does a pass. Their rows are joined, which leaves the row of the branch that is chosen.

An `ifelse` within a branch is moved with it, and done when the graph of that loop is rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.graph.replace import rebuild
from engine.graph.represented import RepresentedType
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder
from engine.rewriting.equilibrium import replace_outputs
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor import cast, dimshuffle, flatten, reshape, sub, switch
from engine.tensor.conditional import IfElse
from engine.tensor.held_arrays import held_array, held_value
from engine.tensor.joining import join
from engine.tensor.matching import tensor_type_of
from engine.tensor.shape import folded_shape_i
from engine.tensor.type import TensorType, is_data


class LazyBranches(GraphRewriter):
    """A rewrite of all `ifelse` nodes, the last first: one before it may be a part of its branch."""

    name = "lazy_branches"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        for node in fgraph.toposort()[::-1]:
            if isinstance(node.op, IfElse) and node in fgraph.apply_nodes:
                replace_outputs(fgraph, node, _lazy(fgraph, node), self.name)
                report.count(self.name)


def _lazy(fgraph: FunctionGraph, node: Apply) -> list[Variable]:
    """Return what replaces the outputs of an `ifelse` node."""
    condition, values = node.inputs[0], node.inputs[1:]
    count = len(node.outputs)
    yes, no = values[:count], values[count:]
    parts = [
        _needed_only(fgraph, node, places)
        for places in (range(1, 1 + count), range(1 + count, 1 + 2 * count))
    ]
    if not any(parts) and all(_rank(value) == 0 for value in values):
        return [switch(condition, a, b) for a, b in zip(yes, no, strict=True)]
    passes = cast(condition, "int64")
    rows_yes = _rows(passes, yes, parts[0])
    rows_no = _rows(sub(1, passes), no, parts[1])
    return [
        _chosen(condition, a, b, output) for a, b, output in zip(rows_yes, rows_no, node.outputs, strict=True)
    ]


def _needed_only(fgraph: FunctionGraph, choice: Apply, places: Collection[int]) -> set[Apply]:
    """Return the nodes whose results nothing needs but the inputs of `choice` at `places`."""
    found: set[Apply] = set()
    waiting = [choice.inputs[place].owner for place in places]
    while waiting:
        node = waiting.pop()
        if node is None or node in found or not _is_movable(node):
            continue
        clients = [pair for output in node.outputs for pair in fgraph.clients[output]]
        if all(client in found or (client is choice and place in places) for client, place in clients):
            found.add(node)
            waiting.extend(variable.owner for variable in node.inputs)
    return found


def _is_movable(node: Apply) -> bool:
    """Return True for a node on values that programs hold that overwrites nothing."""
    variables = (*node.inputs, *node.outputs)
    held = TensorType | RepresentedType
    return not node.op.destroy_map and all(isinstance(v.type, held) for v in variables)


def _rows(passes: Variable, values: Sequence[Variable], inside: Collection[Apply]) -> Sequence[Any]:
    """Return the rows of `values` from a loop of this many passes, which has the nodes `inside`."""
    memo: dict[Variable, Variable] = {}
    sequences = []
    for variable in _read(values, inside):
        is_held = isinstance(variable.type, RepresentedType)
        array = held_array(variable) if is_held else variable
        row = array.type.make_variable()
        memo[variable] = held_value(row, variable.type) if is_held else row
        sequences.append((dimshuffle(array, ("x", *range(_rank(array)))), row))
    return ScanBuilder(passes, sequences, mapped=rebuild(values, memo)).apply(Scan).mapped


def _read(values: Sequence[Variable], inside: Collection[Apply]) -> list[Variable]:
    """Return the variables from outside that the nodes `inside`, or the values themselves, are or read."""
    found: dict[Variable, None] = {}
    waiting = list(values)[::-1]
    seen: set[Variable] = set()
    while waiting:
        variable = waiting.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is not None and variable.owner in inside:
            waiting.extend(variable.owner.inputs[::-1])
        elif not isinstance(variable, Constant) or is_data(variable):
            found[variable] = None
    return list(found)


def _chosen(condition: Variable, yes: Any, no: Any, output: Variable) -> Variable:
    """Return the one row that two values have together; their shapes may differ."""
    known = tensor_type_of(output).shape
    lengths = [
        switch(condition, folded_shape_i(yes, axis), folded_shape_i(no, axis)) if length is None else length
        for axis, length in enumerate(known, 1)
    ]
    only: Variable = reshape(join(0, flatten(yes), flatten(no)), lengths)
    return tensor_type_of(output).filter_variable(only)


def _rank(variable: Variable) -> int:
    return tensor_type_of(variable).ndim
