"""Mode verify compiles hits again: a wrong entry is found and replaced, and gives no wrong result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from cachegraph.cache import Artifact, default_cache
from cachegraph.caching.counters import PROCESS
from cachegraph.pytensor import explain
from tests.cachegraph.pytensor.verifying_process import in_fresh_process

VALUES = np.array([1.0, 2.0])


def make(factor: float) -> Any:
    from pytensor.compile.builders import OpFromGraph

    x = pt.vector("x")
    count = pytensor.shared(np.float64(1.0))
    inner = OpFromGraph([x], [pt.exp(x).sum()], pullback=lambda i, o, g: [g[0] * i[0]])
    return pytensor.function([x], inner(x) * factor + count, updates={count: count + 1})


@pytest.fixture
def verifying(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    monkeypatch.setenv("CACHEGRAPH_VERIFY_RATE", "1")


def test_a_right_entry_is_a_hit(verifying: None, caplog: pytest.LogCaptureFixture) -> None:
    make(2.0)
    found = make(2.0)
    assert explain(found).outcome == "hit"
    assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
    assert not caplog.records


def test_a_wrong_entry_is_replaced(verifying: None, caplog: pytest.LogCaptureFixture) -> None:
    right, wrong = make(2.0), make(3.0)
    key = right.maker._stored.key
    assert default_cache().store(key, Artifact(wrong.maker._stored.content, seconds={"rewrite": 1.0}))
    found = make(2.0)
    assert (explain(found).outcome, explain(found).reason) == ("miss", "mismatch")
    assert "differs from a new build" in caplog.text
    assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
    again = make(2.0)
    assert explain(again).outcome == "hit"
    assert again(VALUES) == found(VALUES) - 1.0


def aside(directory: Path) -> int:
    return len(list((directory / "v1" / "damaged").glob("numba-*")))


@pytest.mark.slow
def test_sound_code_is_a_hit_and_what_calls_change_is_changed_once(cache_directory: Path) -> None:
    names = ("several", "counted", "drawn", "overwritten", "refused")
    first = in_fresh_process("call", *names)
    second = in_fresh_process("call", *names, CACHEGRAPH_MODE="verify")
    assert second["results"] == first["results"]
    assert second["results"][1] == [["float64 0.0"], ["float64 3.0"]]
    assert second["results"][-1][0] == ["AssertionError", "must be below 1"]
    assert (second["code"], second["misses"], second["said"]) == ([[1, 0]] * len(names), {}, [])
    assert aside(cache_directory) == 0


@pytest.mark.slow
def test_the_code_of_another_function_is_caught_at_the_first_call(cache_directory: Path) -> None:
    twice, thrice = (["float64 [1.0, 2.0, 4.0]"],) * 2, (["float64 [1.5, 3.0, 6.0]"],) * 2
    in_fresh_process("swap", "doubled", "tripled")
    wrong = in_fresh_process("call", "doubled")
    assert wrong["results"] == [list(thrice)]  # no check but this mode's can tell
    found = in_fresh_process("call", "doubled", "doubled", "tripled", CACHEGRAPH_MODE="verify")
    assert found["results"] == [list(twice), list(twice), list(thrice)]
    assert found["code"] == [[0, 1], [1, 0], [1, 0]]
    [said] = found["said"]
    assert "differs from a new build: with the arguments of a call it gives (array([1.5" in said
    assert found["misses"]["mismatch"] == aside(cache_directory) > 0


@pytest.mark.slow
def test_code_of_ops_that_wrong_code_was_made_of_goes_with_it(cache_directory: Path) -> None:
    in_fresh_process("poison-exp", "exponential")
    found = in_fresh_process("call", "exponential", "shifted_exponential", CACHEGRAPH_MODE="verify")
    assert found["results"][0][0] == [f"float64 {np.exp([0.5, 1.0, 2.0]).tolist()}"]
    assert found["misses"]["mismatch"] == aside(cache_directory) > 1
    assert len(found["said"]) == 1
    after = in_fresh_process("call", "shifted_exponential", "exponential")
    assert after["results"] == found["results"][::-1]


@pytest.mark.slow
def test_arguments_that_cannot_be_copied_are_computed_with_what_pytensor_compiles(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make(2.0)(VALUES)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")

    def fail(*_: object) -> None:
        raise MemoryError("no room for a copy")

    with monkeypatch.context() as patch:
        patch.setattr("cachegraph.pytensor.code.code_verification._outcome", fail)
        before = PROCESS.snapshot().misses.get("unverified", 0)
        found = make(2.0)
        assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
        assert found(VALUES) == np.exp(VALUES).sum() * 2.0 + 2.0
    assert PROCESS.snapshot().misses["unverified"] == before + 1
    assert "no room for a copy" in caplog.text
    caplog.clear()
    again = make(2.0)
    assert again(VALUES) == np.exp(VALUES).sum() * 2.0 + 1.0
    assert explain(again).found["numba"] == [1, 0]
    assert not caplog.records


@pytest.mark.slow
def test_what_numba_inlines_of_a_function_is_compiled_anew(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no call whose results could be compared."""
    import numba
    from numba.core import event

    make(2.0)(VALUES)
    monkeypatch.setenv("CACHEGRAPH_MODE", "verify")
    code = make(2.0).vm.jit_fn

    @numba.njit
    def calling(x: Any, count: Any) -> Any:
        return code(x, count)[0]

    with event.install_recorder("numba:compile") as recorder:
        assert calling(VALUES, np.array(1.0)) == np.exp(VALUES).sum() * 2.0 + 1.0
    compiled = [happened.data["dispatcher"].py_func.__name__ for _, happened in recorder.buffer]
    assert "numba_funcified_fgraph" in compiled
