"""PyMC models that explain observations by covariates."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt


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


def eight_schools() -> pm.Model:
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0.0, 5.0), pm.HalfCauchy("spread", 5.0)
        effect = pm.Normal("effect", mean, spread, shape=8)
        errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
        seen = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
        pm.Normal("y", effect, errors, observed=seen)
    return model


def robust_regression() -> pm.Model:
    rng = np.random.default_rng(12)
    covariates = rng.normal(size=(40, 3))
    with pm.Model(coords={"covariate": ["a", "b", "c"]}) as model:
        slope = pm.Laplace("slope", 0, 1, dims="covariate")
        mean = pm.Deterministic("mean", pm.Flat("base") + pm.math.dot(covariates, slope))
        degrees = pm.Gamma("degrees", 2, 0.1)
        noise = pm.HalfStudentT("noise", nu=3, sigma=1)
        pm.StudentT("y", nu=degrees, mu=mean, sigma=noise, observed=rng.standard_t(3, 40))
    return model


def logistic_regression() -> pm.Model:
    rng = np.random.default_rng(13)
    covariates = rng.normal(size=(60, 4))
    with pm.Model() as model:
        seen = pm.Data("seen", covariates)
        slope = pm.Normal(
            "slope", 0, pm.HalfCauchy("local", 1, shape=4) * pm.HalfCauchy("global", 1), shape=4
        )
        pm.Bernoulli("y", logit_p=pm.Normal("base", 0, 5) + seen @ slope, observed=rng.integers(0, 2, 60))
    return model


def softmax_regression() -> pm.Model:
    rng = np.random.default_rng(14)
    with pm.Model() as model:
        covariates = rng.normal(size=(30, 2))
        slope, base = pm.Normal("slope", shape=(2, 3)), pm.ZeroSumNormal("base", shape=3)
        p = pm.math.softmax(covariates @ slope + base, axis=1)
        pm.Categorical("y", p=p, observed=rng.integers(0, 3, 30))
    return model


def count_regression() -> pm.Model:
    rng = np.random.default_rng(15)
    with pm.Model() as model:
        covariate, exposure = rng.normal(size=40), rng.uniform(1, 3, 40)
        groups = pm.Normal("groups", 0, pm.HalfNormal("spread"), shape=4)
        rate = exposure * pm.math.exp(groups[rng.integers(0, 4, 40)] + pm.Normal("slope") * covariate)
        pm.NegativeBinomial("n", mu=rate, alpha=pm.Exponential("alpha", 1), observed=rng.poisson(2, 40))
        pm.Poisson("p", mu=rate, observed=rng.poisson(2, 40))
    return model


def ordinal() -> pm.Model:
    rng = np.random.default_rng(9)
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        cuts = pm.Normal("cuts", mu=[-1, 1], transform=ordered, shape=2)
        pm.OrderedLogistic("o", eta=pm.Normal("eta"), cutpoints=cuts, observed=rng.integers(0, 3, 20))
    return model


def ordered_probit() -> pm.Model:
    rng = np.random.default_rng(16)
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        cuts = pm.Normal("cuts", mu=[-1, 0, 1], sigma=2, transform=ordered, shape=3)
        eta = pm.Normal("slope") * rng.normal(size=20)
        pm.OrderedProbit("o", eta=eta, cutpoints=cuts, observed=rng.integers(0, 4, 20))
    return model


def item_response() -> pm.Model:
    rng = np.random.default_rng(17)
    persons, items = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    with pm.Model() as model:
        ability = pm.Normal("ability", shape=10)
        difficulty = pm.Normal("difficulty", pm.Normal("mean"), 2, shape=6)
        slope, guess = pm.LogNormal("slope", 0, 0.5, shape=6), pm.Beta("guess", 5, 17, shape=6)
        known = pm.math.invlogit(slope[items] * (ability[persons] - difficulty[items]))
        p = guess[items] + (1 - guess[items]) * known
        pm.Bernoulli("y", p, observed=rng.integers(0, 2, 60))
    return model


def splines() -> pm.Model:
    rng = np.random.default_rng(18)
    points, knots = np.linspace(0, 1, 40), np.linspace(0, 1, 6)
    basis = np.maximum(points[:, None] - knots, 0.0) ** 3
    with pm.Model() as model:
        weights = pm.Normal("weights", 0, 3, shape=6)
        mean = pm.Normal("base", 1, 1) + pm.math.dot(np.asarray(basis, order="F"), weights.T)
        pm.AsymmetricLaplace("q", b=1.0, kappa=1.5, mu=mean, observed=rng.normal(size=40))
        pm.Normal("y", mean, pm.Exponential("noise", 1), observed=rng.normal(size=40))
    return model


def imputed() -> pm.Model:
    rng = np.random.default_rng(11)
    holes = np.ma.masked_greater(rng.normal(size=15), 1.0)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mean"), pm.HalfNormal("noise"), observed=holes)
        pm.Weibull("w", pm.HalfNormal("shape"), 1.0, observed=rng.weibull(1, 10))
    return model


def imputed_covariates() -> pm.Model:
    rng = np.random.default_rng(19)
    holes = rng.normal(size=(12, 2))
    holes[rng.uniform(size=(12, 2)) < 0.25] = np.nan
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0))
        x = pm.MvNormal("x", np.zeros(2), chol=factor, observed=np.ma.masked_invalid(holes))
        slope = pm.Normal("slope", shape=2)
        pm.Normal("y", pt.sum(x * slope, axis=1), 1.0, observed=rng.normal(size=12))
    return model


def measured_with_error() -> pm.Model:
    rng = np.random.default_rng(20)
    with pm.Model() as model:
        true = pm.Normal("true", pm.Normal("center"), pm.HalfNormal("width"), shape=20)
        pm.Normal("x", true, 0.3, observed=rng.normal(size=20))
        noise, skew = pm.HalfNormal("noise"), pm.Normal("skew")
        pm.SkewNormal("y", mu=2 * true, sigma=noise, alpha=skew, observed=rng.normal(size=20))
    return model
