"""Mutable graphs: imports, replacements, removals and refusals."""

import pickle
from time import process_time

import pytest

import engine.tensor as pt
from engine.configdefaults import config
from engine.errors import InconsistencyError, MissingInputError
from engine.graph import Feature, FrozenFunctionGraph, FunctionGraph, Output, register_feature_callback
from engine.graph.features import DestroyHandler, FullHistory, NodeFinder
from engine.graph.null_type import NullType
from tests.engine.graph.graph_state import Mirror, feature_states, history_of, state_of
from tests.engine.graph.small_ops import DEPTHS, PLAIN, Floats, chain, combine, constant, follow, split


def graph(*outputs, inputs=None):
    """Return a graph that owns `outputs` themselves; its inputs are the roots unless they are given."""
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
    assert graph(combine(x, constant(1.0), y)).inputs == [y, x]


def test_an_input_of_a_frozen_graph_is_a_root_and_becomes_no_input():
    x, y = PLAIN("x"), PLAIN("y")
    frozen = FrozenFunctionGraph.from_io([x, y], [combine(x, y)])
    found = graph(follow(frozen.outputs[0]))
    assert found.inputs == []
    assert found.variables >= set(frozen.inputs)
    found.replace(frozen.outputs[0], frozen.inputs[1])
    found.check_integrity()
    assert frozen.inputs[0] not in found.variables
    assert graph(follow(frozen.inputs[0]), inputs=list(frozen.inputs)).inputs == list(frozen.inputs)


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
    with pytest.raises(ValueError, match="the output of an already existing node"):
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


def test_nodes_and_variables_compare_with_sets():
    x = pt.dvector("x")
    graph = FunctionGraph([x], [pt.exp(x)], clone=False)
    (node,) = graph.apply_nodes
    assert graph.apply_nodes == {node}
    assert graph.variables == {x, *node.outputs}


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


def vectors(length):
    return pt.exp(pt.tensor("v", "float64", (length,)))


def test_a_replacement_gets_to_know_the_lengths_that_were_known_of_the_variable():
    known, general = vectors(6), vectors(None)
    found = graph(pt.neg(known), inputs=[known.owner.inputs[0], general.owner.inputs[0]])
    found.replace(known, general)
    assert general.type.shape == (6,)
    assert found.outputs[0].owner.inputs[0] is general


def test_what_a_replacement_got_to_know_is_forgotten_if_it_is_not_made():
    known, general = vectors(6), vectors(None)
    found = graph(known)
    with pytest.raises(MissingInputError):
        found.replace(known, general)
    assert general.type.shape == (None,)
    found = graph(known, inputs=[known.owner.inputs[0], general.owner.inputs[0]])
    history = FullHistory()
    found.attach_feature(history)
    found.replace(known, general)
    copy = pickle.loads(pickle.dumps(found))
    (history,) = [feature for feature in copy.features if isinstance(feature, FullHistory)]
    history.start()
    assert copy.outputs[0].owner.inputs[0] is copy.inputs[0]
    history.end()
    assert copy.outputs[0].type.shape == (6,)


def test_a_replacement_whose_known_lengths_contradict_is_refused():
    found = graph(vectors(6))
    with pytest.raises(TypeError, match="convert it first"):
        found.replace(found.outputs[0], vectors(5), import_missing=True)


def test_an_input_and_a_frozen_variable_get_to_know_nothing():
    found = graph(vectors(6))
    x = pt.vector("x")
    frozen = FunctionGraph([x], [pt.exp(x)]).freeze().outputs[0]
    for new in (x, frozen):
        with pytest.raises(TypeError, match="convert it first"):
            found.replace(found.outputs[0], new, import_missing=True)
        assert new.type.shape == (None,)


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


def test_a_graph_keeps_which_inputs_its_outputs_update():
    x = PLAIN("x")
    found = FunctionGraph([x], [follow(x)], update_mapping={0: 0})
    assert found.clone().update_mapping == pickle.loads(pickle.dumps(found)).update_mapping == {0: 0}
    assert graph(follow(x)).update_mapping is None


def damages():
    x, y = PLAIN("x"), PLAIN("y")
    yield "clients", lambda g: g.clients[g.inputs[0]].clear()
    yield "another client", lambda g: g.clients[g.inputs[0]].append((follow(x).owner, 0))
    yield "a client twice", lambda g: g.clients[g.inputs[0]].append(g.clients[g.inputs[0]][0])
    yield "nodes", lambda g: g.ranks.clear()
    yield "use of an output", lambda g: g.clients[g.outputs[0]].clear()
    yield "output", lambda g: g.outputs.__setitem__(0, g.inputs[0])
    yield "number of outputs", lambda g: g.outputs.append(g.inputs[0])
    yield "rank", lambda g: g.ranks.update(dict.fromkeys(g.apply_nodes, 0))
    yield "input", lambda g: g.inputs.append(y)
    yield "variable", lambda g: g.is_variable.update({y: None})
    yield "variable with clients", lambda g: (g.is_variable.update({y: None}), g.clients.update({y: []}))
    yield "input of a node", lambda g: g.outputs[0].owner.inputs.__setitem__(0, y)


@pytest.mark.parametrize("damage", [pytest.param(damage, id=name) for name, damage in damages()])
def test_a_damaged_graph_is_found(damage):
    x = PLAIN("x")
    found = graph(follow(follow(x)))
    damage(found)
    with pytest.raises(InconsistencyError, match="Checking a graph"):
        found.check_integrity()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_graph_is_imported_cloned_and_pruned(depth):
    x = PLAIN("x")
    found = FunctionGraph([x], [chain(x, depth)])
    assert len(found.clone().apply_nodes) == depth
    found.replace(found.outputs[0], found.inputs[0])
    assert not found.apply_nodes


@pytest.fixture
def watched():
    """Return a graph of four nodes, two inputs and three outputs, with Features that track it."""
    x, y = PLAIN("x"), PLAIN("y")
    middle = follow(x)
    outputs = [combine(middle, y), follow(middle), y]
    return FunctionGraph([x, y], outputs, [Mirror(), NodeFinder(), DestroyHandler()], clone=False)


def refused(fgraph, error, match, change):
    """Assert that `change` is refused, and that graph and Features stay as they were."""
    before = state_of(fgraph), feature_states(fgraph), history_of(fgraph)
    with pytest.raises(error, match=match):
        change()
    assert (state_of(fgraph), feature_states(fgraph), history_of(fgraph)) == before
    fgraph.check_integrity()


def test_a_cycle_is_refused(watched):
    x = watched.inputs[0]
    middle = watched.outputs[1].owner.inputs[0]
    refused(watched, InconsistencyError, "own output", lambda: watched.replace(x, watched.outputs[1]))
    refused(watched, InconsistencyError, "own output", lambda: watched.replace(x, combine(x, middle)))
    refused(
        watched,
        InconsistencyError,
        "own output",
        lambda: watched.change_node_input(middle.owner, 0, follow(watched.outputs[0])),
    )
    refused(
        watched, InconsistencyError, "own output", lambda: watched.change_node_input(middle.owner, 0, middle)
    )


def test_a_cycle_that_only_the_last_of_several_uses_makes_is_refused(watched):
    y = watched.inputs[1]
    refused(watched, InconsistencyError, "own output", lambda: watched.replace(y, watched.outputs[0]))


def test_of_several_replacements_all_are_made_or_none(watched):
    x, y = watched.inputs
    pairs = [(watched.outputs[1], x), (x, combine(y, PLAIN("z")))]
    refused(watched, MissingInputError, "neither an input", lambda: watched.replace_all(pairs))


def test_a_change_of_what_is_not_there_is_refused(watched):
    x = watched.inputs[0]
    stranger = follow(x).owner
    refused(watched, InconsistencyError, "import it first", lambda: watched.change_node_input(stranger, 0, x))
    use = Output(0).make_node(x)
    refused(watched, InconsistencyError, "import it first", lambda: watched.change_node_input(use, 0, x))
    node = watched.outputs[0].owner
    for index in (2, -1):
        refused(watched, IndexError, "it has 2 inputs", lambda i=index: watched.change_node_input(node, i, x))


def test_a_frozen_node_is_not_changed(watched):
    x, _y = watched.inputs
    frozen = FunctionGraph([], [follow(constant(1.0))]).freeze().outputs[0]
    watched.add_output(frozen)
    refused(watched, TypeError, "is frozen", lambda: watched.change_node_input(frozen.owner, 0, x))


def test_an_output_is_changed_by_the_node_that_stands_for_it(watched):
    watched.change_node_input(watched.output_uses[1], 0, watched.inputs[0])
    assert watched.outputs[1] is watched.inputs[0]
    watched.check_integrity()


@pytest.mark.parametrize("callback", ["on_import", "on_change_input", "on_prune"])
@pytest.mark.parametrize("place", [0, 2])
def test_what_a_feature_raises_undoes_the_change(watched, callback, place):
    class Refuses(Feature):
        def refuse(self, *args):
            raise RuntimeError("no")

        refuse.__name__ = callback
        locals()[callback] = register_feature_callback(refuse)

    watched.take_features([*watched.features[:place], Refuses(), *watched.features[place:]])
    _x, y = watched.inputs
    refused(watched, RuntimeError, "no", lambda: watched.replace(watched.outputs[0], combine(y, follow(y))))


def test_what_features_raise_when_the_change_is_undone_is_noted():
    class Sore(Feature):
        @register_feature_callback
        def on_import(self, fgraph, node, reason):
            if node.op == combine:
                raise RuntimeError("first")

        @register_feature_callback
        def on_prune(self, fgraph, node, reason):
            raise ValueError("second")

    x = PLAIN("x")
    fgraph = FunctionGraph([x], [], [Sore()], clone=False)
    with pytest.raises(RuntimeError, match="first") as caught:
        fgraph.add_output(combine(follow(x)))
    assert "second" in caught.value.__notes__[0]
    assert not fgraph.apply_nodes


def test_what_is_imported_stays_until_a_use_of_it_ends():
    x = PLAIN("x")
    found = graph(follow(x))
    extra = follow(combine(x, constant(1.0)))
    found.import_var(extra)
    found.import_var(extra)
    assert extra in found
    assert found.clients[extra] == []
    assert [node.op for node in found.toposort()] == [follow, combine, follow]
    found.check_integrity()
    found.replace(found.outputs[0], extra)
    found.replace(extra, x)
    found.check_integrity()
    assert not found.apply_nodes


def test_a_node_is_imported_with_what_it_needs():
    x, y = PLAIN("x"), PLAIN("y")
    found = graph(follow(x))
    node = combine(follow(x), y).owner
    refused(found, MissingInputError, "its input y", lambda: found.import_node(node))
    found.import_node(node, import_missing=True)
    found.check_integrity()
    assert found.inputs == [x, y]
    assert len(found.apply_nodes) == 3


def test_removing_a_node_removes_what_depends_on_it_and_what_it_alone_needs(watched):
    middle = watched.outputs[1].owner.inputs[0]
    y = watched.inputs[1]
    watched.remove_node(middle.owner, reason="gone")
    watched.check_integrity()
    feature_states(watched)
    assert watched.outputs == [y]
    assert not watched.apply_nodes
    assert watched.output_uses[0].op == Output(0)
    watched.remove_node(middle.owner)


def test_removing_a_node_keeps_what_others_need():
    x = PLAIN("x")
    shared, c = follow(x), constant(1.0)
    found = graph(combine(shared, follow(x), c), follow(shared))
    found.remove_node(found.outputs[0].owner)
    found.check_integrity()
    assert c not in found
    assert [node.op for node in found.toposort()] == [follow, follow]


def test_removing_an_output_moves_the_others_up(watched):
    kept = watched.outputs[1:]
    watched.remove_output(0)
    watched.check_integrity()
    assert watched.outputs == kept
    watched.remove_output(-1)
    watched.check_integrity()
    assert watched.outputs == kept[:1]
    with pytest.raises(IndexError):
        watched.remove_output(1)


def test_removing_an_input_removes_what_depends_on_it(watched):
    x, _y = watched.inputs
    middle = watched.outputs[1]
    watched.remove_input(1)
    watched.check_integrity()
    assert (watched.inputs, watched.outputs) == ([x], [middle])
    watched.remove_input(0)
    assert not watched.inputs
    assert not watched.outputs
    assert not watched.variables


def test_a_computed_variable_can_be_an_input_if_that_is_wanted():
    x = PLAIN("x")
    middle = follow(x)
    found = FunctionGraph([x], [], clone=False)
    found.add_input(middle, check=False)
    found.add_output(follow(middle))
    found.check_integrity()
    assert len(found.apply_nodes) == 1
    found.remove_output(0)
    assert found.inputs == [x, middle]


def test_a_clone_has_features_of_its_own(watched):
    copy = watched.clone()
    assert [type(f) for f in copy.features if not isinstance(f, Mirror)] != []
    copy.replace(copy.outputs[1], copy.inputs[0])
    feature_states(copy)
    feature_states(watched)
    plain = watched.clone_get_equiv(attach_feature=False)[0]
    assert len(plain.features) == 1


def test_times_are_kept_for_each_feature_that_is_called(watched):
    watched.replace(watched.outputs[1], watched.inputs[0])
    mirror = watched.features[0]
    assert watched.execute_callbacks_times[mirror] > 0


def test_a_rewrite_costs_what_it_changes_however_many_use_the_same_variable():
    def seconds(count):
        x = PLAIN("x")
        found = FunctionGraph([x], [follow(x) for _ in range(count)], clone=False)
        start = process_time()
        for node in reversed(found.toposort()):
            found.replace(node.outputs[0], combine(x), "r")
        return (process_time() - start) / count

    assert min(seconds(6_000) for _ in range(2)) < 8 * min(seconds(300) for _ in range(3))


def test_a_rewrite_costs_what_it_changes_however_long_the_graph():
    def seconds(count):
        x = PLAIN("x")
        found = FunctionGraph([x], [chain(x, count)], clone=False)
        start = process_time()
        for node in found.toposort():
            found.replace_validate(node.outputs[0], follow(combine(node.inputs[0])), "r")
        return (process_time() - start) / count

    assert min(seconds(4_000) for _ in range(2)) < 8 * min(seconds(200) for _ in range(3))


def test_a_graph_has_copies_of_what_it_is_told_to_copy():
    x, c = PLAIN("x"), constant(1.0)
    graph = FunctionGraph([x], [combine(x, c)], copy_inputs=False)
    assert graph.inputs == [x]
    assert graph.outputs[0].owner.inputs[1] is c
    copied = FunctionGraph([x], [combine(x, c)], copy_orphans=True)
    assert copied.inputs != [x]
    assert copied.outputs[0].owner.inputs == [copied.inputs[0], c]


def test_the_uses_of_a_variable_are_listed_and_replacements_told(capsys):
    x, y = PLAIN("x"), PLAIN("y")
    out = follow(x)
    found = FunctionGraph([x, y], [out], clone=False)
    assert found.get_clients(x) == [(out.owner, 0)]
    found.replace_all_validate([(x, y)], reason="test", verbose=True)
    assert capsys.readouterr().out == "rewriting: rewrite test replaces x of None with y of None\n"


def test_a_flag_says_whether_replacements_are_printed_and_which_are_not(capsys):
    x, y = PLAIN("x"), PLAIN("y")
    found = FunctionGraph([x, y], [follow(x)], clone=False)
    with config.change_flags(optimizer_verbose=True):
        found.replace(x, y, reason="forth", verbose=False)
        found.replace(y, x, reason="back")
        with config.change_flags(optimizer_verbose_ignore="forth,again"):
            found.replace(x, y, reason="forth")
            found.replace_all_validate([(y, x)], reason="back")
    found.replace(x, y, reason="silent")
    line = "rewriting: rewrite back replaces y of None with x of None\n"
    assert capsys.readouterr().out == 2 * line


def test_what_has_no_value_is_refused_with_its_reason():
    found = FunctionGraph([], [])
    with pytest.raises(TypeError, match=r"Computation graph contains a NaN.*nobody has written it"):
        found.import_var(NullType("nobody has written it")(), import_missing=True)
    assert found.inputs == []


def test_a_graph_has_outputs():
    with pytest.raises(ValueError, match="No outputs specified"):
        FunctionGraph([PLAIN("x")])
