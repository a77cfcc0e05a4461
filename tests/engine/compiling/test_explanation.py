"""Why a function missed: each way in which a key can change is named, down to the first node that differs."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.compiling.key
import engine.compiling.surroundings
import engine.tensor as pt
from cachegraph import explanation
from cachegraph.cache import Artifact, Cache
from cachegraph.errors import InvalidEncoding
from cachegraph.fingerprint.encoding import encode
from cachegraph.fingerprint.releases import package_version
from cachegraph.key import CacheKey
from cachegraph.settings import Settings
from engine import OpFromGraph as pt_from_graph
from engine.compiling.explanation import graph_difference
from engine.compiling.key import encode_graph, function_key, op_key
from engine.compiling.surroundings import kernel_key
from engine.graph import Op
from engine.graph.fgraph import FunctionGraph


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
    monkeypatch.setattr(
        explanation, "_readers_of", lambda *part: (graph_difference,) if part == ("function", "graph") else ()
    )
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
        [("rewrites", "fusion excluded, stored not excluded")],
    )


def test_code_that_changed_is_named(why: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.compiling.key, "engine_code", lambda: b"another digest..")
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("key-part-changed: code", "code")
    assert what.startswith("the source of cachegraph's engine is another release's")


def test_a_toolchain_that_changed_is_named_with_its_versions(
    why: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = {**engine.compiling.surroundings.toolchain(), "scipy": package_version("scipy"), "numba": "99.1"}
    monkeypatch.setattr(engine.compiling.key, "encode_tools", lambda: encode(newer))
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("key-part-changed: toolchain", "toolchain")
    assert what.startswith("numba: '99.1', stored '")


def test_another_machine_is_a_foreign_target(why: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.compiling.surroundings.platform, "machine", lambda: "sparc")
    reason, [(part, what)] = why(key_of())
    assert (reason, part) == ("foreign-target", "target")
    assert what.startswith("[1]: 'sparc', stored '")


def test_another_cpu_level_of_a_kernel_is_a_foreign_target(
    cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    stored = kernel_key(encode("a loop nest"), "x86-64-v3")
    assert cache.store(stored, Artifact(b"object code"))
    found = cache.explain(kernel_key(encode("a loop nest"), "x86-64-v4"))
    assert (found.reason, found.nearest) == ("foreign-target", stored.hex)
    ((part, what),) = found.differences
    assert part == "target"
    assert "'x86-64-v4'" in what
    assert "'x86-64-v3'" in what


def within(constant: Any, depth: int) -> Any:
    """A graph within Ops within each other, with a constant in the innermost."""
    x = pt.vector("x")
    op = pt_from_graph([x], [pt.exp(x) * constant + x])
    for _ in range(depth - 1):
        y = pt.vector("y")
        op = pt_from_graph([y], [op(y) * 2.0])
    z = pt.vector("z")
    return FunctionGraph([z], [pt.sin(op(z))]).freeze(), op


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_first_node_that_differs_is_named_in_inner_graphs_too(
    depth: int, why: Any, cache_directory: Path
) -> None:
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    stored = key_of(within(2.0, depth)[0])
    assert cache.store(stored, Artifact(b"a program"))
    found = cache.explain(key_of(within(3.0, depth)[0]))
    assert found.nearest == stored.hex
    ((part, what),) = found.differences
    assert part == "graph"
    assert what.count("inner graph: node ") == depth
    assert what.endswith(
        "node 1: Elemwise{mul}, input 1: constant 3.0 float64 (1,), stored constant 2.0 float64 (1,)"
    )


def test_the_first_node_of_an_op_that_differs_is_named(
    cache_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        explanation, "_readers_of", lambda *part: (graph_difference,) if part == ("op", "graph") else ()
    )
    cache = Cache(Settings(cache_directory, "readwrite", "compile"))
    wanted, stored = (op_key(within(constant, 1)[1].fgraph, (), ()) for constant in (3.0, 2.0))
    assert cache.store(stored, Artifact(b"an Op"))
    assert [tuple(one) for one in cache.explain(wanted).differences] == [
        (
            "graph",
            "node 1: Elemwise{mul}, input 1: constant 3.0 float64 (1,), stored constant 2.0 float64 (1,)",
        )
    ]


def test_a_step_of_a_loop_that_differs_is_named() -> None:
    def loop(constant: float) -> bytes:
        x = pt.vector("x")
        steps, _ = engine.map(lambda value: pt.exp(value) * constant, sequences=[x])
        return encode_graph(FunctionGraph([x], [steps]).freeze())

    what = graph_difference(loop(3.0), loop(2.0))
    assert what.endswith(
        "inner graph: node 1: Elemwise{mul}, input 1: constant 3.0 float64, stored constant 2.0 float64"
    )


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


class Users(Op):
    itypes = otypes = (pt.dvector,)

    def __init__(self, number: float) -> None:
        self.number = number

    __props__ = ("number",)


class Compiled(Users):
    def numba_function(self, node: Any) -> Any:
        return None


@pytest.mark.parametrize("op", [Users, Compiled])
def test_a_users_op_is_told_by_the_digest_of_what_describes_it(op: Any) -> None:
    x = pt.vector("x")
    one, other = (encode_graph(FunctionGraph([x], [op(number)(x)]).freeze()) for number in (1.0, 2.0))
    found = graph_difference(one, other)
    assert re.match(rf"node 0: {op.__name__}\{{.*, code: \d+ bytes \w+, stored \d+ bytes \w+", found)
    added = encode_graph(FunctionGraph([x], [pt.exp(x)]).freeze())
    assert "Elemwise{exp}" in graph_difference(one, added)


def test_large_constants_of_inner_graphs_are_told_by_their_digests_and_differ_to_the_last_bit() -> None:
    values = np.arange(10_000.0)
    changed = values.copy()
    changed[-1] = np.nextafter(changed[-1], 0)
    graphs = [within(constant, 1)[0] for constant in (values, changed)]
    one, other = map(encode_graph, graphs)
    assert len(one) < 1000
    what = graph_difference(one, other)
    assert re.search(r"constant of digest [0-9a-f]{12} float64 \(10000,\), stored constant of digest", what)


def test_no_truncated_encoding_is_taken_for_a_graph() -> None:
    whole = encode_graph(frozen())
    for size in range(len(whole)):
        with pytest.raises((InvalidEncoding, IndexError)):
            graph_difference(whole[:size], whole)


def test_the_installed_package_names_the_reader() -> None:
    for level in ("function", "op"):
        found = entry_points(group=explanation.ENTRY_POINTS, name=f"{level}.graph.engine")
        if not found:
            pytest.skip("the packages are tested as they lie, not installed")
        assert [point.load() for point in found] == [graph_difference]
        assert graph_difference in explanation._readers_of(level, "graph")
