"""Initial points and shapes, which PyMC and nutpie compute once, come from the store; functions of users that
are given the mode FAST_COMPILE keep it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import nutpie.compile_pymc
import pymc as pm
import pymc.initial_point
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import FAST_COMPILE, predefined_modes

import cachegraph.pytensor
from engine.pytensor.linker import EngineLinker
from engine.pytensor.nutpie.starting import compiling_on_engine, computing_on_engine
from tests.cachegraph.pytensor.entry_points import declared

pytestmark = pytest.mark.usefixtures("kernels_once")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(declared(tmp_path))
    monkeypatch.setenv("CACHEGRAPH_DIR", str(tmp_path / "cache"))
    cachegraph.pytensor.install(backend="engine")
    yield
    cachegraph.pytensor.uninstall()


def model() -> pm.Model:
    with pm.Model() as found:
        mean, spread = pm.Normal("mean", 1.5, 2.0, initval="prior"), pm.HalfCauchy("spread", 5.0)
        weights = pm.Dirichlet("weights", np.array([1.0, 2.0, 3.0]))
        effect = pm.Normal("effect", mean, spread, shape=(4, 2), initval="prior")
        pm.Deterministic("total", effect.sum(axis=0))
        pm.Normal("seen", effect[0, 0], weights[0] + 1.0, observed=np.arange(3.0))
    return found


def points(seeds: tuple[int, ...] = (1, 2, 1)) -> list[dict[str, Any]]:
    made = model()
    jittered = pymc.initial_point.make_initial_point_fn(model=made, jitter_rvs=set(made.free_RVs))
    return [jittered(seed) for seed in seeds]


def shapes() -> Any:
    return nutpie.compile_pymc._compute_shapes(model())


@pytest.fixture
def by_pytensor() -> tuple[Any, Any]:
    """The points and shapes that PyTensor computes alone."""
    assert not hasattr(pymc.initial_point.compile, "__wrapped__")
    return points(), shapes()


def asked_for(name: str) -> list[Any]:
    """Have a function of "FAST_COMPILE" made; return its linker, in the place of what nutpie asks for."""
    x = pt.scalar("x")
    return [pytensor.function([x], x + 1.0, mode=name).maker.linker]


def test_points_are_pytensors_from_a_miss_and_from_a_hit(by_pytensor: Any, installed: None) -> None:
    due, lengths = by_pytensor
    for _ in range(2):
        first, other, again = points()
        for name, value in due[0].items():
            np.testing.assert_allclose(first[name], value, rtol=1e-12)
            np.testing.assert_allclose(other[name], due[1][name], rtol=1e-12)
            assert first[name].tobytes() == again[name].tobytes()
        assert not np.array_equal(first["effect"], other["effect"])
        assert {name: tuple(map(int, found)) for name, found in shapes().items()} == {
            name: tuple(map(int, found)) for name, found in lengths.items()
        }


def test_the_second_time_nothing_is_rewritten(installed: None) -> None:
    points()
    shapes()
    before = cachegraph.counters()
    points()
    shapes()
    after = cachegraph.counters()
    assert after.misses == before.misses
    assert after.bypasses == before.bypasses


def test_a_function_that_is_given_the_mode_keeps_it(installed: None) -> None:
    for mode in (FAST_COMPILE, "FAST_COMPILE"):
        assert not isinstance(asked_for(mode)[0], EngineLinker)
    assert isinstance(computing_on_engine(asked_for)("FAST_COMPILE")[0], EngineLinker)
    assert isinstance(compiling_on_engine(lambda mode: mode)(mode=FAST_COMPILE), str)
    assert compiling_on_engine(lambda mode: mode)(mode="FAST_RUN") == "FAST_RUN"
    assert compiling_on_engine(lambda mode: mode)() is None


@pytest.mark.parametrize(("variable", "value"), [("CACHEGRAPH_MODE", "off"), ("CACHEGRAPH_ON_MISS", "error")])
def test_nothing_is_replaced_where_nothing_is_kept_or_may_be_compiled(
    variable: str, value: str, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert not isinstance(computing_on_engine(asked_for)("FAST_COMPILE")[0], EngineLinker)
    assert compiling_on_engine(lambda mode: mode)(mode=FAST_COMPILE) is FAST_COMPILE


def test_pytensors_mode_is_back_after_an_error(installed: None) -> None:
    own = predefined_modes["FAST_COMPILE"]

    def fails() -> None:
        assert predefined_modes["FAST_COMPILE"] is not own
        raise ValueError("no shapes")

    with pytest.raises(ValueError, match="no shapes"):
        computing_on_engine(fails)()
    assert predefined_modes["FAST_COMPILE"] is own


def test_with_another_default_mode_nothing_is_replaced(installed: None) -> None:
    with pytensor.config.change_flags(mode="NUMBA"):
        assert compiling_on_engine(lambda mode: mode)(mode=FAST_COMPILE) is FAST_COMPILE
