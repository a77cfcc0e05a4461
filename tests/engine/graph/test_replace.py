"""Copies of graphs, with and without replacements."""

import pytest

from engine.graph import clone, clone_get_equiv, clone_replace, io_toposort
from tests.engine.graph.small_ops import DEPTHS, PLAIN, Floats, chain, combine, constant, follow


def test_a_clone_has_the_structure_and_shares_nothing():
    x, c = PLAIN("x"), constant(1.0)
    shared = follow(x)
    out = combine(shared, c, shared)
    (new_x,), (new_out,) = clone([x], [out])
    assert new_x is not x
    first, copied, second = new_out.owner.inputs
    assert first is second
    assert first.owner.inputs == [new_x]
    assert copied is not c
    assert copied.data == 1.0


def test_inputs_and_constants_can_be_kept():
    x, c = PLAIN("x"), constant(1.0)
    (same_x,), (out,) = clone([x], [combine(x, c)], copy_inputs=False, copy_orphans=False)
    assert same_x is x
    assert out.owner.inputs == [x, c]


def test_the_map_has_nodes_and_variables():
    x = PLAIN("x")
    out = follow(x)
    memo = clone_get_equiv([x], [out])
    assert set(memo) == {x, out, out.owner}
    assert memo[out].owner is memo[out.owner]


def test_replacing_copies_only_what_depends_on_it():
    x, y, z = PLAIN("x"), PLAIN("y"), PLAIN("z")
    kept = follow(y)
    out = combine(follow(x), kept)
    found = clone_replace(out, {x: z})
    assert found.owner.inputs[0].owner.inputs == [z]
    assert found.owner.inputs[1] is kept
    assert out.owner.inputs[0].owner.inputs == [x]
    assert clone_replace(out, {z: x}) is out


def test_a_replacement_may_contain_what_it_replaces():
    x = PLAIN("x")
    found = clone_replace(follow(x), {x: combine(x, x)})
    assert found.owner.inputs[0].owner.inputs == [x, x]


def test_a_variable_between_can_be_replaced():
    x, z = PLAIN("x"), PLAIN("z")
    middle = follow(x)
    found, other = clone_replace([follow(middle), middle], [(middle, z)])
    assert found.owner.inputs == [z]
    assert other is z


def test_a_replacement_of_another_type_is_refused():
    x = PLAIN("x")
    with pytest.raises(TypeError, match="convert it first"):
        clone_replace(follow(x), {x: Floats("other")("y")})


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_is_copied_and_replaced(depth):
    x, y = PLAIN("x"), PLAIN("y")
    out = chain(x, depth)
    (new_x,), (new_out,) = clone([x], [out])
    assert len(io_toposort([new_x], [new_out])) == depth
    assert len(io_toposort([y], [clone_replace(out, {x: y})])) == depth
