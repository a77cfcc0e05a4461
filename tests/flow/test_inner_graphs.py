"""Functions of Ops that hold graphs: rewritten once, compiled once, found again, and never taken for
another.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import engine.tensor as pt
from cachegraph.cache import default_cache
from engine import OpFromGraph
from engine.runtime.program import N_COMMON

ROOT = Path(__file__).resolve().parents[2]


def layer(factor: float = 0.5, **options: Any) -> OpFromGraph:
    """A layer of a network: its input and its weights to its output."""
    x, weights = pt.vector("x"), pt.matrix("weights")
    return OpFromGraph([x, weights], [pt.tanh(pt.dot(weights, x)) + factor * x], **options)


def chain(length: int) -> tuple[list[Any], list[Any]]:
    """Equal layers one behind the other; the cost, and its gradients for the input and for all weights."""
    x, weights = pt.vector("x"), [pt.matrix(f"weights {k}") for k in range(length)]
    hidden: Any = x
    for matrix in weights:
        hidden = layer()(hidden, matrix)
    cost = pt.sum(pt.sqr(hidden))
    return [x, *weights], [cost, *engine.grad(cost, [x, *weights])]


def values(length: int) -> list[Any]:
    random = np.random.default_rng(length)
    return [random.normal(size=3), *(0.3 * random.normal(size=(3, 3)) for _ in range(length))]


def assert_as_numpy(f: Any, inputs: list[Any], outputs: list[Any], arguments: list[Any]) -> None:
    due = engine.function(inputs, outputs, mode="NUMPY")(*arguments)
    for found, expected in zip(f(*arguments), due, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def in_fresh_process(code: str, cache: Path, **environment: str) -> Any:
    """What `code` prints as JSON, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CACHEGRAPH_DIR": str(cache)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_chain_of_equal_layers_is_rewritten_once_and_each_kernel_is_compiled_once() -> None:
    inputs, outputs = chain(100)
    f = engine.function(inputs, outputs)
    assert f.cache_info.found["op"] == [0, 2]  # the layer and its pullback
    hits, compiled = f.cache_info.found["kernel"]
    assert hits == 0
    assert f.cache_info.compilations == compiled < 12 + N_COMMON
    assert_as_numpy(f, inputs, outputs, values(100))


def test_twice_the_layers_need_the_same_rewrites_and_the_same_kernels() -> None:
    inputs, outputs = chain(20)
    first = engine.function(inputs, outputs)
    inputs, outputs = chain(40)
    second = engine.function(inputs, outputs)
    assert second.cache_info.found == {
        "function": [0, 1],
        "op": [2, 0],
        "kernel": [first.cache_info.compilations, 0],
    }
    assert_as_numpy(second, inputs, outputs, values(40))


def test_what_all_layers_share_has_a_gradient_of_as_many_kernels_however_many_layers() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    compiled = []
    for length in (1 + 31 * 2, 1 + 31 * 4):
        hidden: Any = x
        for _ in range(length):
            hidden = layer()(hidden, weights)
        outputs = engine.grad(pt.sum(hidden), [x, weights])
        f = engine.function([x, weights], outputs)
        compiled.append(f.cache_info.compilations)
        assert_as_numpy(f, [x, weights], outputs, [np.ones(3), 0.2 * np.eye(3)])
    assert compiled[1] == 0


def test_a_second_model_finds_the_layers_of_the_first_in_a_fresh_process(tmp_path: Path) -> None:
    code = """
import json, engine, engine.tensor as pt
from tests.flow.test_inner_graphs import chain, layer
{model}
info = f.cache_info
print(json.dumps([info.outcome, info.found, info.compilations]))
"""
    chained = "f = engine.function(*chain(3))"
    related = "x, w = pt.vector(), pt.matrix(); y = layer()(x, w); f = engine.function([x, w], pt.tanh(y) / pt.sum(y))"
    outcome, found, compilations = in_fresh_process(code.format(model=chained), tmp_path)
    assert (outcome, found["op"], compilations > N_COMMON) == ("miss", [0, 2], True)
    outcome, found, compilations = in_fresh_process(code.format(model=related), tmp_path)
    assert (outcome, found["op"]) == ("miss", [1, 0])
    assert found["kernel"][0] > N_COMMON
    outcome, found, compilations = in_fresh_process(code.format(model=chained), tmp_path)
    assert (outcome, set(found), compilations) == ("hit", {"function", "kernel"}, 0)


def test_a_function_without_such_ops_has_no_such_level() -> None:
    x = pt.vector("x")
    assert set(engine.function([x], pt.exp(x)).cache_info.found) == {"function", "kernel"}


def test_compiling_changes_no_op_that_the_user_holds() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    op = layer()
    graph, nodes = op.fgraph, op.fgraph.nodes
    cost = pt.sum(op(op(x, weights), weights))
    engine.function([x, weights], cost)
    assert op == layer()
    assert op.fgraph is graph
    assert op.fgraph.nodes == nodes == layer().fgraph.nodes
    outputs = [cost, engine.grad(cost, weights)]
    f = engine.function([x, weights], outputs)
    assert_as_numpy(f, [x, weights], outputs, [np.ones(2), np.eye(2)])
    assert cost.owner.inputs[0].owner.op is op


def test_the_optimized_op_shows_in_the_graph_of_the_function_cold_and_warm() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    printed = []
    for outcome in ("miss", "hit"):
        f = engine.function([x, weights], layer()(x, weights))
        assert f.cache_info.outcome == outcome
        printed.append(engine.dprint(f, file="str"))
    assert printed[0] == printed[1]
    assert "Inner graphs:" in printed[0]
    assert "Composite{" in printed[0]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "NUMPY"])
def test_every_mode_computes_the_same(mode: str) -> None:
    inputs, outputs = chain(2)
    f = engine.function(inputs, outputs, mode=mode)
    assert_as_numpy(f, inputs, outputs, values(2))


def test_ops_that_no_rewrite_touches_are_compiled_too() -> None:
    inputs, outputs = chain(2)
    mode = engine.Mode("numba", engine.Mode().optimizer.excluding("optimize_inner_graphs", "inline_graphs"))
    assert_as_numpy(engine.function(inputs, outputs, mode=mode), inputs, outputs, values(2))


def twice(inputs: list[Any], outputs: list[Any], cotangents: list[Any]) -> list[Any]:
    return [2 * cotangents[0], None]


def test_names_and_gradients_are_in_no_key() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    plain = engine.function([x, weights], layer()(x, weights))
    other = engine.function([x, weights], layer(name="other", pullback=twice)(x, weights))
    unnamed = engine.function([x, weights], layer(pullback=lambda *_: [None, None])(x, weights))
    assert plain.cache_info.key == other.cache_info.key == unnamed.cache_info.key
    assert (other.cache_info.outcome, unnamed.cache_info.outcome) == ("hit", "hit")


def test_another_gradient_is_another_function_of_the_gradient() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    keys, results = set(), []
    for op in (layer(), layer(pullback=twice), layer(pullback=lambda i, o, g: [3 * g[0], None])):
        f = engine.function([x, weights], engine.grad(pt.sum(op(x, weights)), x), on_unused_input="ignore")
        keys.add(f.cache_info.key)
        results.append(f([1.0], [[0.0]]).tolist())
    assert len(keys) == 3
    assert results == [[0.5], [2.0], [3.0]]


def test_inlined_and_opaque_ops_compute_the_same_under_keys_of_their_own() -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    found = [engine.function([x, weights], layer(inline=inline)(x, weights)) for inline in (False, True)]
    assert found[0].cache_info.key != found[1].cache_info.key
    assert "op" not in found[1].cache_info.found
    np.testing.assert_allclose(found[0]([1.0], [[2.0]]), found[1]([1.0], [[2.0]]), rtol=1e-12)


def with_constant(data: Any) -> Callable[[Any], Any]:
    x = pt.vector("x")
    return OpFromGraph([x], [x * pt.constant(data)])


FIRST, SECOND = np.arange(40.0), np.arange(40.0) + 100


@pytest.mark.parametrize("inline", [False, True])
def test_large_constants_within_are_identity(inline: bool) -> None:
    x = pt.vector("x")
    keys = set()
    for data in (FIRST, SECOND):
        op = OpFromGraph([x], [x * pt.constant(data)], inline=inline)
        f = engine.function([x], op(x))
        assert f.cache_info.outcome == "miss"
        keys.add(f.cache_info.key)
        np.testing.assert_array_equal(f(np.ones(40)), data)
        np.testing.assert_array_equal(engine.function([x], op(x))(np.ones(40)), data)
    assert len(keys) == 2


def test_a_constant_that_is_within_and_around_is_not_taken_for_data() -> None:
    x = pt.vector("x")
    for inner, outer in ((FIRST, FIRST), (FIRST, SECOND), (SECOND, FIRST), (SECOND, SECOND)):
        f = engine.function([x], with_constant(inner)(x) - pt.constant(outer))
        np.testing.assert_array_equal(f(np.ones(40)), inner - outer)


def test_the_order_of_ops_of_other_constants_matters() -> None:
    x = pt.vector("x")
    first, second = with_constant(FIRST), with_constant(SECOND)
    for ops in ((first, second), (second, first), (first, first), (second, second)):
        h: Any = x
        for op in ops:
            h = pt.exp(-1e-3 * op(h))
        f = engine.function([x], h)
        assert f.cache_info.outcome == "miss"
        due = engine.function([x], h, mode="NUMPY")(np.ones(40))
        np.testing.assert_allclose(f(np.ones(40)), due, rtol=1e-12)


def test_data_around_stays_data() -> None:
    x = pt.vector("x")
    outcomes = []
    for data in (FIRST, SECOND):
        f = engine.function([x], pt.sum(layer_of_one()(x) * pt.constant(data)))
        outcomes.append(f.cache_info.outcome)
        assert f(np.ones(40)) == pytest.approx(np.sum(np.exp(1.0) * data))
    assert outcomes == ["miss", "hit"]


def layer_of_one() -> OpFromGraph:
    x = pt.vector("x")
    return OpFromGraph([x], [pt.exp(x)])


def op_entries(replace: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every entry of an Op that is stored from here on changed by `replace`."""
    cache = default_cache()
    store = cache.store

    def changed(key: Any, artifact: Any) -> bool:
        if key.level == "op":
            artifact = type(artifact)(
                replace(artifact.payload), artifact.blobs, artifact.seconds, artifact.summary
            )
        return store(key, artifact)

    monkeypatch.setattr(cache, "store", changed)


@pytest.mark.parametrize("content", ["nothing", "another op", "untrusted"])
def test_an_entry_that_holds_anything_else_is_rewritten_anew(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weights = pt.vector("x"), pt.matrix("weights")
    payload = {
        "nothing": b"",
        "another op": pickle.dumps(layer_of_one(), protocol=5),
        "untrusted": pickle.dumps(subprocess.Popen, protocol=5),
    }[content]
    op_entries(lambda _: payload, monkeypatch)
    engine.function([x, weights], layer()(x, weights))
    f = engine.function([x, weights], [layer()(x, weights), x])
    assert f.cache_info.found["op"] == [0, 1]
    assert_as_numpy(f, [x, weights], [layer()(x, weights), x], [np.ones(2), np.eye(2)])


def test_an_op_that_cannot_be_pickled_is_used_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytes:
        raise TypeError("not today")

    x, weights = pt.vector("x"), pt.matrix("weights")
    monkeypatch.setattr("cachegraph.pickling.dumps", refuse)
    for factor in (2, 3):
        f = engine.function([x, weights], layer()(x, weights) * factor)
        assert f.cache_info.found["op"] == [0, 1]
        assert f([1.0], [[2.0]]) == pytest.approx([factor * (np.tanh(2.0) + 0.5)])


def test_without_a_cache_nothing_is_looked_up_and_all_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "off")
    inputs, outputs = chain(3)
    f = engine.function(inputs, outputs)
    assert f.cache_info.outcome == "bypass"
    assert f.cache_info.found["op"] == [0, 2]
    assert_as_numpy(f, inputs, outputs, values(3))


def test_where_nothing_may_be_compiled_a_known_function_is_found_and_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cachegraph.errors import CacheMissError

    x, weights = pt.vector("x"), pt.matrix("weights")
    engine.function([x, weights], layer()(x, weights))
    monkeypatch.setenv("CACHEGRAPH_ON_MISS", "error")
    f = engine.function([x, weights], layer()(x, weights))
    assert f.cache_info.outcome == "hit"
    assert "OpFromGraph" in str(engine.dprint(f, file="str"))
    with pytest.raises(CacheMissError):
        engine.function([x, weights], layer()(x, weights) + 1)


def test_a_length_that_does_not_fit_within_is_refused_as_outside() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    f = engine.function([x, y], OpFromGraph([x, y], [x + y])(x, y))
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        f([1.0, 2.0], [1.0, 2.0, 3.0])


def test_shared_variables_that_are_passed_are_updated() -> None:
    x, count = pt.vector("x"), engine.shared(1.0, "count")
    op = OpFromGraph([x, count], [x * count])
    f = engine.function([x], op(x, count), updates={count: count + 1})
    assert [f([2.0]).tolist() for _ in range(3)] == [[2.0], [4.0], [6.0]]
