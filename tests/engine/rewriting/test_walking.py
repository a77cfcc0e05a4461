"""Rewriters that visit each node once, and combinations of node rewriters."""

from typing import Any, ClassVar

import pytest

import engine.tensor as pt
from engine.configdefaults import config
from engine.errors import InconsistencyError
from engine.graph import Apply, DestroyHandler, FunctionGraph, Op
from engine.rewriting import (
    GraphRewriter,
    SequentialGraphRewriter,
    SequentialNodeRewriter,
    SubstitutionNodeRewriter,
    WalkingGraphRewriter,
    graph_rewriter,
    in2out,
    node_rewriter,
    out2in,
)

x = pt.dvector("x")


def visited(walk: Any) -> list[str]:
    """Return the Ops of sin(cos(exp(x))) in the order of a walk."""
    found = []

    @node_rewriter(None)
    def look(fgraph: FunctionGraph, node: Any) -> None:
        found.append(str(node.op))

    walk(look).rewrite(FunctionGraph([x], [pt.sin(pt.cos(pt.exp(x)))]))
    return found


def test_a_walk_goes_from_the_inputs_to_the_outputs_or_back():
    assert visited(in2out) == ["exp", "cos", "sin"]
    assert visited(out2in) == ["sin", "cos", "exp"]
    with pytest.raises(ValueError, match="'in_to_out', 'out_to_in' or 'dfs'"):
        WalkingGraphRewriter([], "sideways")  # type: ignore[arg-type]


def test_a_walk_changes_each_node_once():
    undo = [SubstitutionNodeRewriter(pt.sin, pt.cos), SubstitutionNodeRewriter(pt.cos, pt.tan)]
    fgraph = FunctionGraph([x], [pt.sin(pt.cos(x))])
    report = in2out(*undo).rewrite(fgraph)
    assert [str(node.op) for node in fgraph.toposort()] == ["tan", "tan"]
    assert report.total == 3


def test_of_several_rewriters_the_first_that_applies_wins():
    both = SequentialNodeRewriter(
        SubstitutionNodeRewriter(pt.sin, pt.cos), SubstitutionNodeRewriter(pt.sin, pt.tan)
    )
    fgraph = FunctionGraph([x], [pt.sin(x)])
    in2out(both).rewrite(fgraph)
    assert [str(node.op) for node in fgraph.toposort()] == ["cos"]
    assert both.tracks() == [pt.sin, pt.sin]


def test_a_flag_prints_which_of_several_rewriters_applies(capsys: pytest.CaptureFixture[str]) -> None:
    both = SequentialNodeRewriter(
        SubstitutionNodeRewriter(pt.sin, pt.cos), SubstitutionNodeRewriter(pt.cos, pt.tan)
    )
    fgraph = FunctionGraph([x], [pt.sin(pt.cos(x))], clone=False)
    with config.change_flags(optimizer_verbose=True, optimizer_verbose_ignore="cos -> tan"):
        for node in fgraph.toposort():
            both.transform(fgraph, node)
    assert capsys.readouterr().out == "rewriting: rewrite sin -> cos replaces node sin(...) with [cos.0]\n"


def test_a_function_of_a_graph_is_a_rewriter():
    @graph_rewriter
    def double(fgraph: FunctionGraph) -> None:
        fgraph.replace(fgraph.outputs[0], fgraph.outputs[0] * 2)

    fgraph = FunctionGraph([x], [pt.sin(x)])
    double.rewrite(fgraph)
    assert double.name == "double"
    assert len(fgraph.apply_nodes) > 1


def test_new_nodes_are_left_alone_if_a_walk_ignores_them():
    chain = SubstitutionNodeRewriter(pt.sin, pt.cos), SubstitutionNodeRewriter(pt.cos, pt.tan)
    fgraph = FunctionGraph([x], [pt.sin(x)])
    WalkingGraphRewriter(chain, ignore_newtrees=True).rewrite(fgraph)
    assert [str(node.op) for node in fgraph.toposort()] == ["cos"]


def test_a_rewrite_that_fails_is_told_to_the_callback_and_the_walk_goes_on():
    @node_rewriter([pt.sin])
    def fails(fgraph: FunctionGraph, node: Any) -> None:
        raise ArithmeticError("always")

    both = fails, SubstitutionNodeRewriter(pt.cos, pt.tan)
    told = []
    walk = in2out(*both, failure_callback=lambda error, *rest: told.append(str(error)))
    fgraph = FunctionGraph([x], [pt.cos(pt.sin(x))])
    walk.rewrite(fgraph)
    assert told == ["always"]
    assert [str(node.op) for node in fgraph.toposort()] == ["sin", "tan"]
    with pytest.warns(RuntimeWarning, match="always"):
        in2out(*both, failure_callback=WalkingGraphRewriter.warn).rewrite(fgraph)
    in2out(*both, failure_callback=WalkingGraphRewriter.warn_ignore).rewrite(fgraph)
    with pytest.raises(ArithmeticError):
        in2out(*both).rewrite(fgraph)


def test_a_rewrite_may_replace_other_variables_than_those_of_its_node():
    @node_rewriter([pt.sin])
    def outer(fgraph: FunctionGraph, node: Any) -> Any:
        (client, _), *_ = fgraph.clients[node.outputs[0]]
        return {client.outputs[0]: node.inputs[0], "remove": [node.outputs[0]]}

    fgraph = FunctionGraph([x], [pt.cos(pt.sin(pt.exp(x)))])
    in2out(outer).rewrite(fgraph)
    assert [str(node.op) for node in fgraph.toposort()] == ["exp"]


def test_a_function_rewriter_leaves_nodes_of_other_ops_alone_and_asks_for_what_it_needs():
    asked = []

    @node_rewriter([pt.sin], requirements=[asked.append])
    def first(fgraph: FunctionGraph, node: Any) -> Any:
        return [node.inputs[0]]

    fgraph = FunctionGraph([x], [pt.cos(pt.sin(x))])
    last = fgraph.outputs[0].owner
    assert first.transform(fgraph, last) is None
    assert first.transform(fgraph, last, enforce_tracks=False) == [last.inputs[0]]
    out2in(first).rewrite(fgraph)
    assert asked == [fgraph]
    with pytest.raises(ValueError, match="tracks is empty"):
        node_rewriter([])
    with pytest.raises(TypeError, match="is no Op"):
        node_rewriter([None])  # type: ignore[list-item]


def test_a_users_rewriter_of_graphs_implements_apply():
    class Doubled(GraphRewriter):
        def apply(self, fgraph: FunctionGraph) -> None:
            fgraph.replace(fgraph.outputs[0], fgraph.outputs[0] * 2)

    fgraph = FunctionGraph([x], [pt.sin(x)])
    SequentialGraphRewriter(Doubled(), Doubled())(fgraph)
    assert [str(node.op) for node in fgraph.toposort()].count("mul") == 2
    in2out(SubstitutionNodeRewriter(pt.sin, pt.cos)).apply(fgraph)
    assert "cos" in [str(node.op) for node in fgraph.toposort()]
    with pytest.raises(NotImplementedError, match="must implement apply"):
        GraphRewriter().rewrite(fgraph)


def test_a_replacement_that_overwrites_too_early_is_undone_and_reported():
    y = pt.dvector("y")
    failures = []

    @node_rewriter([pt.add(x, y).owner.op])
    def inplace(fgraph: FunctionGraph, node: Any) -> Any:
        return [overwrite(*node.inputs)]

    overwrite = _Overwrite()
    first, second = pt.add(x, y), pt.add(pt.exp(x), x)
    fgraph = FunctionGraph([x, y], [first, second])
    fgraph.attach_feature(DestroyHandler())
    rewriter = in2out(inplace, failure_callback=lambda error, *_: failures.append(error))
    rewriter.rewrite(fgraph)
    assert fgraph.consistent()
    assert sum(node.op == overwrite for node in fgraph.apply_nodes) == 2  # exp(x) is nobody else's
    fgraph = FunctionGraph([x, y], [pt.add(x, y), pt.add(x, x)])
    fgraph.attach_feature(DestroyHandler())
    rewriter.rewrite(fgraph)
    assert fgraph.consistent()
    assert len(failures) == 1
    assert isinstance(failures[0], InconsistencyError)


def test_a_walk_repairs_a_graph_that_cannot_be_ordered():
    fgraph = FunctionGraph([x], [pt.dot(_Overwrite()(x, pt.exp(x)), x)])
    fgraph.attach_feature(DestroyHandler())
    assert not fgraph.consistent()
    in2out(SubstitutionNodeRewriter(_Overwrite(), pt.add(x, x).owner.op)).rewrite(fgraph)
    assert fgraph.consistent()


class _Overwrite(Op):
    """A sum in the place of its first operand."""

    __props__ = ()
    destroy_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, inputs, [inputs[0].type.make_variable()])
