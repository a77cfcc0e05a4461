"""Models that packages on top of PyMC build: bambi's formulas, pymc-extras' state spaces, regression trees.

The packages are imported when a model is made; none of them is needed for the other tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def mixed_effects() -> pm.Model:
    return formula("y ~ x + (x | g)", normal)


def negative_binomial() -> pm.Model:
    return formula("y ~ x + (1 | g)", counts, family="negativebinomial")


def cumulative() -> pm.Model:
    return formula("y ~ x", kinds, family="cumulative")


def categorical() -> pm.Model:
    return formula("y ~ x", kinds, family="categorical")


def basis_process() -> pm.Model:
    return formula("y ~ 0 + hsgp(x, m=8, c=2)", normal)


def zero_inflated_poisson() -> pm.Model:
    return formula("y ~ x", counts, family="zero_inflated_poisson")


def formula(text: str, observed: Callable[[np.random.Generator], Any], **asked: Any) -> pm.Model:
    """Return bambi's model of `text` for sixty rows: a covariate x, groups g, and `observed` as y."""
    import bambi
    import pandas as pd

    rng = np.random.default_rng(3)
    columns = {"x": rng.normal(size=60), "g": np.repeat(list("abcdef"), 10), "y": observed(rng)}
    model = bambi.Model(text, pd.DataFrame(columns), **asked)
    model.build()
    return model.backend.model


def normal(rng: np.random.Generator) -> Any:
    return rng.normal(size=60)


def counts(rng: np.random.Generator) -> Any:
    return rng.poisson(2.0, 60)


def kinds(rng: np.random.Generator) -> Any:
    import pandas as pd

    return pd.Categorical(rng.integers(0, 3, 60), ordered=True)


def level_and_trend() -> pm.Model:
    from pymc_extras.statespace import structural

    level = structural.LevelTrend(order=2, innovations_order=[0, 1], name="trend")
    return state_space((level + structural.MeasurementError(name="error")).build(verbose=False), 1)


def vector_autoregression() -> pm.Model:
    from pymc_extras.statespace import BayesianVARMAX

    asked = {"stationary_initialization": False, "measurement_error": False, "verbose": False}
    return state_space(BayesianVARMAX(endog_names=["a", "b"], order=(1, 0), **asked), 2)


def moving_average() -> pm.Model:
    from pymc_extras.statespace import BayesianSARIMAX

    return state_space(BayesianSARIMAX(order=(1, 0, 1), stationary_initialization=True, verbose=False), 1)


def state_space(filtered: Any, n_series: int) -> pm.Model:
    """Return pymc-extras' model of a random series of forty days, with priors by what parameters are."""
    import pandas as pd

    days = pd.date_range("2020-01-01", periods=40, freq="D")
    series = np.random.default_rng(4).normal(size=(40, n_series)).cumsum(0)
    with pm.Model(coords=filtered.coords) as model:
        for name in filtered.param_names:
            prior(name, filtered.param_info[name]["dims"])
        filtered.build_statespace_graph(pd.DataFrame(series, index=days, columns=list("ab")[:n_series]))
    return model


def prior(name: str, dims: Any) -> None:
    if name in ("P0", "state_cov"):
        variances = pm.Gamma(f"{name}_diagonal", 2.0, 1.0, dims=dims[0])
        pm.Deterministic(name, pt.diag(variances), dims=dims)
    elif name.startswith("sigma"):
        pm.Gamma(name, 2.0, 1.0, dims=dims)
    else:
        pm.Normal(name, 0.0, 0.2, dims=dims)


def trees() -> pm.Model:
    import pymc_bart

    rng = np.random.default_rng(5)
    points = rng.normal(size=(40, 2))
    seen = points[:, 0] ** 2 + rng.normal(size=40)
    with pm.Model() as model:
        mean = pymc_bart.BART("mean", points, seen, m=5)
        pm.Normal("seen", mean, pm.HalfNormal("noise"), observed=seen)
    return model


OF_PACKAGES: dict[str, tuple[str, Callable[[], pm.Model]]] = {
    function.__name__: (package, function)
    for package, functions in {
        "bambi": (
            *(mixed_effects, negative_binomial, cumulative, categorical),
            *(basis_process, zero_inflated_poisson),
        ),
        "pymc_extras": (level_and_trend, vector_autoregression, moving_average),
        "pymc_bart": (trees,),
    }.items()
    for function in functions
}
"""By name: the package that a model needs, and what makes it."""
