"""Connections: which outputs of a graph depend on the values of which inputs, as Ops say."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.graph.apply import Apply
from engine.graph.traversal import io_toposort
from engine.graph.variables import Variable


def io_connection_pattern(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[list[bool]]:
    """Return a row for each input that says for each output if it depends on the input's values."""
    nodes = io_toposort(inputs, outputs)
    return [[output in found for output in outputs] for found in (reached_from(v, nodes) for v in inputs)]


def reached_from(target: Variable, nodes: Sequence[Apply]) -> set[Variable]:
    """Return `target` and the variables computed by `nodes` that depend on its values."""
    reached = {target}
    for node in nodes:
        if not any(variable in reached for variable in node.inputs):
            continue
        reached |= connected_outputs(node, reached)
    return reached


def connected_outputs(node: Apply, variables: Collection[Variable]) -> set[Variable]:
    """Return the outputs of `node` that depend, as its Op says, on an input that is among `variables`."""
    pairs = zip(node.inputs, node.op.connection_pattern(node), strict=True)
    rows = [row for variable, row in pairs if variable in variables]
    return {output for row in rows for output, depends in zip(node.outputs, row, strict=True) if depends}
