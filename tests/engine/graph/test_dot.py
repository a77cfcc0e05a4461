"""Graphs drawn by Graphviz."""

import shutil
import stat

import pytest

import engine.tensor as pt
from engine import function
from engine.graph import FrozenFunctionGraph, FunctionGraph
from engine.graph.dot import MAX_DRAWN, to_dot, to_svg
from tests.engine.graph.small_ops import PLAIN, Combine, Floats, chain, combine, constant, follow, split


def test_nodes_are_boxes_and_edges_say_which_input_they_lead_to():
    x = PLAIN("x")
    first, second = split(x)
    assert (
        to_dot(FunctionGraph([x], [combine(second, constant(2.0)), first], clone=False))
        == """digraph {
  node [fontname="monospace" fontsize=10]
  n0 [label="x"]
  n1 [shape=box label="Split"]
  n0 -> n1
  n2 [label="2.0"]
  n3 [shape=box label="Combine{label=combine, weight=1.0}"]
  n1 -> n3 [taillabel="1" headlabel="0" fontsize=8]
  n2 -> n3 [headlabel="1" fontsize=8]
  out0_0 [label="o0" shape=plaintext]
  n3 -> out0_0
  out0_1 [label="o1" shape=plaintext]
  n1 -> out0_1 [taillabel="0" fontsize=8]
}
"""
    )


class Holder(Combine):
    """Applies a frozen graph."""

    __props__ = ("fgraph",)

    def __init__(self, fgraph):
        self.fgraph = fgraph


def held():
    x = PLAIN("x")
    return Holder(FrozenFunctionGraph.from_io([x], [follow(x)]))


def test_the_graph_inside_of_an_op_is_drawn_once_in_a_frame():
    x = PLAIN("x")
    text = to_dot(FunctionGraph([x], [held()(held()(x))]))
    assert text.count("subgraph cluster_1") == 1
    assert "cluster_2" not in text
    assert text.count("-> out1_0 [style=dashed") == 2
    inside = text[text.index("subgraph") :]
    assert 'label="Follow"' in inside
    assert 'label="i0"' in inside


def test_names_are_quoted_and_long_ones_cut():
    x = PLAIN('a "b" \\ c')
    text = to_dot(FunctionGraph([x], [Combine("l" * 100)(x)]))
    assert r'[label="a \"b\" \\ c"]' in text
    assert f'label="Combine{{label={"l" * 23}..."' in text


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Install a `dot` that returns its arguments and input."""
    path = tmp_path / "dot"
    path.write_text('#!/bin/sh\necho "<svg $1>"; cat\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return path


def test_graphs_show_as_svg_in_notebooks_where_graphviz_is(program):
    x = PLAIN("x")
    graph = FrozenFunctionGraph.from_io([x], [follow(x)])
    assert graph._repr_svg_() == "<svg -Tsvg>\n" + to_dot(graph)


def test_compiled_functions_show_what_they_became(program):
    x = pt.dscalar("x")
    compiled = function([x], pt.exp(x) + 0.0, mode="NUMPY")
    assert compiled._repr_svg_() == "<svg -Tsvg>\n" + to_dot(compiled.maker.fgraph)


def test_a_graph_that_can_be_changed_shows_what_it_is_now(program):
    x = PLAIN("x")
    graph = FunctionGraph([x], [follow(x)])
    assert graph._repr_svg_() == "<svg -Tsvg>\n" + to_dot(graph)


def test_without_graphviz_or_where_it_fails_there_is_no_svg(program, monkeypatch):
    x = PLAIN("x")
    graph = FunctionGraph([x], [follow(x)])
    program.write_text("#!/bin/sh\nexit 1\n")
    assert to_svg(graph) is None
    monkeypatch.setenv("PATH", "")
    assert to_svg(graph) is None


def test_graphs_that_nobody_can_read_are_not_drawn(program):
    x = PLAIN("x")
    assert to_svg(FunctionGraph([x], [chain(x, MAX_DRAWN)])) is not None
    assert to_svg(FunctionGraph([x], [chain(x, MAX_DRAWN + 1)])) is None


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_what_is_written():
    x = Floats("any")("x")
    assert "</svg>" in to_svg(FunctionGraph([x], [held()(held()(x)), combine(*split(x), constant(1.0))]))
