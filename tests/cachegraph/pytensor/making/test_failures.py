"""Failures of the adapter: PyTensor makes the function, with one log line, one count and the right result."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function

import cachegraph
from cachegraph.pytensor import explain
from cachegraph.pytensor.describe.specification import Specification
from cachegraph.pytensor.making.lookup import Lookup
from cachegraph.pytensor.stored.stored_graph import StoredGraph

VALUES = np.array([1.0, 2.0])
COUNTED = {"adapter-failure": 1}

ON_A_MISS = {
    "the settings": ("cachegraph.pytensor.making.lookup.default_cache", COUNTED),
    "the key": ("cachegraph.pytensor.making.lookup.describe", COUNTED),
    "names and users' Ops": (f"{Specification.__module__}.Specification.names", COUNTED),
    "packing": ("cachegraph.pytensor.making.lookup.pack", {"unstorable": 1}),
    "reading back": ("cachegraph.pytensor.stored.stored_graph.unpack", {"unstorable": 1}),
    "linking to kept code": ("cachegraph.pytensor.making.uncached.keeping_linker", COUNTED),
    "what is kept for copies": ("cachegraph.pytensor.making.maker.linking_flags", COUNTED),
}
ON_A_HIT = {
    "the settings": ("cachegraph.pytensor.making.lookup.default_cache", COUNTED),
    "the key": ("cachegraph.pytensor.making.lookup.describe", COUNTED),
    "the stored form": ("cachegraph.pytensor.stored.stored_graph.read_sources", {"unstorable": 1}),
    "the inputs": (f"{Specification.__module__}.Specification.graph_inputs", {}),
    "whether there is code": ("cachegraph.pytensor.code.numba_linking.expects_code", COUNTED),
    "the code": ("cachegraph.pytensor.code.numba_linking.stored_function", COUNTED),
    "the thunk": ("cachegraph.pytensor.making.maker.link", COUNTED),
    "the outline": (f"{StoredGraph.__module__}.StoredGraph.outline", COUNTED),
}


def _function() -> tuple[Any, Any]:
    """Return a function with an update, and its shared variable."""
    x = pt.vector("x")
    count = pytensor.shared(np.float64(1.0), name="count")
    made = pytensor.function([x], [pt.exp(x) + count, x.sum()], updates={count: count + x[0]}, name="made")
    return made, count


def _injected(*arguments: Any, **options: Any) -> None:
    raise RuntimeError("injected")


def _check(made: Any, count: Any) -> None:
    assert type(made) is Function
    first, second = made(VALUES)
    np.testing.assert_allclose(first, np.exp(VALUES) + 1.0)
    assert (second, count.get_value()) == (3.0, 2.0)
    np.testing.assert_allclose(made(x=VALUES)[0], np.exp(VALUES) + 2.0)
    assert [variable.name for variable in made.get_shared()] == ["count"]


def _added(before: dict[str, int]) -> dict[str, int]:
    after = cachegraph.counters().bypasses
    found = {kind: number - before.get(kind, 0) for kind, number in after.items()}
    return {
        kind: number for kind, number in found.items() if number and kind in ("adapter-failure", "unstorable")
    }


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.message for r in caplog.records if r.name == "cachegraph" and r.levelno >= logging.WARNING]


@pytest.mark.parametrize(("target", "counted"), ON_A_MISS.values(), ids=ON_A_MISS)
def test_a_step_that_fails_on_a_miss_leaves_the_function_to_pytensor(
    target: str,
    counted: dict[str, int],
    adapter: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = dict(cachegraph.counters().bypasses)
    monkeypatch.setattr(target, _injected)
    _check(*_function())
    assert _added(before) == counted
    assert len(_warnings(caplog)) == counted.get("adapter-failure", 0)


@pytest.mark.parametrize(("target", "counted"), ON_A_HIT.values(), ids=ON_A_HIT)
def test_a_step_that_fails_on_a_hit_leaves_the_function_to_pytensor(
    target: str,
    counted: dict[str, int],
    adapter: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _function()
    assert explain(_function()[0]).outcome == "hit"
    before = dict(cachegraph.counters().bypasses)
    with monkeypatch.context() as patch:
        patch.setattr(target, _injected)
        made, count = _function()
    _check(made, count)
    assert explain(made).outcome != "hit"
    assert _added(before) == counted
    assert len(_warnings(caplog)) == 1


def test_a_stored_graph_that_cannot_be_read_when_it_is_looked_at_is_made_anew(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = _function()[0].maker.fgraph
    made, count = _function()
    monkeypatch.setattr("cachegraph.pytensor.stored.stored_graph.unpack", _injected)
    found = made.maker.fgraph
    assert [str(node.op) for node in found.toposort()] == [str(node.op) for node in expected.toposort()]
    assert found.update_mapping == expected.update_mapping == {2: 1}
    assert len(_warnings(caplog)) == 1
    _check(made, count)


def test_a_copy_that_cannot_be_recognized_is_linked_by_pytensor(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = _function()
    monkeypatch.setattr("cachegraph.pytensor.making.maker.is_same_graph", _injected)
    copied = made.copy()
    assert len(_warnings(caplog)) == 1
    np.testing.assert_allclose(copied(VALUES)[0], np.exp(VALUES) + 1.0)


@pytest.mark.parametrize("step", ["describe_inner", "unpack_inner", "pack_inner"])
def test_an_inner_graph_whose_lookup_fails_is_rewritten(
    step: str, adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytensor.compile.builders import OpFromGraph

    x = pt.vector("x")
    monkeypatch.setattr(f"cachegraph.pytensor.stored.inner_lookup.{step}", _injected)
    squared = OpFromGraph([x], [(x * x).sum() + 1.0])
    made = pytensor.function([x], squared(x) * 2)
    assert made(VALUES) == 12.0


def test_an_error_of_pytensor_is_its_own(adapter: Any, caplog: pytest.LogCaptureFixture) -> None:
    x, y = pt.vector("x"), pt.vector("y")
    with pytest.raises(pytensor.graph.utils.MissingInputError, match="y"):
        pytensor.function([x], x + y)
    with pytest.raises(pytensor.compile.UnusedInputError, match="index 1"):
        pytensor.function([x, y], x)
    with pytest.warns(UserWarning, match="index 1"):
        pytensor.function([x, y], x, on_unused_input="warn")
    assert pytensor.function([x, y], x, on_unused_input="ignore")(VALUES, VALUES).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Invalid value for keyword on_unused_input"):
        pytensor.function([x, y], x, on_unused_input="often")
    assert not _warnings(caplog)


def test_an_error_while_a_graph_is_linked_is_pytensors_own_on_a_miss_and_nothing_is_kept(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytensor.link.numba.linker import NumbaLinker

    monkeypatch.setattr(NumbaLinker, "fgraph_convert", _injected)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="injected"):
            _function()
    monkeypatch.undo()
    assert explain(_function()[0]).outcome == "miss"


def test_an_interrupt_is_no_failure(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Lookup, "_find", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _function()
