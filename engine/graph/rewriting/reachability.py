"""Ancestors of the nodes of a graph, under PyTensor's path."""

from engine.rewriting.reachability import (
    ancestor_bitsets,
    greedy_independent_subset,
    update_ancestors_after_contraction,
    update_ancestors_after_contraction_bits,
)

__all__ = [
    "ancestor_bitsets",
    "greedy_independent_subset",
    "update_ancestors_after_contraction",
    "update_ancestors_after_contraction_bits",
]
