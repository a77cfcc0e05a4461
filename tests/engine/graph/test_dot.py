"""Graphs in the language of Graphviz."""

import shutil
import subprocess

import pytest

from engine.graph import FrozenFunctionGraph, FunctionGraph
from engine.graph.dot import to_dot
from tests.engine.graph.small_ops import PLAIN, Combine, Floats, combine, constant, follow, split


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


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_what_is_written():
    x = Floats("any")("x")
    text = to_dot(FunctionGraph([x], [held()(held()(x)), combine(*split(x), constant(1.0))]))
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, encoding="utf-8", check=True)
    assert "</svg>" in done.stdout
