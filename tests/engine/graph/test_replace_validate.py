"""Atomic replacements."""

import gc
import weakref

import pytest

from engine.errors import InconsistencyError, MissingInputError
from engine.graph import Feature, FunctionGraph, register_feature_callback
from engine.graph.features import (
    FullHistory,
    History,
    NodeFinder,
    ReplacementDidNotRemoveError,
    ReplaceValidate,
    Validator,
)
from tests.engine.graph.graph_state import Mirror, feature_states, history_of, state_of
from tests.engine.graph.small_ops import PLAIN, Floats, combine, follow


class AtMost(Feature):
    """Forbids graphs with more than `count` nodes."""

    def __init__(self, count):
        self.count = count

    @register_feature_callback
    def on_validate(self, fgraph):
        if len(fgraph.apply_nodes) > self.count:
            raise InconsistencyError(f"more than {self.count} nodes")


@pytest.fixture
def fgraph():
    x, y = PLAIN("x"), PLAIN("y")
    features = [AtMost(4), Mirror(), NodeFinder(), FullHistory()]
    return FunctionGraph([x, y], [combine(follow(x), y), follow(y)], features, clone=False)


def refused(fgraph, error, match, pairs):
    """Assert that `pairs` are refused with `error`, and that all stays as it was."""
    before = state_of(fgraph), feature_states(fgraph), history_of(fgraph)
    with pytest.raises(error, match=match):
        fgraph.replace_all_validate(pairs, "because")
    assert (state_of(fgraph), feature_states(fgraph), history_of(fgraph)) == before
    fgraph.check_integrity()


def test_every_graph_replaces_and_validates():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], clone=False)
    fgraph.replace_validate(fgraph.outputs[0], combine(x), reason="because")
    assert fgraph.outputs[0].owner.op == combine
    fgraph.validate()
    assert fgraph.consistent()


def test_a_graph_that_a_feature_forbids_is_not_made(fgraph):
    x, y = fgraph.inputs
    refused(fgraph, InconsistencyError, "more than 4 nodes", [(y, x), (x, follow(follow(follow(x))))])


def test_of_several_replacements_none_is_made_if_one_cannot(fgraph):
    x, y = fgraph.inputs
    first = (fgraph.outputs[0], follow(x))
    refused(fgraph, MissingInputError, "neither an input", [first, (y, follow(PLAIN("z")))])
    refused(fgraph, TypeError, "convert it first", [first, (y, Floats("other")())])
    refused(fgraph, InconsistencyError, "need its own output", [first, (y, fgraph.outputs[1])])


def test_a_refusal_leaves_earlier_checkpoints_alone(fgraph):
    before, checkpoint = state_of(fgraph), fgraph.checkpoint()
    fgraph.replace_validate(fgraph.outputs[1], fgraph.inputs[0])
    refused(fgraph, TypeError, "convert it first", [(fgraph.inputs[0], Floats("other")())])
    fgraph.revert(checkpoint)
    assert state_of(fgraph) == before


def test_the_last_replacement_can_be_taken_back_until_the_next(fgraph):
    before = state_of(fgraph)
    first = fgraph.replace_validate(fgraph.outputs[1], fgraph.inputs[0])
    fgraph.revert(first)
    assert state_of(fgraph) == before
    first = fgraph.replace_validate(fgraph.outputs[1], fgraph.inputs[0])
    fgraph.replace_validate(fgraph.outputs[0], fgraph.inputs[0])
    with pytest.raises(ValueError, match="no such checkpoint"):
        fgraph.revert(first)


def test_many_replacements_keep_only_the_last_ones_history():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], clone=False)
    for _ in range(10):
        fgraph.replace_validate(fgraph.outputs[0], follow(x))
        gone = weakref.ref(fgraph.outputs[0].owner)
    assert len(fgraph.journal.edits) == 3
    fgraph.replace_validate(fgraph.outputs[0], x)
    fgraph.replace_validate(x, follow(x))
    gc.collect()
    assert gone() is None


def test_a_replacement_must_remove_what_it_promises(fgraph):
    x, y = fgraph.inputs
    before = state_of(fgraph), feature_states(fgraph), history_of(fgraph)
    with (
        pytest.warns(RuntimeWarning, match=r"\(because\): .* was to be removed"),
        pytest.raises(ReplacementDidNotRemoveError) as caught,
    ):
        fgraph.replace_all_validate_remove([(y, x)], [fgraph.outputs[1].owner], "because")
    assert caught.value.remaining is fgraph.outputs[1].owner
    assert (state_of(fgraph), feature_states(fgraph), history_of(fgraph)) == before


def test_what_was_removed_does_not_come_back(fgraph):
    removed = fgraph.outputs[1]
    fgraph.replace_all_validate_remove([(removed, fgraph.inputs[0])], [removed.owner], "because")
    assert removed not in fgraph
    refused(fgraph, InconsistencyError, "was removed and would come back", [(fgraph.outputs[1], removed)])


def test_reasons_are_strings_for_features_even_if_rewriters_are_given(fgraph):
    class Rewriter:
        name = "simplify"

    reasons = []

    class Reasons(Feature):
        @register_feature_callback
        def on_change_input(self, fgraph, node, i, old, new, reason):
            reasons.append(reason)

    fgraph.attach_feature(Reasons())
    fgraph.replace_validate(fgraph.outputs[0], fgraph.inputs[0], reason=Rewriter())
    fgraph.replace(fgraph.outputs[1], fgraph.inputs[0], reason=follow.make_node)
    assert reasons == ["simplify", "make_node"]


def test_a_validator_alone_only_validates():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], [Validator(), AtMost(0)], clone=False)
    assert not fgraph.consistent()
    with pytest.raises(InconsistencyError, match="more than 0 nodes"):
        fgraph.validate()
    with pytest.raises(AttributeError):
        fgraph.replace_validate(fgraph.outputs[0], x)


def test_a_replacement_that_is_refused_is_printed_when_replacements_are(capsys):
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x)], [AtMost(1)], clone=False)
    with pytest.raises(InconsistencyError, match="more than 1 nodes"):
        fgraph.replace_validate(fgraph.outputs[0], follow(combine(x)), reason="because", verbose=True)
    printed = capsys.readouterr().out
    assert "rewriting: validate failed on node Follow.0.\n Reason: because, more than 1 nodes\n" in printed


def test_an_error_that_is_no_judgement_is_not_taken_for_one():
    class Broken(Feature):
        @register_feature_callback
        def on_validate(self, fgraph):
            raise ZeroDivisionError

    fgraph = FunctionGraph([], [], [Broken()])
    with pytest.raises(ZeroDivisionError):
        fgraph.consistent()


def test_what_provides_half_the_names_keeps_the_other_half_out():
    history = History()
    fgraph = FunctionGraph([], [], [history])
    with pytest.raises(InconsistencyError, match="checkpoint"):
        fgraph.attach_feature(ReplaceValidate())
    assert fgraph.features == (history,)
