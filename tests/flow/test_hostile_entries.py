"""Hostile entries of a store, whole and checksummed, are misses with a reason; nothing in them runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.compiling.inner_graphs
import engine.tensor as pt
from engine.graph.fgraph import FrozenFunctionGraph
from engine.graph.frozen_nodes import intern_node
from tests.flow.hostile_entries import DUE

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("hostile_entries.py")
COUNT = 12 if os.environ.get("CACHEGRAPH_STRESS") == "full" else 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each cache is tried in a forked child"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What they would make."""
    return tmp_path_factory.mktemp("hostile") / "executed"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, file: Path) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("caches") / "each"
    _run("write", str(directory), str(file), str(COUNT))
    made: dict[str, Any] = json.loads(_run("read", str(directory)))
    return made


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_functions_are_compiled_as_if_there_had_been_nothing(found: dict[str, Any]) -> None:
    first = {name: made[0] for name, made in found.items() if name.endswith("as payloads")}
    assert len(first) >= 3 * COUNT
    for name, made in first.items():
        assert (made["outcome"], made["result"]) == ("miss", pytest.approx(DUE)), name
        assert made["misses"].keys() <= {"untrusted", "unreadable", "damaged"}, name
        assert sum(made["misses"].values()) >= 3, name  # the function, the inner graph and its kernels


def test_hostile_blobs_are_not_the_graph_of_a_hit(found: dict[str, Any]) -> None:
    graphs = {made[0]["graph"] for made in found.values()} | {made[1]["graph"] for made in found.values()}
    assert len(graphs) == 1
    for name, (made, _) in found.items():
        if name.endswith("as blobs"):
            assert (made["outcome"], made["result"]) == ("hit", pytest.approx(DUE)), name


def test_what_was_compiled_has_replaced_them(found: dict[str, Any]) -> None:
    for name, (_, again) in found.items():
        assert (again["outcome"], again["result"]) == ("hit", pytest.approx(DUE)), name


def test_nothing_in_them_was_executed(found: dict[str, Any], file: Path) -> None:
    assert found
    assert not file.exists()


def _nonsense(graph: FrozenFunctionGraph) -> FrozenFunctionGraph:
    """A graph of the same types, whose only Op sums an axis that there is not."""
    (node,) = graph.nodes
    op = object.__new__(type(node.op))
    vars(op).update({**vars(node.op), "axis": (5,)})
    for name in ("_exact_props", "_exact_hash"):
        vars(op).pop(name, None)
    made = intern_node(op, node.inputs, tuple(output.type for output in node.outputs), None)
    return FrozenFunctionGraph(graph.inputs, made.outputs)


def test_a_stored_inner_graph_that_nothing_can_be_made_of_is_rewritten_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def functions() -> list[Any]:
        m = pt.matrix("m")
        inner = engine.OpFromGraph([m], [pt.sum(m, axis=1)])
        return [lambda: engine.function([m], inner(m)), lambda: engine.function([m], [inner(m), m])]

    first, second = functions()
    assert first().cache_info.found["op"] == [0, 1]
    load = engine.compiling.inner_graphs.load_inner_graph
    with monkeypatch.context() as patched:
        patched.setattr(
            engine.compiling.inner_graphs, "load_inner_graph", lambda *args: _nonsense(load(*args))
        )
        f = second()
    assert (f.cache_info.outcome, f.cache_info.found["op"]) == ("miss", [0, 1])
    np.testing.assert_array_equal(f(np.ones((2, 3)))[0], [3.0, 3.0])
