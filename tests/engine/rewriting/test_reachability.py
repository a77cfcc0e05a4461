"""Which nodes of a graph need which."""

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.graph.rewriting.reachability import (
    ancestor_bitsets,
    greedy_independent_subset,
    update_ancestors_after_contraction,
)

x, y = pt.vectors("x", "y")


def test_a_node_needs_itself_and_what_it_is_computed_from():
    a = pt.exp(x)
    b = pt.log(a)
    c = pt.sin(y)
    ancestors, flags = ancestor_bitsets(FunctionGraph([x, y], [b, c], clone=False))
    assert ancestors[b.owner] == flags[a.owner] | flags[b.owner]
    assert ancestors[c.owner] == flags[c.owner]
    assert flags[None] == ancestors[None] == 0
    assert greedy_independent_subset(ancestors, flags, [a.owner, b.owner, c.owner]) == [a.owner, c.owner]


def test_nodes_that_become_one_need_what_all_need():
    inner, outer = pt.exp(x), pt.sin(y)
    first, last = pt.log(inner), pt.cos(outer)
    ancestors, flags = ancestor_bitsets(FunctionGraph([x, y], [first, last], clone=False))
    update_ancestors_after_contraction(ancestors, flags, [outer.owner, first.owner])
    assert ancestors[last.owner] & flags[inner.owner]
    assert not ancestors[inner.owner] & flags[outer.owner]
