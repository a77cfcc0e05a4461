"""PyMC models of many kinds, by name; each function returns a model with data made from a fixed seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm


def regression() -> pm.Model:
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        groups, covariates = rng.integers(0, 5, 50), rng.normal(size=(50, 3))
        effect = pm.Normal("effect", pm.Normal("mean"), pm.HalfNormal("spread"), shape=5)
        slope = pm.Normal("slope", shape=3)
        pm.Normal(
            "y", effect[groups] + covariates @ slope, pm.HalfCauchy("noise", 1), observed=rng.normal(size=50)
        )
    return model


def mixture() -> pm.Model:
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(3))
        means, spreads = pm.Normal("means", 0, 3, shape=3), pm.HalfNormal("spreads", shape=3)
        pm.NormalMixture("y", weights, means, spreads, observed=rng.normal(size=40))
    return model


def correlated() -> pm.Model:
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", pm.Normal("means", shape=3), chol=factor, observed=rng.normal(size=(20, 3)))
    return model


def gaussian_process() -> pm.Model:
    with pm.Model() as model:
        points = np.linspace(0, 1, 12)[:, None]
        scale, length = pm.HalfNormal("scale"), pm.Gamma("length", 2, 1)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.Matern52(1, length))
        noise = pm.HalfNormal("noise")
        process.marginal_likelihood("y", X=points, y=np.sin(6 * points[:, 0]), sigma=noise)
    return model


def autoregression() -> pm.Model:
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        rho, noise = pm.Normal("rho", 0, 0.5, shape=2), pm.HalfNormal("noise")
        start = pm.Normal.dist(0, 1, shape=2)
        pm.AR("y", rho, sigma=noise, init_dist=start, observed=rng.normal(size=30))
    return model


def garch() -> pm.Model:
    rng = np.random.default_rng(5)
    with pm.Model() as model:
        omega, alpha = pm.HalfNormal("omega"), pm.Beta("alpha", 2, 5)
        beta = pm.Beta("beta", 2, 2)
        pm.GARCH11(
            "y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=0.5, observed=rng.normal(size=20)
        )
    return model


def cut_off() -> pm.Model:
    rng = np.random.default_rng(6)
    with pm.Model() as model:
        mean, noise = pm.Normal("mean"), pm.HalfNormal("noise")
        inside, clipped = rng.uniform(-1, 2, 20), np.clip(rng.normal(size=20), -1, 1)
        pm.Truncated("t", pm.Normal.dist(mean, noise), lower=-1, upper=2, observed=inside)
        pm.Censored("c", pm.Normal.dist(mean, noise), lower=-1, upper=1, observed=clipped)
    return model


def counts() -> pm.Model:
    rng = np.random.default_rng(7)
    with pm.Model() as model:
        p, mean, share = pm.Beta("p", 2, 2), pm.Gamma("mean", 2, 1), pm.Beta("share", 1, 1)
        pm.ZeroInflatedPoisson("z", share, mean, observed=rng.poisson(2, 20))
        pm.BetaBinomial("b", n=10, alpha=mean, beta=2, observed=rng.integers(0, 10, 10))
        pm.NegativeBinomial("n", mu=mean, alpha=2, observed=rng.poisson(2, 20))
        pm.Multinomial("m", n=6, p=pm.math.stack([p, 1 - p]), observed=[2, 4])
    return model


def volatility() -> pm.Model:
    rng = np.random.default_rng(8)
    with pm.Model() as model:
        step = pm.Exponential("step", 10)
        path = pm.GaussianRandomWalk("path", sigma=step, shape=40, init_dist=pm.Normal.dist(0, 10))
        degrees = pm.Exponential("degrees", 0.1)
        pm.StudentT("y", degrees, lam=pm.math.exp(-2 * path), observed=rng.normal(size=40))
    return model


def ordinal() -> pm.Model:
    rng = np.random.default_rng(9)
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        cuts = pm.Normal("cuts", mu=[-1, 1], transform=ordered, shape=2)
        pm.OrderedLogistic("o", eta=pm.Normal("eta"), cutpoints=cuts, observed=rng.integers(0, 3, 20))
    return model


def basis() -> pm.Model:
    rng = np.random.default_rng(10)
    with pm.Model() as model:
        points = np.linspace(0, 1, 30)[:, None]
        process = pm.gp.HSGP(m=[6], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=pm.HalfNormal("length")))
        pm.Poisson("y", pm.math.exp(process.prior("f", X=points)), observed=rng.poisson(1, 30))
    return model


def imputed() -> pm.Model:
    rng = np.random.default_rng(11)
    holes = np.ma.masked_greater(rng.normal(size=15), 1.0)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mean"), pm.HalfNormal("noise"), observed=holes)
        pm.Weibull("w", pm.HalfNormal("shape"), 1.0, observed=rng.weibull(1, 10))
    return model


MODELS: dict[str, Callable[[], pm.Model]] = {
    function.__name__: function
    for function in (
        regression,
        mixture,
        correlated,
        gaussian_process,
        autoregression,
        garch,
        cut_off,
        counts,
        volatility,
        ordinal,
        basis,
        imputed,
    )
}
