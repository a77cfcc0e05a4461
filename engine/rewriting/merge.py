"""`MergeOptimizer`: makes equal nodes, and equal constants, one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from engine.graph import Apply, Constant, FunctionGraph, Variable
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor import is_data


class MergeOptimizer(GraphRewriter):
    """A merge of nodes with equal Ops on the same inputs, and of constants of equal type and bits.

    Data (constants with values that are not part of a graph's identity) is merged only if it is the same
    object. Nodes that overwrite an input, and nodes with outputs that are overwritten, are never merged:
    two buffers stay two.
    """

    name = "merge"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        constants: dict[Hashable, Constant] = {}
        nodes: dict[Hashable, Apply] = {}
        has_destroyers = getattr(fgraph, "has_destroyers", lambda outputs: False)
        for node in fgraph.toposort():
            for variable in list(node.inputs):
                if isinstance(variable, Constant):
                    report.count("merge_constants", _merge_constant(fgraph, variable, constants))
            if not node.op.destroy_map and not has_destroyers(node.outputs):
                report.count("merge_nodes", _merge_node(fgraph, node, nodes))
        for variable in list(fgraph.outputs):
            if isinstance(variable, Constant):
                report.count("merge_constants", _merge_constant(fgraph, variable, constants))


def _merge_constant(fgraph: FunctionGraph, constant: Constant, kept: dict[Hashable, Constant]) -> int:
    """Replace `constant` by an equal one of `kept`; return the number of replacements."""
    key = (constant.type, id(constant.data)) if is_data(constant) else _bits(constant)
    found = kept.setdefault(key, constant)
    if found is constant or not constant.type.same_data(found.data, constant.data):
        return 0
    fgraph.replace(constant, found, "merge_constants")
    return 1


def _bits(constant: Constant) -> Hashable:
    return (constant.type, *constant.type.data_key(constant.data))


def _merge_node(fgraph: FunctionGraph, node: Apply, kept: dict[Hashable, Apply]) -> int:
    """Replace `node` by an equal one of `kept`; return the number of replacements."""
    key = (node.op, tuple(node.inputs))
    found = kept.setdefault(key, node)
    if found is node:
        return 0
    if not _may_stand_for(found, node):
        if not _may_stand_for(node, found):
            return 0
        kept[key] = node
        found, node = node, found
    fgraph.replace_all(zip(node.outputs, found.outputs, strict=True), "merge_nodes")
    return 1


def _may_stand_for(node: Apply, other: Apply) -> bool:
    pairs = zip(cast(list[Variable], other.outputs), node.outputs, strict=True)
    return all(old.type.is_super(new.type) for old, new in pairs)
