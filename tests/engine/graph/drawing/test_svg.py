"""Drawings: boxes and titles for all that a graph has, inner graphs that unfold, limits, and no markup of
others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

import engine.tensor as pt
from engine import function, scan
from engine.graph import FrozenFunctionGraph, FunctionGraph, to_html, to_svg
from engine.graph.drawing.picture import MAX_DRAWN, MAX_ENDS, MAX_LABEL, picture_of
from engine.graph.drawing.svg import MAX_INNER
from tests.cachegraph.report.browser import Browser, browser, needs_browser
from tests.engine.graph.small_ops import PLAIN, Combine, chain, combine, constant, follow, split

__all__ = ["browser"]

SVG = "{http://www.w3.org/2000/svg}"


class Holding(Combine):
    """Applies a frozen graph."""

    __props__ = ("fgraph",)

    def __init__(self, fgraph):
        self.fgraph = fgraph

    def __str__(self):
        return "Holding"


def holding(depth=1, times=1):
    """Return an Op with an inner graph, which has an inner graph, to that depth."""
    x = PLAIN("x")
    last = x
    for _ in range(times):
        last = holding(depth - 1, times)(last) if depth > 1 else follow(last)
    return Holding(FrozenFunctionGraph.from_io([x], [last]))


def titles(svg):
    return [title.text for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]


def labels(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_drawing_has_boxes_for_nodes_inputs_constants_and_outputs():
    x = PLAIN("x")
    first, second = split(x)
    svg = to_svg(FunctionGraph([x], [combine(second, constant(2.0)), first], clone=False))
    assert sorted(labels(svg)) == sorted(["x", "Split", "2.0", "Combine{label=combine, weight…", "o0", "o1"])


def test_hovering_shows_the_op_and_the_types_that_it_reads_and_gives():
    x = pt.dvector("x")
    svg = to_svg(FunctionGraph([x], [pt.exp(x)]))
    assert f"exp\ninput 0: {x.type}\noutput 0: {x.type}" in titles(svg)
    assert f"input 0, x: {x.type}" in titles(svg)
    assert f"{x.type}, input 0" in titles(svg)


def test_every_edge_has_a_line():
    x = PLAIN("x")
    svg = to_svg(FunctionGraph([x], [combine(x, x, follow(x))], clone=False))
    paths = list(ElementTree.fromstring(svg).iter(f"{SVG}path"))
    assert len(paths) == 4  # two of five edges have one line
    assert any("input 0" in title and "input 1" in title for title in titles(svg))


def test_long_names_are_cut_in_boxes_and_whole_when_hovered_over():
    x = PLAIN("x" * 100)
    svg = to_svg(FunctionGraph([x], [Combine("l" * 100)(x)]))
    assert max(map(len, labels(svg))) == MAX_LABEL
    assert any("l" * 100 in title for title in titles(svg))


@pytest.mark.parametrize(
    "name", ["</svg><script>alert(1)</script>", "a\"b'c&d", "nul\x00 \x1b[31m", "\ud800"]
)
def test_names_are_texts_whatever_they_say(name):
    x = PLAIN(name)
    graph = FunctionGraph([x], [Combine(name)(x)], clone=False)
    root = ElementTree.fromstring(to_svg(graph))
    assert not list(root.iter(f"{SVG}script"))
    to_html(graph).encode()
    assert "<script" not in to_html(graph)


def test_of_a_large_graph_the_nodes_nearest_to_the_outputs_are_drawn():
    x = PLAIN("x")
    graph = FunctionGraph([x], [chain(x, MAX_DRAWN + 7)])
    picture = picture_of(graph)
    assert (picture.nodes, picture.left_out) == (MAX_DRAWN + 7, 7)
    assert [box.kind for box in picture.boxes].count("node") == MAX_DRAWN
    assert [box.kind for box in picture.boxes].count("omitted") == 1
    assert f"7 of {MAX_DRAWN + 7} nodes are left out" in to_html(graph)
    assert f"<desc>7 of {MAX_DRAWN + 7} nodes are left out</desc>" in to_svg(graph)
    whole = FunctionGraph([x], [chain(x, MAX_DRAWN)])
    assert "left out" not in to_html(whole) + to_svg(whole)


def test_of_many_inputs_and_outputs_the_first_are_drawn():
    inputs = [PLAIN(f"x{n}") for n in range(MAX_ENDS + 5)]
    graph = FunctionGraph(inputs, [combine(*inputs), *(follow(x) for x in inputs)], clone=False)
    shown = labels(to_svg(graph))
    assert "… 5 more inputs" in shown
    assert "… 6 more outputs" in shown
    assert [label[:1] for label in shown].count("o") == MAX_ENDS


def test_inner_graphs_are_folded_below_the_graph_that_applies_them_each_once():
    x = PLAIN("x")
    op = holding(depth=2)
    html = to_html(FunctionGraph([x], [op(op(x))]))
    assert re.findall(r"<summary>(.*?)</summary>", html) == [
        "inner graph 1: Holding",
        "inner graph 2: Holding",
    ]
    links, ids = re.findall(r'href="#([^"]*)"', html), re.findall(r' id="([^"]*)"', html)
    assert len(links) == 3
    assert set(links) == set(ids)
    assert len(ids) == len(set(ids)) == 2


def test_two_drawings_in_one_notebook_have_ids_of_their_own():
    x = PLAIN("x")
    first, second = (to_html(FunctionGraph([x], [op(x)])) for op in (holding(), holding(times=2)))
    third = to_html(FunctionGraph([x], [combine(holding()(x))]))
    ids = [re.findall(r' id="([^"]*)"', html)[0] for html in (second, third)]
    assert len({*ids, *re.findall(r' id="([^"]*)"', first)}) >= 2


def test_more_inner_graphs_than_can_be_read_are_told():
    x = PLAIN("x")
    last = x
    for times in range(1, MAX_INNER + 3):
        last = holding(times=times)(last)
    html = to_html(FunctionGraph([x], [last]))
    assert html.count("<details>") == MAX_INNER
    assert "2 inner graphs are left out." in html


def test_mutable_frozen_and_compiled_graphs_show_themselves_in_notebooks():
    x = pt.dvector("x")
    mutable = FunctionGraph([x], [pt.exp(x)])
    compiled = function([x], pt.exp(x) + 0.0, mode="NUMPY")
    for each in (mutable, mutable.freeze(), compiled):
        assert "exp" in labels(each._repr_svg_())
        assert each._repr_html_().startswith('<div class="engine-graph">')
    assert compiled._repr_html_() == to_html(compiled.maker.fgraph)


def test_a_graph_without_nodes_and_one_without_outputs_are_drawn():
    x = PLAIN("x")
    assert labels(to_svg(FunctionGraph([x], [x]))) == ["x", "o0"]
    ElementTree.fromstring(to_svg(FunctionGraph([x], [])))


def test_neither_form_needs_a_script_a_network_or_a_program(monkeypatch):
    monkeypatch.setenv("PATH", "")
    x = pt.dvector("x")
    text = to_html(FunctionGraph([x], [pt.exp(x)])) + to_svg(FunctionGraph([x], [pt.exp(x)]))
    assert "<script" not in text
    assert re.findall(r"https?://[^\"]*", text).count("http://www.w3.org/2000/svg") == text.count("http")


@needs_browser
def test_a_link_on_a_node_unfolds_its_inner_graph(tmp_path, browser: Browser):
    x = pt.dvector("x")
    states = scan(
        lambda s, a: s * a + 1.0, sequences=[x], outputs_info=[pt.constant(0.0)], return_updates=False
    )
    html = to_html(function([x], states))
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{html}")
    anchor = re.findall(r'href="#([^"]*)"', html)[0]
    assert "<details open" not in browser.document(page)
    assert "<details open" in browser.document(page, anchor)
    picture = browser.picture(page, "graph", 700, 900)
    assert picture.stat().st_size > 5_000
