"""What PyMC does with a model, by the engine: gradients, draws, sampling, errors."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from pymc.logprob.utils import CheckParameterValue, ParameterValueError

import engine.pytensor
from tests.engine.pytensor.comparing_models import density, left_of, points
from tests.engine.pytensor.models import MODELS


@pytest.fixture(autouse=True)
def registered() -> None:
    engine.pytensor.register()


def test_a_regression_is_computed_by_the_engine_alone() -> None:
    model = MODELS["regression"]()
    found = density(model, "ENGINE")
    assert left_of(found) == set()
    (point,) = points(model, 0.0, 1)
    logp, gradient = found(*point)
    moved = [value + 1e-6 for value in point]
    slope = (found(*moved)[0] - logp) / 1e-6
    np.testing.assert_allclose(slope, np.sum(gradient), rtol=1e-4)


@pytest.mark.slow
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
