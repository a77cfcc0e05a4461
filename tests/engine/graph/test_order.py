"""Ranks of a growing graph: they stay in order, and refuse an edge that closes a cycle."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InconsistencyError
from engine.graph.order import GAP, raise_ranks
from tests.engine.graph.small_ops import PLAIN, follow


def reaches(edges, start, end):
    waiting, seen = [start], set()
    while waiting:
        node = waiting.pop()
        if node is end:
            return True
        if node not in seen:
            seen.add(node)
            waiting += [after for before, after in edges if before is node]
    return False


@given(
    st.integers(2, 12),
    st.lists(
        st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=3), max_size=25
    ),
    st.booleans(),
)
def test_edges_raise_ranks_or_close_a_cycle_and_change_nothing(count, batches, is_flat):
    nodes = [follow(PLAIN()).owner for _ in range(count)]
    ranks = {node: 0 if is_flat else number * GAP for number, node in enumerate(nodes)}
    edges = []
    for batch in batches:
        new = [(nodes[a % count], nodes[b % count]) for a, b in batch]
        everything = [*edges, *new]
        before = dict(ranks)
        if any(reaches(everything, end, start) for start, end in new):
            with pytest.raises(InconsistencyError, match="would need its own output"):
                raise_ranks(ranks, new, lambda n, e=everything: [b for a, b in e if a is n])
            assert ranks == before
            continue
        former = raise_ranks(ranks, new, lambda n, e=everything: [b for a, b in e if a is n])
        edges = everything
        assert all(ranks[a] < ranks[b] for a, b in edges)
        assert former == {node: rank for node, rank in before.items() if ranks[node] != rank}


def test_only_what_lies_between_the_ends_of_an_edge_is_looked_at():
    nodes = [follow(PLAIN()).owner for _ in range(100)]
    ranks = {node: number * GAP for number, node in enumerate(nodes)}
    following = dict(itertools.pairwise(nodes))
    del following[nodes[49]]
    seen = []

    def successors(node):
        seen.append(node)
        return [following[node]] if node in following else []

    raise_ranks(ranks, [(nodes[52], nodes[48])], successors)
    assert set(seen) == {nodes[48], nodes[49]}
