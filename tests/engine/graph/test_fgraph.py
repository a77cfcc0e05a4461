"""Mutable graphs: what they import, replace, prune and refuse."""

import pytest

from engine.errors import InconsistencyError, MissingInputError
from engine.graph import FunctionGraph
from tests.engine.graph.small_ops import DEPTHS, PLAIN, Floats, chain, combine, constant, follow, split


def graph(*outputs, inputs=None):
    """A graph that owns `outputs` themselves; its inputs are the roots unless they are given."""
    found = FunctionGraph(inputs, outputs, clone=False)
    found.check_integrity()
    return found


def test_a_graph_owns_copies_unless_told_not_to():
    x = PLAIN("x")
    out = follow(x)
    assert FunctionGraph([x], [out]).outputs[0] is not out
    assert FunctionGraph([x], [out], clone=False).outputs[0] is out


def test_roots_become_inputs_when_none_are_named():
    x, y = PLAIN("x"), PLAIN("y")
    assert graph(combine(x, constant(1.0), y)).inputs == [x, y]


def test_every_use_is_a_client():
    x = PLAIN("x")
    middle = follow(x)
    found = graph(middle, combine(middle, middle))
    assert [(str(n.op), i) for n, i in found.clients[middle]] == [
        ("Output{idx=0}", 0),
        ("Combine{label=combine, weight=1.0}", 0),
        ("Combine{label=combine, weight=1.0}", 1),
    ]
    assert middle in found
    assert middle.owner in found


def test_a_root_that_is_no_input_is_refused_and_named():
    x, y = PLAIN("x"), PLAIN("y")
    with pytest.raises(MissingInputError, match="its input y of type") as caught:
        FunctionGraph([x], [combine(x, y)], clone=False)
    assert caught.value.variable is y
    with pytest.raises(MissingInputError, match="Importing y"):
        FunctionGraph([x], [y], clone=False)


def test_an_input_has_no_owner():
    with pytest.raises(ValueError, match="an input has no owner"):
        FunctionGraph([follow(PLAIN())], [], clone=False)


def test_nothing_is_imported_if_a_root_is_missing():
    x, y = PLAIN("x"), PLAIN("y")
    found = graph(follow(x))
    with pytest.raises(MissingInputError):
        found.replace(found.outputs[0], combine(follow(x), follow(y)))
    found.check_integrity()
    assert len(found.apply_nodes) == 1


def test_missing_roots_become_inputs_if_that_is_wanted():
    x, y = PLAIN("x"), PLAIN("y")
    found = graph(follow(x))
    found.replace(found.outputs[0], combine(x, y), import_missing=True)
    found.check_integrity()
    assert found.inputs == [x, y]


def test_replacing_changes_every_use_and_prunes_what_is_used_no_more():
    x = PLAIN("x")
    old = follow(follow(x))
    found = graph(combine(old, old), old)
    found.replace(old, x)
    found.check_integrity()
    assert found.outputs[0].owner.inputs == [x, x]
    assert found.outputs[1] is x
    assert len(found.apply_nodes) == 1


def test_a_replacement_may_use_what_it_replaces():
    x = PLAIN("x")
    found = graph(follow(x), inputs=[x])
    found.replace(x, combine(x, x))
    found.check_integrity()
    assert found.outputs[0].owner.inputs[0].owner.inputs == [x, x]


def test_replacing_what_nobody_uses_changes_nothing():
    x, y = PLAIN("x"), PLAIN("y")
    found = graph(follow(x), inputs=[x, y])
    found.replace(y, follow(x))
    found.replace(PLAIN("z"), x)
    found.check_integrity()
    assert len(found.apply_nodes) == 1


def test_one_output_of_two_can_be_replaced():
    x = PLAIN("x")
    first, second = split(x)
    found = graph(first, second)
    found.replace(first, x)
    found.check_integrity()
    assert found.outputs == [x, second]
    found.replace(second, x)
    found.check_integrity()
    assert not found.apply_nodes


def test_constants_leave_with_their_last_use_and_inputs_stay():
    x, c = PLAIN("x"), constant(1.0)
    found = graph(combine(x, c), inputs=[x])
    found.replace(found.outputs[0], constant(2.0))
    found.check_integrity()
    assert c not in found.variables
    assert x in found.variables


def test_a_replacement_of_another_type_is_refused():
    x = Floats("plain")("x")
    found = graph(follow(x))
    with pytest.raises(TypeError, match="convert it first"):
        found.replace(x, Floats("other")("y"), import_missing=True)
    with pytest.raises(TypeError, match="the types differ"):
        found.change_node_input(found.outputs[0].owner, 0, Floats("other")("y"), import_missing=True)


def test_several_replacements_are_made_in_order():
    x, y = PLAIN("x"), PLAIN("y")
    found = graph(combine(x, y))
    found.replace_all([(x, y), (y, x)])
    assert found.outputs[0].owner.inputs == [x, x]


def test_a_clone_does_not_follow_its_original():
    x = PLAIN("x")
    found = graph(follow(follow(x)))
    copy, memo = found.clone_get_equiv()
    found.replace(found.outputs[0], x)
    assert len(copy.apply_nodes) == 2
    copy.check_integrity()
    assert memo[x] is copy.inputs[0]


def test_a_damaged_graph_is_found():
    x = PLAIN("x")
    for damage in (
        lambda g: g.clients[x].clear(),
        lambda g: g.apply_nodes.clear(),
        lambda g: g.clients[g.outputs[0]].clear(),
    ):
        found = graph(follow(x))
        damage(found)
        with pytest.raises(InconsistencyError):
            found.check_integrity()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_is_imported_cloned_and_pruned(depth):
    x = PLAIN("x")
    found = FunctionGraph([x], [chain(x, depth)])
    assert len(found.clone().apply_nodes) == depth
    found.replace(found.outputs[0], found.inputs[0])
    assert not found.apply_nodes
