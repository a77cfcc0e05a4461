import io
from types import SimpleNamespace

import numpy as np
import pytest

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.printing import dprint
from engine.rewriting import rewrite_graph


def text(graph, **options):
    return dprint(graph, file="str", **options)


@pytest.fixture
def graph():
    x, y = pt.dvector("x"), pt.dscalar("y")
    total = pt.exp(x) + y
    total.name = "total"
    return [x, y], total * pt.sum(total)


def test_a_graph_is_a_tree_whose_shared_parts_are_printed_once(graph):
    assert text(graph[1]) == (
        "mul [id A]\n"
        " ├─ add [id B] 'total'\n"
        " │  ├─ exp [id C]\n"
        " │  │  └─ x [id D]\n"
        " │  └─ DimShuffle{order=[x]} [id E]\n"
        " │     └─ y [id F]\n"
        " └─ DimShuffle{order=[x]} [id G]\n"
        "    └─ Sum{axis=[0]} [id H]\n"
        "       └─ add [id B] 'total'\n"
        "          └─ ···\n"
    )


def test_a_depth_limits_the_levels(graph):
    assert text(graph[1], depth=1) == "mul [id A]\n ├─ add [id B] 'total'\n └─ DimShuffle{order=[x]} [id C]\n"
    assert text(graph[1], depth=0) == "mul [id A]\n"


def test_types_are_printed_on_demand():
    x = pt.fmatrix("x")
    assert text(pt.exp(x), print_type=True) == (
        "exp <Tensor(float32, (?, ?))> [id A]\n └─ x <Tensor(float32, (?, ?))> [id B]\n"
    )


def test_graphs_say_in_which_order_their_nodes_run(graph):
    inputs, output = graph
    fgraph = FunctionGraph(inputs, [output])
    lines = text(fgraph).splitlines()
    assert lines[0] == "mul [id A] 5"
    assert lines[2] == " │  ├─ exp [id C] 0"
    compiled = SimpleNamespace(maker=SimpleNamespace(fgraph=fgraph))
    assert text(compiled) == text(fgraph)


def test_frozen_graphs_show_their_inputs_by_number(graph):
    inputs, output = graph
    lines = text(FunctionGraph(inputs, [output]).freeze()).splitlines()
    assert lines[3] == " │  │  └─ i0 [id D]"


def test_several_variables_share_letters(graph):
    inputs, output = graph
    assert text([output, output, inputs[0]]).splitlines()[-3:] == ["mul [id A]", " └─ ···", "x [id D]"]


def test_small_constants_show_their_value_and_large_ones_their_type():
    x = pt.dvector("x")
    assert "└─ [1. 2.] [id C]" in text(x + np.array([1.0, 2.0]))
    assert "└─ <Tensor(float64, (50,))> [id C]" in text(x + np.ones(50))


def test_inner_graphs_are_printed_once_below():
    x, y = pt.dvector("x"), pt.dvector("y")
    fgraph = FunctionGraph([x, y], [pt.dot(pt.sin(pt.exp(x)), pt.sin(pt.exp(y)))])
    rewrite_graph(fgraph)
    assert text(fgraph).split("\n\n") == [
        "Dot [id A] 2\n"
        " ├─ Composite{sin(exp(i0))} [id B] 0\n"
        " │  └─ x [id C]\n"
        " └─ Composite{sin(exp(i0))} [id D] 1\n"
        "    └─ y [id E]",
        "Inner graphs:",
        "Composite{sin(exp(i0))} [id B]\n"
        " ← sin [id F]\n"
        "    └─ exp [id G]\n"
        "       └─ i0 [id H]\n",
    ]


def test_the_text_goes_where_it_is_sent(graph, capsys):
    stream = io.StringIO()
    assert dprint(graph[1], file=stream) is None
    assert dprint(graph[1]) is None
    assert stream.getvalue() == capsys.readouterr().out == text(graph[1])


def test_what_is_no_graph_and_no_file_is_refused(graph):
    with pytest.raises(TypeError, match="neither a variable"):
        dprint(3)
    with pytest.raises(TypeError, match="`file` is a text file"):
        dprint(graph[1], file="graph.txt")


def test_a_chain_of_100000_nodes_is_printed_in_bounded_width():
    y = pt.dvector("x")
    for _ in range(100_000):
        y = pt.sin(y)
    lines = text(y).splitlines()
    assert sum(line.lstrip().startswith(("sin", "└─ sin")) for line in lines) >= 100_000
    assert max(map(len, lines)) < 300
    assert lines[-1].strip().startswith("└─ x")


def test_letters_go_on_after_z():
    y = pt.dvector("x")
    for _ in range(30):
        y = pt.sin(y)
    found = [line.split("[id ")[1].split("]")[0] for line in text(y).splitlines()]
    assert found[25:29] == ["Z", "AA", "AB", "AC"]
