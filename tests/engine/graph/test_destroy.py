"""Overwriting inputs: safe orders, and refused graphs."""

import pickle

import pytest

from engine.errors import InconsistencyError
from engine.graph import FunctionGraph
from engine.graph.features import DestroyHandler, NoOutputFromInplace, Supervisor
from tests.engine.graph.graph_state import state_of
from tests.engine.graph.memory_ops import (
    choose,
    is_allowed,
    overwrite,
    overwrite_aliased,
    overwrite_same,
    view,
)
from tests.engine.graph.small_ops import DEPTHS, PLAIN, chain, combine, constant, follow


def graph(inputs, *outputs, features=()):
    return FunctionGraph(inputs, outputs, [DestroyHandler(), *features], clone=False)


def refused(fgraph, match):
    assert not is_allowed(fgraph)
    with pytest.raises(InconsistencyError, match=match):
        fgraph.validate()


def test_what_overwrites_runs_after_all_that_reads():
    x = PLAIN("x")
    fgraph = graph([x], overwrite(x), combine(x, view(x)), follow(view(view(x))))
    fgraph.validate()
    assert fgraph.destroy_handler is fgraph.features[0]
    order = fgraph.toposort()
    assert order[-1].op == overwrite
    assert set(fgraph.orderings()) == {order[-1]}
    assert len(fgraph.orderings()[order[-1]]) == 5


def test_without_a_handler_nothing_is_ordered():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [overwrite(x), follow(x)], clone=False)
    assert fgraph.toposort()[0].op == overwrite
    assert fgraph.orderings() == {}


def test_the_order_is_the_same_whichever_use_came_first():
    orders = []
    for outputs in ((0, 1, 2), (2, 1, 0)):
        x = PLAIN("x")
        made = [combine(x, x), follow(x), overwrite(x)]
        fgraph = graph([x], *[made[0]])
        for index in outputs:
            fgraph.import_var(made[index])
        fgraph.add_output(made[1])
        fgraph.add_output(made[2])
        orders.append([str(node.op) for node in fgraph.toposort()])
    assert orders[0] == orders[1]


def test_a_value_cannot_be_overwritten_by_what_others_need_first():
    x = PLAIN("x")
    refused(graph([x], combine(x, overwrite(x))), "would need its own output")
    refused(graph([x], combine(view(x), overwrite(x))), "would need its own output")
    refused(graph([x], combine(overwrite(x), follow(overwrite(x)))), "both .* overwrite x")


def test_a_chain_of_overwriting_uses_one_memory():
    x = PLAIN("x")
    fgraph = graph([x], overwrite(overwrite(overwrite(x))))
    fgraph.validate()
    assert is_allowed(fgraph)


def test_constants_and_what_says_so_are_not_overwritten():
    x, held = PLAIN("x"), PLAIN("held")
    held.tag.indestructible = True
    refused(graph([x], overwrite(constant(1.0))), "must not be overwritten")
    refused(graph([x], overwrite(view(constant(1.0)))), "must not be overwritten")
    with pytest.raises(InconsistencyError, match="overwrites held, which must not"):
        graph([held], overwrite(held)).validate()


def test_a_node_does_not_read_what_it_overwrites_unless_its_op_tolerates_it():
    x = PLAIN("x")
    refused(graph([x], overwrite(x, x)), "reads the same memory as input 1")
    refused(graph([x], overwrite(x, view(x))), "reads the same memory as input 1")
    graph([x], overwrite_same(x, x)).validate()
    refused(graph([x], overwrite_same(x, view(x))), "reads the same memory")
    graph([x], overwrite_aliased(x, view(x))).validate()


def test_a_view_of_one_of_two_is_taken_for_a_view_of_both():
    x, y = PLAIN("x"), PLAIN("y")
    fgraph = graph([x, y], overwrite(choose(x, y)), follow(y))
    assert fgraph.toposort()[-1].op == overwrite
    assert fgraph.destroyers(x) == fgraph.destroyers(y) == [fgraph.outputs[0].owner]
    refused(graph([x, y], overwrite(choose(x, y)), overwrite(y)), "both .* overwrite y")


def test_who_overwrites_a_variable_is_told():
    x, y = PLAIN("x"), PLAIN("y")
    seen = view(x)
    fgraph = graph([x, y], overwrite(x), follow(y), seen)
    assert fgraph.destroyers(seen) == [fgraph.outputs[0].owner]
    assert fgraph.destroyers(y) == []
    assert fgraph.has_destroyers([y, x])
    assert not fgraph.has_destroyers([y])


def test_an_unsafe_replacement_is_refused_and_a_safe_one_made():
    x = PLAIN("x")
    fgraph = graph([x], combine(follow(x), x), follow(x))
    before = state_of(fgraph)
    with pytest.raises(InconsistencyError, match="would need its own output"):
        fgraph.replace_validate(fgraph.outputs[0].owner.inputs[0], overwrite(x), reason="inplace")
    assert state_of(fgraph) == before
    fgraph.replace_validate(fgraph.outputs[1], overwrite(x), reason="inplace")
    assert fgraph.toposort()[-1].op == overwrite


def test_a_replacement_that_takes_the_last_reader_away_is_safe():
    x, y = PLAIN("x"), PLAIN("y")
    fgraph = graph([x, y], combine(overwrite(x), follow(x)))
    fgraph.validate()
    refused(graph([x, y], combine(overwrite(x), follow(overwrite(x)))), "both")
    late = follow(fgraph.outputs[0].owner.inputs[0])
    fgraph.replace(fgraph.outputs[0], combine(late, follow(x)))
    fgraph.validate()
    fgraph.replace(fgraph.outputs[0], combine(x, late))
    refused(fgraph, "would need its own output")
    fgraph.replace_validate(fgraph.outputs[0], combine(y, late))


def test_views_that_move_are_followed():
    x, y = PLAIN("x"), PLAIN("y")
    seen = view(x)
    fgraph = graph([x, y], follow(view(seen)), overwrite(x))
    fgraph.validate()
    assert fgraph.toposort()[-1].op == overwrite
    fgraph.change_node_input(seen.owner, 0, y)
    assert fgraph.orderings() == {}
    fgraph.replace(fgraph.outputs[1], follow(overwrite(seen)))
    fgraph.validate()
    assert fgraph.destroyers(y)
    assert not fgraph.destroyers(x)
    fgraph.change_node_input(seen.owner, 0, x)
    assert fgraph.destroyers(x)
    assert not fgraph.destroyers(y)


def test_protected_inputs_and_all_outputs_are_not_overwritten():
    x, y = PLAIN("x"), PLAIN("y")
    fgraph = graph([x, y], follow(x), follow(y), features=[Supervisor([x])])
    with pytest.raises(InconsistencyError, match="overwrites x, which is protected"):
        fgraph.replace_validate(fgraph.outputs[0], overwrite(x))
    with pytest.raises(InconsistencyError, match="overwrites Follow, which is protected"):
        fgraph.replace_validate(fgraph.outputs[1], overwrite(fgraph.outputs[0]))
    fgraph.replace_validate(fgraph.outputs[1], overwrite(y))


def test_a_copy_of_the_graph_protects_the_copies_of_its_inputs():
    x, y = PLAIN("x"), PLAIN("y")
    fgraph = graph([x, y], follow(x), follow(y), features=[Supervisor([y]), NoOutputFromInplace([0])])
    copy = fgraph.clone()
    with pytest.raises(InconsistencyError, match="overwrites y, which is protected"):
        copy.replace_validate(copy.outputs[0], overwrite(copy.inputs[1]))
    with pytest.raises(InconsistencyError, match=r"output 0 .* is computed by overwriting"):
        copy.replace_validate(copy.outputs[0], overwrite(copy.inputs[0]))
    copy.replace_validate(copy.outputs[0], follow(overwrite(copy.inputs[0])))


def test_one_of_each_is_enough_and_serves_one_graph():
    x = PLAIN("x")
    first = [DestroyHandler(), Supervisor([x]), NoOutputFromInplace([0])]
    fgraph = FunctionGraph([x], [follow(x)], first, clone=False)
    for second in (DestroyHandler(), Supervisor([]), NoOutputFromInplace([])):
        fgraph.attach_feature(second)
        assert second not in fgraph.features
    for feature in first[:2]:
        with pytest.raises(ValueError, match="serves another graph"):
            FunctionGraph([x], [], [feature], clone=False)
        fgraph.remove_feature(feature)
        FunctionGraph([x], [], [feature], clone=False)


def test_protection_forbids_nothing_where_nobody_knows_who_overwrites():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [overwrite(x)], [Supervisor([x]), NoOutputFromInplace([0])], clone=False)
    fgraph.validate()


def test_freezing_keeps_the_safe_order():
    x = PLAIN("x")
    fgraph = graph([x], combine(overwrite(x), follow(x)))
    assert [str(node.op) for node in fgraph.freeze().nodes] == [str(node.op) for node in fgraph.toposort()]


def test_a_pickled_graph_goes_on_being_overwritten():
    x = PLAIN("x")
    fgraph = graph([x], combine(follow(x), follow(follow(x))), features=[Supervisor([])])
    fgraph.replace_validate(fgraph.outputs[0].owner.inputs[0], overwrite(x))
    loaded = pickle.loads(pickle.dumps(fgraph))
    inner = loaded.outputs[0].owner.inputs[1].owner.inputs[0]
    with pytest.raises(InconsistencyError, match="both"):
        loaded.replace_validate(inner, overwrite(loaded.inputs[0]))
    loaded.replace_validate(loaded.outputs[0].owner.inputs[1], overwrite(inner))
    assert is_allowed(loaded)
    ops = [node.op for node in loaded.toposort()]
    assert ops.index(follow) < ops.index(overwrite)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_is_made_inplace_node_by_node(depth):
    x = PLAIN("x")
    fgraph = graph([x], chain(x, depth), features=[Supervisor([x])])
    for node in fgraph.toposort()[1:]:
        fgraph.replace_validate(node.outputs[0], overwrite(node.inputs[0]), "inplace")
    assert len(fgraph.features[0]._known) == depth - 1
    fgraph.check_integrity()
