"""Rewriters that visit each node once, and combinations of node rewriters."""

from typing import Any

import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.rewriting import (
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
    with pytest.raises(ValueError, match="'in_to_out' or 'out_to_in'"):
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


def test_a_function_of_a_graph_is_a_rewriter():
    @graph_rewriter
    def double(fgraph: FunctionGraph) -> None:
        fgraph.replace(fgraph.outputs[0], fgraph.outputs[0] * 2)

    fgraph = FunctionGraph([x], [pt.sin(x)])
    double.rewrite(fgraph)
    assert double.name == "double"
    assert len(fgraph.apply_nodes) > 1
