"""Checkpoints and reverting, and walks through a full history."""

import pickle

import pytest

from engine.graph import FunctionGraph
from engine.graph.features import FullHistory, History, NodeFinder
from tests.engine.graph.graph_state import Mirror, state_of
from tests.engine.graph.small_ops import PLAIN, chain, combine, constant, follow


def graph(*features):
    x, y = PLAIN("x"), PLAIN("y")
    return FunctionGraph([x, y], [combine(follow(x), y), follow(follow(y))], features, clone=False)


def test_reverting_takes_back_whatever_was_done():
    fgraph = graph(Mirror())
    before, checkpoint = state_of(fgraph), fgraph.checkpoint()
    x, y = fgraph.inputs
    fgraph.replace(fgraph.outputs[0], combine(x, constant(2.0)), reason="a")
    fgraph.add_input(PLAIN("z"))
    fgraph.add_output(follow(fgraph.inputs[2]))
    fgraph.remove_output(1)
    fgraph.import_var(combine(y, y))
    fgraph.remove_node(fgraph.outputs[0].owner)
    fgraph.remove_input(0)
    assert state_of(fgraph) != before
    fgraph.revert(checkpoint)
    assert state_of(fgraph) == before
    fgraph.check_integrity()
    fgraph.features[0].check(fgraph)


def test_a_checkpoint_can_be_reverted_to_again():
    fgraph = graph()
    before, checkpoint = state_of(fgraph), fgraph.checkpoint()
    for _ in range(2):
        fgraph.replace(fgraph.outputs[0], fgraph.inputs[0])
        fgraph.revert(checkpoint)
        assert state_of(fgraph) == before


def test_checkpoints_within_checkpoints():
    fgraph = graph()
    outer_state, outer = state_of(fgraph), fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0])
    inner_state, inner = state_of(fgraph), fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[1], fgraph.inputs[0])
    fgraph.revert(inner)
    assert state_of(fgraph) == inner_state
    fgraph.revert(outer)
    assert state_of(fgraph) == outer_state
    with pytest.raises(ValueError, match=f"checkpoint {inner}: it has no such checkpoint"):
        fgraph.revert(inner)


def test_a_checkpoint_that_never_was_is_refused():
    with pytest.raises(ValueError, match="checkpoint 7: it has no such checkpoint"):
        graph().revert(7)


def test_another_future_does_not_bring_a_checkpoint_back():
    fgraph = graph()
    outer = fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0])
    inner = fgraph.checkpoint()
    fgraph.revert(outer)
    fgraph.replace(fgraph.outputs[1], fgraph.inputs[0])
    with pytest.raises(ValueError, match="no such checkpoint"):
        fgraph.revert(inner)


def test_nothing_is_kept_before_the_first_checkpoint_and_after_the_last_user_is_gone():
    fgraph = graph()
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[0])
    assert not fgraph.journal.edits
    fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[1], fgraph.inputs[0])
    assert fgraph.journal.edits
    fgraph.remove_feature(fgraph.features[0])
    assert not fgraph.journal.edits


def test_a_history_serves_one_graph():
    history = History()
    fgraph = graph(history)
    assert fgraph.features == (history,)
    with pytest.raises(ValueError, match="History: it serves another graph"):
        graph(history)
    assert history.clone() is not history


def test_a_second_history_is_left_out():
    fgraph = graph()
    fgraph.attach_feature(History())
    assert len(fgraph.features) == 1


def test_what_a_feature_raises_when_it_is_told_of_a_revert_comes_after_the_revert():
    class Sore(NodeFinder):
        def on_prune(self, fgraph, node, reason):
            super().on_prune(fgraph, node, reason)
            raise RuntimeError("sore")

    fgraph = graph(Sore())
    before, checkpoint = state_of(fgraph), fgraph.checkpoint()
    fgraph.add_output(combine(*fgraph.inputs))
    with pytest.raises(RuntimeError, match="sore"):
        fgraph.revert(checkpoint)
    assert state_of(fgraph) == before


def rewritten_with_full_history(callback=None):
    history = FullHistory(callback)
    fgraph = graph(history, NodeFinder(), Mirror())
    states = [state_of(fgraph)]
    x, y = fgraph.inputs
    for old, new in ((fgraph.outputs[0], combine(y, follow(x))), (fgraph.outputs[1], y), (x, y)):
        fgraph.replace(old, new, reason="step")
        states.append(state_of(fgraph))
    return fgraph, history, states


def test_a_full_history_goes_to_every_step_in_both_directions():
    fgraph, history, states = rewritten_with_full_history()
    assert len(history) == 3
    for step in (0, 3, 1, 2, 0, 2, 3):
        assert history.goto(step) is fgraph
        assert state_of(fgraph) == states[step]
        fgraph.check_integrity()
        fgraph.features[2].check(fgraph)


def test_a_full_history_is_walked_step_by_step():
    fgraph, history, states = rewritten_with_full_history()
    history.next()
    assert state_of(fgraph) == states[3]
    history.prev()
    assert state_of(fgraph) == states[2]
    history.start()
    history.prev()
    assert state_of(fgraph) == states[0]
    history.next()
    assert state_of(fgraph) == states[1]
    history.end()
    assert state_of(fgraph) == states[3]


def test_what_is_no_step_goes_with_the_step_before():
    fgraph, history, _ = rewritten_with_full_history()
    fgraph.add_output(follow(fgraph.inputs[1]))
    last = state_of(fgraph)
    history.goto(1)
    assert len(fgraph.outputs) == 2
    history.end()
    assert state_of(fgraph) == last


def test_a_change_in_the_past_ends_the_future_unless_it_is_refused():
    fgraph, history, states = rewritten_with_full_history()
    history.goto(1)
    with pytest.raises(TypeError):
        fgraph.replace_all([(fgraph.outputs[1], fgraph.inputs[0]), (fgraph.inputs[1], "no variable")])
    assert len(history) == 3
    fgraph.replace(fgraph.outputs[1], fgraph.inputs[0])
    assert len(history) == 2
    history.goto(0)
    assert state_of(fgraph) == states[0]


def test_a_full_history_follows_reverts():
    fgraph, history, states = rewritten_with_full_history()
    checkpoint = fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], fgraph.inputs[1])
    assert len(history) == 4
    fgraph.revert(checkpoint)
    assert len(history) == 3
    assert state_of(history.goto(0)) == states[0]


def test_a_step_that_there_is_not_is_refused():
    _, history, _ = rewritten_with_full_history()
    with pytest.raises(ValueError, match="step 4 of a history: it has 3 steps"):
        history.goto(4)
    with pytest.raises(ValueError, match="attached to no graph"):
        FullHistory().start()


def test_a_full_history_calls_back_after_each_step_but_not_when_walking():
    calls = []
    _, history, _ = rewritten_with_full_history(lambda: calls.append(None))
    history.start()
    history.end()
    assert len(calls) == 3
    assert history.clone().callback is history.callback


def test_a_full_history_that_is_detached_is_over():
    fgraph, history, _ = rewritten_with_full_history()
    fgraph.remove_feature(history)
    assert len(history) == 0
    assert not fgraph.journal.edits


def test_a_full_history_goes_on_after_it_was_pickled_in_the_middle():
    _, history, states = rewritten_with_full_history()
    history.goto(1)
    history, states = pickle.loads(pickle.dumps((history, states)))
    for step in (3, 0, 2):
        assert state_of(history.goto(step)) == states[step]


def test_a_pickled_graph_reverts_to_its_checkpoints():
    fgraph = graph(NodeFinder())
    before, checkpoint = state_of(fgraph), fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], chain(fgraph.inputs[0], 3))
    loaded, state = pickle.loads(pickle.dumps((fgraph, before)))
    loaded.replace(loaded.outputs[1], loaded.inputs[0])
    loaded.revert(checkpoint)
    assert state_of(loaded) == state
    assert len(loaded.get_nodes(follow)) == 3
