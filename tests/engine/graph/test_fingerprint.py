"""The fingerprint of a frozen graph: kept with it, and the same for equal graphs in every process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine.tensor as pt
from cachegraph.errors import Unfingerprintable
from cachegraph.fingerprint.primitives import digest
from engine.compiling import graph_encoding as encoding
from engine.compiling.key import encode_graph
from engine.graph import Apply, FrozenFunctionGraph, Op
from engine.inner import OpFromGraph

ROOT = Path(__file__).parents[3]


def fingerprint_graph(graph):
    return digest(encode_graph(graph))


def example(name="x", factor=2.0):
    x, y = pt.dvector(name), pt.dvector("y")
    inner = OpFromGraph([x, y], [pt.exp(x) * factor + y])
    return FrozenFunctionGraph.from_io([x, y], [pt.sum(inner(x, inner(y, x)))])


@pytest.fixture
def encoded(monkeypatch):
    """Return the list of encoded graphs, one entry per encoding."""
    found = []
    original = encoding._FrozenGraphEncoder.__init__
    monkeypatch.setattr(
        encoding._FrozenGraphEncoder,
        "__init__",
        lambda self, graph, *rest: found.append(graph) or original(self, graph, *rest),
    )
    return found


def test_a_graph_is_encoded_once_and_so_is_a_graph_inside_of_ops(encoded):
    graph = example(factor=3.0)
    assert fingerprint_graph(graph) == fingerprint_graph(example("renamed", 3.0))
    assert encode_graph(graph) is encode_graph(graph)
    inner = graph.nodes[0].op.fgraph
    assert encoded == [graph, inner]
    x, y = pt.dvector("x"), pt.dvector("y")
    around = FrozenFunctionGraph.from_io([x, y], [pt.sin(graph.nodes[0].op(x, y))])
    fingerprint_graph(around)
    assert encoded == [graph, inner, around]


def test_graphs_that_differ_have_other_fingerprints():
    assert fingerprint_graph(example()) != fingerprint_graph(example(factor=2.5))
    assert fingerprint_graph(example()) != fingerprint_graph(example(factor=-2.0))
    assert len(fingerprint_graph(example())) == 16


def test_the_order_of_execution_is_in_the_fingerprint_where_it_is_part_of_the_graph():
    x = pt.dvector("x")
    first, second = pt.exp(x), pt.sin(x)
    out = first + second
    graphs = [
        FrozenFunctionGraph.from_toposort([x], [out], [a.owner, b.owner, out.owner])
        for a, b in ((first, second), (second, first))
    ]
    assert fingerprint_graph(graphs[0]) != fingerprint_graph(graphs[1])


class Unknown(Op):
    """An Op outside the engine."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])


def test_what_has_no_fingerprint_is_refused_every_time():
    x = pt.dvector("x")
    graph = FrozenFunctionGraph.from_io([x], [Unknown()(x)])
    for _ in range(2):
        with pytest.raises(Unfingerprintable, match="Unknown"):
            fingerprint_graph(graph)


def test_equal_graphs_have_equal_fingerprints_in_every_process():
    program = """
from tests.engine.graph.test_fingerprint import example, fingerprint_graph
print(fingerprint_graph(example("other")).hex())
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {fingerprint_graph(example()).hex()}
