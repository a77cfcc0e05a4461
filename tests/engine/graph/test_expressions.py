"""Graphs as nested expressions."""

import engine.tensor as pt
from engine.graph import FunctionGraph
from engine.graph.basic import as_string

x, y = pt.dvector("x"), pt.dvector("y")


def test_an_expression_names_ops_and_leaves():
    assert as_string([x, y], [pt.exp(x) + y]) == ["add(exp(x), y)"]
    assert str(FunctionGraph([x, y], [pt.exp(x) + y], clone=False)) == "FunctionGraph(add(exp(x), y))"


def test_what_is_used_again_is_written_once_where_it_is_read_first():
    twice = pt.exp(x)
    assert as_string([x], [pt.sin(twice) * twice]) == ["mul(sin(*1 -> exp(x)), *1)"]
    assert as_string([x], [twice, twice]) == ["*1 -> exp(x)", "*1"]


def test_an_input_is_a_leaf_also_if_it_is_computed():
    inner = pt.exp(x)
    assert as_string([inner], [inner + inner]) == ["add(exp, exp)"]
    assert as_string([inner], [-inner], leaf_formatter=lambda v: "?") == ["neg(?)"]


def test_outputs_of_one_node_have_positions():
    first, second = pt.linalg.eigh(pt.dmatrix("m"))
    assert as_string([], [first, second])[1].endswith("*1::1")


def test_a_graph_may_be_deep():
    found = x
    for _ in range(20_000):
        found = pt.exp(found)
    assert as_string([x], [found])[0].startswith("exp(exp(")
