"""Features: what they are told, what they give a graph, and what is refused."""

import pytest

from engine.graph import Feature, FunctionGraph, register_feature_callback
from engine.graph.features import NodeFinder
from tests.engine.graph.small_ops import PLAIN, combine, follow


class Recorder(Feature):
    """Writes down what it is told."""

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
    def validate(self, fgraph):
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
    assert fgraph.collect_callbacks("validate") == {recorder: len(recorder.events)}


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


def test_only_declared_methods_are_called():
    class Undeclared(Feature):
        def on_import(self, fgraph, node, reason):
            raise AssertionError("called")

    x = PLAIN("x")
    FunctionGraph([x], [], [Undeclared()], clone=False).add_output(follow(x))


def test_only_known_names_can_be_declared():
    with pytest.raises(TypeError, match="a graph calls only on_attach"):

        @register_feature_callback
        def on_imports(self):
            pass


def test_a_name_is_not_both_called_and_provided():
    with pytest.raises(TypeError, match="both callbacks and provided"):

        class Both(Feature):
            provides = ("validate",)

            @register_feature_callback
            def validate(self, fgraph):
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
