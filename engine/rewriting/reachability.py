"""Ancestors of the nodes of a graph: a bit for each node, and a set of bits for those that it needs.

The sets answer for many groups of nodes whether they may be merged into one node without a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.graph import Apply, FunctionGraph

Bits = dict[Apply | None, int]
"""A set of nodes for each node, as the bits of a number; None, which computes nothing, has none."""


def ancestor_bitsets(fgraph: FunctionGraph) -> tuple[Bits, Bits]:
    """Return, for each node of `fgraph`, the bits of its ancestors and itself, and its own bit."""
    ancestors: Bits = {None: 0}
    bitflags: Bits = {None: 0}
    for position, node in enumerate(fgraph.toposort()):
        found = bitflags[node] = 1 << position
        for variable in node.inputs:
            found |= ancestors[variable.owner]
        ancestors[node] = found
    return ancestors, bitflags


def greedy_independent_subset(ancestors: Bits, bitflags: Bits, nodes: Iterable[Apply]) -> list[Apply]:
    """Return those of `nodes`, the first ones first, of which none needs another."""
    kept: list[Apply] = []
    flags = needed = 0
    for node in nodes:
        if not ancestors[node] & flags and not needed & bitflags[node]:
            kept.append(node)
            flags |= bitflags[node]
            needed |= ancestors[node]
    return kept


def update_ancestors_after_contraction(ancestors: Bits, bitflags: Bits, nodes: Sequence[Apply]) -> None:
    """Have everything that needs one of `nodes`, which became one node, need what all of them need."""
    flags = combined = 0
    for node in nodes:
        flags |= bitflags[node]
        combined |= ancestors[node]
    update_ancestors_after_contraction_bits(ancestors, flags, combined)


def update_ancestors_after_contraction_bits(ancestors: Bits, member_bits: int, combined: int) -> None:
    """Add the bits `combined` to the ancestors of every node that has one of `member_bits` among them."""
    for node, found in ancestors.items():
        if found & member_bits:
            ancestors[node] = found | combined
