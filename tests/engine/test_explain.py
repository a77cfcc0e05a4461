"""Why a function missed: each way in which a key can change is named, down to the first node that differs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.keys
import engine.tensor as pt
from cachegraph import explanation
from cachegraph.cache import Artifact, Cache
from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.hasher import encode
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from engine.explain import graph_difference
from engine.graph.fgraph import FunctionGraph
from engine.keys import encode_graph, function_key


def frozen(
    dtype: str = "float64", constant: Any = 2.0, swap: bool = False, axis: int = 0, f: Any = pt.exp
) -> Any:
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    scaled = f(x) * constant + (x if swap else y)
    return FunctionGraph([x, y], [pt.sum(scaled, axis=axis)]).freeze()


def key_of(graph: Any = None, rewrites: Any = (("fast_run",), (), ()), options: Any = ("numba",)) -> CacheKey:
    return function_key(graph or frozen(), (1, ()), rewrites, options)


@pytest.fixture
def why(cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[CacheKey], tuple[str, Any]]:
    """Return a function from a key to the reason and the differences, beside a store that holds one other function."""
    monkeypatch.setitem(explanation._readers, ("function", "graph"), graph_difference)
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    assert cache.store(key_of(), Artifact(b"a program"))

    def of(key: CacheKey) -> tuple[str, Any]:
        found = cache.explain(key)
        assert found.nearest == STORED
        return found.reason, [tuple(difference) for difference in found.differences]

    STORED = key_of().hex
    return of


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"constant": 3.0},
            "node 1: Elemwise{mul}, input 1: constant 3.0 float64 (1, 1), stored constant 2.0 float64 (1, 1)",
        ),
        (
            {"dtype": "float32"},
            "node 0: Elemwise{exp}, input 0: float32 (?, ?), stored float64 (?, ?)",
        ),
        (
            {"swap": True},
            "node 2: Elemwise{add}, input 1: input 0 of the graph, stored input 1 of the graph",
        ),
        (
            {"axis": 1},
            "node 3: Sum{axis=(1,), dtype='float64', acc_dtype='float64'}, axis: [0]: 1, stored 0",
        ),
        ({"f": pt.log}, "node 0: Elemwise{log}, stored Elemwise{exp}"),
    ],
    ids=["constant", "dtype", "edge", "Op property", "Op"],
)
def test_the_first_node_that_differs_is_named(why: Any, change: dict[str, Any], line: str) -> None:
    assert why(key_of(frozen(**change))) == ("never-seen", [("graph", line)])


def test_an_option_that_changed_is_named(why: Any) -> None:
    due = [("options", "[0]: 'other', stored 'numba'")]
    assert why(key_of(options=("other",))) == ("key-part-changed: options", due)


def test_a_set_of_rewrites_that_changed_is_named(why: Any) -> None:
    reason, differences = why(key_of(rewrites=(("fast_run",), (), ("fusion",))))
    assert (reason, differences) == (
        "key-part-changed: rewrites",
        [("rewrites", "[2]: ('fusion',), stored ()")],
    )


def test_code_that_changed_is_named(why: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.keys, "engine_code", lambda: b"another digest..")
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("key-part-changed: code", "code")
    assert what.startswith("digest ")


def test_a_toolchain_that_changed_is_named_with_its_versions(
    why: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = {**engine.backend.keys.toolchain(), "numba": "99.1"}
    monkeypatch.setattr(engine.keys, "encode_toolchain", lambda: encode(newer))
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("key-part-changed: toolchain", "toolchain")
    assert what.startswith("['numba']: '99.1', stored '")


def test_another_machine_is_a_foreign_target(why: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.keys.platform, "machine", lambda: "sparc")
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("foreign-target", "target")
    assert what.startswith("[1]: 'sparc', stored '")


def test_several_changes_are_all_named(why: Any) -> None:
    reason, differences = why(key_of(frozen(constant=5.0), options=("other",)))
    assert reason == "never-seen"
    assert [part for part, _ in differences] == ["options", "graph"]


def test_inputs_that_no_node_reads_and_outputs_are_compared_too() -> None:
    x, y, z = pt.vector("x"), pt.vector("y"), pt.vector("z", dtype="float32")
    one = encode_graph(FunctionGraph([x, y], [pt.exp(x)]).freeze())
    assert graph_difference(one, one).startswith("the graphs are the same")
    other = encode_graph(FunctionGraph([x, z], [pt.exp(x)]).freeze())
    assert graph_difference(one, other) == "input 1 of the graph: float64 (?,), stored float32 (?,)"
    fewer = encode_graph(FunctionGraph([x], [pt.exp(x)]).freeze())
    assert graph_difference(one, fewer) == "2 inputs, stored 1"
    exp = pt.exp(x)
    both = encode_graph(FunctionGraph([x, y], [exp, exp]).freeze())
    assert graph_difference(one, both) == "1 outputs, stored 2"
    twisted = encode_graph(FunctionGraph([x, y], [exp, x]).freeze())
    assert graph_difference(twisted, both) == "output 1 of the graph: input 0 of the graph, stored node 0"


def test_a_node_more_and_data_are_told() -> None:
    x = pt.vector("x")
    one = encode_graph(FunctionGraph([x], [pt.exp(x)]).freeze())
    more = encode_graph(FunctionGraph([x], [pt.exp(pt.exp(x))]).freeze())
    assert graph_difference(more, one) == "2 nodes, stored 1"
    data = [encode_graph(FunctionGraph([x], [x + np.zeros(n)]).freeze()) for n in (40, 50)]
    assert (
        graph_difference(*data)
        == "node 0: Elemwise{add}, input 1: data float64 (40,), stored data float64 (50,)"
    )


def test_no_truncated_encoding_is_taken_for_a_graph() -> None:
    whole = encode_graph(frozen())
    for size in range(len(whole)):
        with pytest.raises((InvalidEncoding, IndexError)):
            graph_difference(whole[:size], whole)


def test_the_installed_package_names_the_reader() -> None:
    found = entry_points(group=explanation.ENTRY_POINTS, name="function.graph")
    if not found:
        pytest.skip("the packages are tested as they lie, not installed")
    assert [point.load() for point in found] == [graph_difference]
