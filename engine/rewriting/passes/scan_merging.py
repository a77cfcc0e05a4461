"""Loops of the same steps that compute few numbers element by element become one loop.

The steps of one wait for each other, and run beside those of another; a sequence that several read is read
once. Loops over long rows, and those with products of matrices, stay apart: each is as fast as it can be
alone, and two in one are slower (decision 0212).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

from engine.graph import Apply, FunctionGraph, Variable, ancestors
from engine.graph.fgraph import FrozenFunctionGraph
from engine.inner.scan import Scan
from engine.inner.scan_building import ScanBuilder
from engine.rewriting.merge import MergeOptimizer
from engine.rewriting.reachability import (
    ancestor_bitsets,
    greedy_independent_subset,
    update_ancestors_after_contraction,
)
from engine.rewriting.rewriters import GraphRewriter, RewriteReport
from engine.tensor.elemwise import DimShuffle, Elemwise
from engine.tensor.matching import tensor_type_of

MOST_NODES = 64
"""Nodes of a merged step. More of them would compete for registers."""
MOST_ELEMENTS = 64
"""Elements of a row that a loop computes. Longer rows compete for the nearest memory."""
MOST_ROUNDS = 8
"""Loops of one length that depend on each other are merged in as many groups at most."""


class ScanMerge(GraphRewriter):
    """The rewrite of loops with equal numbers of steps, equal conditions and no paths between them."""

    name = "scan_merge"

    def run(self, fgraph: FunctionGraph, report: RewriteReport) -> None:
        if len(_small_loops(fgraph)) < 2:
            return
        MergeOptimizer().run(fgraph, report)  # numbers of steps that are equal are one variable
        found: dict[Hashable, list[Apply]] = {}
        for node in _small_loops(fgraph):
            found.setdefault(_steps_of(node), []).append(node)
        groups = [nodes for nodes in found.values() if len(nodes) > 1]
        if not groups:
            return
        reached, flags = ancestor_bitsets(fgraph)
        for remaining in groups:
            for _ in range(MOST_ROUNDS):
                chosen = _within_one_step(greedy_independent_subset(reached, flags, remaining))
                if len(chosen) > 1:
                    _merge(fgraph, chosen)
                    update_ancestors_after_contraction(reached, flags, chosen)
                    report.count(self.name)
                remaining = [node for node in remaining if node not in chosen]


def _small_loops(fgraph: FunctionGraph) -> list[Apply]:
    return [node for node in fgraph.toposort() if isinstance(node.op, Scan) and _is_small(node.op)]


def _is_small(op: Scan) -> bool:
    """Return True if a step computes few elements, one by one."""
    return all(
        isinstance(node.op, Elemwise | DimShuffle) and not node.op.destroy_map for node in op.fgraph.nodes
    ) and all(map(_has_few_elements, op.inner_outputs))


def _has_few_elements(row: Variable) -> bool:
    lengths = tensor_type_of(row).shape
    return None not in lengths and prod(length or 0 for length in lengths) <= MOST_ELEMENTS


def _within_one_step(nodes: Sequence[Apply]) -> list[Apply]:
    """Return the first of `nodes`, as many as have MOST_NODES in their steps together, and one at least."""
    chosen: list[Apply] = []
    size = 0
    for node in nodes:
        size += len(_scan_of(node).fgraph.nodes)
        if chosen and size > MOST_NODES:
            break
        chosen.append(node)
    return chosen


def _scan_of(node: Apply) -> Scan:
    assert isinstance(node.op, Scan)
    return node.op


def _steps_of(node: Apply) -> Hashable:
    """Return what two loops have in common that do the same steps."""
    op = _scan_of(node)
    return node.inputs[0], op.truncate_gradient, _condition_of(node) if op.info.is_while else None


def _condition_of(node: Apply) -> Hashable:
    """Return the graph of the condition and the outer variables it reads; the node if it reads states."""
    op = _scan_of(node)
    inner, outer = op.info.inner_inputs(op.inner_inputs), op.info.outer_inputs(node.inputs)
    pairs = {row: (True, sequence) for row, sequence in zip(inner.rows, outer.sequences, strict=True)}
    pairs |= {v: (False, given) for v, given in zip(inner.non_sequences, outer.non_sequences, strict=True)}
    stop = op.inner_outputs[-1]
    inputs = set(op.inner_inputs)
    read = [variable for variable in ancestors([stop], inputs) if variable in inputs]
    if any(variable not in pairs for variable in read):
        return node
    return FrozenFunctionGraph.from_io(read, [stop]), tuple([pairs[variable] for variable in read])


def _merge(fgraph: FunctionGraph, nodes: Sequence[Apply]) -> None:
    """Replace the loops of `nodes` by one, whose step does the steps of all."""
    loops = [ScanBuilder.of(_scan_of(node), node.inputs) for node in nodes]
    whole = ScanBuilder(loops[0].n_steps, stop=loops[0].stop)
    known: dict[tuple[bool, Variable], Variable] = {}
    for loop in loops:
        _share_inputs(loop, known)
        whole.sequences += loop.sequences
        whole.non_sequences += loop.non_sequences
        whole.states += loop.states
        whole.mapped += loop.mapped
    found = whole.apply(Scan, _scan_of(nodes[0]).truncate_gradient)
    buffers, mapped = iter(found.buffers), iter(found.mapped)
    pairs: list[tuple[Variable, Any]] = []
    for node in nodes:
        outputs = _scan_of(node).info.outer_outputs(node.outputs)
        pairs += [(old, next(buffers)) for old in outputs.buffers]
        pairs += [(old, next(mapped)) for old in outputs.mapped]
    fgraph.replace_all(pairs, ScanMerge.name)


def _share_inputs(loop: ScanBuilder, known: dict[tuple[bool, Variable], Variable]) -> None:
    """Drop the inputs of `loop` that are `known` from the loops before; add the others to these."""
    memo: dict[Variable, Variable] = {}
    for is_row, pairs in ((True, loop.sequences), (False, loop.non_sequences)):
        for outside, inside in pairs:
            found = known.setdefault((is_row, outside), inside)
            if found is not inside and inside.type.is_super(found.type):
                memo[inside] = found
    loop.substitute(memo)
    loop.sequences = [pair for pair in loop.sequences if pair[1] not in memo]
    loop.non_sequences = [pair for pair in loop.non_sequences if pair[1] not in memo]
