"""Backends are found by entry points, and their modes become the default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import cachegraph.pytensor
from cachegraph.pytensor import UnknownBackend, UnsupportedPyTensor
from cachegraph.pytensor.making.maker import CachedMaker
from tests.cachegraph.pytensor.entry_points import declared, needs_engine
from tests.cachegraph.pytensor.hooks import hooked

engine = pytest.importorskip("engine.pytensor")


@pytest.fixture(autouse=True)
def uninstalled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(declared(tmp_path))
    yield
    cachegraph.pytensor.uninstall()


def _function(**options: Any) -> Any:
    x = pt.dvector("x")
    return pytensor.function([x], pt.exp(x).sum(), **options)


@needs_engine
def test_the_backend_computes_the_functions_that_are_given_no_mode() -> None:
    cachegraph.pytensor.install(backend="engine")
    f = _function()
    assert "the engine computes" in engine.explain(f)
    assert f(np.zeros(3)) == 3.0
    assert "not the engine's" in engine.explain(_function(mode="NUMBA"))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert "not the engine's" in engine.explain(_function())
    assert "the engine computes" in engine.explain(_function())


@needs_engine
def test_a_later_call_that_names_no_backend_keeps_it() -> None:
    cachegraph.pytensor.install(backend="engine")
    cachegraph.pytensor.install()
    assert pytensor.config.mode == "ENGINE"
    cachegraph.pytensor.install(backend="numba")
    assert pytensor.config.mode != "ENGINE"


@needs_engine
def test_uninstalling_gives_back_the_mode_that_was_there() -> None:
    before = hooked()
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        cachegraph.pytensor.install(backend="engine")
        cachegraph.pytensor.install(backend="engine")
        f = _function()
        cachegraph.pytensor.uninstall()
        assert pytensor.config.mode == "FAST_COMPILE"
    assert all(found is before[place] for place, found in hooked().items())
    assert f(np.zeros(2)) == 2.0


@pytest.mark.parametrize("version", ["3.3.6", "3.3.0rc1+4.gabc"])
def test_the_engine_refuses_an_older_pytensor_and_nothing_is_installed(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hooked()
    monkeypatch.setattr("pytensor.__version__", version)
    with pytest.raises(UnsupportedPyTensor, match=r"expected PyTensor 3\.3\.7 or newer for the engine"):
        cachegraph.pytensor.install(backend="engine")
    assert all(found is before[place] for place, found in hooked().items())


def test_an_unknown_backend_is_refused_and_nothing_is_installed() -> None:
    before = hooked()
    with pytest.raises(UnknownBackend, match="found numba, engine") as refused:
        cachegraph.pytensor.install(backend="enigne")
    assert (refused.value.wanted, refused.value.known) == ("enigne", ("numba", "engine"))
    assert all(found is before[place] for place, found in hooked().items())


@needs_engine
def test_what_the_engine_does_not_link_is_compiled_by_numba_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise NotImplementedError("no such thing")

    cachegraph.pytensor.install(backend="engine")
    total = pytensor.shared(np.array(1.0), "total")
    x = pt.dscalar("x")
    with monkeypatch.context() as patched:
        patched.setattr("engine.pytensor.prologue.cut", refuse)
        f = pytensor.function([x], total * 2, updates={total: total + x}, name="running")
    assert [float(f(2.0)), float(f(3.0)), float(total.get_value())] == [2.0, 6.0, 6.0]
    assert isinstance(f.maker, CachedMaker)
    assert "NotImplementedError: no such thing" in cachegraph.pytensor.explain(f).reason
    assert "no such thing" in engine.explain(f)
    assert "numba compiles running" in caplog.text
    assert cachegraph.counters().bypasses.get("refused-by-backend") == 1
