"""The first difference of two PyTensor graphs, in words, read from the bytes of their keys alone."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from cachegraph import explanation
from cachegraph.cache import Artifact, default_cache
from cachegraph.errors import InvalidEncoding
from cachegraph.key import CacheKey, compressed, expanded, kept_names
from cachegraph.pytensor.describe.graph_reader import graph_difference, inner_graph_difference
from cachegraph.pytensor.describe.key import describe_inner
from tests.cachegraph.pytensor.describing import described
from tests.cachegraph.pytensor.recipes import Recipe, build, made, mutated

SAME = "the graphs are the same; only how they are written differs"


class Shifted(Op):
    __props__ = ("by",)

    def __init__(self, by: float) -> None:
        self.by = by

    def make_node(self, x: Any) -> Any:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] + self.by


def graph_of(inputs: list[Any], outputs: list[Any], **options: Any) -> bytes:
    return dict(described(inputs, outputs, **options).key.parts)["graph"]


def inner_graph_of(node: Any) -> bytes:
    return dict(describe_inner(node.op, node, get_mode("NUMBA")).key.parts)["graph"]


def scaled(x: Any, by: Any) -> Any:
    return pt.exp(x * by)


def looped(x: Any, by: Any) -> Any:
    return pytensor.scan(lambda value: value * by, sequences=[x], return_updates=False)


def within(x: Any, by: Any) -> Any:
    y = pt.vector("y")
    return OpFromGraph([y], [pt.exp(y * by)])(x)


def summed(x: Any, axis: Any) -> Any:
    return pt.sum(pt.outer(x, x), axis=axis)


def called(x: Any, name: Any) -> Any:
    return getattr(pt, name)(x)


def tagged(x: Any, name: Any) -> Any:
    matrix = pt.outer(x, x)
    setattr(matrix.tag, name, True)
    return pt.linalg.solve(matrix, x)


def shifted(x: Any, by: Any) -> Any:
    return Shifted(by)(x)


@pytest.mark.parametrize(
    ("make", "wanted", "stored", "parts"),
    [
        (scaled, 2.0, 3.0, ("DimShuffle, input 0: constant 2.0 float32, stored constant 3.0 float32",)),
        (scaled, np.arange(3.0), np.arange(6.0), ("constant [0.0, 1.0, 2.0] float64 (3,)", "... 6 in all]")),
        (looped, 2.0, 3.0, ("Scan", "inner graph: node 0: ", "constant 2.0 ", "stored constant 3.0 ")),
        (within, 2.0, 3.0, ("OpFromGraph, inner graph: node ", "constant 2.0 ", "stored constant 3.0 ")),
        (summed, 0, 1, ("Sum{Add}, axis: [0]: 0, stored 1",)),
        (called, "exp", "sin", ("node 0: Elemwise{Exp}, stored Elemwise{Sin}",)),
        (tagged, "psd", "symmetric", ("tagged {'psd': True}, stored ", "tagged {'symmetric': True}")),
        (shifted, 1.0, 2.0, ("class of code ", "attributes: ", ", stored ")),
    ],
    ids=["number", "array", "loop", "inner", "property", "op", "tag", "user"],
)
def test_what_differs_is_named(
    make: Callable[[Any, Any], Any], wanted: object, stored: object, parts: tuple[str, ...]
) -> None:
    x = pt.vector("x")
    found = graph_difference(graph_of([x], [make(x, wanted)]), graph_of([x], [make(x, stored)]))
    assert found.startswith("node ")
    assert [part for part in parts if part not in found] == [], found


def test_inputs_and_outputs_are_compared() -> None:
    x, y, m = pt.vector("x"), pt.vector("y"), pt.matrix("m")
    one, other = (graph_of([x, given], [pt.exp(x)]) for given in (m, y))
    assert graph_difference(one, one) == SAME
    assert graph_difference(one, other) == "input 1 of the graph: float64 (?, ?), stored float64 (?,)"
    assert graph_difference(graph_of([x], [x, x]), graph_of([x], [x])) == "2 outputs, stored 1"


def test_of_an_op_the_graph_within_and_the_types_it_is_given_are_compared() -> None:
    x = pt.vector("x")
    one, other = (inner_graph_of(within(x, by).owner) for by in (2.0, 3.0))
    assert "OpFromGraph, inner graph: node " in inner_graph_difference(one, other)
    op = within(x, 2.0).owner.op
    narrow = op.make_node(pt.vector("y", shape=(3,)))
    assert inner_graph_difference(one, inner_graph_of(narrow)).startswith("OpFromGraph")


@pytest.mark.stress
def test_every_change_of_a_generated_graph_is_named() -> None:
    def encoded(recipe: Recipe) -> bytes:
        built = build(recipe)
        return graph_of(built.inputs, built.outputs, updates=built.updates)

    compared = 0
    for seed in range(40):
        whole = encoded(made(seed))
        assert graph_difference(whole, whole) == SAME
        for _, recipe in mutated(made(seed), seed):
            changed = encoded(recipe)
            compared += changed != whole
            assert changed == whole or graph_difference(changed, whole) != SAME, seed
    assert compared > 40


def test_what_was_cut_off_or_is_not_pytensors_is_refused() -> None:
    x = pt.vector("x")
    whole = graph_of([x], [scaled(x, 2.0)])
    for size in range(len(whole)):
        with pytest.raises((InvalidEncoding, IndexError)):
            graph_difference(whole[:size], whole)


def test_a_miss_is_explained_by_what_differs(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        explanation, "_readers_of", lambda *part: (graph_difference,) if part == ("function", "graph") else ()
    )
    x = pt.vector("x")
    cache = default_cache()
    wanted, stored = (described([x], [scaled(x, by)]).key for by in (2.0, 3.0))
    assert cache.store(stored, Artifact(b"a function"))
    ((part, what),) = cache.explain(wanted).differences
    assert part == "graph"
    assert "stored constant 3.0 " in what


def test_the_installed_package_names_the_readers() -> None:
    named = {found.name: found for found in entry_points(group=explanation.ENTRY_POINTS)}
    if "function.graph.pytensor" not in named:
        pytest.skip("the packages are tested as they lie, not installed")
    assert named["function.graph.pytensor"].load() is graph_difference
    assert named["op.graph.pytensor"].load() is inner_graph_difference


def test_reading_imports_no_pytensor() -> None:
    program = "import sys, cachegraph.pytensor.describe.graph_reader; print('pytensor' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def regression(prior: Any, scale: float) -> tuple[list[Any], list[Any]]:
    """Return a log density as PyMC makes them: many nodes, some of them named by a person."""
    effect, spread = pt.scalar("effect"), pt.scalar("spread_log__")
    observed = pt.constant(np.arange(40.0), name="y_data")
    sigma = pt.exp(spread)
    sigma.name = "spread"
    likelihood = -(((observed - effect) / sigma) ** 2) / 2 - pt.log(sigma)
    likelihood.name = "y_logprob"
    prior_density = prior(sigma / scale) + spread
    prior_density.name = "spread_logprob"
    return [effect, spread], [likelihood.sum() + prior_density + pt.sqr(effect / 5.0)]


def half_normal(value: Any) -> Any:
    return -pt.sqr(value) / 2


def half_cauchy(value: Any) -> Any:
    return -pt.log1p(pt.sqr(value))


def test_the_nearest_is_the_one_in_which_the_fewest_nodes_differ_and_variables_have_their_names() -> None:
    cache = default_cache()
    stored = {}
    for name, prior, scale in (("same scale", half_normal, 1.5), ("other scale", half_normal, 2.5)):
        stored[name] = described(*regression(prior, scale)).key
        cache.store(stored[name], Artifact(b"a"))
    wanted = described(*regression(half_cauchy, 1.5)).key
    found = cache.explain(wanted)
    assert found.nearest == stored["same scale"].hex
    [difference] = found.differences
    assert "(for spread_logprob)" in difference.what
    other = cache.explain(described(*regression(half_normal, 2.0)).key)
    assert "constant 2.0" in other.differences[0].what


def test_names_are_kept_for_explanations_and_are_no_part_of_the_key() -> None:
    def key(name: str) -> Any:
        x = pt.vector(name)
        y = pt.exp(x)
        y.name = f"exp_{name}"
        return described([x], [y + 1.0]).key

    one, other = key("a"), key("b")
    assert one == other
    assert hash(one) == hash(other)
    assert one.encoding == other.encoding
    assert (one.names[:2], other.names[:2]) == (("a", "exp_a"), ("b", "exp_b"))
    assert kept_names(compressed(one)) == one.names
    assert CacheKey.parse(expanded(compressed(one))) == one


@pytest.mark.parametrize(
    "after",
    [b"", b"x", zlib.compress(b"{}"), zlib.compress(b"[1]"), zlib.compress(b"[" * 10_000), b"\x78\x9c"],
)
def test_names_that_are_none_are_done_without(after: bytes) -> None:
    key = CacheKey.build("function", {"graph": b"g"})
    assert kept_names(compressed(key) + after) == ()
    assert CacheKey.parse(expanded(compressed(key) + after)) == key
