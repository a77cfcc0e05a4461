"""Walks over graphs, and their order."""

import pytest

from engine.graph import (
    ancestors,
    apply_depends_on,
    applys_between,
    explicit_graph_inputs,
    general_toposort,
    get_var_by_name,
    graph_inputs,
    io_toposort,
    orphans_between,
    toposort,
    truncated_graph_inputs,
    variable_depends_on,
    vars_between,
    walk,
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
    assert list(graph_inputs([out])) == [c, x]
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


def test_walks_go_broad_or_deep_and_can_show_what_they_expand():
    children = {1: [2, 3], 2: [4], 3: [4, 5], 4: None, 5: ()}
    assert list(walk([1], children.get)) == [1, 2, 3, 4, 5]
    assert list(walk([1], children.get, bfs=False)) == [1, 3, 5, 4, 2]
    assert list(walk([2, 1], children.get, True, True)) == [
        (2, [4]),
        (1, [2, 3]),
        (4, None),
        (3, [4, 5]),
        (5, []),
    ]


def test_outputs_that_nothing_uses_are_between_too():
    x = PLAIN("x")
    first, second = split(x)
    out = follow(first)
    assert set(vars_between([x], [out])) == {x, first, second, out}


def test_orphans_are_the_roots_that_are_not_given():
    x, y, c = PLAIN("x"), PLAIN("y"), constant(1.0)
    assert list(orphans_between([x], [combine(follow(x), y, c)])) == [c, y]


def test_other_nodes_can_be_ordered_first():
    x = PLAIN("x")
    reader, writer = follow(x), split(x)[0]
    out = combine(writer, reader)
    assert io_toposort([x], [out]) == [writer.owner, reader.owner, out.owner]
    for before in (reader, reader.owner):
        order = io_toposort([x], [out], orderings={writer.owner: [before]})
        assert order == [reader.owner, writer.owner, out.owner]
    with pytest.raises(ValueError, match="cycle"):
        io_toposort([x], [out], orderings={writer.owner: [out.owner]})


def test_nodes_and_variables_depend_on_what_they_are_computed_from():
    x, y = PLAIN("x"), PLAIN("y")
    left, right = follow(x), follow(y)
    out = combine(left, y)
    assert variable_depends_on(out, x)
    assert variable_depends_on(x, [y, x])
    assert not variable_depends_on(left, [y, right])
    assert apply_depends_on(out.owner, [left.owner])
    assert apply_depends_on(left.owner, left.owner)
    assert not apply_depends_on(left.owner, [right.owner, out.owner])


def test_inputs_are_cut_where_nothing_above_depends_on_what_is_included():
    x, y = PLAIN("x"), PLAIN("y")
    near, far = follow(x), follow(follow(y))
    out = combine(near, far)
    assert truncated_graph_inputs([out, near, out]) == [out, near]
    assert set(truncated_graph_inputs([out], [near])) == {near, far}
    assert set(truncated_graph_inputs([out], [x])) == {x, far}
    assert set(truncated_graph_inputs([out], [x, near])) == {x, near, far}
    assert set(truncated_graph_inputs([out], [PLAIN("elsewhere")])) == {out}
    assert truncated_graph_inputs([near], [near]) == [near]


def test_variables_are_found_by_name():
    x = PLAIN("x")
    middle = follow(x)
    middle.name = "x"
    assert get_var_by_name([follow(middle)], "x") == (middle, x)
    assert get_var_by_name([middle], "y") == ()


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_graphs_are_searched_and_cut(depth):
    x = PLAIN("x")
    out = chain(x, depth)
    assert get_var_by_name([out], "x") == (x,)
    assert len(list(vars_between([x], [out]))) == depth + 1
    assert variable_depends_on(out, x)
    assert truncated_graph_inputs([out], [x]) == [x]


def test_what_depends_on_nothing_comes_first_and_cycles_are_refused():
    needs = {"out": ["left", "right"], "left": ["root"], "right": ["root"], "root": None}
    assert general_toposort(["out"], needs.get) == ["root", "right", "left", "out"]
    with pytest.raises(ValueError, match="contains cycles"):
        general_toposort(["out"], (needs | {"root": ["out"]}).get)


def test_a_variable_has_an_automatic_name_by_which_it_is_found():
    x, y = PLAIN("x"), PLAIN("x")
    out = combine(x, y)
    assert len({variable.auto_name for variable in (x, y, out)}) == 3
    assert x.auto_name == x.auto_name
    assert get_var_by_name([out], y.auto_name) == (y,)
    assert set(get_var_by_name([out], "x")) == {x, y}
    assert x.clone().auto_name != x.auto_name
