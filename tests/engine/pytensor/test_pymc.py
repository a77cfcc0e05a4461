"""PyMC models: log density and gradient by the engine are those of the numba mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from pymc.logprob.utils import CheckParameterValue, ParameterValueError

import engine.pytensor
from tests.engine.pytensor.pymc_models import MODELS

LEFT = {"cut_off": {"Erfcx"}}
"""The Ops that PyTensor computes, by model."""


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def density(model: pm.Model, mode: str) -> Any:
    outputs = [model.logp(), model.dlogp()]
    return model.compile_fn(outputs, inputs=model.value_vars, mode=mode, point_fn=False)


def points(model: pm.Model, scale: float, count: int) -> list[list[np.ndarray]]:
    """Points around the initial one: whole numbers stay, the others are moved by `scale`."""
    rng, initial = np.random.default_rng(0), model.initial_point()
    found = []
    for _ in range(count):
        values = [initial[variable.name] for variable in model.value_vars]
        found.append([v + scale * rng.normal(size=v.shape) if v.dtype.kind == "f" else v for v in values])
    return found


def left_of(function: Any) -> set[str]:
    lines = engine.pytensor.explain(function).splitlines()
    return {line.split()[2] for line in lines if line.startswith("PyTensor computes")}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_density_and_gradient_are_those_of_the_numba_mode(name: str) -> None:
    model = MODELS[name]()
    found, expected = density(model, "ENGINE"), density(model, "NUMBA")
    assert left_of(found) == LEFT.get(name, set())
    for point in (*points(model, 0.0, 1), *points(model, 0.5, 8)):
        for one, other in zip(found(*point), expected(*point), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    for point in points(model, 100.0, 16):
        one, other = found(*point)[0], expected(*point)[0]
        assert np.isfinite(one) or not np.isfinite(other)


def test_a_regression_is_computed_by_the_engine_alone() -> None:
    model = MODELS["regression"]()
    found = density(model, "ENGINE")
    assert left_of(found) == set()
    (point,) = points(model, 0.0, 1)
    logp, gradient = found(*point)
    moved = [value + 1e-6 for value in point]
    slope = (found(*moved)[0] - logp) / 1e-6
    np.testing.assert_allclose(slope, np.sum(gradient), rtol=1e-4)


def test_prior_draws_are_those_of_the_numba_mode_but_for_rounding() -> None:
    with pm.Model():
        mean = pm.Normal("mean")
        pm.Poisson("count", pm.math.exp(pm.Normal("rate", mean, pm.HalfNormal("spread"), shape=3)))
        draws = [
            pm.sample_prior_predictive(4, random_seed=1, compile_kwargs={"mode": mode}).prior
            for mode in ("ENGINE", "NUMBA")
        ]
    for name in ("mean", "rate", "count"):
        np.testing.assert_allclose(draws[0][name], draws[1][name], rtol=1e-14)


@pytest.mark.slow
def test_a_model_is_sampled_by_pymc() -> None:
    with MODELS["regression"]():
        trace = pm.sample(
            draws=20,
            tune=20,
            chains=2,
            cores=2,
            random_seed=1,
            progressbar=False,
            nuts_sampler="pymc",
            compute_convergence_checks=False,
            compile_kwargs={"mode": "ENGINE"},
        )
    assert trace.posterior["effect"].shape == (2, 20, 5)


def test_a_wrong_parameter_raises_what_pymc_raises() -> None:
    import pytensor
    import pytensor.tensor as pt

    scale = pt.dscalar("scale")
    f = pytensor.function([scale], CheckParameterValue("scale > 0")(scale, scale > 0), mode="ENGINE")
    assert f(2.0) == 2.0
    with pytest.raises(ParameterValueError, match="scale > 0"):
        f(-1.0)
