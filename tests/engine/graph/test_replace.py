"""Copies of graphs, with and without replacements."""

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import (
    FrozenFunctionGraph,
    clone,
    clone_get_equiv,
    clone_replace,
    equal_computations,
    graph_inputs,
    graph_replace,
    io_toposort,
    rebuild,
)
from tests.engine.graph.small_ops import DEPTHS, PLAIN, Floats, chain, combine, constant, follow, split


def test_a_clone_has_the_structure_and_shares_constants_alone():
    x, c = PLAIN("x"), constant(1.0)
    shared = follow(x)
    out = combine(shared, c, shared)
    (new_x,), (new_out,) = clone([x], [out])
    assert new_x is not x
    first, copied, second = new_out.owner.inputs
    assert first is second
    assert first.owner.inputs == [new_x]
    assert copied is c


def test_a_clone_of_a_frozen_graph_has_inputs_that_are_mutable():
    x = PLAIN("x")
    frozen = FrozenFunctionGraph.from_io([x], [follow(x)])
    (given,) = frozen.inputs
    assert given.clone() is given
    assert type(given.clone("x")) is type(x)
    (new,), (out,) = clone(frozen.inputs, frozen.outputs)
    assert out.owner.inputs == [new]
    assert type(new) is type(x)


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


def test_replacements_are_made_at_once_and_not_in_each_other():
    x, y, z = PLAIN("x"), PLAIN("y"), PLAIN("z")
    found = graph_replace(combine(x, y), {x: y, y: z})
    assert found.owner.inputs == [y, z]
    middle = follow(x)
    (found,) = graph_replace([combine(middle, x)], [(middle, combine(x)), (x, z)])
    assert found.owner.inputs[0].owner.inputs == [x]
    assert found.owner.inputs[1] is z


def test_what_is_to_be_replaced_must_be_in_the_graph():
    x, y, z = PLAIN("x"), PLAIN("y"), PLAIN("z")
    out = follow(x)
    with pytest.raises(ValueError, match="Replacing y: Some replacements were not used"):
        graph_replace(out, {x: z, y: z})
    assert graph_replace(out, {x: z, y: z}, strict=False).owner.inputs == [z]
    assert graph_replace([out]) == [out]


def test_rebuilding_keeps_nodes_that_do_not_change():
    x, z = PLAIN("x"), PLAIN("z")
    kept, changed = follow(z), follow(x)
    assert rebuild([kept, changed], {x: x}) == [kept, changed]
    (found,) = rebuild([combine(kept, changed)], {x: z})
    assert found.owner.inputs[0] is kept


def test_computations_are_equal_by_structure():
    x, y = PLAIN("x"), PLAIN("y")
    first, second = split(x)
    assert equal_computations([combine(first, constant(1.0))], [combine(split(x)[0], constant(1.0))])
    assert not equal_computations([combine(first)], [combine(second)])
    assert not equal_computations([combine(first)], [combine(first, first)])
    assert not equal_computations([combine(x)], [combine(y)])
    assert not equal_computations([x], [follow(x)])
    assert equal_computations([], [])
    with pytest.raises(ValueError, match="1 are to be compared with 2"):
        equal_computations([x], [x, x])


def test_computations_are_equal_where_inputs_stand_for_others():
    x, y, z = PLAIN("x"), PLAIN("y"), PLAIN("z")
    assert equal_computations([combine(x, follow(x))], [combine(y, follow(y))], [x], [y])
    assert not equal_computations([combine(x, follow(x))], [combine(y, follow(z))], [x], [y])
    assert equal_computations([combine(follow(x))], [combine(z)], [follow(x).owner.inputs[0]], [z]) is False
    middle = follow(x)
    assert equal_computations([combine(middle)], [combine(z)], [middle], [z])
    assert not equal_computations([x], [y], [x], [Floats("other")("y")])
    assert not equal_computations([x], [y], [x], [])


def test_constants_and_values_are_compared_by_what_they_hold():
    one, same = pt.constant(np.array([1.0, np.nan])), pt.constant(np.array([1.0, np.nan]))
    assert equal_computations([one], [same])
    assert not equal_computations([pt.constant(0.0)], [pt.constant(-0.0)])
    assert not equal_computations([pt.constant(np.int64(1))], [pt.constant(np.float64(1))])
    assert equal_computations([pt.constant(np.int64(1))], [pt.constant(np.float64(1))], strict_dtype=False)
    assert equal_computations([one, np.ones(2)], [np.array([1.0, np.nan]), np.ones(2)])
    assert not equal_computations([np.ones(2)], [one])
    assert not equal_computations([np.ones(2)], [pt.dvector("x")])


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_graphs_are_compared(depth):
    x = PLAIN("x")
    assert equal_computations([chain(x, depth)], [chain(x, depth)])
    assert not equal_computations([chain(x, depth)], [chain(x, depth + 1)])


def test_a_replacement_may_have_another_type_and_inputs_may_be_new_ones() -> None:
    x, y, wider = pt.fvector("x"), pt.fvector("y"), pt.dvector("wider")
    z = (x + y) ** 2
    with pytest.raises(TypeError):
        clone_replace(z, {y: wider})
    found = clone_replace(z, {y: wider}, rebuild_strict=False)
    assert found.type.dtype == "float64"
    assert {x, wider} <= set(graph_inputs([found]))
    copied = clone_replace([z], {y: x}, copy_inputs_over=False)[0]
    assert {x, y}.isdisjoint(graph_inputs([copied]))
    assert [v.name for v in graph_inputs([copied]) if v.name] == ["x"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("shape", [(3,), (5,)])
def test_outputs_keep_their_names(strict, shape):
    x, y = pt.tensor("x", shape=(None,)), pt.tensor("y", shape=shape)
    doubled = x * 2
    doubled.name = "doubled"
    assert clone_replace(doubled, {x: y}, rebuild_strict=strict).name == "doubled"
