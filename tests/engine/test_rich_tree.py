"""Graphs as trees of the library rich."""

import io
import re

from rich.console import Console

import engine
import engine.tensor as pt

x = pt.dvector("x")


def shown(graph, **options):
    stream = io.StringIO()
    Console(file=stream, width=120, highlight=False).print(engine.dprint(graph, file="rich", **options))
    return [line.strip() for line in stream.getvalue().splitlines()]


def test_a_graph_is_shown_as_dprint_writes_it():
    graph = pt.exp(x) + 1.0
    tree = shown(graph, id_type="")
    assert [re.sub("^[│├└─ ]*", "", line) for line in tree] == ["Add", "Exp", "x", "[1.]"]


def test_a_shared_node_is_whole_once_and_has_one_colour():
    shared = x * 2
    branches = engine.dprint(shared + shared, file="rich").children[0].children
    colours = {re.findall(r"\[(\w+)\]", str(branch.label))[0] for branch in branches}
    assert len(colours) == 1
    assert [len(branch.children) for branch in branches] == [2, 1]
    assert "···" in str(branches[1].children[0].label)


def test_depth_names_and_inner_graphs_are_those_of_dprint():
    named = pt.exp(x)
    named.name = "a[0]"
    assert len(shown(named + 1.0, depth=1)) == 1
    assert "···" in "".join(shown(pt.sin(named), stop_on_name=True))
    assert any("a[0]" in line for line in shown(pt.sin(named)))
    op = engine.OpFromGraph([x], [pt.exp(x)])
    tree = engine.dprint(op(x), file="rich")
    assert [str(branch.label) for branch in tree.children][1] == "[bold]Inner graphs:[/bold]"
    assert len(engine.dprint(op(x), file="rich", print_inner_graphs=False).children) == 1
