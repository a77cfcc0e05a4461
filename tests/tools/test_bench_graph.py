"""The bench of graphs: what a process measures, and what is made of it."""

import sys

import pytest

from tests.tools.programs import load_program

graph, subject = load_program("bench/graph.py"), load_program("bench/graph_subject.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", subject.GRAPHS)
def test_each_operation_is_measured_on_each_graph(name):
    found = subject.Measurement(subject.Engine(), subject.GRAPHS[name], 80, 1).all()
    assert set(found) == {
        "build",
        "freeze",
        "re-freeze",
        "fingerprint",
        "clone",
        "thaw",
        "pickle mutable",
        "load mutable",
        "pickle frozen, alive",
        "load frozen, alive",
        "load frozen",
    }
    assert all(0 < seconds < 1 for seconds in found.values())


@pytest.mark.parametrize("name", subject.GRAPHS)
def test_no_node_of_a_graph_equals_another(name):
    engine = subject.Engine()
    inputs, outputs = subject.GRAPHS[name](engine.pt, 400)
    n_nodes = len(engine.mutable(inputs, outputs).apply_nodes)
    assert len(engine.freeze(inputs, outputs, dedup_nodes=True).nodes) == n_nodes
    assert 250 < n_nodes < 600


def test_what_takes_too_deep_a_recursion_is_none():
    def deeper(_):
        return deeper(_)

    measurement = subject.Measurement(subject.Engine(), subject.chain, 10, 1)
    assert measurement.best(deeper) is None
    limit = sys.getrecursionlimit()
    assert measurement.dumped([[]]) is not None
    assert sys.getrecursionlimit() == limit


def test_the_least_of_all_rounds_counts():
    runs = [{"g": {"build": 2.0, "load": None}}, {"g": {"build": 1.0, "load": None}}]
    assert graph.least(runs) == {"g": {"build": 1.0, "load": None}}


def judged(ours, theirs, fingerprint=1e-6):
    return graph.summary({"g": {"load": ours, "fingerprint": fingerprint}}, {"g": {"load": theirs}})


def test_the_engine_is_ahead_if_it_is_on_all_that_both_can_do():
    found = judged(1e-6, 4e-6)
    assert found["ahead"]
    assert found["nodes_a_second"]["g"]["load"] == {"engine": 1_000_000, "pytensor": 250_000, "ratio": 4.0}
    assert judged(1e-6, None)["ahead"]
    assert not judged(4e-6, 1e-6)["ahead"]
    assert not judged(None, 1e-6)["ahead"]
    assert not judged(1e-6, 4e-6, fingerprint=16e-6)["ahead"]
