"""PyMC models of mixtures, of counts and of what is cut off."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt


def mixture() -> pm.Model:
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(3))
        means, spreads = pm.Normal("means", 0, 3, shape=3), pm.HalfNormal("spreads", shape=3)
        pm.NormalMixture("y", weights, means, spreads, observed=rng.normal(size=40))
    return model


def broken_stick() -> pm.Model:
    """Return a mixture of five parts with weights of a broken stick."""
    rng = np.random.default_rng(50)
    with pm.Model() as model:
        weights = pm.StickBreakingWeights("weights", alpha=pm.Gamma("alpha", 1, 1), K=4)
        parts = [pm.Gamma.dist(pm.HalfNormal("shape"), 1), pm.LogNormal.dist(0, 1)]
        parts += [pm.Weibull.dist(2, pm.HalfNormal(f"scale_{n}")) for n in range(3)]
        pm.Mixture("y", weights, parts, observed=rng.exponential(1, 20))
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


def zero_inflated() -> pm.Model:
    rng = np.random.default_rng(51)
    seen = rng.poisson(2, 25) * rng.integers(0, 2, 25)
    with pm.Model() as model:
        share = pm.math.invlogit(pm.Normal("base") + pm.Normal("slope") * rng.normal(size=25))
        mean = pm.Gamma("mean", 2, 1)
        pm.ZeroInflatedNegativeBinomial("n", share, mu=mean, alpha=pm.Exponential("alpha", 1), observed=seen)
        pm.ZeroInflatedBinomial("b", share, n=10, p=pm.Beta("p", 2, 2), observed=np.minimum(seen, 10))
        pm.HurdlePoisson("h", share, mean, observed=seen)
        pm.HurdleGamma("g", share, mean, 1.0, observed=seen * 0.5)
    return model


def shares() -> pm.Model:
    """Return counts of kinds that vary more than a multinomial's."""
    rng = np.random.default_rng(52)
    with pm.Model() as model:
        share, focus = pm.Dirichlet("share", np.ones(4)), pm.LogNormal("focus", 1, 1)
        pm.DirichletMultinomial("y", n=20, a=share * focus, observed=rng.multinomial(20, np.full(4, 0.25), 8))
    return model


def cut_off() -> pm.Model:
    rng = np.random.default_rng(6)
    with pm.Model() as model:
        mean, noise = pm.Normal("mean"), pm.HalfNormal("noise")
        inside, clipped = rng.uniform(-1, 2, 20), np.clip(rng.normal(size=20), -1, 1)
        pm.Truncated("t", pm.Normal.dist(mean, noise), lower=-1, upper=2, observed=inside)
        pm.Censored("c", pm.Normal.dist(mean, noise), lower=-1, upper=1, observed=clipped)
    return model


def survival() -> pm.Model:
    """Return times to failure, some of them cut off, with a rate that depends on a covariate."""
    rng = np.random.default_rng(53)
    times = rng.weibull(1.5, 30)
    with pm.Model() as model:
        scale = pm.math.exp(pm.Normal("base") + pm.Normal("slope") * rng.normal(size=30))
        hazard = pm.Weibull.dist(alpha=pm.HalfNormal("alpha"), beta=scale)
        pm.Censored("w", hazard, lower=None, upper=1.5, observed=np.minimum(times, 1.5))
        slow = pm.Gamma.dist(pm.HalfNormal("shape"), 1.0)
        pm.Censored("g", slow, lower=None, upper=2.0, observed=np.minimum(times, 2.0))
    return model


def piecewise_hazard() -> pm.Model:
    """Return a hazard that is constant in each interval, by the counts of deaths."""
    rng = np.random.default_rng(54)
    exposure, deaths = rng.uniform(0, 1, (12, 5)), rng.integers(0, 2, (12, 5))
    with pm.Model() as model:
        base = pm.Gamma("base", 0.5, 0.5, shape=5)
        risk = pt.outer(pm.math.exp(pm.Normal("slope") * rng.normal(size=12)), base)
        pm.Poisson("y", exposure * risk + 1e-6, observed=deaths)
    return model


def capture() -> pm.Model:
    """Return animals that are caught or not: a count that is a binomial's n, and free whole numbers."""
    rng = np.random.default_rng(55)
    with pm.Model() as model:
        p, rate = pm.Beta("p", 1, 1), pm.Gamma("rate", 20, 1)
        size = pm.Poisson("size", rate, initval=30)
        pm.Binomial("y", n=size, p=p, observed=rng.integers(3, 10, 6))
        pm.Geometric("g", p, observed=rng.geometric(0.4, 6))
        pm.HyperGeometric("h", N=200, k=size, n=5, observed=[1, 2])
        pm.DiscreteWeibull("w", q=p, beta=1.2, observed=[1, 0, 3])
    return model


def odd_densities() -> pm.Model:
    rng = np.random.default_rng(56)
    with pm.Model() as model:
        one, two = pm.HalfNormal("one"), pm.HalfNormal("two")
        pm.VonMises("v", 0.1, one, observed=rng.uniform(-3, 3, 8))
        pm.ExGaussian("e", mu=0.0, sigma=one, nu=two, observed=rng.normal(size=8))
        pm.Wald("w", one, two, observed=rng.wald(1, 1, 8))
        pm.Kumaraswamy("k", one, two, observed=rng.uniform(size=8))
        pm.Moyal("m", 0.0, one, observed=rng.normal(size=8))
        pm.Rice("r", one, two, observed=rng.uniform(0.1, 3, 8))
        pm.Gumbel("u", 0.0, one, observed=rng.normal(size=8))
        pm.Pareto("p", one, 0.5, observed=1 + rng.pareto(2, 8))
        pm.Logistic("l", 0.0, two, observed=rng.normal(size=8))
        pm.LogitNormal("n", 0.0, two, observed=rng.uniform(size=8))
        pm.Triangular("t", lower=-5, upper=5, c=one - two, observed=rng.uniform(-4, 4, 8))
    return model
