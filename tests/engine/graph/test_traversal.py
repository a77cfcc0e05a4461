"""Walks over graphs, and their order."""

import pytest

from engine.graph import (
    ancestors,
    applys_between,
    explicit_graph_inputs,
    graph_inputs,
    io_toposort,
    toposort,
    vars_between,
)
from tests.engine.graph.small_ops import DEPTHS, PLAIN, chain, combine, constant, follow, split


def test_nodes_come_after_what_they_need_depth_first_from_left_to_right():
    x, y = PLAIN("x"), PLAIN("y")
    left, right = follow(x), follow(y)
    out = combine(right, left, right)
    assert io_toposort([x, y], [out]) == [right.owner, left.owner, out.owner]
    assert toposort([left, out]) == [left.owner, right.owner, out.owner]


def test_the_order_does_not_depend_on_when_nodes_were_made():
    def build(first_left):
        x = PLAIN("x")
        made = [follow(x), split(x)[0]] if first_left else [split(x)[0], follow(x)][::-1]
        return combine(*made)

    assert [[str(n.op) for n in io_toposort([], [build(flag)])] for flag in (True, False)] == [
        ["Follow", "Split", "Combine{label=combine, weight=1.0}"]
    ] * 2


def test_nothing_behind_the_inputs_is_walked():
    x = PLAIN("x")
    middle = follow(x)
    out = follow(middle)
    assert io_toposort([middle], [out]) == [out.owner]
    assert list(applys_between([middle], [out])) == [out.owner]
    assert list(vars_between([middle], [out])) == [out, middle]
    assert io_toposort([out], [out]) == []


def test_roots_are_inputs_and_constants():
    x, c = PLAIN("x"), constant(1.0)
    out = combine(follow(x), c)
    assert list(graph_inputs([out])) == [x, c]
    assert list(explicit_graph_inputs(out)) == [x]
    assert set(ancestors([out])) == {out, out.owner.inputs[0], x, c}


def test_a_cycle_is_refused():
    x = PLAIN("x")
    first = follow(x)
    second = follow(first)
    first.owner.inputs[0] = second
    with pytest.raises(ValueError, match="cycle"):
        io_toposort([x], [second])


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_graphs_are_walked(depth):
    x = PLAIN("x")
    out = chain(x, depth)
    assert len(io_toposort([x], [out])) == depth
    assert len(list(ancestors([out]))) == depth + 1


def test_what_is_shared_is_walked_once():
    out = PLAIN("x")
    for _ in range(200):
        out = combine(out, out)
    assert len(io_toposort([], [out])) == 200
