"""Features: their callbacks, the names they provide, and refusals."""

import io

import pytest

from engine.errors import InconsistencyError
from engine.graph import Feature, FunctionGraph, register_feature_callback
from engine.graph.features import (
    AlreadyThere,
    Bookkeeper,
    NodeFinder,
    PreserveVariableAttributes,
    PrintListener,
    is_revert,
)
from tests.engine.graph.small_ops import PLAIN, Floats, combine, constant, follow


class Recorder(Feature):
    """Records its callbacks."""

    def __init__(self):
        self.events = []

    @register_feature_callback
    def on_attach(self, fgraph):
        self.events.append("attach")

    @register_feature_callback
    def on_detach(self, fgraph):
        self.events.append("detach")

    @register_feature_callback
    def on_import(self, fgraph, node, reason):
        self.events.append(("import", str(node.op), reason))

    @register_feature_callback
    def on_prune(self, fgraph, node, reason):
        self.events.append(("prune", str(node.op), reason))

    @register_feature_callback
    def on_change_input(self, fgraph, node, index, old, new, reason):
        self.events.append(("change", index, old.name, new.name, reason))

    @register_feature_callback
    def on_validate(self, fgraph):
        return len(self.events)


def test_a_feature_is_told_of_every_change_with_its_reason():
    x, y = PLAIN("x"), PLAIN("y")
    recorder = Recorder()
    fgraph = FunctionGraph([x, y], [combine(x, follow(y))], [recorder], clone=False)
    middle = fgraph.outputs[0].owner.inputs[1]
    middle.name = "middle"
    fgraph.replace(middle, x, reason="because")
    assert recorder.events == [
        "attach",
        ("prune", "Follow", "because"),
        ("change", 1, "middle", "x", "because"),
    ]
    fgraph.replace(x, follow(y), reason="again")
    assert ("import", "Follow", "again") in recorder.events
    assert fgraph.collect_callbacks("on_validate") == {recorder: len(recorder.events)}


def test_a_detached_feature_is_told_nothing_more():
    x = PLAIN("x")
    recorder = Recorder()
    fgraph = FunctionGraph([x], [follow(x)], [recorder], clone=False)
    fgraph.remove_feature(recorder)
    fgraph.remove_feature(recorder)
    fgraph.replace(fgraph.outputs[0], x)
    assert recorder.events == ["attach", "detach"]


def test_attaching_twice_is_attaching_once():
    recorder = Recorder()
    fgraph = FunctionGraph([], [], [recorder, recorder])
    fgraph.attach_feature(recorder)
    assert recorder.events == ["attach"]


def test_a_method_with_the_name_of_a_callback_is_called():
    class Undecorated(Feature):
        nodes = ()

        def on_import(self, fgraph, node, reason):
            self.nodes = (*self.nodes, node)

    x = PLAIN("x")
    feature, output = Undecorated(), follow(x)
    FunctionGraph([x], [], [feature], clone=False).add_output(output)
    assert feature.nodes == (output.owner,)


def test_an_attached_feature_has_a_time_whether_it_was_called_or_not():
    class Never(Feature):
        pass

    never, recorder = Never(), Recorder()
    fgraph = FunctionGraph([], [], [never, recorder])
    assert fgraph.execute_callbacks_times[never] == 0.0 < fgraph.execute_callbacks_times[recorder]


def test_only_known_names_can_be_declared():
    with pytest.raises(TypeError, match="a graph calls only on_attach"):

        @register_feature_callback
        def on_imports(self):
            pass


def test_a_name_is_not_both_called_and_provided():
    with pytest.raises(TypeError, match="appear in both `provides` and as callbacks"):

        class Both(Feature):
            provides = ("on_validate",)

            @register_feature_callback
            def on_validate(self, fgraph):
                pass


def test_a_graph_gains_the_names_provided_and_loses_them():
    x = PLAIN("x")
    finder = NodeFinder()
    fgraph = FunctionGraph([x], [combine(follow(x), follow(x))], [finder], clone=False)
    assert len(fgraph.get_nodes(follow)) == 2
    fgraph.replace(fgraph.outputs[0].owner.inputs[0], x)
    assert len(fgraph.get_nodes(follow)) == 1
    fgraph.replace(fgraph.outputs[0], x)
    assert fgraph.get_nodes(follow) == fgraph.get_nodes(combine) == []
    second = NodeFinder()
    fgraph.attach_feature(second)
    assert second not in fgraph.features
    fgraph.remove_feature(finder)
    with pytest.raises(AttributeError, match="no Feature attached to it provides one"):
        fgraph.get_nodes(follow)


def test_what_overrides_a_callback_is_one():
    class Quiet(Recorder):
        def on_prune(self, fgraph, node, reason):
            self.events.append("quiet")

    assert Quiet.callbacks == Recorder.callbacks
    x = PLAIN("x")
    quiet = Quiet()
    fgraph = FunctionGraph([x], [follow(x)], [quiet], clone=False)
    fgraph.remove_output(0)
    assert quiet.events == ["attach", "quiet"]


def test_a_name_that_is_a_callback_of_a_base_class_is_not_provided():
    with pytest.raises(TypeError, match=r"\['on_validate'\] appear in both `provides`"):

        class Both(Recorder):
            provides = ("on_validate",)


def test_what_is_provided_must_be_there():
    with pytest.raises(TypeError, match="has no such methods"):

        class Empty(Feature):
            provides = ("nothing",)


def test_only_provided_names_are_reached_through_the_graph():
    class Secret(Feature):
        provides = ("open",)

        def open(self, fgraph, word="none"):
            return fgraph, word

        def closed(self, fgraph):
            raise AssertionError("called")

    fgraph = FunctionGraph([], [], [Secret()])
    assert fgraph.open(word="sesame") == (fgraph, "sesame")
    assert "open" not in vars(fgraph)
    with pytest.raises(AttributeError, match="no closed"):
        fgraph.closed()


def test_a_name_of_the_graph_itself_or_of_another_feature_is_not_provided_again():
    class Taken(Recorder):
        provides = ("replace",)

        def replace(self, fgraph):
            raise AssertionError("called")

    fgraph = FunctionGraph([], [])
    taken = Taken()
    with pytest.raises(InconsistencyError, match=r"the graph has \['replace'\] already"):
        fgraph.attach_feature(taken)
    assert taken not in fgraph.features
    assert taken.events == ["attach", "detach"]


def test_a_feature_that_finds_itself_there_already_is_left_out():
    class Second(Feature):
        @register_feature_callback
        def on_attach(self, fgraph):
            raise AlreadyThere("there is one")

    fgraph = FunctionGraph([], [], [Second()])
    assert not any(isinstance(feature, Second) for feature in fgraph.features)


def test_a_bookkeeper_is_told_of_all_nodes_when_it_comes_and_when_it_goes():
    class Counts(Bookkeeper):
        def __init__(self):
            super().__init__()
            self.events = []

        @register_feature_callback
        def on_import(self, fgraph, node, reason):
            self.events.append((node.op, reason))

        @register_feature_callback
        def on_prune(self, fgraph, node, reason):
            self.events.append((node.op, reason))

    x = PLAIN("x")
    counts = Counts()
    fgraph = FunctionGraph([x], [combine(follow(x))], [counts], clone=False)
    fgraph.remove_feature(counts)
    assert counts.events == [(follow, "attach"), (combine, "attach"), (combine, "detach"), (follow, "detach")]


def test_a_change_that_is_undone_is_told_as_the_opposite_change():
    x = PLAIN("x")
    recorder = Recorder()
    fgraph = FunctionGraph([x], [follow(x)], [recorder], clone=False)
    fgraph.outputs[0].name = "old"
    checkpoint = fgraph.checkpoint()
    fgraph.replace(fgraph.outputs[0], combine(x), reason="because")
    fgraph.outputs[0].name = "new"
    del recorder.events[:]
    fgraph.revert(checkpoint)
    assert recorder.events == [
        ("import", "Follow", "revert: because"),
        ("change", 0, "new", "old", "revert: because"),
        ("prune", "Combine{label=combine, weight=1.0}", "revert: because"),
    ]
    assert is_revert("revert: because")
    assert is_revert("revert")
    assert not is_revert("reverting")
    assert not is_revert(None)


def test_orderings_of_several_features_come_together():
    class After(Feature):
        def __init__(self, late, early):
            self.found = {late: [early]}

        @register_feature_callback
        def orderings(self, fgraph):
            return self.found

    x = PLAIN("x")
    outputs = [follow(x) for _ in range(3)]
    first, second, third = (output.owner for output in outputs)
    features = [After(first, second), After(first, third), After(second, third)]
    fgraph = FunctionGraph([x], outputs, features, clone=False)
    assert fgraph.orderings() == {first: [second, third], second: [third]}
    assert fgraph.toposort() == [third, second, first]
    fgraph.attach_feature(After(third, first))
    with pytest.raises(ValueError, match="cycle"):
        fgraph.toposort()


def test_a_print_listener_writes_what_happens_while_it_is_active(capsys):
    x, text = PLAIN("x"), io.StringIO()
    listener = PrintListener(file=text)
    fgraph = FunctionGraph([x], [follow(x)], [listener, PrintListener()], clone=False)
    fgraph.replace(fgraph.outputs[0], combine(x), reason="because")
    listener.active = False
    fgraph.remove_feature(listener)
    assert text.getvalue().splitlines() == [
        "-- attaching to: FunctionGraph(Follow(x))",
        "-- importing: Combine{label=combine, weight=1.0}(x), reason: because",
        "-- pruning: Follow(x), reason: because",
        "-- changing (Output{idx=0}(...).inputs[0]) from Follow to Combine{label=combine, weight=1.0}, reason: because",
    ]
    assert capsys.readouterr().out == text.getvalue()


def test_what_replaces_a_named_variable_gets_its_name_and_loses_it_with_the_replacement():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x), follow(x)], [PreserveVariableAttributes()], clone=False)
    fgraph.outputs[0].name = "result"
    checkpoint, new, named = fgraph.checkpoint(), combine(x), combine(x)
    named.name = "own"
    fgraph.replace(fgraph.outputs[0], new)
    assert new.name == "result"
    fgraph.replace(new, named)
    fgraph.replace(named, constant(1.0))
    assert fgraph.outputs[0].name is None
    assert named.name == "own"
    fgraph.revert(checkpoint)
    assert new.name is None
    assert fgraph.outputs[0].name == "result"


def test_a_name_given_by_a_refused_replacement_is_taken_back():
    x = PLAIN("x")
    fgraph = FunctionGraph([x], [follow(x), follow(x)], [PreserveVariableAttributes()], clone=False)
    fgraph.outputs[0].name = "result"
    with pytest.raises(TypeError):
        fgraph.replace_all([(fgraph.outputs[0], fgraph.outputs[1]), (x, Floats("other")())])
    assert [output.name for output in fgraph.outputs] == ["result", None]
